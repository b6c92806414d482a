"""Control how worker processes import the script that started them.

A worker process imports this script. Without `if __name__ == "__main__":`, the import calls `run_study` or
`compare` again, and each worker would start workers of its own run. A script from standard input has no file
that a worker could import.
"""

import ast
import os
import sys
import tempfile
import warnings
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

_IN_THIS_PROCESS = (
    'the script calls compare outside `if __name__ == "__main__":`, so all trainings run in its process, one '
    'after the other. Put the call under that line to use all cores; cluster="serial" says that this is meant'
)
"""Warning in a script that names no cluster."""


def is_unguarded() -> bool:
    """Return whether the running script calls this function outside `if __name__ == "__main__":`.

    Returns
    -------
    bool
        False in a notebook, in an interactive session, and if the script cannot be read.
    """
    main = sys.modules["__main__"]
    frame = sys._getframe()
    while not (frame.f_globals is vars(main) and frame.f_code.co_name == "<module>"):
        if frame.f_back is None:
            return False
        frame = frame.f_back
    try:
        tree = ast.parse(Path(main.__file__ or "").read_bytes())
    except (AttributeError, OSError, SyntaxError, ValueError):
        return False
    line = frame.f_lineno
    guards = [node for node in tree.body if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)]
    return not any(guard.lineno <= line <= (guard.end_lineno or line) for guard in guards)


def cluster_of_script() -> str:
    """Return where trainings of `compare` run by default, and warn if the script cannot have workers.

    Returns
    -------
    str
        "local", or "serial" in a script that its worker processes would run again.
    """
    if not is_unguarded():
        return "local"
    warnings.warn(_IN_THIS_PROCESS, stacklevel=3)
    return "serial"


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
