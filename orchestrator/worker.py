"""Run one batch: open its splits, share their Gram matrices, train, record. Workers run this."""

import time
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from orchestrator.estimators import gamma_of
from orchestrator.gram import PRECOMPUTED, SplitGram, open_gram
from orchestrator.machine import host_name, versions_json
from orchestrator.records import Records
from orchestrator.scheduling import Batch
from orchestrator.sources import DataSource, Split, open_source, open_split
from orchestrator.study import REFIT, Arm, Path, Protocol
from orchestrator.training import Clock, train_path


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A batch and all it takes to run it: plain data of a few kilobytes."""

    study: str
    run_id: str
    source: DataSource
    arm: Arm
    identity: str
    shared_gram: bool
    protocol: Protocol
    batch: Batch


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What comes back: the rows, and how the worker's time was spent (seconds)."""

    records: Records
    busy_seconds: float
    training_seconds: float
    compile_seconds: float


def run_batch(order: WorkOrder, worker: str = "client") -> BatchResult:
    """Train and evaluate every trial of a batch.

    Parameters
    ----------
    order : WorkOrder
    worker : str
        The worker's name, for the records.

    Raises
    ------
    DatasetError
        When this host cannot get the dataset, or gets another than the client has.
    """
    _settle_process()
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    compile_seconds = 0.0
    for path in order.batch.paths:
        split = open_split(order.source, order.protocol, path.outer, path.inner)
        compiled = _compile(order, path, split)
        compile_seconds += compiled
        for row in _run_path(order, path, split):
            row["compile_seconds"] = compiled
            rows.append(row)
            compiled = 0.0
    training_seconds = sum(row["fit_seconds"] + row.get("predict_seconds", 0.0) for row in rows)
    records = Records.of(_common_columns(order, worker), rows)
    return BatchResult(records, time.perf_counter() - started, training_seconds, compile_seconds)


@cache
def _settle_process() -> None:
    """Hold linear algebra to one thread, so that sums are the same everywhere; quiet what rows tell."""
    threadpool_limits(limits=1)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)


def _run_path(order: WorkOrder, path: Path, split: Split) -> Iterator[dict[str, Any]]:
    kernel, error, shared = None, 0.0, _shares_gram(order, path)
    clock = Clock()
    if shared:
        gram = open_gram(order.source, order.protocol, path.outer, path.inner)
        gamma = gamma_of(order.arm, path.candidates[0])
        split, kernel, error = gram.split(gamma), PRECOMPUTED, gram.error(gamma)
    gram_seconds = clock.lap("gram")["gram_seconds"] / len(path) if shared else 0.0
    trained = train_path(order.arm, order.protocol, path, split, kernel, error)
    for index, row in enumerate(trained):
        yield _axes(path, index) | row | {"shared_gram": shared, "gram_seconds": gram_seconds}


def _shares_gram(order: WorkOrder, path: Path) -> bool:
    """Whether a path is trained on the split's float32 matrices; refits are certified in float64."""
    return order.shared_gram and path.inner != REFIT


def lost_records(order: WorkOrder, message: str) -> Records:
    """Return the records of a batch whose worker died with it too often."""
    now = datetime.now(UTC)
    fate = {"status": "worker_lost", "message": message, "score": None, "started_at": now, "finished_at": now}
    rows = [_axes(path, index) | fate for path in order.batch.paths for index in range(len(path))]
    return Records.of(_common_columns(order, worker=""), rows)


def _common_columns(order: WorkOrder, worker: str) -> dict[str, Any]:
    dataset, _ = open_source(order.source, order.protocol)
    return {
        "identity": order.identity,
        "study": order.study,
        "dataset": order.batch.dataset,
        "solver": order.batch.solver,
        "n_features": dataset.X.shape[1],
        "n_classes": len(dataset.classes),
        "profile": order.protocol.profile,
        "host": host_name(),
        "worker": worker,
        "attempt": order.batch.attempt,
        "run_id": order.run_id,
        "versions": versions_json(),
    }


def _axes(path: Path, index: int) -> dict[str, Any]:
    """Return the columns that say which trial of the study a row is."""
    params = {f"param_{name}": value for name, value in path.candidates[index].params}
    return {
        "key": path.keys[index],
        "outer": path.outer,
        "inner": path.inner,
        "seed": path.seed,
        **params,
    }


# -- compilation ---------------------------------------------------------------------------------

_compiled: set[tuple[Any, ...]] = set()


def _compile(order: WorkOrder, path: Path, split: Split) -> float:
    """Train a path on a few rows, so that no record pays for just-in-time compilation.

    Returns
    -------
    float
        Seconds it took; 0 when this process has run the arm on such data before.
    """
    arm = order.arm
    params = str(sorted(arm.params.items(), key=str))
    signature = (
        arm.target,
        params,
        tuple(value for _, value in path.candidates[0].params if isinstance(value, (str, bool))),
        arm.warm_starts and len(path) > 1,
        _shares_gram(order, path),
        str(type(split.X_train)),
        split.X_train.dtype,
    )
    if signature in _compiled:
        return 0.0
    _compiled.add(signature)
    started = time.perf_counter()
    rows = _few_of_each_class(split.y_train)
    few = Split(split.X_train[rows], split.y_train[rows], split.X_test[:2], split.y_test[:2])
    kernel, error = None, 0.0
    if _shares_gram(order, path):
        gram = SplitGram(few)
        few, kernel, error = gram.split(1.0), PRECOMPUTED, gram.error(1.0)
    with warnings.catch_warnings(action="ignore"):  # so few rows are a strange dataset
        deque(train_path(arm, order.protocol, path, few, kernel, error), maxlen=0)
    return time.perf_counter() - started


def _few_of_each_class(y: np.ndarray, n: int = 8) -> np.ndarray:
    _, codes = np.unique(y, return_inverse=True)
    rank = np.empty(len(y), dtype=int)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    rank[order] = np.arange(len(y)) - starts
    return np.flatnonzero(rank < n)
