"""What a worker process keeps between batches: its memory limit, and its warnings for the client.

The limit holds for the child processes of its trainings, too.
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
    """Set the limit, in bytes; infinite where there is none."""
    global _limit
    _limit = size


def worker_memory() -> float:
    """Return the limit, in bytes; infinite where there is none."""
    return _limit


_captured: deque[str] = deque(maxlen=20)


class _KeepRecords(logging.Handler):
    """Keep log records that no other handler takes, in place of printing them over the client's table.

    A record with an attribute `is_transient` says what is under way now. It is dropped, as the client would
    get it only after the batch.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record."""
        if not getattr(record, "is_transient", False):
            _captured.append(f"{record.name}: {record.getMessage()}")


@cache
def capture_warnings() -> None:
    """Keep the warnings and log records of this process from now on, in place of printing them."""
    warnings.showwarning = _keep
    logging.lastResort = _KeepRecords(logging.WARNING)


def _keep(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *others: Any, **named: Any
) -> None:
    _captured.append(f"{category.__name__}: {message} ({Path(filename).name}:{lineno})")


def take_warnings() -> tuple[str, ...]:
    """Return the warnings since the last call, each text once."""
    texts = []
    while _captured:
        texts.append(_captured.popleft())
    return tuple(dict.fromkeys(texts))
