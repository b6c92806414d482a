"""Which training is under way, kept where it survives the process, for the run after one that ended with it.

One small write a training, which no one waits for: it has to survive the process and not the machine.
"""

import contextlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from orchestrator.training import Monitor, Row
from orchestrator.worker import WorkOrder

Pair = tuple[str, str]
"""Dataset and arm."""

_DIGITS = 12


class Journal(Monitor):
    """The file that names the training under way.

    Parameters
    ----------
    path : Path
        In the study's folder, whose lock the caller holds.

    Attributes
    ----------
    suspects : dict of Pair to str
        The key of the training that an earlier run ended with; empty if that is known to end processes.
    """

    def __init__(self, path: Path):
        self._path = path
        self.suspects = dict(self._left())
        self._known = [pair for pair, key in self.suspects.items() if not key]
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o600)
        self._done = 0

    def begin(self, order: WorkOrder) -> None:
        """Write down the trainings of a batch that begins in this process."""
        batch = order.batch
        keys = [key for path in batch.paths for key in path.keys]
        self._write({"pair": [batch.dataset, batch.solver], "keys": keys})

    def finished(self, row: Row) -> None:
        """Write down that the batch's next training is under way."""
        self._done += 1
        os.pwrite(self._file, b"%0*d" % (_DIGITS, self._done), 0)

    def idle(self) -> None:
        """Write down that no training is under way in this process."""
        os.ftruncate(self._file, 0)

    def close(self, known: Collection[Pair]) -> None:
        """Leave a file only for the next run to know whose trainings end their processes."""
        if known:
            self._known = list(known)
            self._write({})
        else:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, facts: dict[str, Any]) -> None:
        text = json.dumps(facts | {"known": self._known}).encode()
        os.ftruncate(self._file, 0)
        self._done = 0
        os.pwrite(self._file, b"%0*d" % (_DIGITS, 0) + text, 0)

    def _left(self) -> list[tuple[Pair, str]]:
        """Read what an earlier run left; of a file that is none of ours, nothing."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            content = self._path.read_bytes() if self._path.is_file() else b""
            if not content:
                return []
            done, facts = int(content[:_DIGITS]), json.loads(content[_DIGITS:])
            left = [((str(dataset), str(solver)), "") for dataset, solver in facts["known"]]
            if done < len(facts.get("keys", [])):
                dataset, solver = facts["pair"]
                left.append(((str(dataset), str(solver)), str(facts["keys"][done])))
            return left
        return []
