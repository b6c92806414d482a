"""The processes of `svmbench cluster scheduler` and `worker`, with our settings in place of Dask's flags."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from orchestrator.execution.dask_settings import (
    LOOPBACK,
    PAGES_ADDRESS,
    as_environment,
    dask_settings,
    private_scratch,
)
from orchestrator.execution.installation import THREAD_LIMITS
from orchestrator.study.errors import ExecutionError
from orchestrator.study.tls import Tls, host_and_port, is_loopback

PORT = 8786

DEATH_SECONDS = 60
"""How long a worker tries to reach its scheduler before its process ends and is started again."""

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
        None: connections are not encrypted, and whoever reaches the address can run code.
    """
    return [
        *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
        *("--protocol", "tls" if tls else "tcp"),
        *("--host", host, "--port", str(port)),
        *("--dashboard-address", dashboard or PAGES_ADDRESS),
        *(() if dashboard else ("--no-dashboard",)),
    ]


def check_can_listen(host: str, port: int, options: str) -> None:
    """Try to listen at an address; Dask would fail with a traceback, or take another port.

    Raises
    ------
    ExecutionError
        If it is not possible; `options` are those to correct.
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
        If the address is invalid, does not fit the certificates, or belongs to another host while `host` is
        left out.
    """
    scheme, (there, port) = urlsplit(scheduler).scheme, host_and_port(scheduler)
    expected = "tls" if tls else "tcp"
    if scheme != expected or not there or not port:
        hint = {
            ("tls", "tcp"): "; leave out --insecure",
            ("tcp", "tls"): "; without encryption, whoever reaches the scheduler can run code here: "
            "start it with certificates, or accept that with --insecure",
        }.get((scheme, expected), "")
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
        *("--host", host or LOOPBACK, "--dashboard-address", PAGES_ADDRESS, "--no-dashboard"),
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


def keep_running(command: list[str], environment: dict[str, str]) -> None:
    """Run a worker, and start it again whenever it ends: its host was cut off, or its scheduler restarted.

    Returns after SIGINT or SIGTERM, which the worker gets too.
    """
    stopping = False
    process: subprocess.Popen | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        if process is not None and process.poll() is None:
            process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    pause, most = RESTART_SECONDS
    while not stopping:
        started = time.monotonic()
        process = subprocess.Popen(command, env=environment)
        process.wait()
        if time.monotonic() - started > most:
            pause = RESTART_SECONDS[0]
        until = time.monotonic() + pause
        while not stopping and time.monotonic() < until:
            time.sleep(0.1)
        pause = min(2 * pause, most)
