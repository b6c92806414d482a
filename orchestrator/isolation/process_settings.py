"""Settings with one value in each process, which are restored after each training."""

import fcntl
import gc
import io
import locale
import logging
import operator
import os
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import sklearn
from numpy.random import mtrand

_PROGRAM = __name__.partition(".")[0]
"""Name of this program's package, whose loggers are restored."""


def identical(now: Collection[Any], before: Collection[Any]) -> bool:
    """Return whether two collections hold the same objects in the same order.

    Objects of a user may be equal without being the same.

    Parameters
    ----------
    now : collection of object
        The current collection.
    before : collection of object
        The earlier collection.

    Returns
    -------
    bool
        True if all objects are identical.
    """
    return len(now) == len(before) and all(map(operator.is_, now, before))


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with one value in each process.

    Attributes
    ----------
    name : str
        Name of the setting, for messages.
    read : callable
        Function that returns the value.
    write : callable
        Function that sets the value.
    same : callable
        Function that returns whether two values are the same.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    same: Callable[[Any, Any], bool] = operator.eq

    def has(self, value: Any) -> bool:
        """Return whether the setting has a value.

        Parameters
        ----------
        value : object
            Value with which the current one is compared.

        Returns
        -------
        bool
            False also if the setting cannot be read.
        """
        try:
            return bool(self.same(self.read(), value))
        except BaseException:  # for example, the working directory was removed
            return False


def _working_directory() -> str | None:
    """Return the working directory.

    Returns
    -------
    str or None
        Its path, or None if it was removed.
    """
    try:
        return os.getcwd()
    except OSError:
        return None


def _environment() -> dict[Any, Any]:
    """Return the environment variables without decoding them, which would take 15 µs.

    Returns
    -------
    dict of object to object
        Encoded values by encoded name.
    """
    return os.environ._data.copy()  # type: ignore[attr-defined]


def _set_environment(value: dict[Any, Any]) -> None:
    """Set the environment variables.

    Parameters
    ----------
    value : dict of object to object
        Encoded values by encoded name.
    """
    wanted = {os.fsdecode(name): os.fsdecode(text) for name, text in value.items()}
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _set_warning_filters(value: list[Any]) -> None:
    """Set the warning filters.

    Parameters
    ----------
    value : list of object
        New filters, in order of precedence.
    """
    warnings.resetwarnings()  # makes the interpreter notice the change
    warnings.filters[:] = value  # type: ignore[index]


# `signal.getsignal` takes microseconds to look for members of enumerations.
getsignal = sys.modules["_signal"].getsignal
_SIGNALS = [*map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP, signal.SIGCHLD))]


def _set_signal_handlers(value: list[Any]) -> None:
    """Set the handlers of `_SIGNALS`.

    Parameters
    ----------
    value : list of object
        One handler for each signal. None stands for a handler that was not set by Python and is kept.
    """
    for number, handler in zip(_SIGNALS, value, strict=True):
        if handler is not None and getsignal(number) is not handler:
            signal.signal(number, handler)


def _set_garbage_collection(value: tuple[bool, tuple[int, int, int]]) -> None:
    """Set the state of the garbage collector.

    Parameters
    ----------
    value : (bool, (int, int, int))
        Whether it is enabled, and its thresholds.
    """
    enabled, thresholds = value
    gc.set_threshold(*thresholds)
    (gc.enable if enabled else gc.disable)()


def _logging() -> list[Any]:
    """Return the state of the root logger and this program's loggers.

    Returns
    -------
    list of object
        The level that is disabled for all, and for each logger its level, flags and handlers.
    """
    known = logging.root.manager.loggerDict.items()
    ours = [logger for name, logger in known if name.startswith(_PROGRAM)]
    loggers = [logging.root, *(logger for logger in ours if isinstance(logger, logging.Logger))]
    states = [
        (logger, logger.level, logger.disabled, logger.propagate, logger.handlers.copy())
        for logger in loggers
    ]
    return [logging.root.manager.disable, *states]


def _set_logging(value: list[Any]) -> None:
    """Set the state of the root logger and this program's loggers.

    Parameters
    ----------
    value : list of object
        The state, as `_logging` returns it.
    """
    logging.disable(value[0])
    for logger, level, disabled, propagate, handlers in value[1:]:
        logger.setLevel(level)
        logger.disabled, logger.propagate = disabled, propagate
        logger.handlers[:] = handlers


def _alarm_is_set() -> bool:
    """Return whether a timer will send SIGALRM.

    Returns
    -------
    bool
        True if it is running.
    """
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _umask() -> int:
    """Return the mask of new files' permissions, which can be read only by setting it.

    Returns
    -------
    int
        Mask, which is the same before and after the call.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_LIMITS = (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)


def set_limits(value: list[tuple[int, int]]) -> None:
    """Set the resource limits `_LIMITS`.

    Parameters
    ----------
    value : list of (int, int)
        Soft and hard limit of each.
    """
    for number, (soft, hard) in zip(_LIMITS, value, strict=True):
        resource.setrlimit(number, (soft, hard))  # only root can raise a hard limit


class _Outputs:
    """Standard output and error, with copies of their descriptors from which they can be restored."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[int, Any, dict[str, Any]]] = {}

    @contextmanager
    def copied(self) -> Iterator[None]:
        """Keep copies of the descriptors during the block."""
        before, self._copies = self._copies, {}
        for number, stream in _streams():
            if (file := _file_at(number)) is not None and type(stream) is io.TextIOWrapper:
                options = ("encoding", "errors", "line_buffering", "write_through")
                how = {option: getattr(stream, option) for option in options}
                self._copies[number] = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3), file, how
        try:
            yield
        finally:
            for copy, file, _ in self._copies.values():
                if _file_at(copy) == file:
                    os.close(copy)
            self._copies = before

    def has_copies(self) -> bool:
        """Return whether the copies are still open.

        Code that closes one usually closes all descriptors, so only the last one is checked.

        Returns
        -------
        bool
            True if it is open.
        """
        return all(_file_at(copy) == file for copy, file, _ in [*self._copies.values()][-1:])

    def read(self) -> list[Any]:
        """Return the files to which the outputs are connected, and whether they are closed.

        Returns
        -------
        list of object
            One pair for each output.
        """
        return [(_file_at(number), stream is None or stream.closed) for number, stream in _streams()]

    def restore(self, value: list[Any]) -> None:
        """Connect the outputs as before, and open those again that were closed.

        Parameters
        ----------
        value : list of object
            State of the outputs, as `read` returns it.
        """
        for (number, stream), (_, was_closed) in zip(_streams(), value, strict=True):
            if number in self._copies and not was_closed:
                copy, file, how = self._copies[number]
                if _file_at(number) != file:
                    os.dup2(copy, number)
                with suppress(ValueError):  # the stream may be detached from its buffer
                    if not stream.closed:
                        continue
                buffer = open(number, "wb", closefd=False)  # noqa: SIM115
                stream.__init__(buffer, **how)  # in place, because other objects refer to the stream


def _streams() -> tuple[tuple[int, Any], ...]:
    """Return the descriptors and streams of standard output and error.

    Returns
    -------
    tuple of (int, object)
        Two pairs.
    """
    return (1, sys.__stdout__), (2, sys.__stderr__)


def _file_at(descriptor: int) -> tuple[int, int] | None:
    """Return device and inode of an open file.

    Parameters
    ----------
    descriptor : int
        Number of a descriptor, which may be closed.

    Returns
    -------
    (int, int) or None
        The two numbers, or None if the descriptor is closed.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


outputs = _Outputs()
"""The outputs of this process."""

SETTINGS = [
    Setting("resource limits", lambda: [resource.getrlimit(number) for number in _LIMITS], set_limits),
    Setting("standard output and error", outputs.read, outputs.restore),
    Setting("working directory", _working_directory, os.chdir),
    Setting("environment", _environment, _set_environment),
    Setting("sys.path", lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    Setting("warning filters", lambda: list(warnings.filters), _set_warning_filters, identical),
    Setting("locale", lambda: locale.setlocale(locale.LC_ALL), lambda v: locale.setlocale(locale.LC_ALL, v)),
    Setting("configuration of scikit-learn", sklearn.get_config, lambda value: sklearn.set_config(**value)),
    Setting("numpy's bit generator", mtrand.get_bit_generator, mtrand.set_bit_generator, operator.is_),
    Setting("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("tracing", sys.gettrace, sys.settrace, operator.is_),
    Setting("profiling", sys.getprofile, sys.setprofile, operator.is_),
    Setting("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection),
    Setting("signal handlers", lambda: [*map(getsignal, _SIGNALS)], _set_signal_handlers, identical),
    Setting("logging", _logging, _set_logging),
    Setting("mask of new files' permissions", _umask, os.umask),
    Setting("timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    Setting("alarm", _alarm_is_set, lambda value: value or signal.setitimer(signal.ITIMER_REAL, 0)),
]
if hasattr(os, "sched_setaffinity"):  # not on macOS
    read, write = partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)
    SETTINGS.append(Setting("processor affinity", read, write))
