"""`max_seconds` counts training, not compiling, and compiling that takes long is said."""

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError

import solvers
from solvers import SMOSVC
from solvers.common import clock as clock_module
from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.estimators import base

FIT = """
import numpy as np
from solvers import {solver}
from solvers.common import clock
clock.NOTICE_AFTER = 0.1
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
model = {solver}(max_seconds={seconds}, gamma=1.0).fit(X, y)
print(model.fit_status_, model.converged_)
"""


def of_new_process(cache, code):
    """Run code in a process that finds nothing compiled; return what it prints, and to where."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(solvers.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_compiling_is_not_charged_to_max_seconds_and_is_said(tmp_path):
    code = FIT.format(solver="SMOSVC", seconds=0.3)
    out, err = of_new_process(tmp_path, code)
    assert out == "0 True\n", "it compiles for more than a second before the first subproblem is trained"
    assert err.count("compile") >= 1
    assert "max_seconds" in err
    out, err = of_new_process(tmp_path, code)
    assert (out, err) == ("0 True\n", "")


def test_the_clock_stands_still_while_numba_compiles_or_is_waited_for():
    before, wall = clock(), time.monotonic()
    with global_compiler_lock, global_compiler_lock:
        time.sleep(0.2)
    assert time.monotonic() - wall >= 0.2
    assert clock() - before < 0.1
    time.sleep(0.2)
    assert clock() - before >= 0.2


def test_the_clock_of_a_thread_goes_on_while_another_compiles_and_it_does_not_wait():
    started, ended = threading.Event(), threading.Event()

    def compile_long():
        with global_compiler_lock:
            started.set()
            ended.wait(10)

    thread = threading.Thread(target=compile_long)
    thread.start()
    started.wait(10)
    before = clock()
    time.sleep(0.2)
    assert clock() - before >= 0.2
    ended.set()
    thread.join()


def test_the_clock_goes_on_after_a_compilation_that_failed():
    before = clock()
    with pytest.raises(TypingError):
        njit(lambda x: x + "1")(1)
    stopped = clock()
    time.sleep(0.1)
    assert clock() - stopped >= 0.1
    assert clock() - before < 10


def test_a_limit_ends_a_fit_although_its_kernel_compiles(monkeypatch):
    """Time in which a callable kernel is compiled is no time of training; time in which it runs is."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2

    def compiled(A, B):
        with global_compiler_lock:
            time.sleep(0.3)
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))

    def slow(A, B):
        time.sleep(0.3)
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))

    SMOSVC(kernel=slow).fit(X, y)  # compile
    seen, Budget = [], base.Budget
    monkeypatch.setattr(base, "Budget", lambda *given: seen.append(clock() - given[3]) or Budget(*given))
    assert SMOSVC(kernel=compiled, max_seconds=0.2).fit(X, y).converged_
    SMOSVC(kernel=slow, max_seconds=100.0).fit(X, y)
    assert seen[0] < 0.2
    assert seen[1] >= 0.3


def test_a_short_compilation_is_not_said_and_a_long_one_once(monkeypatch, caplog):
    notice = clock_module._Notice()
    made_here = njit(lambda x: x)
    made_here.__module__ = "solvers.somewhere"
    event = type("Event", (), {"data": {"dispatcher": made_here}})
    with caplog.at_level(logging.WARNING, "solvers"):
        notice.on_start(event)
        notice.on_end(event)
        assert not caplog.records
        monkeypatch.setattr(clock_module, "NOTICE_AFTER", 0.01)
        for _ in range(3):
            notice.on_start(event)
            notice.on_start(event)
            time.sleep(0.2)
            notice.on_end(event)
            notice.on_end(event)
        assert len(caplog.records) == 1
        another = njit(lambda x: x)
        another.__module__, another.__qualname__ = "solvers.somewhere", "another"
        notice.on_start(type("Event", (), {"data": {"dispatcher": another}}))
        time.sleep(0.2)
        notice.on_end(event)
    assert len(caplog.records) == 2
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
