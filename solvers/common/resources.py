"""Limits of a fit: iterations, time, memory and threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import psutil

from solvers.common.clock import clock
from solvers.common.compile import njit

NO_LIMIT = int(np.iinfo(np.int64).max)
"""Number of iterations that stands for no limit."""


@njit
def share_of(left, n):
    """Return an equal share of an amount, rounded up.

    Parameters
    ----------
    left : int
        Amount to share out, such as the remaining iterations.
    n : int
        Number of shares.

    Returns
    -------
    int
        Share of the next one.
    """
    return left // n + (left % n > 0)


class Budget:
    """Iterations and time of one `fit`, shared out among its subproblems in turn.

    A subproblem gets an equal share of the remaining budget. The next ones share what it does not use.

    Parameters
    ----------
    max_iter : int
        Limit of the iterations; −1 for no limit.
    max_seconds : float or None
        Limit of the wall time, in seconds; None for no limit.
    n_subproblems : int
        Number of binary problems of the training.
    started : float
        Time on `solvers.common.clock.clock` from which the seconds count.
    """

    def __init__(self, max_iter, max_seconds, n_subproblems, started):
        self._iterations = NO_LIMIT if max_iter == -1 else int(max_iter)
        self._end = np.inf if max_seconds is None else started + max_seconds
        self._subproblems = n_subproblems

    def share(self):
        """Return the limits of the next subproblem.

        Returns
        -------
        max_iter : int
            Limit of its iterations.
        deadline : float
            Deadline, as a time of `solvers.common.clock.clock`.
        """
        now = clock()
        max_iter = self._iterations
        if max_iter != NO_LIMIT:
            max_iter = share_of(max_iter, self._subproblems)
        return max_iter, now + (self._end - now) / self._subproblems

    def subtract(self, n_iter):
        """Subtract the iterations of a trained subproblem from the budget.

        Parameters
        ----------
        n_iter : int
            Number of iterations that it took.
        """
        if self._iterations != NO_LIMIT:
            self._iterations = max(0, self._iterations - int(n_iter))
        self._subproblems -= 1


SMALL = 1 << 28
"""Largest allocation that is made without a check of the free memory, in bytes."""
CGROUP = Path("/sys/fs/cgroup")
"""Folder where Linux describes the control group of a process."""


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise if an allocation would not fit into memory.

    Parameters
    ----------
    n_bytes : float
        Size of the allocation, in bytes. Sizes up to `SMALL` always pass.
    what : str
        Object that needs the memory, as the subject of the message's sentence.
    remedy : str
        Remedy for the user, as an imperative for the message.

    Raises
    ------
    MemoryError
        The allocation is larger than the available memory.
    """
    if n_bytes <= SMALL:
        return
    available = available_bytes()
    if n_bytes > available:
        raise MemoryError(
            f"{what} takes {n_bytes / 1e9:.1f} GB, and {max(0.0, available) / 1e9:.1f} GB are free: {remedy}"
        )


def available_bytes() -> float:
    """Return the memory that this process can still allocate.

    Returns
    -------
    float
        Bytes: the smallest of the free memory of the host, of its control group, and of its address space.
    """
    free = float(psutil.virtual_memory().available)
    return min(free, _available_in_control_group(), _available_in_address_space())


def _available_in_control_group() -> float:
    """Return the free memory of the container (cgroup v2). Pages of files that can be dropped count as free.

    Returns
    -------
    float
        Bytes; infinite without a limit.
    """
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return float("inf")
        used = int((CGROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return float(int(limit) - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return float("inf")


def _available_in_address_space() -> float:
    """Return the free part of the address space of this process (``ulimit -v``).

    Returns
    -------
    float
        Bytes; infinite without a limit.
    """
    process = psutil.Process()
    if not hasattr(process, "rlimit"):  # psutil has it on Linux only
        return float("inf")
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return float("inf") if limit == psutil.RLIM_INFINITY else float(limit - process.memory_info().vms)


def in_threads(function, items, n_jobs):
    """Return the value of a function for each item.

    Parameters
    ----------
    function : callable
        Function of one argument.
    items : iterable
        Argument of each call.
    n_jobs : int or None
        Number of threads; None is one thread, −1 one for each core that this process may use.

    Returns
    -------
    list
        Values, in the order of the items.
    """
    n = n_threads(n_jobs)
    if n == 1:
        return list(map(function, items))
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(function, items))


def n_threads(n_jobs):
    """Return the number of threads that `in_threads` uses.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads; None is one thread, −1 one for each core that this process may use.

    Returns
    -------
    int
        Number of threads.
    """
    return joblib.cpu_count() if n_jobs == -1 else n_jobs or 1
