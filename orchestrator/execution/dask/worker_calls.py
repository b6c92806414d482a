"""Call functions in a worker's process, as its tasks or directly in another thread."""

import asyncio
import math
import pickle
from contextlib import suppress
from functools import cache
from typing import Any

from distributed import get_worker

from orchestrator.execution.transport import Function
from orchestrator.study.text import describe_error
from orchestrator.training.worker_state import limit_memory


def guarded_call(function: Function, *arguments: Any) -> Any:
    """Call a function as a task; raise RuntimeError in place of SystemExit or KeyboardInterrupt.

    On these exceptions, Dask would close the worker for good.

    Parameters
    ----------
    function : Function
        Called in the worker's process with `arguments`.
    *arguments : object
        Positional arguments of the function.

    Returns
    -------
    object
        The value that the function returns.
    """
    _limit_memory()
    try:
        return function(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(describe_error(error)) from None


@cache
def _limit_memory() -> None:
    """Apply this worker's memory limit to the child processes of its trainings as well."""
    with suppress(ValueError):  # this process is not a worker
        limit_memory(get_worker().memory_manager.memory_limit or math.inf)


async def direct_call(call: bytes) -> bytes:
    """Call a pickled function in another thread.

    A task would wait for the trainings, which occupy all threads of the worker's executor. The exception is
    pickled here, so that an error of the function cannot be mistaken for one of the connection.

    Parameters
    ----------
    call : bytes
        Pickled pair of a function and its arguments.

    Returns
    -------
    bytes
        Pickled pair of a value and an exception, one of which is None.
    """
    return await asyncio.to_thread(_call, call)


def _call(call: bytes) -> bytes:
    """Call a pickled function.

    Parameters
    ----------
    call : bytes
        Pickled pair of a function and its arguments.

    Returns
    -------
    bytes
        Pickled pair of a value and an exception, one of which is None.
    """
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps((function(*arguments), None))
    except Exception as error:
        from orchestrator.training.batch_process import portable

        return pickle.dumps((None, portable(error)))
