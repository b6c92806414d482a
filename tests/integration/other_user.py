"""What another user of the host tries, with the addresses and files to try as JSON.

Started by root, since the other user may not see this Python, and that user from there on. Prints a JSON list
of what was reached: whoever has no certificate has to end with an empty one.
"""

import asyncio
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import distributed.comm.tcp  # now, while it can be seen
from distributed.comm import connect
from distributed.security import Security

NOBODY = 65534
SECONDS = 8
"""How long to try each; all at once, and Dask tries again until then."""


async def asks(place: str, protocol: str, certificates: list[str]) -> bool:
    """Whether a server of Dask's answers a question."""
    pair = dict(zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), certificates, strict=False))
    security = Security(require_encryption=protocol == "tls", **pair)
    try:
        arguments = security.get_connection_args("client")
        comm = await connect(f"{protocol}://{place}", timeout=SECONDS, **arguments)
        try:
            await comm.write({"op": "identity", "reply": True})
            return bool(await asyncio.wait_for(comm.read(), SECONDS))
        finally:
            comm.abort()
    except Exception:
        return False


def browses(place: str, path: str) -> bool:
    """Whether a page is shown."""
    try:
        with urllib.request.urlopen(f"http://{place}{path}", timeout=SECONDS) as page:
            return page.status == 200
    except (OSError, ValueError, urllib.error.URLError) as error:
        error.close() if isinstance(error, urllib.error.HTTPError) else None
        return False
    except Exception:  # no HTTP at all
        return False


def enters(path: str) -> bool:
    """Whether a socket of the file system can be connected to."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        try:
            client.connect("\0" + path[1:] if path.startswith("@") else path)
        except OSError:
            return False
        return True


def opens(path: str) -> bool:
    """Whether a file can be read, or a folder be listed or written to."""
    try:
        place = Path(path)
        if place.is_dir():
            (place / "other-user").write_text("")
        else:
            place.read_bytes()
    except OSError:
        return False
    return True


PAGES = ("/", "/status", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json")


async def main() -> None:
    task = json.loads(sys.argv[1])
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(100))  # else attempts queue
    ways = (("tcp", []), ("tls", []), ("tls", task["certificates"]))
    tries = {}
    for place in task["places"]:
        for protocol, certificates in ways:
            name = f"{protocol} {place} with {len(certificates)} certificates"
            tries[name] = asks(place, protocol, certificates)
        for path in PAGES:
            tries[f"page {place}{path}"] = asyncio.to_thread(browses, place, path)
    tasks = {name: asyncio.ensure_future(attempt) for name, attempt in tries.items()}
    await asyncio.wait(tasks.values(), timeout=2 * SECONDS)
    reached = [name for name, task in tasks.items() if task.done() and task.result()]
    reached += [f"socket {path}" for path in task["sockets"] if enters(path)]
    reached += [f"file {path}" for path in task["files"] if opens(path)]
    print(json.dumps(reached), flush=True)
    os._exit(0)  # some attempts would go on


def become_nobody() -> None:
    """Leave all rights of root behind, for good."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    assert not opens("/etc/shadow")


if __name__ == "__main__":
    distributed.comm.tcp.TLSBackend()
    become_nobody()
    asyncio.run(main())
