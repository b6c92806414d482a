"""Restore the state of the process after each training, so that no training depends on earlier ones.

This module restores the settings listed below, the variables of some common modules, and those of the
estimator's classes and modules. Variables that were bound to other objects are bound again, and changed
lists, dicts, sets and small arrays get their old content. `os._exit` raises `SystemExit`, and a copy of the
process that a training has forked ends with the training.

Some changes are not restored: those deeper inside such objects, inside other modules and inside compiled
libraries, and threads that continue to run. Two changes cannot be restored, so the process runs no further
training after them: closed descriptors, except standard output and error, and lowered hard limits.
"""

import builtins
import contextvars
import decimal
import fcntl
import gc
import io
import locale
import logging
import math
import operator
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import sklearn
from numpy.random import mtrand
from threadpoolctl import ThreadpoolController

from orchestrator.isolation.exits import end_process, exits_raised

log = logging.getLogger(__name__)

_one_at_a_time = threading.RLock()
"""Lock that allows only one thread of a worker to run trainings."""

_SHARED_MODULES = (builtins, math, np, np.linalg, np.random, os, random, sys, time, warnings)
"""Modules whose variables are restored after every training."""
_PROGRAM = __name__.partition(".")[0]
"""Name of this program's package, whose loggers are restored."""
_LARGEST = 1 << 20
"""Largest size of a container whose content is copied at the start of each batch, in bytes."""


class ProcessUnusableError(RuntimeError):
    """A training has changed its process for good, so no other training may run in it."""


class ProcessState:
    """State of this process at the start of a batch, which is restored after every training.

    If all kinds declare `has_no_side_effects = True`, nothing is restored, and no random state is seeded.

    Parameters
    ----------
    *kinds : object
        Classes and functions that the trainings call: those of the solver, and custom metrics.

    Attributes
    ----------
    is_kept : bool
        Whether all kinds declare that they have no side effects. Only a declaration in the class itself
        counts, because subclasses may have side effects.
    """

    def __init__(self, *kinds: Any):
        self._name = getattr(kinds[0], "__name__", type(kinds[0]).__name__)
        self._process = os.getpid()
        self._limits_are_lost = False
        self.is_kept = all(
            isinstance(kind, type) and vars(kind).get("has_no_side_effects") is True for kind in kinds
        )
        if self.is_kept:
            return
        made_of = [base for kind in kinds for base in getattr(kind, "__mro__", [kind]) if base is not object]
        classes = [base for base in made_of if isinstance(base, type)]
        modules = [sys.modules.get(str(getattr(base, "__module__", None))) for base in made_of]
        holders = [*_SHARED_MODULES, *classes, *(module for module in modules if module is not None)]
        self._namespaces = [_Namespace(holder) for holder in dict.fromkeys(holders)]
        self._values = [(setting, setting.read()) for setting in _SETTINGS]

    def run(self, seed: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with seeded global random states, then restore the state of the process.

        Context variables are restored as well: error handling and print options of NumPy, and the decimal
        context.

        Parameters
        ----------
        seed : int
            Seed of the random states of NumPy and Python.
        function : callable
            Called in this process with `arguments`.
        *arguments : object
            Positional arguments of the function.

        Returns
        -------
        object
            The value that the function returns.
        """
        if not self.is_kept:  # drawing from global random states is a side effect
            np.random.seed(seed)  # noqa: NPY002  # used by estimators without a random state
            random.seed(seed)
        try:
            return contextvars.copy_context().run(_with_decimal_copy, function, *arguments)
        finally:
            if os.getpid() != self._process:
                end_process(1)  # this is a copy by os.fork, which must not continue the batch
            if self.is_kept:
                _threads.limit_loaded()
            else:
                self._restore()
                _threads.limit()

    def require_usable(self) -> None:
        """Raise if no further training may run in this process.

        Raises
        ------
        ProcessUnusableError
            If a hard limit cannot be raised again, or files were closed that a training had not opened.
        """
        if self._limits_are_lost:
            raise ProcessUnusableError(f"a training of {self._name} lowered hard limits of its process")
        if not _outputs.has_copies():
            raise ProcessUnusableError(f"a training of {self._name} closed files that it had not opened")

    def _restore(self) -> None:
        """Restore variables and settings, and log which had changed."""
        changed = [namespace.name for namespace in self._namespaces if namespace.restore()]
        for setting, value in self._values:
            if not setting.has(value):
                changed.append(setting.name)
                try:
                    setting.write(value)
                except BaseException:  # for example, the working directory was removed
                    self._limits_are_lost |= setting.write is _set_limits
        if changed:
            log.info("restored after a training of %s: %s", self._name, ", ".join(changed))


_in_batch: set[int] = set()
"""Process id of this process while it runs a batch; else empty."""


def _default_signals() -> None:
    """Restore default signal handlers in a process that a training has forked.

    With handlers of this program, the process might ignore signals that should end it.
    """
    if os.getppid() in _in_batch:
        _in_batch.clear()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            if callable(_getsignal(number)):
                signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_default_signals)


@contextmanager
def kept_process_state(*kinds: Any) -> Iterator[ProcessState]:
    """Run the trainings of a batch in this process, one thread at a time, with one thread for linear algebra.

    Threads of a worker take turns, because most of the state that a training may change belongs to the
    process. Random states and numbers of threads are restored at the end.

    Parameters
    ----------
    *kinds : object
        Classes and functions that the trainings call: those of the solver, and custom metrics.

    Yields
    ------
    ProcessState
        The state that is restored after every training.
    """
    with _one_at_a_time, _threads.limited(), _outputs.copied(), exits_raised():
        _in_batch.add(os.getpid())
        numpy_state, state = np.random.get_state(), random.getstate()  # noqa: NPY002
        try:
            yield ProcessState(*kinds)
        finally:
            _in_batch.discard(os.getpid())
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(state)


def _with_decimal_copy(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with a copy of the decimal context.

    Without a copy, the old and the new context would hold the same object.

    Parameters
    ----------
    function : callable
        Called in this process with `arguments`.
    *arguments : object
        Positional arguments of the function.

    Returns
    -------
    object
        The value that the function returns.
    """
    decimal.setcontext(decimal.getcontext().copy())
    return function(*arguments)


# -- variables of modules and classes ------------------------------------------------------------


class _Namespace:
    """Variables of a module or a class, and contents of the containers among them.

    Parameters
    ----------
    holder : object
        The module or class.
    """

    def __init__(self, holder: Any):
        self.name = f"variables of {holder.__name__}"
        self._holder = holder
        self._saved = dict(vars(holder))
        self._values = list(self._saved.values())
        self._containers = [
            (value, value.copy())
            for name, value in self._saved.items()
            if type(value) in (list, dict, set, np.ndarray)
            and not name.startswith("__")
            and holder not in _SHARED_MODULES
            and value.__sizeof__() <= _LARGEST
        ]

    def restore(self) -> bool:
        """Restore changed variables and contents.

        Returns
        -------
        bool
            Whether anything had changed.
        """
        now = vars(self._holder)
        try:  # comparing lists compares by identity first, which takes nanoseconds
            changed = list(now.values()) != self._values
        except BaseException:  # some objects cannot be compared, such as arrays
            changed = True
        if changed:
            changed = self._rebind(dict(now))
        for container, content in self._containers:
            if not _same_content(container, content):
                _refill(container, content)
                changed = True
        return changed

    def _rebind(self, now: dict[str, Any]) -> bool:
        """Bind changed variables to their old objects and delete new ones.

        Parameters
        ----------
        now : dict of str to object
            Current variables by name.

        Returns
        -------
        bool
            Whether any had changed.
        """
        changed = [name for name, value in self._saved.items() if name not in now or now[name] is not value]
        added = [
            name
            for name, value in now.items()
            # Imported modules are kept, because a second import would not bind them again.
            if name not in self._saved and not name.startswith("__") and not isinstance(value, ModuleType)
        ]
        with suppress(AttributeError, TypeError):  # classes of extension modules cannot be changed
            for name in changed:
                setattr(self._holder, name, self._saved[name])
            for name in added:
                delattr(self._holder, name)
        return bool(changed or added)


def _identical(now: Collection[Any], before: Collection[Any]) -> bool:
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


def _same_content(now: Any, before: Any) -> bool:
    """Return whether a container has the same content as a copy.

    Parameters
    ----------
    now : object
        The container: a list, dict, set or array.
    before : object
        The copy, of the same type.

    Returns
    -------
    bool
        True if the content is the same.
    """
    kind = type(now)
    if kind is list:
        return _identical(now, before)
    if kind is dict:
        return _identical(now, before) and _identical(now.values(), before.values())
    if kind is set:
        return bool(now == before)
    return now.shape == before.shape and now.tobytes() == before.tobytes()


def _refill(container: Any, content: Any) -> None:
    """Replace the content of a container in place.

    Parameters
    ----------
    container : object
        The container: a list, dict, set or array.
    content : object
        Container of the same type with the new content.
    """
    if isinstance(container, (dict, set)):
        container.clear()
        container.update(content)
    elif isinstance(container, np.ndarray):
        container.resize(content.shape, refcheck=False)
        container[...] = content
    else:
        container[:] = content


# -- settings of the process ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
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
_getsignal = sys.modules["_signal"].getsignal
_SIGNALS = [*map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP, signal.SIGCHLD))]


def _set_signal_handlers(value: list[Any]) -> None:
    """Set the handlers of `_SIGNALS`.

    Parameters
    ----------
    value : list of object
        One handler for each signal. None stands for a handler that was not set by Python and is kept.
    """
    for number, handler in zip(_SIGNALS, value, strict=True):
        if handler is not None and _getsignal(number) is not handler:
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


def _set_limits(value: list[tuple[int, int]]) -> None:
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


_outputs = _Outputs()
"""The outputs of this process."""

_SETTINGS = [
    _Setting("resource limits", lambda: [resource.getrlimit(number) for number in _LIMITS], _set_limits),
    _Setting("standard output and error", _outputs.read, _outputs.restore),
    _Setting("working directory", _working_directory, os.chdir),
    _Setting("environment", _environment, _set_environment),
    _Setting("sys.path", lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    _Setting("warning filters", lambda: list(warnings.filters), _set_warning_filters, _identical),
    _Setting("locale", lambda: locale.setlocale(locale.LC_ALL), lambda v: locale.setlocale(locale.LC_ALL, v)),
    _Setting("configuration of scikit-learn", sklearn.get_config, lambda value: sklearn.set_config(**value)),
    _Setting("numpy's bit generator", mtrand.get_bit_generator, mtrand.set_bit_generator, operator.is_),
    _Setting("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    _Setting("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    _Setting("tracing", sys.gettrace, sys.settrace, operator.is_),
    _Setting("profiling", sys.getprofile, sys.setprofile, operator.is_),
    _Setting("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection),
    _Setting("signal handlers", lambda: [*map(_getsignal, _SIGNALS)], _set_signal_handlers, _identical),
    _Setting("logging", _logging, _set_logging),
    _Setting("mask of new files' permissions", _umask, os.umask),
    _Setting("timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    _Setting("alarm", _alarm_is_set, lambda value: value or signal.setitimer(signal.ITIMER_REAL, 0)),
]
if hasattr(os, "sched_setaffinity"):  # not on macOS
    read, write = partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)
    _SETTINGS.append(_Setting("processor affinity", read, write))


# -- threads -------------------------------------------------------------------------------------


class _Threads:
    """Thread pools of compiled libraries, limited to one thread, so that sums are the same on every host."""

    def __init__(self) -> None:
        self._n_modules = -1
        self._libraries: list[Any] = []

    def limit(self) -> list[tuple[Any, int]]:
        """Limit all pools to one thread, including those that were loaded since the last call.

        Returns
        -------
        list of (library, int)
            The libraries that had another number of threads, and that number.
        """
        if len(sys.modules) != self._n_modules:  # looking for libraries takes a millisecond
            self._n_modules = len(sys.modules)
            self._libraries = ThreadpoolController().lib_controllers
        numba = sys.modules.get("numba.np.ufunc.parallel")
        # Asking numba for its number of threads would start them.
        started = [numba] if getattr(numba, "_is_initialized", False) else []
        before = [(library, library.get_num_threads()) for library in (*self._libraries, *started)]
        changed = [(library, number) for library, number in before if number != 1]
        for library, _ in changed:
            library.set_num_threads(1)
        return changed

    def limit_loaded(self) -> None:
        """Limit all pools to one thread, if any may have been loaded since the last call."""
        if len(sys.modules) != self._n_modules:
            self.limit()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limit all pools to one thread during the block."""
        changed = self.limit()
        try:
            yield
        finally:
            for library, number in changed:
                library.set_num_threads(number)


_threads = _Threads()
"""The thread pools of this process."""
