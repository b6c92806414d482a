"""Start a scheduler or a worker of one's own cluster, with our settings in place of Dask's many flags."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from orchestrator.execution import ExecutionError
from orchestrator.execution.dask_settings import as_environment, dask_settings, private_scratch
from orchestrator.execution.installation import THREAD_LIMITS
from orchestrator.execution.tls import Tls, host_and_port, is_loopback

LOOPBACK = "127.0.0.1"
PORT = 8786

NO_PAGES = f"{LOOPBACK}:0"
"""Where Dask listens for HTTP although it has nothing to show: it cannot be told not to."""

DEATH_SECONDS = 60
"""How long a worker looks for its scheduler before its process ends and is started anew."""

RESTART_SECONDS = (1.0, 30.0)
"""How long to wait before a worker that ended is started again: at first, and at most."""


def scheduler_command(host: str, port: int, dashboard: str | None, tls: Tls | None) -> list[str]:
    """Return the command that starts a scheduler.

    Parameters
    ----------
    host : str
        Address to listen at.
    port : int
    dashboard : str or None
        HOST:PORT for the dashboard, which has neither encryption nor passwords; None: there is none.
    tls : Tls or None
        None: links are not encrypted, and whoever reaches the address can run code.
    """
    return [
        *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
        *("--protocol", "tls" if tls else "tcp"),
        *("--host", host, "--port", str(port)),
        *("--dashboard-address", dashboard or NO_PAGES),
        *(() if dashboard else ("--no-dashboard",)),
    ]


def check_can_listen(host: str, port: int, options: str) -> None:
    """Try to listen at an address, which Dask would fail at with a traceback, or at another port.

    Raises
    ------
    ExecutionError
        If that cannot be; `options` are what to correct.
    """
    try:
        if port not in range(1 << 16):
            raise OSError("ports are from 0 to 65535")
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Dask does
            attempt.bind(place)
    except (OSError, UnicodeError) as error:
        raise ExecutionError(f"cannot listen at {host}:{port} ({error}); correct {options}") from error


def worker_command(
    scheduler: str, host: str | None, workers: int, memory_gb: float | None, tls: Tls | None
) -> list[str]:
    """Return the command that starts single-threaded workers.

    Parameters
    ----------
    scheduler : str
        Its address.
    host : str or None
        Address to listen at, which the scheduler must reach; None: loopback.
    workers : int
        Number of processes.
    memory_gb : float or None
        Memory a worker may use before it is restarted.
    tls : Tls or None

    Raises
    ------
    ExecutionError
        If the address is none, does not fit the certificates, or belongs to another host while `host` is
        left out.
    """
    scheme, (there, port) = urlsplit(scheduler).scheme, host_and_port(scheduler)
    expected = "tls" if tls else "tcp"
    if scheme != expected or not there or not port:
        lacking = scheme == "tls" and tls is None
        hint = "; leave out --insecure" if lacking else ""
        if scheme == "tcp" and tls is not None:
            hint = (
                "; without encryption, whoever reaches the scheduler can run code here: "
                "start it with certificates, or accept that with --insecure"
            )
        raise ExecutionError(
            f"expected an address such as {expected}://HOST:{PORT}, found {scheduler!r}{hint}"
        )
    if host is None and not is_loopback(there):
        raise ExecutionError(
            f"the scheduler at {scheduler} is on another host, which has to reach this worker: "
            "give the address of this host with --host"
        )
    return [
        *(sys.executable, "-m", "distributed.cli.dask_worker", scheduler),
        *("--host", host or LOOPBACK, "--dashboard-address", NO_PAGES, "--no-dashboard"),
        *("--nworkers", str(workers), "--nthreads", "1"),
        *("--memory-limit", "auto" if memory_gb is None else f"{memory_gb}GiB"),
        *("--death-timeout", str(DEATH_SECONDS)),
    ]


def process_environment(
    worker_ttl: float, tls: Tls | None, cache: Path | None = None, dashboard: bool = False
) -> dict[str, str]:
    """Return the environment in which either is started."""
    settings = as_environment(dask_settings(worker_ttl, tls, dashboard) | private_scratch())
    places = {} if cache is None else {"SVMBENCH_CACHE": str(cache.resolve())}
    return {**os.environ, **THREAD_LIMITS, **settings, **places}


def run_scheduler(command: list[str], environment: Mapping[str, str]) -> None:
    """Become a scheduler."""
    os.execve(command[0], command, dict(environment))


def keep_running(command: list[str], environment: Mapping[str, str]) -> None:
    """Run a worker, and start it again whenever it ends: its host was cut off, or its scheduler restarted.

    Returns after SIGINT or SIGTERM, which the worker gets too.
    """
    asked_to_end = False
    process: subprocess.Popen | None = None

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal asked_to_end
        asked_to_end = True
        if process is not None and process.poll() is None:
            process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    pause, most = RESTART_SECONDS
    while not asked_to_end:
        started = time.monotonic()
        process = subprocess.Popen(command, env=dict(environment))
        process.wait()
        if time.monotonic() - started > most:
            pause = RESTART_SECONDS[0]
        until = time.monotonic() + pause
        while not asked_to_end and time.monotonic() < until:
            time.sleep(0.1)
        pause = min(2 * pause, most)
