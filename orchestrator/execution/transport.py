"""What the executor needs of whatever carries its messages to workers and back."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


class PendingCall(Protocol):
    """A call that was sent to a worker."""

    def cancel(self) -> object:
        """Give up the call; its worker may finish it, and there is no result."""


class CallStatus(enum.Enum):
    """How a call on a worker ended."""

    RETURNED = "returned"
    RAISED = "raised"
    WORKER_DIED = "its worker died with it"
    LOST = "its result was lost with its worker"
    DISCONNECTED = "the connection to the cluster broke"


@dataclass(frozen=True)
class CallResult:
    """The end of a call: its value if it returned, its error if it raised.

    `reason` says of a worker that died that it had exceeded its memory limit, if it had.
    """

    call: PendingCall
    status: CallStatus
    value: Any = None
    error: Exception | None = None
    reason: str = ""


Callback: TypeAlias = Callable[[CallResult], None]
Function: TypeAlias = Callable[..., Any]


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
        """Whether the connection stands, as far as is known."""

    def workers(self) -> dict[str, tuple[str, int]] | None:
        """Return name and number of threads of each worker by address; None if the scheduler is gone."""

    def submit(self, address: str, callback: Callback, function: Function, *arguments: Any) -> PendingCall:
        """Call a function of an installed module on one worker, and on no other if that one goes away.

        `callback` gets the result, in a thread of the transport's.
        """

    def run(self, address: str, callback: Callback, function: Function, *arguments: Any) -> PendingCall:
        """Call a function as `submit` does, but at once, in another thread than the worker's tasks.

        For what is quick and changes nothing that a training sees: no code of a user's, no random numbers.
        """

    def close(self) -> None:
        """Disconnect."""
