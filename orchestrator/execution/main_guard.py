"""Control how worker processes import the script that started them.

A worker process imports this script. Without `if __name__ == "__main__":`, the import calls `run_study` or
`compare` again, and each worker would start workers of its own run. A script from standard input has no file
that a worker could import.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import process
from pathlib import Path

_REPORT = "SVMBENCH_UNGUARDED_REPORT"
"""Environment variable with the path of the file to which a worker writes if it runs the script again."""

UNGUARDED = (
    "the script calls run_study or compare without a guard, so each worker process runs the script again. "
    'Put the call under `if __name__ == "__main__":`, or set cluster=serial'
)
"""Message about such a script."""


def end_if_imported_by_worker() -> None:
    """End this process, and report it, if it is a worker that is importing the script."""
    if getattr(process.current_process(), "_inheriting", False):
        if report := os.environ.get(_REPORT):
            Path(report).write_text("unguarded")
        os._exit(1)


@contextmanager
def unguarded_reported() -> Iterator[Path]:
    """Return a context in which worker processes report if they run the script again.

    Yields
    ------
    Path
        Path of a file that is not empty if a worker has run the script again.
    """
    with tempfile.NamedTemporaryFile(prefix="svmbench-") as file:
        before = os.environ.get(_REPORT)
        os.environ[_REPORT] = file.name
        try:
            yield Path(file.name)
        finally:
            del os.environ[_REPORT]
            if before is not None:
                os.environ[_REPORT] = before


def forget_script_without_file() -> None:
    """Let worker processes import nothing for a script that Python has read from standard input.

    Python names such a script `<stdin>`, and a worker process would look for a file of this name. Definitions
    of such a script have no known source, so that no worker needs them.
    """
    script = sys.modules["__main__"]
    file = getattr(script, "__file__", None)
    if file is not None and file.startswith("<"):
        del script.__file__
