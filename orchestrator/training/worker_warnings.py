"""Collect the warnings of a worker's process, which the client gets with the results of batches."""

import warnings
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

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
