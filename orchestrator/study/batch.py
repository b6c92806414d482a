"""Messages between client and workers: plain data of a few kilobytes."""

import math
from dataclasses import dataclass, field, replace

from orchestrator.study.records import Records
from orchestrator.study.study import Arm, DatasetSpec, Protocol
from orchestrator.study.trials import Path


@dataclass(frozen=True, slots=True)
class Losses:
    """Worker deaths that are attributed to a batch.

    Attributes
    ----------
    shared : float
        Share in the deaths of workers that held other batches too; k batches share one death equally.
    alone : int
        Number of workers that died while this batch was their only one.
    seconds : float
        Total time that the workers counted in `alone` had spent on the batch.
    by_memory : int
        Number of further workers that ended because the batch exceeded their memory.
    """

    shared: float = 0.0
    alone: int = 0
    seconds: float = 0.0
    by_memory: int = 0

    def another(self, seconds: float) -> "Losses":
        """Return a copy with one more death of a worker that had only this batch.

        Parameters
        ----------
        seconds : float
            Time that the worker had spent on the batch.
        """
        return replace(self, alone=self.alone + 1, seconds=self.seconds + seconds)

    def another_by_memory(self) -> "Losses":
        """Return a copy with one more worker that ended because the batch exceeded its memory."""
        return replace(self, by_memory=self.by_memory + 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Paths of one dataset and one arm that travel to a worker together.

    Attributes
    ----------
    number : int
        Number of the batch, unique within a run.
    dataset, solver : str
        Names of the dataset and of the arm.
    paths : tuple of Path
        Paths to train, in this order.
    attempt : int
        Number of the attempt, from 1; it increases each time a worker dies with the batch.
    base_seconds : float
        Cost estimated from the sizes of the training sets only, in seconds.
    losses : Losses
        Worker deaths attributed to the batch so far.
    """

    number: int
    dataset: str
    solver: str
    paths: tuple[Path, ...]
    attempt: int
    base_seconds: float
    losses: Losses = field(default_factory=Losses)


@dataclass(frozen=True)
class DataSource:
    """Location of a dataset and its folds, small enough to travel with every batch.

    Attributes
    ----------
    spec : DatasetSpec
        Name of the dataset and how to load it, for hosts to which the prepared copy cannot be sent.
    fingerprint, split_hash : str
        Expected hashes of the dataset and of its folds. Every copy is checked against them.
    folder : str
        Folder of the prepared dataset on the client's host or on a shared file system. A host that does not
        see it stores its copy in a folder of the same name in its cache.
    """

    spec: DatasetSpec
    fingerprint: str
    split_hash: str
    folder: str

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.split_hash))


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A batch with everything that a worker needs to run it: plain data of a few kilobytes.

    Attributes
    ----------
    study, run_id : str
        Name of the study, and identifier of the run.
    source : DataSource
        Where the worker finds the dataset.
    arm : Arm
        Solver that is trained.
    identity : str
        Digest of the dataset × arm, which is the column `identity` of its trials.
    shared_gram : bool
        Whether trainings share the Gram matrices of their split.
    protocol : Protocol
        Splits, metric and limits.
    batch : Batch
        Paths to train.
    gram_memory : float
        Memory available for shared Gram matrices, in bytes; unlimited by default.
    predictions : bool
        Whether refits record their predictions for the test rows.
    default_seconds : float
        Time limit of each training, in seconds, where the protocol has none. It is not part of any key.
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
    """Result of a batch: its rows, and how the worker spent its time.

    Attributes
    ----------
    records : Records
        One row a trial.
    busy_seconds : float
        Time that the worker spent on the batch, in seconds.
    training_seconds : float
        Part of it spent in trainings and predictions, in seconds.
    compile_seconds : float
        Part of it spent in compilation, in seconds.
    """

    records: Records
    busy_seconds: float
    training_seconds: float
    compile_seconds: float
