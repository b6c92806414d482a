"""The log of a run: a file of JSON lines for later, and notes for whoever watches."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.plain_text import json_text

_PROGRAM = logging.getLogger("orchestrator")
_CLUSTER = logging.getLogger("orchestrator.execution")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "source": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)


class _LogFile(logging.FileHandler):
    """A log that ends no run, and says nothing, when it cannot be written: the store tells of a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Lose the record."""


class _Notes(logging.Handler):
    def __init__(self, tell: Callable[[str], None]):
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Write what this program logs meanwhile to a file, one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = _LogFile(path, encoding="utf-8", delay=True)
    handler.setFormatter(_JsonLines())
    level = _PROGRAM.level
    _PROGRAM.setLevel(logging.INFO)
    with _attached(_PROGRAM, handler):
        try:
            yield
        except BaseException as error:
            _PROGRAM.error("the run ended with %s: %s", type(error).__name__, error)
            raise
        finally:
            _PROGRAM.setLevel(level)


@contextmanager
def cluster_notes(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell the user meanwhile what the cluster's side warns of."""
    with _attached(_CLUSTER, _Notes(tell)):
        yield


@contextmanager
def _attached(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
