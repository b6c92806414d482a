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
import logging
import math
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from orchestrator.isolation.exits import end_process, exits_raised
from orchestrator.isolation.process_settings import SETTINGS, getsignal, identical, outputs, set_limits

log = logging.getLogger(__name__)

_one_at_a_time = threading.RLock()
"""Lock that allows only one thread of a worker to run trainings."""

_SHARED_MODULES = (builtins, math, np, np.linalg, np.random, os, random, sys, time, warnings)
"""Modules whose variables are restored after every training."""
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
        self._values = [(setting, setting.read()) for setting in SETTINGS]

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
        if not outputs.has_copies():
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
                    self._limits_are_lost |= setting.write is set_limits
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
            if callable(getsignal(number)):
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
    with _one_at_a_time, _threads.limited(), outputs.copied(), exits_raised():
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
        return identical(now, before)
    if kind is dict:
        return identical(now, before) and identical(now.values(), before.values())
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
