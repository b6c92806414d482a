"""One process compiles a function while the others that need it wait for what it stores in numba's cache."""

from pathlib import Path

from filelock import FileLock
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from solvers.common.compile import StampedCache
from solvers.common.source_stamps import stamp_of


def share_compilation() -> None:
    """Have this process wait where another compiles one of the functions of `solvers`."""
    compile_here = Dispatcher.compile

    def compile_once(dispatcher, signature):
        cache = dispatcher._cache
        if not isinstance(cache, StampedCache):
            return compile_here(dispatcher, signature)
        folder = Path(cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        function = dispatcher.py_func
        name = f"{function.__qualname__}.{stamp_of(function.__module__)}.lock"
        lock = FileLock(folder / name, is_singleton=True)
        # In this order, as a function may be compiled while its caller is.
        with global_compiler_lock, lock:
            return compile_here(dispatcher, signature)

    Dispatcher.compile = compile_once
