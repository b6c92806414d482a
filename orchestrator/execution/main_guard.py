"""Notice scripts whose worker processes would run the script again, and so start workers of their own.

A worker imports the script that started it. Without `if __name__ == "__main__":` that calls `run_study`.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import process
from pathlib import Path

_REPORT = "SVMBENCH_UNGUARDED_REPORT"
"""Environment variable with the file to which a worker that runs the script again writes."""

UNGUARDED = (
    "the script calls run_study without a guard, so that each worker process runs the script again: put the "
    'call under `if __name__ == "__main__":`, or set cluster=serial'
)


def end_if_imported_by_worker() -> None:
    """End this process, and report it, if it is a worker that is just importing the script."""
    if getattr(process.current_process(), "_inheriting", False):
        if report := os.environ.get(_REPORT):
            Path(report).write_text("unguarded")
        os._exit(1)


@contextmanager
def unguarded_reported() -> Iterator[Path]:
    """Let workers report to a file meanwhile, which is not empty if one has run the script again."""
    with tempfile.NamedTemporaryFile(prefix="svmbench-") as file:
        before = os.environ.get(_REPORT)
        os.environ[_REPORT] = file.name
        try:
            yield Path(file.name)
        finally:
            del os.environ[_REPORT]
            if before is not None:
                os.environ[_REPORT] = before
