"""Estimate from source files how long numba compiles before the first training of a class."""

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from orchestrator.study.settings import Cluster
from orchestrator.study.study import Arm
from orchestrator.training.environment import numba_cache
from orchestrator.training.source_hash import source_files, source_packages

SECONDS_PER_FUNCTION = 1.0
"""Expected compile time of one function that a class may call, in seconds. Our functions take 0.05 to 1.2
s each on a core of 2.5 GHz."""

_COMPILED = re.compile(r"^\s*@(?:\w+\.)*(?:n?jit|vectorize|guvectorize|cfunc)\b", re.MULTILINE)
_WARM = 0.07
"""Smallest share of the modules with compiled functions that must have an entry in numba's cache. It is
far below 1 because no parameters use all modules, and inlined functions are cached with their callers."""


def compile_seconds(
    arms: Collection[Arm], cluster: Cluster, known: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return an upper bound on the compile time of each class of the arms that is not in numba's cache.

    A class that shares modules with a compiled class may be missing from the result, because its modules look
    compiled. The caches of workers on other hosts are unknown, so their classes count as not compiled.

    Parameters
    ----------
    arms : collection of Arm
        The arms whose classes are inspected.
    cluster : Cluster
        The cluster, which decides the folder of numba's cache.
    known : mapping of str to float, optional
        Measured compile time of each arm, by name, in seconds. Without a measurement, the functions to
        compile are counted.

    Returns
    -------
    dict of str to float
        Seconds by dotted path of the class.
    """
    known = known or {}
    targets = dict.fromkeys(target for arm in arms for target in arm.targets)
    packages = sorted({name for target in targets for name in source_packages(target)})
    folder = _cache_folder(cluster, packages)
    seconds: dict[str, float] = {}
    for target in targets:
        sources = source_files(target)
        functions = _compiled_functions(sources)
        if functions and not (cluster.on_this_host and _is_warm(functions, _newest(sources), folder)):
            took = max((known.get(arm.name, 0.0) for arm in arms if target in arm.targets), default=0.0)
            seconds[target] = took or SECONDS_PER_FUNCTION * sum(functions.values())
    return seconds


def has_compiled_functions(target: str) -> bool:
    """Return whether numba compiles functions that a class may call.

    Parameters
    ----------
    target : str
        Dotted path of the class.

    Returns
    -------
    bool
        True if a source file of the class has a decorator of numba.
    """
    return bool(_compiled_functions(source_files(target)))


def seconds_it_took(trials: pd.DataFrame) -> dict[str, float]:
    """Return the longest compile time that one worker needed for each arm in one run.

    Parameters
    ----------
    trials : DataFrame
        Trials with the columns `solver`, `run_id`, `worker` and `compile_seconds`.

    Returns
    -------
    dict of str to float
        Seconds by name of the arm.
    """
    if trials.empty:
        return {}
    sums = trials.groupby(["solver", "run_id", "worker"], dropna=False)["compile_seconds"].sum()
    return {str(arm): float(seconds) for arm, seconds in sums.groupby(level=0).max().items()}


def _cache_folder(cluster: Cluster, packages: Collection[str]) -> Path | None:
    """Return the folder of numba's cache in the processes that train.

    Parameters
    ----------
    cluster : Cluster
        The cluster, which trains in this process or in workers.
    packages : collection of str
        Names of the packages of the classes.

    Returns
    -------
    Path or None
        The folder, or None if the cache is beside the source files.
    """
    if (chosen := os.environ.get("NUMBA_CACHE_DIR")) is not None:
        return Path(chosen)
    return None if cluster.in_process else numba_cache(packages)


def _newest(sources: Collection[Path]) -> float:
    """Return the modification time of the newest source.

    Cache entries that are older may be stale.

    Parameters
    ----------
    sources : collection of Path
        The source files of a class.

    Returns
    -------
    float
        Seconds since the epoch, or 0 without files.
    """
    return max((path.stat().st_mtime for path in sources), default=0.0)


def _compiled_functions(sources: Collection[Path]) -> dict[Path, int]:
    """Return the number of functions that numba compiles in each file.

    Parameters
    ----------
    sources : collection of Path
        The source files of a class.

    Returns
    -------
    dict of Path to int
        Positive counts by file.
    """
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sources}
    counts = {path: len(_COMPILED.findall(text)) for path, text in texts.items()}
    return {path: count for path, count in counts.items() if count}


def _is_warm(functions: Collection[Path], newest: float, folder: Path | None) -> bool:
    """Return whether numba's cache has entries of enough modules.

    Parameters
    ----------
    functions : collection of Path
        Files with compiled functions.
    newest : float
        Modification time of the newest source file, in seconds since the epoch. Older entries do not count.
    folder : Path or None
        Folder of the cache, or None if the cache is beside the source files.

    Returns
    -------
    bool
        Whether the share of modules with an entry reaches `_WARM`.
    """
    # numba names an index after the file's stem, the function and its line. Its folder is named after the
    # folder of the source file.
    warm = 0
    for path in functions:
        hashed = hashlib.sha1(str(path.parent).encode()).hexdigest()
        cache = path.parent / "__pycache__" if folder is None else folder / f"{path.parent.name}_{hashed}"
        indices = cache.glob(f"{path.stem}.*.nbi")
        warm += any(index.stat().st_mtime >= newest for index in indices)
    return warm >= _WARM * len(functions)
