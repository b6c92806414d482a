"""Find, measure and end the processes that a training starts.

The child process of a batch leads a process group, to which all its descendants belong. So they can be found
even after it has ended, when they have no parent any more.
"""

import os
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "SVMBENCH_BATCH_PROCESS"
"""Environment variable of a batch's child process, inherited by processes that leave its group."""

_TRACKER = "resource_tracker"
"""Part of the command line of Python's resource tracker, which cleans up for its parent and ends with it."""


def end_group(leader: int) -> None:
    """Kill the leader of a process group, the group, and descendants that have left it.

    Parameters
    ----------
    leader : int
        Process id of the leader, which may have ended already.
    """
    found = descendants(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    end_all(found)


def end_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes; some may have ended already.

    Parameters
    ----------
    processes : iterable of psutil.Process
        Processes to kill.
    """
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def descendants(process: int) -> list[psutil.Process]:
    """Return the processes that a process has started, directly or indirectly.

    Parameters
    ----------
    process : int
        Its process id.

    Returns
    -------
    list of psutil.Process
        The processes; none if the process has ended.
    """
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.Error:
        return []


def started_since(before: Collection[psutil.Process]) -> list[psutil.Process]:
    """Return this process's new descendants, without resource trackers.

    Parameters
    ----------
    before : collection of psutil.Process
        Descendants that are not new.

    Returns
    -------
    list of psutil.Process
        The new descendants.
    """
    found = []
    for process in descendants(os.getpid()):
        with suppress(psutil.Error):
            if process not in before and not any(_TRACKER in part for part in process.cmdline()):
                found.append(process)
    return found


def _with_mark(mark: str | None) -> list[psutil.Process]:
    """Return the other processes that have inherited a mark, also those without a parent.

    Parameters
    ----------
    mark : str or None
        Value of the environment variable `MARK`. No process has None.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if mark is not None and process.environ().get(MARK) == mark and process.pid != os.getpid():
                found.append(process)
    return found


def memory_of(leader: int, limit: float) -> int:
    """Return the memory of a process and its descendants.

    Parameters
    ----------
    leader : int
        Process id.
    limit : float
        Size in bytes. If the sum exceeds it, pages that processes share are counted once.

    Returns
    -------
    int
        Size in bytes; 0 if the process has ended.
    """
    with suppress(psutil.Error):
        processes = [psutil.Process(leader), *descendants(leader)]
        total = sum(_memory(process, "rss") for process in processes)
        if total <= limit or len(processes) == 1:
            return total
        return sum(_memory(process, "pss") for process in processes)
    return 0


def _memory(process: psutil.Process, kind: str) -> int:
    """Return the memory of a process.

    Parameters
    ----------
    process : psutil.Process
        Process to measure.
    kind : str
        `rss` for all its pages, or `pss` for its share of them.

    Returns
    -------
    int
        Size in bytes; 0 if the process has ended.
    """
    with suppress(psutil.Error):
        info = process.memory_info() if kind == "rss" else process.memory_full_info()
        return int(getattr(info, kind, info.rss))
    return 0


def kernel_kills() -> int:
    """Return the number of processes that the kernel has killed because memory was low.

    The number is that of this process's control group, from `memory.events` or `memory.oom_control`. If
    neither can be read, it is that of the host.

    Returns
    -------
    int
        Number of kills since the group or the host started.
    """
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            paths = [f"/sys/fs/cgroup{group}/memory.events"] if number == "0" else []
            if "memory" in controllers.split(","):
                paths = [f"/sys/fs/cgroup/memory{each}/memory.oom_control" for each in (group, "")]
            for path in paths:
                if (count := _kills_in(Path(path))) is not None:
                    return count
    return _kills_in(Path("/proc/vmstat")) or 0


def _kills_in(file: Path) -> int | None:
    """Return the number that follows `oom_kill` in a file.

    Parameters
    ----------
    file : Path
        File with counters of the kernel, such as `/proc/vmstat`.

    Returns
    -------
    int or None
        The number, or None if the file cannot be read or does not contain it.
    """
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


def prefer_to_be_killed() -> None:
    """Let the kernel kill this process and its descendants before the worker that runs it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def guard_group(descriptor: int) -> None:
    """Fork a process that kills this one's group as soon as the other end of a pipe is closed.

    The worker holds the other end. So all processes that a training has started end with the worker, even if
    that is killed. A process in a session of its own has left the group. It is found by its environment
    variable `MARK`.

    Parameters
    ----------
    descriptor : int
        Descriptor of this end of the pipe.
    """
    if os.fork():
        os.close(descriptor)
        return
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 1024)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):  # otherwise their readers would wait for this process as well
        os.dup2(quiet, number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        os.read(descriptor, 1)
        time.sleep(0.2)  # the worker has ended, and the system is ending this process's parent
        end_all(_with_mark(os.environ.get(MARK)))
    finally:
        os.killpg(0, signal.SIGKILL)
