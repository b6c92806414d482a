"""Call a function in a worker's process beside its trainings, which occupy all the threads of its tasks."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any


async def call_beside(call: bytes) -> bytes:
    """Run a pickled (function, arguments) in a thread of its own; return (value, error) pickled.

    Both are pickled here, so that an error of the function cannot be mistaken for one of the connection.
    """
    return await asyncio.to_thread(_call, call)


def pickled_call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return what `call_beside` takes."""
    return pickle.dumps((function, arguments))


def _call(call: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps((function(*arguments), None))
    except Exception as error:
        try:
            pickle.loads(told := pickle.dumps((None, error)))
            return told
        except Exception:  # some errors cannot travel
            from orchestrator.training import describe_error

            return pickle.dumps((None, RuntimeError(describe_error(error))))
