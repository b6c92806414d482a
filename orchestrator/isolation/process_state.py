"""Undo what a training leaves changed in its process, so that no training depends on those before it.

Restored are the settings listed below, the variables of a few modules that everything uses, and those of
the estimator's own classes and modules: names bound to other objects, and lists, dicts, sets and small arrays
changed in place. `os._exit` raises `SystemExit`, and a copy of the process that a training has forked ends
with the training. Not restored are changes deeper inside such objects, inside other modules and inside
compiled libraries, and threads that go on running. Descriptors that a training closes cannot be restored but
for standard output and error, nor hard limits that it lowers; its process then has no further training.
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

_SHARED_MODULES = (builtins, math, np, np.linalg, np.random, os, random, sys, time, warnings)
_PROGRAM = __name__.partition(".")[0]
_LARGEST = 1 << 20
"""Bytes of a container that is worth a copy in each batch."""


class ProcessUnusableError(RuntimeError):
    """A training has done to its process what cannot be undone, and no other is to run in it."""


class ProcessState:
    """The state of this process at the start of a batch, to which it returns after every training.

    Where all kinds promise to have no side effects, nothing is undone, and no random state is seeded.

    Parameters
    ----------
    *kinds : type or function
        The class of the estimators, and what else they are made of.

    Attributes
    ----------
    is_kept : bool
        Whether all kinds promise that, in their own bodies: what derives from a class has not.
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
        own = [*classes, *(module for module in modules if module is not None)]
        self._namespaces = [_Namespace(holder) for holder in dict.fromkeys([*_SHARED_MODULES, *own])]
        self._values = [(setting, setting.read()) for setting in _SETTINGS]

    def run(self, seed: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with the global random states seeded, then undo what it left changed.

        Context variables (numpy's error handling and print options, the decimal context) are undone too.
        """
        if not self.is_kept:  # drawing from them is a side effect
            np.random.seed(seed)  # noqa: NPY002  # what estimators without a random state draw from
            random.seed(seed)
        try:
            return contextvars.copy_context().run(_with_own_decimals, function, *arguments)
        finally:
            if os.getpid() != self._process:
                end_process(1)  # a copy made by os.fork, which must not go on with the batch
            if self.is_kept:
                _threads.limit_loaded()
            else:
                self._restore()
                _threads.limit()

    def require_usable(self) -> None:
        """Raise ProcessUnusableError if limits cannot be raised again, or files that were open are closed."""
        if self._limits_are_lost:
            raise ProcessUnusableError(f"a training of {self._name} lowered hard limits of its process")
        if not _outputs.has_copies():
            raise ProcessUnusableError(f"a training of {self._name} closed files that others had opened")

    def _restore(self) -> None:
        changed = [namespace.name for namespace in self._namespaces if namespace.restore()]
        for setting, value in self._values:
            if not setting.has(value):
                changed.append(setting.name)
                try:
                    setting.write(value)
                except BaseException:  # for example a working directory that was removed
                    self._limits_are_lost |= setting.write is _set_limits
        if changed:
            log.info("a training of %s changed, and had restored: %s", self._name, ", ".join(changed))


_in_batch: set[int] = set()
"""The process that runs a batch, if this is one."""


def _default_signals() -> None:
    """Let signals end a process that a training has forked; handlers of this program might keep it alive."""
    if os.getppid() in _in_batch:
        _in_batch.clear()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            if callable(_getsignal(number)):
                signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_default_signals)


@contextmanager
def kept_process_state(*kinds: Any) -> Iterator[ProcessState]:
    """Let the trainings of a batch run alone in this process, with one thread for linear algebra.

    Threads of one worker take turns, for most of what a training may change belongs to the process. Random
    states and numbers of threads are as they were afterwards.
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


def _with_own_decimals(function: Callable[..., Any], *arguments: Any) -> Any:
    decimal.setcontext(decimal.getcontext().copy())  # else both contexts would hold the same object
    return function(*arguments)


# -- variables of modules and classes ------------------------------------------------------------


class _Namespace:
    """The variables of a module or a class, and what the containers among them hold."""

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
        """Put back what was changed, and return whether anything was."""
        now = vars(self._holder)
        try:  # by identity first, which takes nanoseconds, and the few others by equality
            changed = list(now.values()) != self._values
        except BaseException:  # objects that cannot be compared, such as arrays
            changed = True
        if changed:
            changed = self._rebind(dict(now))
        for container, content in self._containers:
            if not _same_content(container, content):
                _refill(container, content)
                changed = True
        return changed

    def _rebind(self, now: dict[str, Any]) -> bool:
        changed = [name for name, value in self._saved.items() if name not in now or now[name] is not value]
        added = [
            name
            for name, value in now.items()
            # What an import leaves behind stays: a second import would not bring it back.
            if name not in self._saved and not name.startswith("__") and not isinstance(value, ModuleType)
        ]
        with suppress(AttributeError, TypeError):  # a class of an extension module
            for name in changed:
                setattr(self._holder, name, self._saved[name])
            for name in added:
                delattr(self._holder, name)
        return bool(changed or added)


def _identical(now: Collection[Any], before: Collection[Any]) -> bool:
    """Compare by identity, for what a user's objects call equal need not be the same."""
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _same_content(now: Any, before: Any) -> bool:
    kind = type(now)
    if kind is list:
        return _identical(now, before)
    if kind is dict:
        return _identical(now, before) and _identical(now.values(), before.values())
    if kind is set:
        return bool(now == before)
    return now.shape == before.shape and now.tobytes() == before.tobytes()


def _refill(container: Any, content: Any) -> None:
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
    """Something that a process has one of."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    same: Callable[[Any, Any], bool] = operator.eq

    def has(self, value: Any) -> bool:
        """Return whether it is set to a value."""
        try:
            return bool(self.same(self.read(), value))
        except BaseException:  # for example a working directory that was removed
            return False


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _environment() -> dict[Any, Any]:
    return os.environ._data.copy()  # type: ignore[attr-defined]  # decoding it would take 15 microseconds


def _set_environment(value: dict[Any, Any]) -> None:
    wanted = {os.fsdecode(name): os.fsdecode(text) for name, text in value.items()}
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _set_warning_filters(value: list[Any]) -> None:
    warnings.resetwarnings()  # so that the interpreter takes note of the change
    warnings.filters[:] = value  # type: ignore[index]


# Those of `signal` take microseconds to look for members of enumerations.
_getsignal = sys.modules["_signal"].getsignal
_SIGNALS = [*map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP, signal.SIGCHLD))]


def _set_signal_handlers(value: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, value, strict=True):
        if handler is not None and _getsignal(number) is not handler:
            signal.signal(number, handler)


def _set_garbage_collection(value: tuple[bool, tuple[int, int, int]]) -> None:
    enabled, thresholds = value
    gc.set_threshold(*thresholds)
    (gc.enable if enabled else gc.disable)()


def _logging() -> list[Any]:
    known = logging.root.manager.loggerDict.items()
    ours = [logger for name, logger in known if name.startswith(_PROGRAM)]
    loggers = [logging.root, *(logger for logger in ours if isinstance(logger, logging.Logger))]
    states = [
        (logger, logger.level, logger.disabled, logger.propagate, logger.handlers.copy())
        for logger in loggers
    ]
    return [logging.root.manager.disable, *states]


def _set_logging(value: list[Any]) -> None:
    logging.disable(value[0])
    for logger, level, disabled, propagate, handlers in value[1:]:
        logger.setLevel(level)
        logger.disabled, logger.propagate = disabled, propagate
        logger.handlers[:] = handlers


def _alarm_is_set() -> bool:
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _umask() -> int:
    """Return the mask of new files' permissions, which can be read by setting it only."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_LIMITS = (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)


def _set_limits(value: list[tuple[int, int]]) -> None:
    for number, (soft, hard) in zip(_LIMITS, value, strict=True):
        resource.setrlimit(number, (soft, hard))  # only root can raise a hard limit


class _Outputs:
    """Standard output and error, with copies of their descriptors to restore them from."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[int, Any, dict[str, Any]]] = {}

    @contextmanager
    def copied(self) -> Iterator[None]:
        """Keep the copies meanwhile."""
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
        """Return whether the copies are still open; as what closes one closes all, the last is looked at."""
        return all(_file_at(copy) == file for copy, file, _ in [*self._copies.values()][-1:])

    def read(self) -> list[Any]:
        """Return what the outputs are connected to, and whether they can be written to."""
        return [(_file_at(number), stream is None or stream.closed) for number, stream in _streams()]

    def restore(self, value: list[Any]) -> None:
        """Connect them as before, and open those anew that were closed."""
        for (number, stream), (_, was_closed) in zip(_streams(), value, strict=True):
            if number in self._copies and not was_closed:
                copy, file, how = self._copies[number]
                if _file_at(number) != file:
                    os.dup2(copy, number)
                with suppress(ValueError):  # it is detached from its buffer
                    if not stream.closed:
                        continue
                buffer = open(number, "wb", closefd=False)  # noqa: SIM115
                stream.__init__(buffer, **how)  # in place, for others refer to the stream


def _streams() -> tuple[tuple[int, Any], ...]:
    return (1, sys.__stdout__), (2, sys.__stderr__)


def _file_at(descriptor: int) -> tuple[int, int] | None:
    """Return what identifies an open file, or None for a descriptor that is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_outputs = _Outputs()

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
    """The thread pools of compiled libraries, held to one thread, so that sums are the same everywhere."""

    def __init__(self) -> None:
        self._n_modules = -1
        self._libraries: list[Any] = []

    def limit(self) -> list[tuple[Any, int]]:
        """Set all to one thread, those included that were loaded since the last call.

        Returns
        -------
        list of (library, int)
            Those that had another number of threads.
        """
        if len(sys.modules) != self._n_modules:  # looking for libraries takes a millisecond
            self._n_modules = len(sys.modules)
            self._libraries = ThreadpoolController().lib_controllers
        numba = sys.modules.get("numba.np.ufunc.parallel")
        # Asking numba would start its threads.
        started = [numba] if getattr(numba, "_is_initialized", False) else []
        before = [(library, library.get_num_threads()) for library in (*self._libraries, *started)]
        changed = [(library, number) for library, number in before if number != 1]
        for library, _ in changed:
            library.set_num_threads(1)
        return changed

    def limit_loaded(self) -> None:
        """Set all to one thread if any may have been loaded since the last call."""
        if len(sys.modules) != self._n_modules:
            self.limit()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Hold all to one thread meanwhile."""
        changed = self.limit()
        try:
            yield
        finally:
            for library, number in changed:
                library.set_num_threads(number)


_threads = _Threads()
