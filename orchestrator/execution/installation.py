"""What is installed on a worker, and whether it may run trials of this client's study."""

import importlib.util
import os
import sys
from collections.abc import Collection, Mapping
from typing import Any

from orchestrator.training.cores import machine, physical_cores
from orchestrator.training.environment import (
    cache_folder,
    cache_token,
    host_name,
    host_summary,
    numba_cache,
    package_identity,
    versions,
)

THREAD_LIMITS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
"""One thread a worker: Dask sets the first three, numba would take every core."""


def describe(packages: Collection[str]) -> dict[str, Any]:
    """Describe this process to a client that may send it work.

    Parameters
    ----------
    packages : collection of str
        Import names of the packages whose sources have to be the client's.

    Returns
    -------
    dict
        `software`: versions and source hashes by name; `host`: its facts; `cache`: a token of the cache
        folder, which the workers of one host share; `machine` and `cores`: a token of the machine, and the
        cores it could have to itself there; `limits`: the thread limits of the environment.
    """
    _choose_numba_cache(packages)
    return {
        "software": software(packages),
        "host": host_summary(),
        "cache": cache_token(cache_folder()),
        "machine": machine() or host_name(),
        "cores": physical_cores(),
        "limits": {name: os.environ.get(name) for name in THREAD_LIMITS},
    }


def _choose_numba_cache(packages: Collection[str]) -> None:
    """Keep compiled kernels apart by the sources they come from, on this host, before any is loaded.

    numba looks for changes in the file that holds a kernel only: one that calls an edited kernel of another
    file would be taken from the cache with the old one inside.
    """
    if "NUMBA_CACHE_DIR" not in os.environ and "numba" not in sys.modules:
        os.environ["NUMBA_CACHE_DIR"] = str(numba_cache(packages))


def software(packages: Collection[str]) -> dict[str, str]:
    """Return the versions of Python and libraries, and the identities of packages, sources included.

    Nothing is imported: among the packages are those that a class imports in a method, if ever.
    """
    names = ("orchestrator", *packages)
    return versions() | {
        f"sources of {name}": package_identity(name) if importlib.util.find_spec(name) else "none"
        for name in names
    }


def mismatch(facts: Mapping[str, Any], threads: int, required: Mapping[str, str], timing: bool) -> str:
    """Say why a worker must not run trials of this client's study; an empty string if it may.

    Parameters
    ----------
    facts : mapping
        See `describe`.
    threads : int
        Of the worker.
    required : mapping
        The software that is installed here.
    timing : bool
        Whether seconds are to be compared, which takes one thread.
    """
    found = facts["software"]
    if differing := [
        name for name in dict.fromkeys([*required, *found]) if required.get(name) != found.get(name)
    ]:
        differences = ", ".join(
            f"{name} {found.get(name, 'none')} (here {required.get(name, 'none')})" for name in differing
        )
        return f"has other software: {differences}; install the same on both"
    if not timing:
        return ""
    if threads > 1:
        return f"runs {threads} trainings at once, and timings take one; start it with one thread"
    for name, limit in facts["limits"].items():
        if limit != "1":
            return f"has {name}={limit}, and timings take 1; start it with `svmbench cluster worker`"
    return ""
