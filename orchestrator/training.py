"""Train the candidates of one path on one split, and tell of each how it went and what it cost.

Estimators are known by scikit-learn's protocol alone. A training that fails does not raise: its failure
is a row like any other.
"""

import logging
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from orchestrator.estimators import estimator_class, make_estimator
from orchestrator.published import published_columns, published_path_columns
from orchestrator.sources import Split
from orchestrator.study import PATH_PARAM, Arm, Path, Protocol

log = logging.getLogger(__name__)

Row = dict[str, Any]
_MESSAGE_LENGTH = 500


def train_path(
    arm: Arm,
    protocol: Protocol,
    path: Path,
    split: Split,
    kernel: str | None = None,
    gram_error: float = 0.0,
) -> Iterator[Row]:
    """Train a path's candidates in order and yield the row of each.

    Parameters
    ----------
    arm : Arm
        If it warm-starts, each training starts from the last one's solution.
    protocol : Protocol
    path : Path
    split : Split
        With kernel values in place of features if `kernel` is "precomputed".
    kernel : str, optional
        Overrides the arm's kernel.
    gram_error : float
        Bound on the error of a kernel value in `split`, for estimators with a parameter of this name.
    """
    override: dict[str, Any] = {} if kernel is None else {"kernel": kernel}
    if kernel is not None and "gram_error" in estimator_class(arm.target)[1]:
        override["gram_error"] = gram_error
    estimator = make_estimator(arm, protocol, path.candidates[0], path.seed, override)
    if _takes_whole_paths(estimator, arm, protocol):
        yield from _train_whole(estimator, path, split, protocol)
        return
    fresh = True
    for candidate in path.candidates:
        warm = arm.warm_starts and not fresh
        if warm:
            estimator.set_params(**candidate.as_dict())
        else:
            estimator = make_estimator(arm, protocol, candidate, path.seed, override)
        row = _train(estimator, split, protocol)
        yield row | {"warm_started": warm}
        fresh = row["status"] == "error"


def _takes_whole_paths(estimator: Any, arm: Arm, protocol: Protocol) -> bool:
    """Whether the estimator solves a path in one call, and nothing needs its trainings one by one.

    Time limits are a training's own, and scorers other than accuracy want a fitted estimator.
    """
    plain = protocol.metric == "accuracy" and not protocol.also and protocol.max_seconds is None
    return plain and arm.warm_starts and hasattr(estimator, "fit_path")


# -- one training after the other ----------------------------------------------------------------


def _train(estimator: Any, split: Split, protocol: Protocol) -> Row:
    row = _sizes(split) | {"started_at": datetime.now(UTC)}
    clock = Clock()
    try:
        estimator.fit(split.X_train, split.y_train)
        row |= clock.lap("fit")
        predicted = estimator.predict(split.X_test)
        row |= clock.lap("predict")
        row |= _accuracy(split, predicted)
        row |= _other_scores(estimator, split, protocol)
        row |= published_columns(estimator, split.y_train)
        row |= _verdict(row, protocol)
    except Exception as error:
        log.info("a training failed: %s", estimator, exc_info=True)
        row |= clock.lap("predict" if "fit_seconds" in row else "fit")
        row |= _failure(error)
    row["finished_at"] = datetime.now(UTC)
    return row


def _sizes(split: Split) -> Row:
    return {"n_train": len(split.y_train), "n_test": len(split.y_test)}


def _accuracy(split: Split, predicted: np.ndarray) -> Row:
    n_correct = int(np.count_nonzero(predicted == split.y_test))
    return {"n_correct": n_correct, "score": n_correct / len(split.y_test)}


def _other_scores(estimator: Any, split: Split, protocol: Protocol) -> Row:
    scores = {}
    if protocol.metric != "accuracy":
        scores["score"] = float(get_scorer(protocol.metric)(estimator, split.X_test, split.y_test))
    for name in protocol.also:
        scores[f"score_{name}"] = float(get_scorer(name)(estimator, split.X_test, split.y_test))
    return scores


def _verdict(row: Row, protocol: Protocol) -> Row:
    """Give a finished training its status: ok, ended by the time limit, or not a number."""
    objective = row.get("objective", 0.0)
    if not (np.isfinite(objective) and np.isfinite(row["score"])):
        message = f"the objective is {objective}, the score {row['score']}"
        return {"status": "diverged", "message": message, "score": None}
    limit = protocol.max_seconds
    if limit is not None and row.get("converged") is False and row["fit_seconds"] >= limit:
        return {"status": "timeout", "message": f"stopped after {limit:g} s with its best model so far"}
    return {"status": "ok", "message": ""}


def _failure(error: Exception) -> Row:
    return {"status": "error", "message": describe_error(error), "score": None}


def describe_error(error: BaseException) -> str:
    """Say in one line what was raised and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_MESSAGE_LENGTH]}{where}"


# -- a whole path in one call --------------------------------------------------------------------


def _train_whole(estimator: Any, path: Path, split: Split, protocol: Protocol) -> Iterator[Row]:
    """Train by `fit_path(X, y, Cs)`, predict by `predict_path(X)`, and share the costs out among the rows."""
    values = [candidate.as_dict()[PATH_PARAM] for candidate in path.candidates]
    shared = _sizes(split) | {"started_at": datetime.now(UTC)}
    clock = Clock()
    try:
        fitted = estimator.fit_path(split.X_train, split.y_train, values)
        fit = clock.lap("fit")
        predicted = fitted.predict_path(split.X_test)
        predict = clock.lap("predict")
        published = published_path_columns(fitted, len(values))
    except Exception as error:
        log.info("the trainings of a path failed: %s", estimator, exc_info=True)
        end = {"finished_at": datetime.now(UTC)} | _failure(error)
        each = {name: seconds / len(values) for name, seconds in clock.lap("fit").items()}
        for index in range(len(values)):
            yield shared | each | end | {"warm_started": index > 0}
        return
    shared["finished_at"] = datetime.now(UTC)
    shared |= {name: seconds / len(values) for name, seconds in predict.items()}
    share = np.asarray(fitted.fit_seconds_, dtype=float)
    share = share / share.sum() if share.sum() > 0 else np.full(len(values), 1 / len(values))
    for index in range(len(values)):
        row = shared | {name: seconds * share[index] for name, seconds in fit.items()}
        row |= _accuracy(split, predicted[index]) | published[index]
        yield row | _verdict(row, protocol) | {"warm_started": index > 0}


class Clock:
    """Measure wall and CPU seconds between laps."""

    def __init__(self) -> None:
        self._last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> dict[str, float]:
        """Return the columns of the lap that ends now."""
        wall, cpu = self._last
        self._last = (time.perf_counter(), time.process_time())
        return {f"{name}_seconds": self._last[0] - wall, f"{name}_cpu_seconds": self._last[1] - cpu}
