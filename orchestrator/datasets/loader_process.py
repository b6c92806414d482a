"""Loading in a child process, so that a loader that exits or crashes does not end the study."""

import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

import psutil

from orchestrator.datasets.converted import converted, record_converted, source_key
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.loading import load
from orchestrator.datasets.memory import limited_to, memory_limit
from orchestrator.datasets.prepared import prepare, replaced, warn_of_damage
from orchestrator.isolation.child_process import ProcessEnded, call_in_child, flush_streams
from orchestrator.study.study import DatasetSpec
from orchestrator.study.text import error_line, format_memory

SLACK = 256 * 2**20
"""Memory that a process may take in addition to the limit, in bytes. It is for other uses than data, such as
the stacks of threads."""


def load_and_prepare(spec: DatasetSpec, cache: Path, limit: float | None = None) -> Path:
    """Load, check and prepare a dataset unless a copy of its file exists, and return the copy's folder.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.
    cache : Path
        Folder of prepared datasets.
    limit : float or None
        Memory limit, in bytes; None for the default of `memory_limit`.

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
    """Load, check and prepare a dataset, in a child process if possible, and return the copy's folder.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.
    cache : Path
        Folder of prepared datasets.
    """
    # A forked process has only one thread. Locks that other threads hold at the fork (on workers and in
    # notebooks) are never released, and some systems advise against forking.
    if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
        return prepare(load(spec), cache)
    (found,) = call_in_child(lambda spec: _folder_or_problem(spec, cache), [spec])
    if isinstance(found, ProcessEnded):
        killed = found.reason.endswith("SIGKILL")
        limit = format_memory(memory_limit())
        perhaps = f", possibly because it used more than {limit} of memory" if killed else ""
        found = f"dataset {spec.name!r}: {spec.target} {found.reason}{perhaps}; correct the loader"
    if isinstance(found, str):
        raise DatasetError(found)
    folder, damage = found
    warn_of_damage(damage)
    return folder


def _folder_or_problem(spec: DatasetSpec, cache: Path) -> tuple[Path, str] | str:
    """Load and prepare a dataset. Return the result of `replaced`, or a message if loading fails.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.
    cache : Path
        Folder of prepared datasets.
    """
    try:
        _limit_memory()
        return replaced(load(spec), cache)
    except DatasetError as error:
        return str(error)
    except BaseException as error:  # in this process, the loader may also raise KeyboardInterrupt
        if isinstance(error, Exception):  # `load` reports the loader's exceptions; this one is ours
            traceback.print_exc()
        return f"dataset {spec.name!r}: {spec.target} failed with {error_line(error)}"
    finally:
        flush_streams()


def _limit_memory() -> None:
    """Limit the memory of this process, so that an allocation fails before the host runs out of memory."""
    import resource  # not available on every system

    taken = psutil.Process().memory_info().data
    limit = int(taken + memory_limit() + SLACK)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
