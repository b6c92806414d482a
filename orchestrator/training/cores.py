"""Pin a process to a core that no other process uses, so that its timings can be compared."""

import os
from functools import lru_cache
from pathlib import Path

_PINS = hasattr(os, "sched_setaffinity")
_ALLOWED = sorted(os.sched_getaffinity(0)) if _PINS else []
"""Logical processors of this process before it was pinned."""

_TOPOLOGY = Path("/sys/devices/system/cpu")


def physical_cores() -> list[int]:
    """Return one logical processor of each physical core that this process may use.

    The list is empty on systems where a process cannot be pinned (macOS).
    """
    siblings: dict[str, int] = {}
    for cpu in _ALLOWED:
        try:
            group = (_TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text()
        except OSError:
            group = str(cpu)
        siblings.setdefault(group, cpu)
    return list(siblings.values())


def usable_cores() -> int:
    """Return the number of physical cores that this process may use.

    Its affinity and the quota of its control group limit it.
    """
    # Imported here, because the two modules take 0.1 s and commands without trainings do not need them.
    import joblib
    import psutil

    n_cores = len(physical_cores()) or psutil.cpu_count(logical=False) or 1
    return min(n_cores, joblib.cpu_count())


@lru_cache(maxsize=1)
def pin(core: int | None) -> None:
    """Move every thread of this process to one core, or undo this. A repeated call has no effect.

    Parameters
    ----------
    core : int or None
        Logical processor; None for all that the process had at first.
    """
    if not _PINS:
        return
    cores = _ALLOWED if core is None else [core]
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            continue  # the thread has just ended


def machine() -> str:
    """Return an identifier of this computer that its containers share; empty if it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
