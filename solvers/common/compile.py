"""Numba's compiler with one set of options, and a cache on disk that depends on all sources of a function.

Numba reuses compiled code until the file of the function itself changes. Compiled code also contains the
functions that it calls, so a change of their files would go unnoticed. Here the names of the cached files
contain a hash of the sources on which the code depends (`solvers.common.source_stamps`). An edit of a source
recompiles all functions that depend on it, and no other.
"""

import gc
import os
import sys
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numba
from numba import types
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import infer_global
from numba.extending import overload

from solvers.common.apart import (
    CacheOfWhole,
    WholeCompiler,
    callable_type,
    compile_elsewhere,
    helper_compiles,
    wait_for_helper,
)
from solvers.common.source_stamps import kinds_of, known_kinds, note_implementation, stamp_of

_tidy_folders: set[Path] = set()


class StampedCache(FunctionCache):
    """Numba's cache of a function, with separate files for each signature, whose names end with a stamp.

    The files are where numba writes them by default: beside the sources or, if that folder is not writeable,
    in the user's cache folder. Processes that compile different signatures at the same time write different
    files. The index of one process can therefore not lose, or mix up, the code of another one.
    """

    _impl_class = CacheOfWhole

    def has(self, sig, target_context):
        """Return whether the code of a signature is on disk.

        Parameters
        ----------
        sig : tuple of numba types
            Types of the arguments.
        target_context : object
            Numba's context.

        Returns
        -------
        bool
            Whether its index exists.
        """
        return Path(self._file_of(sig, target_context.codegen())._index_path).exists()

    def _load_overload(self, sig, target_context):
        self._cache_file = self._file_of(sig, target_context.codegen())
        return super()._load_overload(sig, target_context)

    def _save_overload(self, sig, data):
        self._cache_file = self._file_of(sig, data.codegen)
        super()._save_overload(sig, data)

    def _file_of(self, sig, codegen):
        """Return the files of one signature.

        Parameters
        ----------
        sig : tuple of numba types
            Types of the arguments.
        codegen : object
            Numba's code generator, which knows the processor.

        Returns
        -------
        IndexDataCacheFile
            Index and code. The names contain a hash of the signature and of the processor, the classes that
            select an implementation, and the stamp.
        """
        kinds = kinds_of(sig)
        names = "+".join(kind.__qualname__ for kind in kinds)
        which = blake2b(f"{sig}{codegen.magic_tuple()}".encode(), digest_size=4).hexdigest()
        stamp = f"solvers-{stamp_of(self._py_func.__module__, tuple(kinds))}"
        return IndexDataCacheFile(
            self.cache_path, f"{self._impl.filename_base}.{which}.{names}.{stamp}", stamp
        )

    def save_overload(self, sig, data):
        """Write compiled code to disk, and remove files of older sources before the first write.

        Parameters
        ----------
        sig : object
            Numba's signature of the compiled code.
        data : object
            Compiled code, as numba passes it.
        """
        try:
            _remove_older(Path(self.cache_path), self._py_func.__module__.rpartition(".")[0])
            super().save_overload(sig, data)
        except OSError:  # a full disk, for example: the code works, and the next process compiles it again
            pass


def _remove_older(folder, package):
    """Remove the compiled files of older sources from a folder, once in a process.

    Parameters
    ----------
    folder : Path
        Folder of cached files.
    package : str
        Name of the package whose modules have their code there.
    """
    if folder in _tidy_folders:
        return
    _tidy_folders.add(folder)
    for path in folder.glob("*.solvers-*.nb[ic]"):
        function, _, rest = path.name.rpartition(".solvers-")
        module, names = f"{package}.{function.partition('.')[0]}", function.rpartition(".")[2]
        kinds = [kind for kind in known_kinds() if kind.__qualname__ in names.split("+")]
        are_known = len(kinds) == len([name for name in names.split("+") if name])
        if are_known and rest.partition(".")[0] != stamp_of(module, tuple(kinds)):
            path.unlink(missing_ok=True)


class _PausedCollector(event.Listener):
    """Listener that pauses the garbage collector while numba compiles.

    The collector would otherwise spend an eighth of the compilation time on walking through all modules.
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
        """Reset the state in a forked process, in which no compilation is running."""
        self._lock, paused, self._depth = Lock(), self._depth > 0, 0
        if paused and self._was_enabled:
            gc.enable()


_paused_collector = _PausedCollector()
event.register("numba:compile", _paused_collector)
os.register_at_fork(after_in_child=_paused_collector.in_child)


class _PartLibrary(JITCodeLibrary):
    """Code of a function that is optimised and turned into machine code as part of its callers only.

    By default, numba does both separately as well, even for a function that only compiled code calls. This
    takes a third of the compilation time.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return 0, which numba reads as "no machine code".

        Parameters
        ----------
        name : str
            Name of the function.

        Returns
        -------
        int
            Always 0.
        """
        return 0

    @property
    def codegen(self):
        """The library itself, through which numba sets the environment of machine code."""
        return self

    def set_env(self, name, environment):
        """Do nothing, because there is no machine code.

        Parameters
        ----------
        name : str
            Name of the environment.
        environment : object
            Environment that numba would set.
        """


class _PartCompiler(Compiler):
    """Compiler of functions to a `_PartLibrary`.

    Parameters
    ----------
    typing_context, target_context : object
        Numba's contexts.
    library : object
        Library that numba would use, which this one replaces.
    *others : object
        Further arguments of numba's compiler.
    """

    def __init__(self, typing_context, target_context, library, *others):
        library = _PartLibrary(target_context.codegen(), "part")
        super().__init__(typing_context, target_context, library, *others)


def _options(allocates):
    """Return the options of numba that all functions share.

    Parameters
    ----------
    allocates : bool
        Whether the function makes or returns arrays.

    Returns
    -------
    dict
        Options of numba's compiler.
    """
    return {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": allocates}


def _part_options(allocates):
    """Return the options of numba for functions that are compiled as part of their callers.

    Parameters
    ----------
    allocates : bool
        Whether the function makes or returns arrays.

    Returns
    -------
    dict
        Options of numba's compiler.
    """
    return _options(allocates) | {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


class _Function(CPUDispatcher):
    """Function that is compiled for calls from Python. Compiled code that calls it contains its `part`.

    Parameters
    ----------
    function : function
        Python function to compile.
    allocates : bool
        Whether the function makes or returns arrays, as in `njit`.
    """

    def __init__(self, function, allocates):
        super().__init__(
            function,
            targetoptions={"nopython": True, **_options(allocates)},
            pipeline_class=WholeCompiler,
        )
        self._cache = StampedCache(function)
        self.part = numba.njit(**_part_options(allocates))(function)

    def __reduce__(self):
        """Pickle by name, or else by the Python function and its option, as numba would change the class."""
        if getattr(sys.modules.get(self.__module__), self.__qualname__, None) is self:
            return self.__qualname__
        return _Function, (self.py_func, self.targetoptions["_nrt"])

    @property
    def _numba_type_(self):
        return types.Dispatcher(self.part)

    def is_cached(self, args):
        """Return whether the machine code for some arguments is on disk.

        Parameters
        ----------
        args : tuple of numba types
            Types of the arguments.

        Returns
        -------
        bool
            Whether loading it takes no compilation.
        """
        return self._cache.has(args, self.targetctx)

    def compile(self, sig):
        """Compile the function, or load it from the cache, where a helper process may be about to write it.

        Parameters
        ----------
        sig : tuple of numba types
            Types of the arguments.

        Returns
        -------
        object
            Numba's entry point of the compiled code.
        """
        if helper_compiles(self, sig):  # the wait counts as compilation
            details = {"dispatcher": self, "args": sig, "return_type": None}
            with global_compiler_lock, event.trigger_event("numba:compile", data=details):
                wait_for_helper(self, sig)
        return super().compile(sig)

    def compile_ahead(self, *args):
        """Have a helper process compile the function for arguments of some types, if it never ran here.

        Parameters
        ----------
        *args : objects
            Arguments with the types of those of the first call.
        """
        if not self.overloads:
            compile_elsewhere(self, tuple(map(numba.typeof, args)))


class _Apart(_Function):
    """Function whose machine code is apart from that of its compiled callers.

    Parameters
    ----------
    function : function
        Python function to compile.
    returned : numba type
        Type of the result.
    allocates : bool
        Whether the function makes or returns arrays, as in `njit`.
    """

    def __init__(self, function, returned, allocates):
        super().__init__(function, allocates)
        self._callable_type = callable_type(self, returned)

    @property
    def _numba_type_(self):
        return self._callable_type


def njit(function=None, *, allocates=True):
    """Compile a function at its first call, without the GIL and with NumPy's rules of division.

    Compiled code that calls the function contains it, without the data that numba keeps beside machine code.
    In compiled code the function may therefore not call itself, print, or raise an exception with computed
    values.

    Parameters
    ----------
    function : function, optional
        Function to compile. Without it, the result is a decorator.
    allocates : bool, default=True
        Whether the function makes or returns arrays. If not, numba does not count references to its arrays.
        That saves a third of the compilation time, and some time in every call.

    Returns
    -------
    _Function
        Compiled function, or the decorator.
    """
    if function is None:
        return partial(njit, allocates=allocates)
    return _Function(function, allocates)


def apart(*returned, allocates=False):
    """Compile a function apart from its compiled callers, in another process while they are compiled.

    The function must be defined at the top level of its module, because the helper process imports it. A call
    costs a few nanoseconds more than one of `inner` or `njit`. The function may not have default
    arguments.

    Parameters
    ----------
    *returned : numba types
        Types of the results: one, or those of a tuple.
    allocates : bool, default=False
        Whether the function makes or returns arrays, as in `njit`.

    Returns
    -------
    function
        Decorator of the function.
    """
    kind = returned[0] if len(returned) == 1 else types.Tuple(returned)
    return partial(_Apart, returned=kind, allocates=allocates)


def inner(function=None, *, allocates=False):
    """Compile a function as part of its compiled callers. For Python it remains a Python function.

    The same restrictions hold as for functions of `njit` that compiled code calls.

    Parameters
    ----------
    function : function, optional
        Function to compile. Without it, the result is a decorator.
    allocates : bool, default=False
        Whether the function makes or returns arrays, as in `njit`.

    Returns
    -------
    function
        The function itself, or the decorator.
    """
    if function is None:
        return partial(inner, allocates=allocates)
    function.part = numba.njit(**_part_options(allocates))(function)
    infer_global(function, types.Dispatcher(function.part))  # numba keeps no reference to `part`
    return function


def inlined(function):
    """Compile a function into each of its callers.

    Parameters
    ----------
    function : function
        Function to compile.

    Returns
    -------
    Dispatcher
        Compiled function, which numba inlines before it infers types.
    """
    return numba.njit(inline="always", error_model="numpy")(function)


def implement(operation, kind, *, allocates=True):
    """Register an implementation of an operation for one class of its first argument.

    Compiled code that calls the operation runs the implementation for the class of the first argument.

    Parameters
    ----------
    operation : function
        Operation to implement. Its own body never runs.
    kind : type
        Class of the first argument, a subclass of `NamedTuple`.
    allocates : bool, default=True
        Whether the implementation makes or returns arrays, as in `njit`.

    Returns
    -------
    function
        Decorator of the implementation.
    """
    registering = sys._getframe(1).f_globals["__name__"]

    def register(function):
        """Register one implementation.

        Parameters
        ----------
        function : function
            Function that implements the operation.

        Returns
        -------
        function
            The implementation itself.
        """
        note_implementation(kind, function.__module__)
        note_implementation(kind, registering)

        @overload(operation, strict=False, jit_options=_part_options(allocates))
        def of_kind(first, *others):
            return function if getattr(first, "instance_class", None) is kind else None

        return function

    return register


def implement_by_types(operation):
    """Return a decorator for a function that chooses an implementation by the types of the arguments.

    No implementation may make or return arrays.

    Parameters
    ----------
    operation : function
        Operation to implement. Its own body never runs.

    Returns
    -------
    function
        Decorator of the function that receives numba's types and returns the implementation.
    """
    return overload(operation, strict=False, jit_options=_part_options(False))
