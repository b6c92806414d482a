"""Numba's compiler with one set of options, and a cache on disk that knows all sources of this package.

Numba keeps compiled code until the file of the function itself changes. A function that calls, and so
contains, one of another file would stay as it was when that other file changes. Here the names of the cached
files hold a hash of all sources of the package: an edit of any of them compiles everything anew.
"""

import gc
import os
import sys
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numba
from numba.core import event, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import infer_global
from numba.extending import overload

PACKAGE = Path(__file__).resolve().parents[1]


def _stamp_of(folder):
    """Hash the sources of a package: their paths below the folder, and their content."""
    content = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        content.update(f"{path.relative_to(folder)}:{len(source)}:".encode() + source)
    return content.hexdigest()


STAMP = f"solvers-{_stamp_of(PACKAGE)}"
_tidy_folders: set[Path] = set()


class StampedCache(FunctionCache):
    """Numba's cache of a function, in files whose names end with the stamp.

    They lie where numba puts its own: beside the sources or, where that is not writeable, in the user's
    cache.
    """

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(self.cache_path, f"{self._impl.filename_base}.{STAMP}", STAMP)

    def save_overload(self, sig, data):
        """Keep compiled code; remove what was compiled from older sources when the first is kept."""
        try:
            _remove_older(Path(self.cache_path))
            super().save_overload(sig, data)
        except OSError:  # of a full disk, say: the code is there, and is compiled again the next time
            pass


def _remove_older(folder):
    if folder in _tidy_folders:
        return
    _tidy_folders.add(folder)
    for path in folder.glob("*.solvers-*.nb[ic]"):
        if f".{STAMP}." not in path.name:
            path.unlink(missing_ok=True)


class _PausedCollector(event.Listener):
    """Pauses the garbage collector while numba compiles.

    An eighth of the time it would walk through all modules, again and again, for what numba makes on the way.
    """

    def __init__(self):
        self._lock, self._depth, self._was_enabled = Lock(), 0, False

    def on_start(self, _):
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, _):
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()

    def in_child(self):
        """Go on in a forked process, in which nothing is compiled yet."""
        self._lock, paused, self._depth = Lock(), self._depth > 0, 0
        if paused and self._was_enabled:
            gc.enable()


_paused_collector = _PausedCollector()
event.register("numba:compile", _paused_collector)
os.register_at_fork(after_in_child=_paused_collector.in_child)


class _PartLibrary(JITCodeLibrary):
    """Code of a function for those that call it, which are optimised and made machine code of with it.

    Numba would do both for every function that is called, though nothing runs it but as part of its callers:
    a third of the time of compiling.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return 0, by which numba knows that there is no machine code."""
        return 0

    @property
    def codegen(self):
        """What numba sets the environment of machine code by."""
        return self

    def set_env(self, name, environment):
        """Set nothing: there is no machine code."""


class _PartCompiler(Compiler):
    """Compiles functions to a `_PartLibrary`."""

    def __init__(self, typing_context, target_context, library, *others):
        library = _PartLibrary(target_context.codegen(), "part")
        super().__init__(typing_context, target_context, library, *others)


def _options(allocates):
    return {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": allocates}


def _part_options(allocates):
    return _options(allocates) | {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


class _Function(CPUDispatcher):
    """A function that is compiled for calls from Python; compiled code that calls it contains its `part`."""

    def __init__(self, function, allocates):
        super().__init__(function, targetoptions={"nopython": True, **_options(allocates)})
        self._cache = StampedCache(function)
        self.part = numba.njit(**_part_options(allocates))(function)

    def __reduce__(self):
        """Be pickled by name, or else by what it is made of; numba would make another kind of it."""
        if getattr(sys.modules.get(self.__module__), self.__qualname__, None) is self:
            return self.__qualname__
        return _Function, (self.py_func, self.targetoptions["_nrt"])

    @property
    def _numba_type_(self):
        return types.Dispatcher(self.part)


def njit(function=None, *, allocates=True):
    """Compile a function when it is first called; without the GIL, and with NumPy's rules of division.

    Compiled code that calls it contains it, and cannot give it what numba keeps beside machine code: there it
    may neither call itself, nor print, nor raise an exception with values that it has computed.

    Parameters
    ----------
    function : function
    allocates : bool
        Whether it makes arrays or returns any. Of one that does neither numba need not count the references
        to its arrays, which takes a third of the time of compiling it, and time whenever it is called.
    """
    if function is None:
        return partial(njit, allocates=allocates)
    return _Function(function, allocates)


def inner(function=None, *, allocates=False):
    """Compile a function as part of those that call it; in Python it stays what it is.

    It may do what a function may that others call; see `njit`.

    Parameters
    ----------
    function : function
    allocates : bool
        As in `njit`.
    """
    if function is None:
        return partial(inner, allocates=allocates)
    function.part = numba.njit(**_part_options(allocates))(function)
    infer_global(function, types.Dispatcher(function.part))  # which does not keep it alive
    return function


def inlined(function):
    """Compile a function into each of its callers."""
    return numba.njit(inline="always", error_model="numpy")(function)


def implement(operation, kind, *, allocates=True):
    """Register what an operation does where its first argument is of a kind of named tuple.

    Compiled code that calls the operation gets the implementation that belongs to the type of the argument.

    Parameters
    ----------
    operation : function
        Its body is never run.
    kind : type
        A subclass of `NamedTuple`.
    allocates : bool
        As in `njit`.
    """

    def register(function):
        @overload(operation, strict=False, jit_options=_part_options(allocates))
        def of_kind(first, *others):
            return function if getattr(first, "instance_class", None) is kind else None

        return function

    return register


def implement_by_types(operation):
    """Register a function that chooses by the types of the arguments what an operation does.

    Nothing of it may make arrays.

    Parameters
    ----------
    operation : function
        Its body is never run.
    """
    return overload(operation, strict=False, jit_options=_part_options(False))
