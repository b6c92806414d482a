"""What killed processes leave is released, and nobody is told of it on the terminal of a run."""

import os
import subprocess
import sys

import pytest

from orchestrator.training.batch_process import _warning_filters

KILL_THE_TRACKER = """
import os, signal, time
from multiprocessing import get_context, resource_tracker
from orchestrator.execution.clusters.local import keep_tracker_quiet

if __name__ == "__main__":
    keep_tracker_quiet()
    locks = [get_context("spawn").Lock() for _ in range(3)]
    os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
    time.sleep(0.5)
    locks += [get_context("spawn").Lock() for _ in range(3)]
    del locks[:3]
    os.write(2, b"after")
    if {leave}:
        os.kill(os.getpid(), signal.SIGKILL)
"""

LEAVE_LOCKS = """
import os, signal
from multiprocessing import get_context
from joblib.externals.loky.backend.synchronize import Semaphore

if __name__ == "__main__":
    kept = [get_context("spawn").Lock() for _ in range(3)] + [Semaphore(1)]
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("leave", [True, False])
def test_a_tracker_that_is_killed_is_replaced_without_a_word(leave):
    code = KILL_THE_TRACKER.format(leave=leave)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == (-9 if leave else 0)
    assert done.stderr == "after"  # which the process itself writes


@pytest.mark.parametrize("given", ["", "ignore::DeprecationWarning"])
def test_what_a_killed_training_leaves_is_not_told(given, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", given)
    env = {**os.environ, "PYTHONWARNINGS": _warning_filters()}
    done = subprocess.run(
        [sys.executable, "-c", LEAVE_LOCKS], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == -9
    assert done.stderr == ""
    assert given in env["PYTHONWARNINGS"]
