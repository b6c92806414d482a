"""How long numba will compile before the first training of a class, guessed from files alone."""

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
"""What numba takes for a function that a class may call: for ours 0.05 to 1.2 s each on a core of 2.5 GHz."""

_COMPILED = re.compile(r"^\s*@(?:\w+\.)*(?:n?jit|vectorize|guvectorize|cfunc)\b", re.MULTILINE)
_WARM = 0.07
"""Share of the modules with compiled functions of which numba's cache has to hold something: no parameters
need all of them, and what compiled functions call is kept within them."""


def compile_seconds(
    arms: Collection[Arm], cluster: Cluster, known: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return at most how many seconds numba will compile for each class of the arms, by dotted path.

    Only classes that have to be compiled are in it: those of which numba's cache on this host holds little.
    One that shares its modules with a class that was compiled looks compiled too. What the workers of a
    cluster elsewhere hold is not known.

    Parameters
    ----------
    arms : collection of Arm
    cluster : Cluster
    known : mapping of str to float, optional
        What compiling an arm took before, by its name; else the functions to compile are counted.
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


def seconds_it_took(trials: pd.DataFrame) -> dict[str, float]:
    """Return the most that one worker spent on compiling each arm in one run."""
    if trials.empty:
        return {}
    spent = trials.groupby(["solver", "run_id", "worker"], dropna=False)["compile_seconds"].sum()
    return {str(arm): float(seconds) for arm, seconds in spent.groupby(level=0).max().items()}


def _cache_folder(cluster: Cluster, packages: Collection[str]) -> Path | None:
    """Return numba's cache of those who train; None if it lies beside the sources."""
    if (chosen := os.environ.get("NUMBA_CACHE_DIR")) is not None:
        return Path(chosen)
    return None if cluster.in_process else numba_cache(packages)


def _newest(sources: Collection[Path]) -> float:
    """Return when the newest file beside the sources was written; what was compiled before may be stale."""
    files = (file for folder in {path.parent for path in sources} for file in folder.glob("*.py"))
    return max((file.stat().st_mtime for file in files), default=0.0)


def _compiled_functions(sources: Collection[Path]) -> dict[Path, int]:
    """Return the number of functions that numba compiles, by file."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sources}
    counts = {path: len(_COMPILED.findall(text)) for path, text in texts.items()}
    return {path: count for path, count in counts.items() if count}


def _is_warm(functions: Collection[Path], newest: float, folder: Path | None) -> bool:
    # numba calls an index by the file's stem, the function and its line, in a folder for each source folder.
    warm = 0
    for path in functions:
        hashed = hashlib.sha1(str(path.parent).encode()).hexdigest()
        cache = path.parent / "__pycache__" if folder is None else folder / f"{path.parent.name}_{hashed}"
        indices = cache.glob(f"{path.stem}.*.nbi")
        warm += any(index.stat().st_mtime >= newest for index in indices)
    return warm >= _WARM * len(functions)
