"""Memory limit for loading and checking one dataset."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import psutil

from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.text import format_memory

SHARE = 0.5
"""Default limit, as a share of the memory of the host or of its control group."""

_limit: ContextVar[float | None] = ContextVar("memory limit of a dataset", default=None)


@contextmanager
def limited_to(limit: float | None) -> Iterator[None]:
    """Set the memory limit within a `with` block.

    Parameters
    ----------
    limit : float or None
        Memory limit, in bytes; None for the default.
    """
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def memory_limit() -> float:
    """Return the memory limit for loading and checking a dataset, in bytes."""
    return _limit.get() or SHARE * _host_memory()


def require_memory(n_bytes: float, what: str) -> None:
    """Raise before an allocation that exceeds the memory limit.

    Parameters
    ----------
    n_bytes : float
        Memory needed, in bytes.
    what : str
        Description of the data, for the message.

    Raises
    ------
    DatasetError
        If the data exceed the limit.
    """
    if n_bytes > memory_limit():
        raise DatasetError(
            f"expected data that fit into {format_memory(memory_limit())}, found {what}, which "
            f"take {format_memory(n_bytes)}; set data_memory (GiB) higher, or use fewer rows or features"
        )


def _host_memory() -> float:
    """Return the memory available to this process: of the host, or less in a control group, in bytes."""
    return min([float(psutil.virtual_memory().total), *_group_limits()])


def _group_limits() -> Iterator[float]:
    """Yield the memory limits of the control groups of this process.

    Yields
    ------
    float
        Limit, in bytes.
    """
    root = Path("/sys/fs/cgroup")
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, group in (fields for fields in groups if len(fields) == 3):
        if controllers == "":
            base, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        innermost = base / group.lstrip("/")
        for folder in [innermost, *innermost.parents]:  # in a container, the group may be the root
            if folder.is_relative_to(base):
                try:
                    yield float((folder / file).read_text())
                except (OSError, ValueError):  # the file does not exist, or contains `max`
                    continue
