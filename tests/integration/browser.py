"""A real page in headless Chromium, driven over its DevTools protocol."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from contextlib import contextmanager

from tornado.websocket import websocket_connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
_START = "DevTools listening on ws://"


def executable():
    """Return the path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium():
    """Start a headless Chromium with an empty profile and yield the address of its DevTools."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                executable(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": profile},
        )
        try:
            line = next(line for line in process.stderr if line.startswith(_START))
            yield line.removeprefix(_START).split("/", 1)[0].strip()
        finally:
            process.terminate()
            process.wait(timeout=20)
            process.stderr.close()


def visit(address, url, width, script, screenshot=None, errors=None):
    """Open a page at a width in CSS pixels and evaluate a script in it.

    Parameters
    ----------
    address, url : str
    width : int
    script : str
    screenshot : Path, optional
    errors : list, optional
        Is given the errors that the page's console shows.

    Returns
    -------
    value : object
        What the script evaluates to.
    requests : list of str
        Every address the page asked for, itself included.
    """
    (value,), requests = drive(address, url, [(width, "light", script)], screenshot, errors)
    return value, requests


def drive(address, url, steps, screenshot=None, errors=None):
    """Open a page and evaluate a script in each step, at a width and in a colour scheme.

    Parameters
    ----------
    address, url : str
    steps : list of (int, {"light", "dark"}, str)
    screenshot : Path, optional
        Of the last step.
    errors : list, optional
        Is given the errors that the page's console shows.

    Returns
    -------
    values : list of object
        What each script evaluates to; of a promise, what it resolves to.
    requests : list of str
        Every address the page asked for, itself included.
    """
    return asyncio.run(_drive(address, url, steps, screenshot, [] if errors is None else errors))


async def _drive(address, url, steps, screenshot, errors):
    request = urllib.request.Request(f"http://{address}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=20) as reply:
        target = json.load(reply)
    socket = await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=1 << 28)
    requests, loaded = [], asyncio.Event()
    replies = {}

    async def listen():
        while (message := await socket.read_message()) is not None:
            message = json.loads(message)
            if message.get("method") == "Network.requestWillBeSent":
                requests.append(message["params"]["request"]["url"])
            elif message.get("method") == "Page.loadEventFired":
                loaded.set()
            elif message.get("method") == "Runtime.exceptionThrown":
                errors.append(message["params"]["exceptionDetails"]["text"])
            elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                errors.append(message["params"]["entry"]["text"])
            elif "id" in message:
                replies[message["id"]].set_result(message)

    async def call(method, **params):
        number = len(replies) + 1
        replies[number] = asyncio.get_running_loop().create_future()
        await socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
        reply = await asyncio.wait_for(replies[number], 60)
        assert "error" not in reply, reply
        return reply["result"]

    listener = asyncio.create_task(listen())
    await call("Page.enable")
    await call("Network.enable")
    await call("Runtime.enable")
    await call("Log.enable")
    await call("Emulation.setFocusEmulationEnabled", enabled=True)
    values = []
    for width, scheme, script in steps:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        await call("Emulation.setDeviceMetricsOverride", **size)
        colours = [{"name": "prefers-color-scheme", "value": scheme}]
        await call("Emulation.setEmulatedMedia", features=colours)
        if not loaded.is_set():
            await call("Page.navigate", url=url)
            await asyncio.wait_for(loaded.wait(), 60)
        how = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        result = await call("Runtime.evaluate", expression=script, **how)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        values.append(result["result"].get("value"))
    if screenshot:
        picture = await call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        screenshot.write_bytes(base64.b64decode(picture["data"]))
    await call("Page.close")
    socket.close()
    listener.cancel()
    return values, requests
