"""The memory limit of this worker, which holds for the child processes of its trainings, too."""

import math

_limit = math.inf


def limit_memory(size: float) -> None:
    """Set the limit, in bytes; infinite where there is none."""
    global _limit
    _limit = size


def worker_memory() -> float:
    """Return the limit, in bytes; infinite where there is none."""
    return _limit
