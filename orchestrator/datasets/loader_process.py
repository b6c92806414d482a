"""Loading in a process of its own: a loader may end its process, or crash it, without ending the study."""

import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

import psutil

from orchestrator.datasets.converted import converted, record_converted, source_key
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.loading import load
from orchestrator.datasets.memory import gigabytes, limited_to, memory_limit
from orchestrator.datasets.prepared import prepare, replaced, warn_of_damage
from orchestrator.isolation.child_process import ProcessEnded, call_in_child, flush_streams
from orchestrator.study.study import DatasetSpec
from orchestrator.study.text import error_line

SLACK = 256 * 2**20
"""Bytes beyond the limit for what has nothing to do with the data, such as the stacks of threads."""


def load_and_prepare(spec: DatasetSpec, cache: Path, limit: float | None = None) -> Path:
    """Load, check and prepare a dataset, unless its file was before; return its folder.

    Parameters
    ----------
    spec : DatasetSpec
    cache : Path
        Where prepared datasets are kept.
    limit : float or None
        Bytes of memory it may take; None for the default.

    Raises
    ------
    DatasetError
        If the dataset cannot be used, or its loader ends the process.
    """
    with limited_to(limit):
        key = source_key(spec)
        if key and (folder := converted(key, cache)) is not None:
            return folder
        folder = _load_and_prepare(spec, cache)
        # The file may have changed while it was read.
        if key and key == source_key(spec):
            record_converted(key, folder)
        return folder


def _load_and_prepare(spec: DatasetSpec, cache: Path) -> Path:
    # A fork has one thread only: where others run (on workers, in notebooks' threads, and where systems
    # advise against it) they may hold locks that are never released.
    if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
        return prepare(load(spec), cache)
    (found,) = call_in_child(lambda spec: _folder_or_problem(spec, cache), [spec])
    if isinstance(found, ProcessEnded):
        killed = found.reason.endswith("SIGKILL")
        most = gigabytes(memory_limit())
        perhaps = f", perhaps for taking more than {most} of memory" if killed else ""
        found = f"dataset {spec.name!r}: {spec.target} {found.reason}{perhaps}; correct the loader"
    if isinstance(found, str):
        raise DatasetError(found)
    folder, damage = found
    warn_of_damage(damage)
    return folder


def _folder_or_problem(spec: DatasetSpec, cache: Path) -> tuple[Path, str] | str:
    """Return what `replaced` does, or what is wrong with the dataset."""
    try:
        _limit_memory()
        return replaced(load(spec), cache)
    except DatasetError as error:
        return str(error)
    except BaseException as error:  # here KeyboardInterrupt is the loader's too
        if isinstance(error, Exception):  # then it is none of the loader's
            traceback.print_exc()
        return f"dataset {spec.name!r}: {spec.target} failed with {error_line(error)}"
    finally:
        flush_streams()


def _limit_memory() -> None:
    """Let an allocation beyond the limit fail, rather than the host run out of memory."""
    import resource  # not on every system

    taken = psutil.Process().memory_info().data
    most = int(taken + memory_limit() + SLACK)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
