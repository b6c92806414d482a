"""Keep the memory limit and the warnings of a worker process between batches.

The limit includes the child processes of its trainings.
"""

import logging
import math
import warnings
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

_limit = math.inf


def limit_memory(size: float) -> None:
    """Set the memory limit of this process.

    Parameters
    ----------
    size : float
        The limit, in bytes. Infinity removes the limit.
    """
    global _limit
    _limit = size


def worker_memory() -> float:
    """Return the memory limit, in bytes; infinity without a limit."""
    return _limit


_captured: deque[str] = deque(maxlen=20)


class _KeepRecords(logging.Handler):
    """Log handler that keeps the records which no other handler takes, instead of printing them.

    Printed records would break the client's table. A record with an attribute `is_transient` describes
    current progress. It is dropped, because the client would get it only after the batch.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record.

        Parameters
        ----------
        record : LogRecord
            Logged event with its level, time and text.
        """
        if not getattr(record, "is_transient", False):
            _captured.append(f"{record.name}: {record.getMessage()}")


@cache
def capture_warnings() -> None:
    """Keep the warnings and log records of this process from now on, instead of printing them."""
    warnings.showwarning = _keep
    logging.lastResort = _KeepRecords(logging.WARNING)


def _keep(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *others: Any, **named: Any
) -> None:
    """Keep a warning; the signature is that of `warnings.showwarning`.

    Parameters
    ----------
    message : Warning or str
        Warning, or its text.
    category : type
        Class of the warning.
    filename : str
        File that warns.
    lineno : int
        Line that warns.
    *others : object
        Ignored.
    **named : object
        Ignored.
    """
    _captured.append(f"{category.__name__}: {message} ({Path(filename).name}:{lineno})")


def take_warnings() -> tuple[str, ...]:
    """Return the warnings since the last call, each text once."""
    texts = []
    while _captured:
        texts.append(_captured.popleft())
    return tuple(dict.fromkeys(texts))
