"""What Python warns of in a worker's process, to be told where somebody listens: at the client."""

import warnings
from collections import deque
from functools import cache
from pathlib import Path
from typing import TextIO

_heard: deque[str] = deque(maxlen=20)


@cache
def listen() -> None:
    """Keep what this process warns of from now on, in place of printing it."""
    warnings.showwarning = _keep


def _keep(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _heard.append(f"{category.__name__}: {message} ({Path(filename).name}:{lineno})")


def heard() -> tuple[str, ...]:
    """Return what was kept since the last call, each text once."""
    texts = []
    while _heard:
        texts.append(_heard.popleft())
    return tuple(dict.fromkeys(texts))
