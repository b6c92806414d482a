"""Functions that are compiled apart from their compiled callers, on another core at the same time.

Numba compiles one function at a time. Compiled code usually contains the functions that it calls, so that
the whole solver of a block would be one compilation on one core. A function of `apart` has its own machine
code, which its callers reach by a symbol. While this process compiles the caller, a helper process compiles
the function into the cache. The compilation then takes about half the time.
"""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from hashlib import blake2b
from pkgutil import resolve_name
from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core import cgutils, config
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.imputils import impl_ret_new_ref, lower_builtin
from numba.core.types.misc import unliteral
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate

PREFIX = "solvers.apart."
"""Start of the symbols of functions that are compiled apart."""

_IS_HELPER = "SOLVERS_COMPILES_FOR_ANOTHER_PROCESS"
"""Environment variable of a helper process."""

_by_symbol: dict[str, tuple[Any, ...]] = {}
"""Function, types of its arguments, and type of its result, by symbol."""

_helpers: list["_Helper"] = []
"""The helper process of this process, while it has something to compile."""


def callable_type(function, returned):
    """Return the type of a function that compiled code reaches by a symbol.

    Parameters
    ----------
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    returned : numba type
        Type of its result. The caller can then be compiled before the function is.

    Returns
    -------
    numba type
        Type of the function for its compiled callers.
    """

    class Apart(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            if kws:
                return None
            args = tuple(unliteral(one) for one in args)
            symbol = symbol_of(function, args)
            _by_symbol[symbol] = function, args, returned
            compile_elsewhere(function, args)
            return signature(returned, *args)

    @lower_builtin(function, types.VarArg(types.Any))
    def call(context, builder, sig, args):
        kind = context.call_conv.get_function_type(sig.return_type, sig.args)
        target = cgutils.get_or_insert_function(builder.module, kind, symbol_of(function, sig.args))
        status, result = context.call_conv.call_function(builder, target, sig.return_type, sig.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return impl_ret_new_ref(context, builder, sig.return_type, result)

    return types.Function(Apart)


def symbol_of(function, args):
    """Return the symbol of a function for some types of its arguments. It is the same in every process.

    Parameters
    ----------
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    args : tuple of numba types
        Types of the arguments.

    Returns
    -------
    str
        Name without characters that a linker might not know.
    """
    digest = blake2b(str(args).encode(), digest_size=8).hexdigest()
    return f"{PREFIX}{function.__module__}.{function.__qualname__}.{digest}"


def load(symbol, function, args, returned):
    """Make the machine code of a function known to the linker, and compile it if it is not in the cache.

    Parameters
    ----------
    symbol : str
        Symbol by which callers reach the function.
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    args : tuple of numba types
        Types of the arguments.
    returned : numba type
        Type of the result that callers expect.

    Raises
    ------
    TypeError
        If the function returns another type.
    """
    function.compile(args)
    compiled = function.overloads[args]
    if compiled.signature.return_type != returned:
        raise TypeError(
            f"{function.__qualname__}: the decorator says that it returns {returned}, and it returns "
            f"{compiled.signature.return_type}. Correct the decorator."
        )
    llvm.add_symbol(symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


class WholeLibrary(JITCodeLibrary):
    """Machine code of a function, linked with the functions that it reaches by symbols."""

    def symbols(self):
        """Return the symbols of functions apart that the code needs.

        Returns
        -------
        list of str
            Symbols.
        """
        functions = self._final_module.functions
        return [one.name for one in functions if one.is_declaration and one.name.startswith(PREFIX)]

    def _finalize_final_module(self):
        for symbol in self.symbols():
            load(symbol, *_by_symbol[symbol])
        super()._finalize_final_module()


class WholeCompiler(Compiler):
    """Compiler of functions to a `WholeLibrary`.

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
        library = WholeLibrary(target_context.codegen(), "whole")
        library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *others)


class CacheOfWhole(CompileResultCacheImpl):
    """Numba's reader and writer of compiled code, which loads the functions that the code needs first."""

    def reduce(self, compiled):
        """Return the content of a file for compiled code.

        Parameters
        ----------
        compiled : object
            Numba's result of a compilation.

        Returns
        -------
        tuple
            The functions that it needs, as names and types, and numba's own content.
        """
        needed = [
            (symbol, function.__module__, function.__qualname__, args, returned)
            for symbol in compiled.library.symbols()
            for function, args, returned in [_by_symbol[symbol]]
        ]
        return needed, super().reduce(compiled)

    def rebuild(self, target_context, content):
        """Return the compiled code of a file.

        Parameters
        ----------
        target_context : object
            Numba's context.
        content : tuple
            Content of the file, from `reduce`.

        Returns
        -------
        object
            Numba's result of a compilation.
        """
        needed, rest = content
        for symbol, module, name, args, returned in needed:
            function = resolve_name(f"{module}:{name}")
            load(symbol, function, args, returned)
        return super().rebuild(target_context, rest)


# -- the helper process --------------------------------------------------------------------------


def compile_elsewhere(function, args):
    """Have a helper process compile a function if it is not in the cache and a second core is available.

    Parameters
    ----------
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    args : tuple of numba types
        Types of the arguments.
    """
    if args in function.overloads or function.is_cached(args) or not _may_help():
        return
    if not _helpers:
        path = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"]
        environment = os.environ | {"PYTHONPATH": path, _IS_HELPER: "1"}
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
            )
        except OSError:
            return
        _helpers.append(_Helper(process))
    _helpers[0].request((function.__module__, function.__qualname__, args))


def _may_help():
    """Return whether a helper process may run on another core than this process.

    Returns
    -------
    bool
        False in a helper, and in a process that is bound or limited to one core, as workers are.
    """
    return _IS_HELPER not in os.environ and bool(sys.executable) and config.NUMBA_NUM_THREADS > 1


class _Helper:
    """Process that compiles functions into the cache in the order of the requests.

    Parameters
    ----------
    process : Popen
        Running helper, which reads requests from its standard input.
    """

    def __init__(self, process):
        self._process, self._left = process, []

    def request(self, job):
        """Add a function to those that the process compiles.

        Parameters
        ----------
        job : tuple
            Module, name, and types of the arguments.
        """
        if job in self._left:
            return
        try:
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()
        except OSError:  # the process has died: this process compiles the function
            return
        self._left.append(job)

    def has(self, job):
        """Return whether a function was requested and is not known to be compiled.

        Parameters
        ----------
        job : tuple
            Module, name, and types of the arguments.

        Returns
        -------
        bool
            The answer.
        """
        return job in self._left

    def wait_for(self, job):
        """Wait until the process has compiled a function, or has ended.

        Parameters
        ----------
        job : tuple
            Module, name, and types of the arguments.

        Returns
        -------
        bool
            Whether the process has something left to do.
        """
        while job in self._left:
            if not self._process.stdout.readline():
                self._left.clear()
                break
            self._left.pop(0)
        return bool(self._left)

    def end(self):
        """Let the process end, and wait for it."""
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def helper_compiles(function, args):
    """Return whether the helper process has a function to compile.

    Parameters
    ----------
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    args : tuple of numba types
        Types of the arguments.

    Returns
    -------
    bool
        Whether it has been requested and `wait_for_helper` has not waited for it.
    """
    return bool(_helpers) and _helpers[0].has((function.__module__, function.__qualname__, args))


def wait_for_helper(function, args):
    """Wait until the helper process has compiled a function, if it does, and end the process after the last.

    Parameters
    ----------
    function : solvers.common.compile._Function
        Function of this package that is compiled apart from its callers.
    args : tuple of numba types
        Types of the arguments.
    """
    if _helpers and not _helpers[0].wait_for((function.__module__, function.__qualname__, args)):
        _helpers.pop().end()


def serve():
    """Compile the functions that another process names on standard input, until the input ends."""
    while True:
        try:
            module, name, args = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            resolve_name(f"{module}:{name}").compile(args)
        finally:
            print(name, flush=True)
