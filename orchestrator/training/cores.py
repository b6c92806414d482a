"""Give a process a core to itself, so that seconds can be compared."""

import os
from functools import lru_cache
from pathlib import Path

_PINS = hasattr(os, "sched_setaffinity")
_ALLOWED = sorted(os.sched_getaffinity(0)) if _PINS else []
"""The logical processors of this process before anything pinned it."""

_TOPOLOGY = Path("/sys/devices/system/cpu")


def physical_cores() -> list[int]:
    """Return one logical processor of each physical core that this process may use.

    Empty where a process cannot be pinned (macOS).
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
    """Return how many physical cores this process may use, by its affinity and its control group's quota."""
    import joblib  # with psutil it takes a tenth of a second, which commands that train nothing need not wait
    import psutil

    there = len(physical_cores()) or psutil.cpu_count(logical=False) or 1
    return min(there, joblib.cpu_count())


@lru_cache(maxsize=1)
def pin(core: int | None) -> None:
    """Move every thread of this process to a core; None gives back all it had."""
    if not _PINS:
        return
    cores = _ALLOWED if core is None else [core]
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            continue  # it has just ended


def machine() -> str:
    """Return a token of this machine that its containers share, empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
