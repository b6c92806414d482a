"""Ctrl-C ends a program, whatever the interrupted code makes of the exception."""

import signal
from contextlib import suppress

import pytest

from orchestrator.isolation.exits import raise_if_interrupted, recorded_interrupts


@pytest.fixture(autouse=True)
def pythons_handler():
    """Let SIGINT raise KeyboardInterrupt: dask-jobqueue, which other tests import, replaces this."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def caught():
    """Catch the interrupt and go on."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return


def replaced_by(error):
    """Return a function that replaces the interrupt by another exception."""

    def replace():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise error from None

    return replace


@pytest.mark.parametrize(
    "interrupted", [caught, replaced_by(ImportError("cannot import")), replaced_by(SystemExit(1))]
)
def test_an_interrupt_is_raised_after_its_block(interrupted):
    with pytest.raises(KeyboardInterrupt), recorded_interrupts():
        interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_without_an_interrupt_is_itself():
    with pytest.raises(ImportError, match="not here"), recorded_interrupts():
        raise ImportError("not here")


class InDestructor:
    """Is interrupted when it is deleted, where Python ignores exceptions."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def loses_an_interrupt():
    """Be interrupted in a destructor, and again run a block that records interrupts."""
    InDestructor()
    with suppress(KeyboardInterrupt), recorded_interrupts():
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lost_interrupt_is_raised_at_the_next_check():
    with suppress(KeyboardInterrupt), recorded_interrupts():
        loses_an_interrupt()
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    raise_if_interrupted()
