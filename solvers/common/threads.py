"""A function of many items in threads; what takes long in it has to let go of the GIL."""

from concurrent.futures import ThreadPoolExecutor

import joblib


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
