"""What of a processor changes the last digits of numbers: the code that libraries choose for it."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, Any]:
    """Return which code of NumPy, of numba's compiler and of BLAS computes on this processor.

    Returns
    -------
    dict
        `numpy`: the processor features for which NumPy has loops of its own and that it uses; `numba`: the
        processor for which numba compiles; `blas`: the kernels that each BLAS library in use has chosen.
    """
    return {"numpy": _numpy_features(), "numba": _numba_processor(), "blas": _blas_kernels()}


def _numpy_features() -> Sequence[str]:
    from numpy._core import _multiarray_umath as loops

    return [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__.get(name)]


def _numba_processor() -> str:
    from llvmlite.binding import get_host_cpu_name  # numba itself takes much longer to import

    return os.environ.get("NUMBA_CPU_NAME") or str(get_host_cpu_name())


def _blas_kernels() -> Sequence[str]:
    from threadpoolctl import threadpool_info

    found = {
        str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"
    }
    return sorted(found)
