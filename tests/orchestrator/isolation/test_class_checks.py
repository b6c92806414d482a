"""Questions to classes of users, asked in a child process, and to trusted ones, asked in this one."""

import ctypes
import os
import signal
import sys
import time

import pytest

from orchestrator.isolation import class_checks
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, is_trusted


def interrupt():
    raise KeyboardInterrupt


ACTS = {
    "mine.exits": lambda: os._exit(0),
    "mine.crashes": lambda: ctypes.string_at(0),
    "mine.interrupts": interrupt,
    "mine.waits": lambda: time.sleep(3600),
    "mine.fine": os.getpid,
    "sklearn.fine": os.getpid,
}


def test_what_ends_the_process_is_asked_once_and_others_answer(monkeypatch, tmp_path):
    monkeypatch.setattr(class_checks, "CALL_SECONDS", 3.0)
    asked = tmp_path / "asked"

    def act(path):
        with asked.open("a") as file:
            file.write(f"{path}\n")
        return ACTS[path]()

    found = ask_classes(act, [(path, path) for path in [*ACTS, *ACTS]])
    assert found[: len(ACTS)][:4] == [
        ProcessEnded("ended its process with exit status 0"),
        ProcessEnded("ended its process by SIGSEGV"),
        ProcessEnded("raised KeyboardInterrupt"),
        ProcessEnded("did not end within 3 s"),
    ]
    assert found[:4] == found[6:10]
    assert found[4] != os.getpid()
    assert found[5] == found[11] == os.getpid()
    calls = asked.read_text().split()
    later = calls[calls.index("mine.fine") :]
    assert set(later) == {"mine.fine", "sklearn.fine"}  # the others are not asked again


def test_what_users_code_prints_is_not_printed_twice(capfd):
    def print_all(argument):
        print("hello")
        os.write(2, b"hello")
        sys.stdout.flush()

    ask_classes(print_all, [("mine.prints", 0)])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("path", "trusted"),
    [("sklearn.svm.SVC", True), ("solvers.MNSVC", True), ("solvers_of_mine.A", False), ("mine.A", False)],
)
def test_what_is_asked_in_this_process(path, trusted):
    assert is_trusted(path) is trusted


def test_a_package_says_by_a_file_that_it_harms_no_process(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "solvers.py").write_text("")
    assert not is_trusted.__wrapped__("solvers.Mine")  # whatever its name
    for name in ("plain", "harmless"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit")
    (tmp_path / "harmless" / "checked_in_process").touch()
    assert not is_trusted("plain.sub.Mine")
    assert is_trusted("harmless.sub.Mine")


def test_a_real_interrupt_is_the_users_where_questions_are_asked_in_this_process(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    # dask-jobqueue, which other tests import, replaces Python's handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask_classes(lambda _: os.kill(os.getpid(), signal.SIGINT), [("mine.A", 0)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ask_classes(lambda _: interrupt(), [("mine.A", 0)]) == [ProcessEnded("raised KeyboardInterrupt")]
