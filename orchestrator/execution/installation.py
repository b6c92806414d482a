"""Describe the software of a worker and decide whether it may run trials of this client's study."""

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
"""Environment variables that limit a worker to one thread. Dask sets the first three; without the fourth,
numba uses every core."""


def describe(packages: Collection[str]) -> dict[str, Any]:
    """Return a description of this process, for a client that may send it work.

    Parameters
    ----------
    packages : collection of str
        Import names of the packages whose sources must equal the client's.

    Returns
    -------
    dict
        `software`: versions and source hashes by name. `host`: description of the host. `cache`: token of the
        cache folder, which the workers of a host share. `machine` and `cores`: token of the machine, and the
        cores that the process may have for itself. `limits`: thread limits of the environment.
    """
    choose_numba_cache(packages)
    return {
        "software": software(packages),
        "host": host_summary(),
        "cache": cache_token(cache_folder()),
        "machine": machine() or host_name(),
        "cores": physical_cores(),
        "limits": {name: os.environ.get(name) for name in THREAD_LIMITS},
    }


def choose_numba_cache(packages: Collection[str]) -> None:
    """Set a folder of numba's cache that depends on the sources and the host, before numba is imported.

    For changes, numba only looks at the file that contains a kernel. If a kernel calls an edited kernel of
    another file, numba would load it from the cache with the old code inlined.

    Parameters
    ----------
    packages : collection of str
        Import names of the packages with the sources.
    """
    if "NUMBA_CACHE_DIR" not in os.environ and "numba" not in sys.modules:
        os.environ["NUMBA_CACHE_DIR"] = str(numba_cache(packages))


def software(packages: Collection[str]) -> dict[str, str]:
    """Return the versions of Python and libraries, and the identities of packages with their sources.

    Nothing is imported, because some packages are imported only by a method of a class.

    Parameters
    ----------
    packages : collection of str
        Import names of the packages of the study's solvers.

    Returns
    -------
    dict of str to str
        Versions and hashes by name.
    """
    names = ("orchestrator", *packages)
    return versions() | {
        f"sources of {name}": package_identity(name) if importlib.util.find_spec(name) else "none"
        for name in names
    }


def mismatch(description: Mapping[str, Any], threads: int, required: Mapping[str, str], timing: bool) -> str:
    """Return why a worker must not run trials of this client's study.

    Parameters
    ----------
    description : mapping of str to object
        Description of the worker by `describe`.
    threads : int
        Number of threads of the worker.
    required : mapping of str to str
        The software that is installed here, by name.
    timing : bool
        Whether the study compares times, which requires one thread.

    Returns
    -------
    str
        The reason, for use after `worker ADDRESS`; an empty string if the worker may run trials.
    """
    found = description["software"]
    if differing := [
        name for name in dict.fromkeys([*required, *found]) if required.get(name) != found.get(name)
    ]:
        differences = ", ".join(
            f"{name} {found.get(name, 'none')} (here {required.get(name, 'none')})" for name in differing
        )
        return f"has other software: {differences}. Install the same on both"
    if not timing:
        return ""
    if threads > 1:
        return f"has {threads} threads; expected 1 for timings. Start it with one thread"
    for name, limit in description["limits"].items():
        if limit != "1":
            return f"has {name}={limit}; expected 1 for timings. Start it with `svmbench cluster worker`"
    return ""
