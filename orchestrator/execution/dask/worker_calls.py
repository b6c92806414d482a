"""How functions are called in a worker's process: as its tasks, or directly, in a thread of their own."""

import asyncio
import math
import pickle
from contextlib import suppress
from functools import cache
from typing import Any

from distributed import get_worker

from orchestrator.execution.transport import Function
from orchestrator.study.storable import describe_error
from orchestrator.training.worker_state import limit_memory


def guarded_call(function: Function, *arguments: Any) -> Any:
    """Call a function as a task; Dask would close the worker for good on SystemExit or KeyboardInterrupt."""
    _limit_memory()
    try:
        return function(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(describe_error(error)) from None


@cache
def _limit_memory() -> None:
    """Let this worker's memory limit hold for the child processes of its trainings, too."""
    with suppress(ValueError):  # this is no worker
        limit_memory(get_worker().memory_manager.memory_limit or math.inf)


async def direct_call(call: bytes) -> bytes:
    """Run a pickled (function, arguments) in a thread of its own; return (value, error) pickled.

    Tasks would wait for the trainings, which occupy all threads of the worker's executor. Both are pickled
    here, so that an error of the function cannot be mistaken for one of the connection.
    """
    return await asyncio.to_thread(_call, call)


def _call(call: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps((function(*arguments), None))
    except Exception as error:
        from orchestrator.training.batch_process import portable

        return pickle.dumps((None, portable(error)))
