"""The log of a run: a file of JSON lines for later, and notes for the terminal."""

import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from orchestrator.store.files import StoreError
from orchestrator.study.storable import storable_text
from orchestrator.study.text import json_text

_PROGRAM_LOG = logging.getLogger("orchestrator")
_FRAMES, _CAUSES = 50, 5


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "source": record.name,
            "message": storable_text(record.getMessage()),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)

    def formatException(self, ei: Any) -> str:
        """Return frames and short texts; `traceback` itself copies a long text many times."""
        error, lines = ei[1], []
        for _ in range(_CAUSES):
            if error is None:
                break
            frames = traceback.format_tb(error.__traceback__, _FRAMES)
            lines.append(f"{''.join(frames)}{type(error).__name__}: {storable_text(error)}")
            error = error.__cause__ or error.__context__
        return "\n\nafter\n\n".join(lines)


class _LogFile(logging.FileHandler):
    """A log file that follows no link, and whose errors end no run."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return open(os.open(self.baseFilename, flags, 0o666), "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        pass  # rows matter more than their log, and a full disk is reported when they are stored


class _Notes(logging.Handler):
    def __init__(self, show: Callable[[str], None]):
        super().__init__(logging.WARNING)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Write what this program logs meanwhile to a file, one JSON object a line."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _LogFile(path)
    except OSError as error:
        raise StoreError(
            f"cannot write the log {path}: {error.strerror}; remove what is in its place"
        ) from None
    handler.setFormatter(_JsonLines())
    level = _PROGRAM_LOG.level
    _PROGRAM_LOG.setLevel(logging.INFO)
    with _attached(_PROGRAM_LOG, handler):
        try:
            yield
        except BaseException as error:
            _PROGRAM_LOG.error("the run ended with %s: %s", type(error).__name__, error, exc_info=True)
            raise
        finally:
            _PROGRAM_LOG.setLevel(level)


@contextmanager
def warnings_shown(logger: logging.Logger, show: Callable[[str], None]) -> Iterator[None]:
    """Show what a logger, and those below it, warn of meanwhile."""
    with _attached(logger, _Notes(show)):
        yield


@contextmanager
def _attached(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
