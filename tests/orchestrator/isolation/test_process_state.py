import builtins
import decimal
import gc
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

import solvers
from orchestrator.isolation.child_process import call_in_child
from orchestrator.isolation.process_state import ProcessUnusableError, kept_process_state
from tests.messages import raises
from tests.orchestrator.classifiers import close_what_the_batch_opened

OURS, OTHER = logging.getLogger("orchestrator"), logging.getLogger("orchestrator.isolation.process_state")
LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
TABLE = {"a": 1}
NAMES = ["a"]


class Counter:
    """Keeps things in its class."""

    n = 0
    seen = set()  # noqa: RUF012
    weights = np.zeros(3)


def count():
    Counter.n += 1
    Counter.seen.add(1)
    Counter.weights[0] = 1
    Counter.added = True


def forget():
    global NAMES
    NAMES = []
    TABLE.clear()
    globals()["NEW"] = 1


def change_logging():
    logging.disable()
    OURS.handlers.append(logging.NullHandler())
    OTHER.disabled = True
    logging.root.setLevel(1)


def logging_now():
    return logging.root.manager.disable, list(OURS.handlers), OTHER.disabled, logging.root.level


def umask():
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def outputs():
    """Where standard output and error lead; both can be written to."""
    files = [os.fstat(stream.fileno()).st_ino for stream in (sys.__stdout__, sys.__stderr__)]
    for stream in (sys.__stdout__, sys.__stderr__):
        stream.write("")
        stream.flush()
    return files, sys.__stdout__.encoding, sys.__stderr__.errors


def counted():
    return Counter.n, set(Counter.seen), Counter.weights.tolist(), hasattr(Counter, "added")


CHANGES = {
    "working directory": (lambda: os.chdir("/"), os.getcwd),
    "environment": (lambda: os.environ.update(NEW="1", PATH=""), lambda: dict(os.environ)),
    "environment emptied": (os.environ.clear, lambda: dict(os.environ)),
    "environment replaced": (
        lambda: setattr(os, "environ", {}),
        lambda: (id(os.environ), os.environ["PATH"]),
    ),
    "sys.path": (sys.path.clear, lambda: list(sys.path)),
    "sys.path replaced": (lambda: setattr(sys, "path", []), lambda: (id(sys.path), *sys.path)),
    "warning filters": (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters)),
    "warnings recorded": (
        lambda: warnings.catch_warnings(record=True).__enter__(),
        lambda: (warnings.showwarning, warnings._showwarnmsg_impl, id(warnings.filters)),
    ),
    "locale": (lambda: locale.setlocale(locale.LC_ALL, "C"), lambda: locale.setlocale(locale.LC_ALL)),
    "decimals": (lambda: setattr(decimal.getcontext(), "prec", 2), lambda: decimal.getcontext().prec),
    "floating-point errors": (lambda: np.seterr(all="raise"), np.geterr),
    "print options": (lambda: np.set_printoptions(precision=1), np.get_printoptions),
    "scikit-learn": (lambda: sklearn.set_config(assume_finite=True), sklearn.get_config),
    "threads": (lambda: threadpool_limits(2), lambda: [pool["num_threads"] for pool in threadpool_info()]),
    "output": (lambda: setattr(sys, "stdout", None), lambda: sys.stdout),
    "output closed": (lambda: (sys.__stdout__.close(), sys.__stderr__.detach()), lambda: outputs()),
    "descriptors of output closed": (lambda: os.closerange(0, 3), lambda: outputs()),
    "output elsewhere": (lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 1), lambda: outputs()),
    "resource limits": (
        lambda: [resource.setrlimit(limit, (64, resource.getrlimit(limit)[1])) for limit in LIMITS],
        lambda: [resource.getrlimit(limit) for limit in LIMITS],
    ),
    "recursion": (lambda: sys.setrecursionlimit(5000), sys.getrecursionlimit),
    "garbage": (gc.disable, gc.isenabled),
    "tracing": (lambda: sys.setprofile(lambda *_: None), sys.getprofile),
    "signals": (
        lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGINT),
    ),
    "logging": (change_logging, logging_now),
    "umask": (lambda: os.umask(0o777), umask),
    "sockets": (lambda: socket.setdefaulttimeout(1.0), socket.getdefaulttimeout),
    "numpy": (lambda: setattr(np, "argmax", np.argmin), lambda: np.argmax),
    "numpy deleted": (lambda: delattr(np, "argmax"), lambda: np.argmax),
    "builtins": (lambda: setattr(builtins, "sum", max), lambda: builtins.sum),
    "clocks": (lambda: setattr(time, "perf_counter", lambda: 0), lambda: time.perf_counter),
    "numpy's generator": (
        lambda: np.random.set_bit_generator(np.random.PCG64()),
        lambda: np.random.get_bit_generator(),
    ),
    "its class": (count, counted),
    "its module": (forget, lambda: (list(NAMES), dict(TABLE), "NEW" in globals())),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_training_changes_is_as_before(change, fails, monkeypatch):
    make, read = CHANGES[change]

    def train():
        make()
        if fails:
            raise FloatingPointError

    with threadpool_limits(1), kept_process_state(Counter) as state:
        before = read()
        if fails:
            with pytest.raises(FloatingPointError):
                state.run(0, train)
        else:
            state.run(0, train)
        assert read() == before


class Promising:
    """Says that it changes nothing."""

    has_no_side_effects = True


class Derived(Promising):
    """Does not say so itself."""


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [((Promising,), True), ((Derived,), False), ((Promising, count), False), ((Promising, Promising), True)],
)
def test_what_promises_to_change_nothing_is_left_alone_and_nothing_derived_from_it(kinds, expected):
    with kept_process_state(*kinds) as state:
        assert state.is_kept == expected
        number = sys.getrecursionlimit()
        state.run(0, sys.setrecursionlimit, number + 1)
        assert sys.getrecursionlimit() == number + expected
        sys.setrecursionlimit(number)


PROMISING = [name for name in solvers.__all__ if hasattr(getattr(solvers, name), "has_no_side_effects")]
LIBSVM = {"NuSVC"}  # draws a seed from the global random state
TRANSFORMERS = {"FourierFeatures", "OrientedGradients"}


def test_nearly_all_solvers_promise_to_change_nothing():
    assert set(solvers.__all__) - set(PROMISING) == LIBSVM | TRANSFORMERS | {"reduce"}
    # Only a promise in the body of the class counts. That of `SMOSVC` is not that of `AESVC`.
    without = {name for name in PROMISING if "has_no_side_effects" not in vars(getattr(solvers, name))}
    assert without == {"AESVC"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "SMOSVC" else pytest.mark.full) for name in PROMISING],
)
def test_our_solvers_keep_their_promise(name, caplog):
    kind = getattr(solvers, name)
    options = {"random_state": 0} if "random_state" in kind().get_params() else {}
    rows = np.random.default_rng(0).random((24, 3))
    labels = (rows[:, 0] > 0.5).astype(int)
    before = rows.copy(), labels.copy()

    def train():
        if hasattr(kind, "fit_path"):
            kind(**options).fit_path(rows, labels, [0.5, 1.0]).predict_path(rows)
        kind(**options).fit(rows, labels).predict(rows)

    with kept_process_state(type(name, (kind,), {})) as state:
        state.run(0, train)  # compiles, and imports what is missing
        random_states = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        with caplog.at_level(logging.INFO, logger="orchestrator"):
            train()
            assert (np.random.get_state()[1].tolist(), random.getstate()) == random_states  # noqa: NPY002
            state.run(0, train)
    assert "restored after" not in caplog.text
    np.testing.assert_array_equal(rows, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_an_alarm_that_was_set_never_rings():
    with kept_process_state(Counter) as state:
        state.run(0, signal.setitimer, signal.ITIMER_REAL, 100.0)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_working_directory_that_was_removed_does_no_harm(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with kept_process_state(Counter) as state:
        state.run(0, lambda: (os.chdir("/"), folder.rmdir()))
        assert state.run(0, lambda: 1) == 1


def test_the_random_states_are_seeded_for_each_training_and_then_as_they_were():
    def draw():
        return np.random.random(), random.random(), SVC.__name__  # noqa: NPY002

    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    expected = draw()
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    with kept_process_state(Counter) as state:
        first, again, other = (state.run(seed, draw) for seed in (1, 1, 2))
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]
    assert draw() == expected


def test_one_thread_each_meanwhile_and_as_many_as_before_afterwards():
    with threadpool_limits(2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        with kept_process_state(Counter) as state:
            assert {pool["num_threads"] for pool in state.run(0, threadpool_info)} == {1}
        assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_threads_of_one_process_take_turns():
    inside, most = [], []

    def train():
        with kept_process_state(Counter) as state:

            def draw():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.01)
                inside.pop()

            state.run(0, draw)

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_a_process_whose_descriptors_were_closed_is_unusable():
    with kept_process_state(Counter) as state:
        state.run(0, lambda: 1)
        state.require_usable()
        state.run(0, close_what_the_batch_opened)
        with raises(ProcessUnusableError, "Counter", "closed"):
            state.require_usable()


def limits_after_a_training_has_lowered_them(number):
    with kept_process_state(Counter) as state:
        state.run(0, resource.setrlimit, number, (64, 64))
        try:
            state.require_usable()
        except ProcessUnusableError as error:
            return str(error)
        return resource.getrlimit(number)


def test_hard_limits_that_were_lowered_are_raised_or_the_process_is_unusable():
    number = resource.RLIMIT_NOFILE
    (found,) = call_in_child(limits_after_a_training_has_lowered_them, [number])
    assert found in ("a training of Counter lowered hard limits of its process", resource.getrlimit(number))


def test_what_is_only_read_is_not_touched():
    table, names = TABLE, NAMES
    with kept_process_state(Counter) as state:
        state.run(0, lambda: (len(TABLE), Counter.n))
    assert TABLE is table
    assert NAMES is names


def test_modules_that_a_training_imports_stay(monkeypatch):
    def learn():
        import colorsys

        globals()["colorsys"] = colorsys

    with kept_process_state(Counter) as state:
        state.run(0, learn)
    assert globals().pop("colorsys").__name__ == "colorsys"
