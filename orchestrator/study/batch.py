"""What travels to a worker and comes back: plain data of a few kilobytes."""

import math
from dataclasses import dataclass, field, replace

from orchestrator.study.records import Records
from orchestrator.study.study import Arm, DatasetSpec, Protocol
from orchestrator.study.trials import Path


@dataclass(frozen=True, slots=True)
class WorkerDeaths:
    """The workers that a piece of work has lost.

    Attributes
    ----------
    shared : float
        Its share of a worker that died while it held other pieces, too.
    alone : int
        Workers that died while it was all they had to do.
    seconds : float
        How long those had worked on it, together.
    by_memory : int
        Further ones, which ended because it took too much memory.
    """

    shared: float = 0.0
    alone: int = 0
    seconds: float = 0.0
    by_memory: int = 0

    def another(self, seconds: float) -> "WorkerDeaths":
        """Return these losses and one more worker, alone with the piece for `seconds`."""
        return replace(self, alone=self.alone + 1, seconds=self.seconds + seconds)

    def another_by_memory(self) -> "WorkerDeaths":
        """Return these losses and one more worker, which ended because the piece took too much memory."""
        return replace(self, by_memory=self.by_memory + 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Paths that travel to a worker together; all of one dataset and one arm.

    Attributes
    ----------
    number : int
        Unique within a run.
    attempt : int
        1, and one more each time a worker was lost with the batch.
    base_seconds : float
        Its cost by sizes alone.
    losses : WorkerDeaths
        The workers lost so far.
    """

    number: int
    dataset: str
    solver: str
    paths: tuple[Path, ...]
    attempt: int
    base_seconds: float
    losses: WorkerDeaths = field(default_factory=WorkerDeaths)


@dataclass(frozen=True)
class DataSource:
    """Where a worker finds a dataset and its folds; small enough to travel with every batch.

    Attributes
    ----------
    spec : DatasetSpec
        Its name and, for hosts that nothing else can reach, its origin.
    fingerprint, split_hash : str
        What the dataset and its folds must hash to, wherever they come from.
    folder : str
        The prepared dataset on the client's host or on a shared file system; in the cache of a host that
        does not see it, the folder has the same name.
    """

    spec: DatasetSpec
    fingerprint: str
    split_hash: str
    folder: str

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.split_hash))


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A batch and all it takes to run it: plain data of a few kilobytes.

    `default_seconds` limits each training where the protocol has no limit; unlike that, it is in no key.
    """

    study: str
    run_id: str
    source: DataSource
    arm: Arm
    identity: str
    shared_gram: bool
    protocol: Protocol
    batch: Batch
    gram_memory: float = math.inf
    predictions: bool = False
    default_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What comes back: the rows, and how the worker's time was spent (seconds)."""

    records: Records
    busy_seconds: float
    training_seconds: float
    compile_seconds: float
