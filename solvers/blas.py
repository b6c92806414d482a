"""BLAS on one thread: many small products in a loop lose more to waking threads than they gain."""

from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries():
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread():
    """Context in which the BLAS of this process uses one thread; entering it takes some 15 µs."""
    return _libraries().limit(limits=1)
