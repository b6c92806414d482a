"""Write the log of a run: a file of JSON lines, and notes for the terminal."""

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
from orchestrator.study.text import json_text, storable_text

_PROGRAM_LOG = logging.getLogger("orchestrator")
_FRAMES, _CAUSES = 50, 5
"""Largest numbers of stack frames and of chained errors in a traceback."""


class _JsonLines(logging.Formatter):
    """Formatter that writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON.

        Parameters
        ----------
        record : LogRecord
            Logged event with its level, time and text.

        Returns
        -------
        str
            JSON object, as one line.
        """
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
        """Return stack frames and short texts of an error and its causes.

        `traceback` itself copies a long text many times.

        Parameters
        ----------
        ei : tuple
            Type, error and traceback.

        Returns
        -------
        str
            Several lines: the error first, then its causes.
        """
        error, lines = ei[1], []
        for _ in range(_CAUSES):
            if error is None:
                break
            frames = traceback.format_tb(error.__traceback__, _FRAMES)
            lines.append(f"{''.join(frames)}{type(error).__name__}: {storable_text(error)}")
            error = error.__cause__ or error.__context__
        return "\n\nafter\n\n".join(lines)


class _LogFile(logging.FileHandler):
    """A log file that follows no link, and whose errors do not end a run."""

    def _open(self) -> TextIOWrapper:
        """Open the file for appending."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return open(os.open(self.baseFilename, flags, 0o666), "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore errors of writing.

        Rows matter more than the log, and a full disk is reported when rows are stored.

        Parameters
        ----------
        record : LogRecord
            The record that was not written.
        """


class _Notes(logging.Handler):
    """Log handler that shows warnings in the terminal.

    Parameters
    ----------
    show : callable
        Called with the text of each warning.
    """

    def __init__(self, show: Callable[[str], None]):
        super().__init__(logging.WARNING)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message of a record.

        Parameters
        ----------
        record : LogRecord
            Logged event with its level, time and text.
        """
        self._show(record.getMessage())


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Return a context that writes this program's log to a file, one JSON object a line.

    Parameters
    ----------
    path : Path
        The file, to which the log is appended.

    Raises
    ------
    StoreError
        If the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _LogFile(path)
    except OSError as error:
        raise StoreError(f"cannot write the log {path}: {error.strerror}; remove or rename it") from None
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
    """Return a context that shows the warnings of a logger and of its descendants.

    Parameters
    ----------
    logger : Logger
        Logger whose records are handled, as are those of its descendants.
    show : callable
        Called with the text of each warning.
    """
    with _attached(logger, _Notes(show)):
        yield


@contextmanager
def _attached(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    """Return a context in which a handler is attached to a logger.

    Parameters
    ----------
    logger : Logger
        Logger whose records are handled, as are those of its descendants.
    handler : Handler
        The handler, which is closed at the end.
    """
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
