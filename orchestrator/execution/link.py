"""What the executor needs of whatever carries its messages to workers and back."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Handle(Protocol):
    """A call that was started on a worker."""

    def cancel(self) -> object:
        """Forget the call; its worker may finish it, and no answer comes."""


class Fate(enum.Enum):
    """How a call on a worker ended."""

    RETURNED = "returned"
    RAISED = "raised"
    DIED = "its worker died with it"
    VANISHED = "its answer was lost with its worker"
    DISCONNECTED = "the link to the cluster broke"


@dataclass(frozen=True)
class Answer:
    """The end of a call: its value if it returned, its error if it raised."""

    handle: Handle
    fate: Fate
    value: Any = None
    error: Exception | None = None


class Link(Protocol):
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

    def start(
        self,
        address: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        then: Callable[[Answer], None],
    ) -> Handle:
        """Call a function of an installed module on one worker, and on no other if that one goes away.

        `then` gets the answer, in a thread of the link's.
        """

    def ask(
        self,
        address: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        then: Callable[[Answer], None],
    ) -> Handle:
        """Call a function as `start` does, but at once, beside what the worker runs.

        For what is quick and changes nothing that a training sees: no code of a user's, no random numbers.
        """

    def close(self) -> None:
        """Disconnect."""
