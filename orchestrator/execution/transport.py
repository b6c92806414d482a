"""Interface of a connection that carries calls to workers and results back."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


class PendingCall(Protocol):
    """A call that was sent to a worker."""

    def cancel(self) -> object:
        """Cancel the call. Its worker may still finish it, but there is no result."""


class CallStatus(enum.Enum):
    """How a call on a worker ended."""

    RETURNED = "returned"
    RAISED = "raised"
    WORKER_DIED = "its worker died with it"
    LOST = "its result was lost with its worker"
    DISCONNECTED = "the connection to the cluster broke"


@dataclass(frozen=True)
class CallResult:
    """The end of a call.

    Attributes
    ----------
    call : PendingCall
        Handle by which the call can be cancelled.
    status : CallStatus
        How it ended.
    value : object
        The returned value, if the function returned.
    error : Exception or None
        The exception, if the function raised one.
    reason : str
        Why the worker died, if it exceeded its memory limit; else empty.
    """

    call: PendingCall
    status: CallStatus
    value: Any = None
    error: Exception | None = None
    reason: str = ""


Callback: TypeAlias = Callable[[CallResult], None]
"""Function that receives the end of a call."""
Function: TypeAlias = Callable[..., Any]
"""Function of an installed module that runs on a worker."""


class Transport(Protocol):
    """A connection to a cluster."""

    @property
    def scheduler(self) -> str:
        """Address of the scheduler."""

    @property
    def dashboard(self) -> str:
        """Address of the dashboard, or an empty string."""

    @property
    def alive(self) -> bool:
        """Whether the connection is in use; False once it is known to be lost."""

    def workers(self) -> dict[str, tuple[str, int]] | None:
        """Return the connected workers.

        Returns
        -------
        dict of str to (str, int) or None
            Name and number of threads of each worker, by address. None if the scheduler does not answer.
        """

    def submit(self, address: str, callback: Callback, function: Function, *arguments: Any) -> PendingCall:
        """Call a function as a task of one worker; no other worker runs it if that one leaves.

        Parameters
        ----------
        address : str
            Address of the worker.
        callback : Callback
            Called with the end of the call, in a thread of the transport.
        function : Function
            Function of an installed module.
        *arguments : object
            Arguments of the function, which can be pickled.

        Returns
        -------
        PendingCall
            Handle that can cancel the call. `callback` receives the result or the error.
        """

    def run(self, address: str, callback: Callback, function: Function, *arguments: Any) -> PendingCall:
        """Call a function at once, in another thread than the worker's tasks.

        The function must be quick and may not change anything that a training sees. It may neither call code
        of a user nor use random numbers.

        Parameters
        ----------
        address : str
            Address of the worker.
        callback : Callback
            Called with the end of the call, in a thread of the transport.
        function : Function
            Function of an installed module.
        *arguments : object
            Arguments of the function, which can be pickled.

        Returns
        -------
        PendingCall
            Handle that can cancel the call. `callback` receives the result or the error.
        """

    def close(self) -> None:
        """Disconnect."""
