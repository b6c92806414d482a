"""Start the processes of `svmbench cluster scheduler` and `worker`, with our settings of Dask."""

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
"""Default port of the scheduler."""

DEATH_SECONDS = 60
"""Time for which a worker tries to reach its scheduler before its process ends and is restarted, in
seconds."""

RESTART_SECONDS = (1.0, 30.0)
"""Pause before a worker that ended is restarted, in seconds: initial and maximum; each restart doubles it."""


def scheduler_command(host: str, port: int, dashboard: str | None, tls: Tls | None) -> list[str]:
    """Return the command that starts a scheduler.

    Parameters
    ----------
    host : str
        Address on which the scheduler listens.
    port : int
        Port on which it listens.
    dashboard : str or None
        HOST:PORT of the dashboard, which has neither encryption nor passwords. None for no dashboard.
    tls : Tls or None
        Certificates of the scheduler. Without them, connections are not encrypted, and anyone who reaches the
        address can run code.

    Returns
    -------
    list of str
        The words of the command.
    """
    return [
        *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
        *("--protocol", "tls" if tls else "tcp"),
        *("--host", host, "--port", str(port)),
        *("--dashboard-address", dashboard or PAGES_ADDRESS),
        *(() if dashboard else ("--no-dashboard",)),
    ]


def check_can_listen(host: str, port: int, options: str) -> None:
    """Raise if this process cannot listen on an address, where Dask would fail or use another port.

    Parameters
    ----------
    host : str
        Address on which to listen.
    port : int
        Port on which to listen.
    options : str
        Command line options to correct, for the message.

    Raises
    ------
    ExecutionError
        If listening is not possible.
    """
    try:
        if port not in range(1 << 16):
            raise OSError("ports are from 0 to 65535")
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # Dask sets the same option
            attempt.bind(address)
    except (OSError, UnicodeError) as error:
        raise ExecutionError(f"cannot listen at {host}:{port} ({error}). Correct {options}") from error


def worker_command(
    scheduler: str, host: str | None, workers: int, memory_gb: float | None, tls: Tls | None
) -> list[str]:
    """Return the command that starts single-threaded workers.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler, such as `tls://HOST:8786`.
    host : str or None
        Address on which the workers listen, which the scheduler must reach. None for loopback.
    workers : int
        Number of processes.
    memory_gb : float or None
        Memory limit of a worker, in GiB, above which it is restarted. None for a share of the host's memory.
    tls : Tls or None
        Certificates of the workers, or None for connections without encryption.

    Returns
    -------
    list of str
        The words of the command.

    Raises
    ------
    ExecutionError
        If the address is invalid, does not fit the certificates, or is on another host while `host` is None.
    """
    scheme, (scheduler_host, port) = urlsplit(scheduler).scheme, host_and_port(scheduler)
    expected = "tls" if tls else "tcp"
    if scheme != expected or not scheduler_host or not port:
        hint = {
            ("tls", "tcp"): ". Omit --insecure",
            ("tcp", "tls"): ". Without encryption, anyone who reaches the scheduler can run code here. "
            "Start the scheduler with certificates, or accept the risk with --insecure",
        }.get((scheme, expected), "")
        raise ExecutionError(
            f"expected an address such as {expected}://HOST:{PORT}, found {scheduler!r}{hint}"
        )
    if host is None and not is_loopback(scheduler_host):
        raise ExecutionError(
            f"the scheduler at {scheduler} is on another host, which must be able to reach this worker. "
            "Set the address of this host with --host"
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
    """Return the environment in which a scheduler or worker process starts.

    Parameters
    ----------
    worker_ttl : float
        Time without a heartbeat after which a worker counts as lost, in seconds.
    tls : Tls or None
        Certificates, or None for connections without encryption.
    cache : Path, optional
        Folder of prepared datasets. By default, the one of this user.
    dashboard : bool, default False
        Whether a scheduler serves its dashboard.

    Returns
    -------
    dict of str to str
        Environment variables.
    """
    settings = as_environment(dask_settings(worker_ttl, tls, dashboard) | private_scratch())
    folders = {} if cache is None else {"SVMBENCH_CACHE": str(cache.resolve())}
    return {**os.environ, **THREAD_LIMITS, **settings, **folders}


def keep_running(command: list[str], environment: dict[str, str]) -> None:
    """Run a worker and restart it whenever it ends, for example after its scheduler has restarted.

    The function returns after SIGINT or SIGTERM, which it passes to the worker.

    Parameters
    ----------
    command : list of str
        The words of the command.
    environment : dict of str to str
        Environment variables of the process.
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
    pause, longest = RESTART_SECONDS
    while not stopping:
        started = time.monotonic()
        process = subprocess.Popen(command, env=environment)
        if stopping:  # the signal came before `stop` knew this process
            process.terminate()
        process.wait()
        if time.monotonic() - started > longest:
            pause = RESTART_SECONDS[0]
        until = time.monotonic() + pause
        while not stopping and time.monotonic() < until:
            time.sleep(0.1)
        pause = min(2 * pause, longest)
