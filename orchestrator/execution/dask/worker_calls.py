"""How functions are called in a worker's process: as its tasks, or directly, in a thread of their own."""

import asyncio
import pickle
from typing import Any

from orchestrator.execution.transport import Function
from orchestrator.study.storable import describe_error


def guarded_call(function: Function, *arguments: Any) -> Any:
    """Call a function as a task; Dask would close the worker for good on SystemExit or KeyboardInterrupt."""
    try:
        return function(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(describe_error(error)) from None


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
