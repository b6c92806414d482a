"""Keep Python's tracker of resources off the terminal of a run with local workers.

Local workers share the client's tracker. It warns of semaphores that killed workers have left, and releases
them. A tracker that is killed is replaced by Python, with a warning; the next one writes a traceback for each
semaphore that it does not know. The run goes on in either case, so that nobody has to be told.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any


def keep_tracker_quiet() -> None:
    """Have the tracker of this process write nothing, now and whenever it is started again."""
    tracker: Any = resource_tracker._resource_tracker
    kind = type(tracker)

    def launch() -> None:
        with _errors_discarded():
            kind._launch(tracker)

    def ensure_running() -> None:
        if tracker._fd is None or not tracker._check_alive():
            with _errors_discarded(), warnings.catch_warnings(action="ignore"):
                kind.ensure_running(tracker)

    if hasattr(kind, "_launch"):  # later versions of Python start it there, also without `ensure_running`
        warnings.filterwarnings("ignore", "resource_tracker: process died unexpectedly")
        tracker._launch = launch
    else:
        tracker.ensure_running = ensure_running
    tracker.ensure_running()


@contextmanager
def _errors_discarded() -> Iterator[None]:
    """Discard the errors that this process writes meanwhile, and all those of a process that it starts."""
    try:
        errors = os.dup(2)
    except OSError:  # there is nothing to write to
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
