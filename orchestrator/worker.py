"""Run one batch: slice and scale a split, fit, predict, record. This is what runs on the workers.

Estimators are known by scikit-learn's protocol alone. A training that fails does not raise: its failure
is a row like any other.
"""

import logging
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer

from orchestrator.estimators import make_estimator
from orchestrator.machine import host_name, versions_json
from orchestrator.published import published_columns
from orchestrator.records import Records
from orchestrator.scheduling import Batch
from orchestrator.sources import DataSource, Split, open_source, open_split
from orchestrator.study import Arm, Path, Protocol

log = logging.getLogger(__name__)

_MESSAGE_LENGTH = 500


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A batch and all it takes to run it: plain data of a few kilobytes."""

    study: str
    run_id: str
    source: DataSource
    arm: Arm
    identity: str
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
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # the records say it: `converged`
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    compile_seconds = 0.0
    for path in order.batch.paths:
        split = open_split(order.source, order.protocol, path.outer, path.inner)
        compiled = _compile(order.arm, order.protocol, path, split)
        compile_seconds += compiled
        for row in _run_path(order, path, split):
            row["compile_seconds"] = compiled
            rows.append(row)
            compiled = 0.0
    training_seconds = sum(row["fit_seconds"] + row.get("predict_seconds", 0.0) for row in rows)
    records = Records.of(_common_columns(order, worker), rows)
    return BatchResult(records, time.perf_counter() - started, training_seconds, compile_seconds)


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


# -- one path ------------------------------------------------------------------------------------


def _run_path(order: WorkOrder, path: Path, split: Split) -> Iterator[dict[str, Any]]:
    """Train the candidates of a path in order, each from the last one's solution if the arm does that."""
    estimator: Any = None
    for index, candidate in enumerate(path.candidates):
        warm = estimator is not None and order.arm.warm_starts
        if warm:
            estimator.set_params(**candidate.as_dict())
        else:
            estimator = make_estimator(order.arm, order.protocol, candidate, path.seed)
        row = _axes(path, index) | _train(estimator, split, order.protocol)
        yield row | {"warm_started": warm, "shared_gram": False, "gram_seconds": 0.0}
        if row["status"] == "error":
            estimator = None


def _train(estimator: Any, split: Split, protocol: Protocol) -> dict[str, Any]:
    """Fit on the training rows, predict the test rows, and tell how it went and what it cost."""
    row: dict[str, Any] = {
        "n_train": len(split.y_train),
        "n_test": len(split.y_test),
        "started_at": datetime.now(UTC),
    }
    clock = _Clock()
    try:
        estimator.fit(split.X_train, split.y_train)
        row |= clock.lap("fit")
        predicted = estimator.predict(split.X_test)
        row |= clock.lap("predict")
        row |= _scores(estimator, split, predicted, protocol)
        row |= published_columns(estimator, split.y_train)
        row |= _verdict(row, protocol)
    except Exception as error:
        log.warning("a training failed: %s", estimator, exc_info=True)
        row |= clock.lap("predict" if "fit_seconds" in row else "fit")
        row |= {"status": "error", "message": describe_error(error), "score": None}
    row["finished_at"] = datetime.now(UTC)
    return row


class _Clock:
    """Measure wall and CPU seconds between laps."""

    def __init__(self) -> None:
        self._last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> dict[str, float]:
        """Return the columns of the lap that ends now."""
        wall, cpu = self._last
        self._last = (time.perf_counter(), time.process_time())
        return {f"{name}_seconds": self._last[0] - wall, f"{name}_cpu_seconds": self._last[1] - cpu}


def _scores(estimator: Any, split: Split, predicted: np.ndarray, protocol: Protocol) -> dict[str, Any]:
    n_correct = int(np.count_nonzero(predicted == split.y_test))
    scores = {"n_correct": n_correct, "score": n_correct / len(split.y_test)}
    if protocol.metric != "accuracy":
        scores["score"] = float(get_scorer(protocol.metric)(estimator, split.X_test, split.y_test))
    for name in protocol.also:
        scores[f"score_{name}"] = float(get_scorer(name)(estimator, split.X_test, split.y_test))
    return scores


def _verdict(row: dict[str, Any], protocol: Protocol) -> dict[str, Any]:
    """Give a finished training its status: ok, ended by the time limit, or not a number."""
    objective = row.get("objective", 0.0)
    if not (np.isfinite(objective) and np.isfinite(row["score"])):
        message = f"the objective is {objective}, the score {row['score']}"
        return {"status": "diverged", "message": message, "score": None}
    limit = protocol.max_seconds
    if limit is not None and row.get("converged") is False and row["fit_seconds"] >= limit:
        return {"status": "timeout", "message": f"stopped after {limit:g} s with its best model so far"}
    return {"status": "ok", "message": ""}


def describe_error(error: BaseException) -> str:
    """Say in one line what was raised and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_MESSAGE_LENGTH]}{where}"


# -- compilation ---------------------------------------------------------------------------------

_compiled: set[tuple[Any, ...]] = set()


def _compile(arm: Arm, protocol: Protocol, path: Path, split: Split) -> float:
    """Train on a few rows, so that no record pays for just-in-time compilation.

    Returns
    -------
    float
        Seconds it took; 0 when this process has run the arm on such data before.
    """
    signature = (
        arm.target,
        str(sorted(arm.params.items(), key=str)),
        arm.warm_starts,
        tuple(value for _, value in path.candidates[0].params if isinstance(value, (str, bool))),
        str(type(split.X_train)),
        split.X_train.dtype,
    )
    if signature in _compiled:
        return 0.0
    _compiled.add(signature)
    started = time.perf_counter()
    rows = _few_of_each_class(split.y_train)
    estimator = make_estimator(arm, protocol, path.candidates[0], path.seed)
    try:
        for _ in range(1 + arm.warm_starts):  # a warm start may run other code than a cold one
            estimator.fit(split.X_train[rows], split.y_train[rows]).predict(split.X_test[:2])
    except Exception as error:  # the trial itself will tell
        log.info("the warm-up of %s failed: %s", arm.name, describe_error(error))
    return time.perf_counter() - started


def _few_of_each_class(y: np.ndarray, n: int = 8) -> np.ndarray:
    _, codes = np.unique(y, return_inverse=True)
    rank = np.empty(len(y), dtype=int)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    rank[order] = np.arange(len(y)) - starts
    return np.flatnonzero(rank < n)
