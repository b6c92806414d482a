"""Processes that a training starts: measured with it, and ended with it.

The child process of a batch leads a process group, to which all belong that it starts, directly or not. So
they are found after it has ended, too, when they have no parent any more.
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
"""In the command line of what cleans up after the pools of its parent, and ends with it."""


def end_group(leader: int) -> None:
    """Kill a process that leads its group, the group, and descendants that have left it.

    Parameters
    ----------
    leader : int
        Its process id; it may have ended before.
    """
    left = descendants(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    end_all(left)


def end_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes, of which some may have ended."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def descendants(process: int) -> list[psutil.Process]:
    """Return the processes that a process has started, directly or not."""
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.Error:
        return []


def started_since(before: Collection[psutil.Process]) -> list[psutil.Process]:
    """Return this process's descendants that were not there before, without trackers of resources."""
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
    """Return the memory of a process and its descendants, in bytes.

    Parameters
    ----------
    leader : int
    limit : float
        Pages that processes share are counted once where the sum of all would exceed this.
    """
    with suppress(psutil.Error):
        processes = [psutil.Process(leader), *descendants(leader)]
        total = sum(_memory(process, "rss") for process in processes)
        if total <= limit or len(processes) == 1:
            return total
        return sum(_memory(process, "pss") for process in processes)
    return 0


def _memory(process: psutil.Process, kind: str) -> int:
    with suppress(psutil.Error):
        info = process.memory_info() if kind == "rss" else process.memory_full_info()
        return int(getattr(info, kind, info.rss))
    return 0


def kernel_kills() -> int:
    """Return how often the kernel has killed a process here for want of memory.

    In this process's control group, by its `memory.events` or `memory.oom_control`; on the whole host where
    neither can be read.
    """
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            places = [f"/sys/fs/cgroup{group}/memory.events"] if number == "0" else []
            if "memory" in controllers.split(","):
                places = [f"/sys/fs/cgroup/memory{each}/memory.oom_control" for each in (group, "")]
            for place in places:
                if (count := _kills_in(Path(place))) is not None:
                    return count
    return _kills_in(Path("/proc/vmstat")) or 0


def _kills_in(file: Path) -> int | None:
    """Return the number that follows `oom_kill` in a file, or None."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


def prefer_to_be_killed() -> None:
    """Have the kernel kill this process, and what it starts, before the worker that runs it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def guard_group(descriptor: int) -> None:
    """Fork a process that kills this one's group as soon as the other end of a pipe is closed.

    Its parent holds that end: what a training has started ends with the worker, however that ends. A process
    in a session of its own has left the group, and is found by its environment variable `MARK`.
    """
    if os.fork():
        os.close(descriptor)
        return
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 1024)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):  # or whoever reads them would wait for this process, too
        os.dup2(quiet, number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        os.read(descriptor, 1)
        time.sleep(0.2)  # the parent has ended, and the system ends this process's
        end_all(_with_mark(os.environ.get(MARK)))
    finally:
        os.killpg(0, signal.SIGKILL)
