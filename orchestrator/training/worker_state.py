"""What a worker process keeps between batches: its memory limit, and its warnings for the client.

The limit holds for the child processes of its trainings, too.
"""

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


@cache
def capture_warnings() -> None:
    """Keep the warnings of this process from now on, in place of printing them."""
    warnings.showwarning = _keep


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
