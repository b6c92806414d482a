"""Run the tests as other processors would: `python -m tests.processors [--as NAME]… [arguments of pytest]`.

NumPy, OpenBLAS and numba choose code by the features of the processor. Environment variables make them
choose the code of a plainer processor, whose numbers differ in the last digits. `make check` runs the tests
as two such processors, after a run with the machine's own code.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping

from numpy._core import _multiarray_umath as loops

BY_DEFAULT = ("without_avx512", "without_avx2")
"""The processors of `make check`."""

NAMES = (*BY_DEFAULT, "mixed")
"""Processors that can be emulated.

`without_avx512`: an x86-64 processor with AVX2, such as Haswell or the first Zen.
`without_avx2`: an x86-64 processor from before 2013.
`mixed`: NumPy's code for this processor, BLAS kernels for Haswell, and compiled code for any x86-64.
"""


def environment(name: str) -> Mapping[str, str] | None:
    """Return the environment variables that make libraries compute as another processor does.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Returns
    -------
    mapping of str to str, or None
        None if this processor cannot run the code of that one.
    """
    found = [feature for feature in loops.__cpu_dispatch__ if loops.__cpu_features__.get(feature)]
    if not loops.__cpu_features__.get("SSE42"):
        return None  # no x86-64 processor
    if name == "without_avx2":
        return _variables(found, "Nehalem", "generic")
    if not loops.__cpu_features__.get("AVX2"):
        return None
    if name == "mixed":
        return _variables([], "Haswell", "generic")
    return _variables([each for each in found if _is_avx512(each)], "Haswell", "haswell")


def _variables(disabled: list[str], blas: str, numba: str) -> Mapping[str, str]:
    features = {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)} if disabled else {}
    return {**features, "OPENBLAS_CORETYPE": blas, "NUMBA_CPU_NAME": numba}


def _is_avx512(feature: str) -> bool:
    """Whether a feature is AVX-512, which NumPy calls X86_V4 since 2.4."""
    return feature.startswith("AVX512") or feature == "X86_V4"


def main() -> int:
    """Run pytest under each processor; return 0 if all of them pass."""
    parser = argparse.ArgumentParser(
        description="Run the tests as other processors would. Arguments that are not listed go to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--as",
        action="append",
        choices=NAMES,
        dest="names",
        help=f"may be repeated; default: {' and '.join(BY_DEFAULT)}",
    )
    options, arguments = parser.parse_known_args()
    failed = []
    for name in options.names or BY_DEFAULT:
        variables = environment(name)
        if variables is None:
            print(f"{name}: left out, as this processor cannot run its code", flush=True)
            continue
        print(f"{name}: {' '.join(f'{key}={value!r}' for key, value in variables.items())}", flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        if subprocess.run(command, env={**os.environ, **variables}).returncode:
            failed.append(name)
    if failed:
        print(f"tests failed as {' and '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
