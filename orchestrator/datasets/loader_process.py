"""Loading in a process of its own: a loader may end its process, or crash it, without ending the study.

The process is a fork, for it takes 20 ms where a new interpreter takes seconds for its imports, and knows the
modules that are imported already. It leaves the dataset prepared on disk, and the memory it took is free
again when it ends.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import psutil

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.loading import load
from orchestrator.datasets.memory import gigabytes, limited_to, memory_limit
from orchestrator.datasets.prepared import prepare
from orchestrator.plain_text import one_line
from orchestrator.study import DatasetSpec

SLACK = 256 * 2**20
"""Bytes beyond the limit for what has nothing to do with the data, such as the stacks of threads."""


def load_and_prepare(spec: DatasetSpec, cache: Path, limit: float | None = None) -> Path:
    """Load, check and prepare a dataset; return its folder.

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
        # A fork has one thread only: where others run (on workers, in notebooks' threads, and where systems
        # advise against it) they may hold locks that nobody would release.
        if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
            return prepare(load(spec), cache)
        with tempfile.TemporaryFile("w+") as answer:
            status = _run_apart(spec, cache, answer)
            answer.seek(0)
            text = answer.read()
    if not text:
        raise DatasetError(f"dataset {spec.name!r}: {spec.target} {_ending(status)}; correct the loader")
    found = json.loads(text)
    if "problem" in found:
        raise DatasetError(found["problem"])
    return Path(found["folder"])


def _run_apart(spec: DatasetSpec, cache: Path, answer: IO[str]) -> int:
    """Return the exit status of the process that wrote the answer, or did not."""
    for stream in (sys.stdout, sys.stderr):  # or both processes would write what is in their buffers
        with suppress(Exception):
            stream.flush()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of libraries' threads
        child = os.fork()
    if child == 0:
        _load_and_exit(spec, cache, answer)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _load_and_exit(spec: DatasetSpec, cache: Path, answer: IO[str]) -> NoReturn:
    """Answer with the folder or the problem, and end this process without what others do at their end."""
    found: dict[str, Any]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _limit_memory()
        found = {"folder": str(prepare(load(spec), cache))}
    except DatasetError as error:
        found = {"problem": str(error)}
    except BaseException as error:  # here KeyboardInterrupt is the loader's too
        if isinstance(error, Exception):  # then it is none of the loader's
            traceback.print_exc()
        kind = type(error).__name__
        found = {"problem": f"dataset {spec.name!r}: {spec.target} failed with {kind}: {one_line(error)}"}
    try:
        json.dump(found, answer)
        answer.flush()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(0)


def _limit_memory() -> None:
    """Let an allocation beyond the limit fail, rather than the host run out of memory."""
    import resource  # not on every system

    taken = psutil.Process().memory_info().data
    most = int(taken + memory_limit() + SLACK)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended its process with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    killed = f", perhaps for taking more than {gigabytes(memory_limit())} of memory" if status == -9 else ""
    return f"crashed its process by {name}{killed}"
