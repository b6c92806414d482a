"""Limits of a fit: iterations, time, memory and threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import psutil

from solvers.common.clock import clock
from solvers.common.compile import njit

NO_LIMIT = int(np.iinfo(np.int64).max)


@njit
def share_of(left, n):
    """Return an equal share of what is left for n, rounded up."""
    return left // n + (left % n > 0)


class Budget:
    """Iterations and time of one `fit`, shared out among its machines one after the other.

    A machine gets an equal share of what is left; what it does not use goes to those after it.

    Parameters
    ----------
    max_iter : int
        −1 for no limit.
    max_seconds : float or None
    n_subproblems : int
    started : float
        `solvers.common.clock.clock()` at which the seconds begin to count.
    """

    def __init__(self, max_iter, max_seconds, n_subproblems, started):
        self._iterations = NO_LIMIT if max_iter == -1 else int(max_iter)
        self._end = np.inf if max_seconds is None else started + max_seconds
        self._subproblems = n_subproblems

    def share(self):
        """Return the next machine's limit of the iterations, and its deadline on the clock."""
        now = clock()
        max_iter = self._iterations
        if max_iter != NO_LIMIT:
            max_iter = share_of(max_iter, self._subproblems)
        return max_iter, now + (self._end - now) / self._subproblems

    def spend(self, n_iter):
        """Note that the machine is done, and how many iterations it took."""
        if self._iterations != NO_LIMIT:
            self._iterations = max(0, self._iterations - int(n_iter))
        self._subproblems -= 1


SMALL = 1 << 28  # bytes that are taken without asking
CGROUP = Path("/sys/fs/cgroup")


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse what would not fit into memory.

    Parameters
    ----------
    n_bytes : float
    what : str
        Subject of the sentence: what takes these bytes.
    remedy : str
        What to do instead.

    Raises
    ------
    MemoryError
    """
    if n_bytes <= SMALL:
        return
    available = available_bytes()
    if n_bytes > available:
        raise MemoryError(
            f"{what} takes {n_bytes / 1e9:.1f} GB, and {max(0.0, available) / 1e9:.1f} GB are free: {remedy}"
        )


def available_bytes() -> float:
    """Return the bytes that this process can take: of the host, of its control group, of its limit."""
    return min(float(psutil.virtual_memory().available), _left_by_control_group(), _left_by_own_limit())


def _left_by_control_group() -> float:
    """Return the same of a container (cgroup v2); pages of files that can be dropped count as free."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return float("inf")
        used = int((CGROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return float(int(limit) - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return float("inf")


def _left_by_own_limit() -> float:
    """Return what is left of this process's address space (ulimit -v)."""
    process = psutil.Process()
    if not hasattr(process, "rlimit"):  # Linux only
        return float("inf")
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return float("inf") if limit == psutil.RLIM_INFINITY else float(limit - process.memory_info().vms)


def in_threads(function, items, n_jobs):
    """Return the function's value for each item.

    Parameters
    ----------
    function : callable
    items : iterable
    n_jobs : int or None
        Number of threads; None is one, −1 one for each core that this process may use.
    """
    n = n_threads(n_jobs)
    if n == 1:
        return list(map(function, items))
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(function, items))


def n_threads(n_jobs):
    """Return the number of threads that `in_threads` uses."""
    return joblib.cpu_count() if n_jobs == -1 else n_jobs or 1
