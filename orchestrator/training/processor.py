"""The code that numeric libraries choose for this processor, on which the last digits of numbers depend."""

import importlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

_WITH_BLAS = ("numpy", "scipy.linalg")
"""Modules that load the BLAS libraries by which our numbers are computed."""


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, Any]:
    """Return the code that NumPy, numba and BLAS have chosen for this processor.

    Two processors of one `arithmetic` compute the same digits with the same software. NumPy, numba's
    compiler and OpenBLAS let environment variables choose (`NPY_DISABLE_CPU_FEATURES`, `NUMBA_CPU_NAME`,
    `OPENBLAS_CORETYPE`), and their choice is what is returned.

    Returns
    -------
    dict
        `numpy`: the processor features for which NumPy has loops of their own and that it uses; `numba`: the
        processor for which numba compiles; `blas`: the kernels that the BLAS of NumPy and of SciPy use.
    """
    return {"numpy": _numpy_features(), "numba": _numba_processor(), "blas": _blas_kernels()}


def _numpy_features() -> Sequence[str]:
    loops = importlib.import_module("numpy._core._multiarray_umath")  # which has no public name or stubs
    return [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__.get(name)]


def _numba_processor() -> str:
    from llvmlite.binding import get_host_cpu_name  # numba itself takes much longer to import

    return os.environ.get("NUMBA_CPU_NAME") or str(get_host_cpu_name())


def _blas_kernels() -> Sequence[str]:
    """Return the kernels in use, whatever else this process has imported."""
    from threadpoolctl import threadpool_info

    packages = [importlib.import_module(name).__name__.partition(".")[0] for name in _WITH_BLAS]
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return sorted({_kernels(each) for each in libraries if _is_shared_or_of(packages, each["filepath"])})


def _kernels(library: dict[str, Any]) -> str:
    return str(library.get("architecture") or library["internal_api"])


def _is_shared_or_of(packages: Sequence[str], library: str) -> bool:
    """Whether a library belongs to the system or to one of the packages, and not to any other package."""
    import numpy

    installed, path = Path(numpy.__file__).resolve().parents[1], Path(library).resolve()
    return not path.is_relative_to(installed) or path.relative_to(installed).parts[0].startswith(
        tuple(packages)
    )
