"""Train the candidates of one path on one split, and tell of each how it went and what it cost.

Estimators are known by scikit-learn's protocol alone. A training that fails does not raise: its failure
is a row like any other.
"""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.containment import Containment
from orchestrator.estimators import estimator_class, make_estimator
from orchestrator.published import published_columns, published_path_columns
from orchestrator.responses import ResponseError, Responses, checked_labels, require_classes
from orchestrator.shared_arrays import fresh_view, private_copy
from orchestrator.sources import Split
from orchestrator.storable import TEXT_BYTES, storable_text
from orchestrator.study import PATH_PARAM, Arm, Candidate, Path, Protocol

log = logging.getLogger(__name__)

Row = dict[str, Any]
Share = Callable[[Any], Any]
"""How a training gets at an array of its split: as a view of its own, or as a copy of its own."""

TIMED_OUT = "2"
"""What `fit_status_` is where an estimator's own `max_seconds` ended it."""


@dataclass(frozen=True)
class PathTask:
    """A path of trainings, and all they need.

    Attributes
    ----------
    arm : Arm
        If it warm-starts, each training starts from the last one's solution.
    protocol : Protocol
    path : Path
    split : Split
        Read-only; with kernel values in place of features if `override` says so.
    containment : Containment
        Undoes what a training leaves changed in this process.
    override : mapping
        Parameters that replace the arm's.
    """

    arm: Arm
    protocol: Protocol
    path: Path
    split: Split
    containment: Containment
    override: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Read before anything is trained, for an estimator may find a way to write to the labels.
        self.split.first_checksum, self.split.classes  # noqa: B018

    @property
    def intact(self) -> bool:
        """Whether the split is as it was; if not, an estimator has found a way to write to it."""
        return self.split.checksum() == self.split.first_checksum

    @property
    def takes_whole_path(self) -> bool:
        """Whether the estimator solves a path in one call, and nothing needs its trainings one by one.

        Time limits are a training's own, the protocol's or the estimator's, and scorers other than accuracy
        want a fitted estimator.
        """
        protocol = self.protocol
        own_limit = {**self.arm.params, **self.path.candidates[0].as_dict()}.get("max_seconds")
        unlimited = protocol.max_seconds is None and own_limit is None
        plain = protocol.metric == "accuracy" and not protocol.also and unlimited
        return plain and self.arm.warm_starts and hasattr(estimator_class(self.arm.target)[0], "fit_path")

    def estimator(self, candidate: Candidate) -> Any:
        """Make the unfitted estimator of a candidate."""
        return make_estimator(self.arm, self.protocol, candidate, self.path.seed, self.override)

    def contained(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with the path's seed in the global random states."""
        return self.containment.run(self.path.seed, function, *arguments)


def train_path(task: PathTask, reopen: Callable[[], Split]) -> Iterator[Row]:
    """Train a path's candidates in order and yield the row of each.

    The arrays of a split are read-only, for other trainings use them too. A training that fails because it
    writes to them is done again, from the start, with copies of its own.

    Parameters
    ----------
    task : PathTask
    reopen : callable
        Returns the split anew, after an estimator has found a way to write to it.
    """
    if task.takes_whole_path:
        rows = list(_train_in_calls(task))
        if not task.intact:
            rows = [row | _damage() for row in rows]
            reopen()
        yield from rows
        return
    fitted = None
    for candidate in task.path.candidates:
        row, fitted, _ = _train(task, candidate, fitted)
        if not task.intact:
            row |= _damage()
            task = replace(task, split=reopen())
        yield row
        if not task.arm.warm_starts or row["score"] is None:
            fitted = None  # neither a failed training nor a diverged one is a start


def try_training(task: PathTask) -> Exception | None:
    """Train the first candidate of a path, and return what went wrong."""
    _, _, error = _train(task, task.path.candidates[0], None)
    return error


# -- one training after the other ----------------------------------------------------------------


def _train(task: PathTask, candidate: Candidate, fitted: Any) -> tuple[Row, Any, Exception | None]:
    """Return the row of a training, its estimator and what went wrong; start from a fitted one if any."""
    row, estimator, error = _attempt(task, candidate, fitted, fresh_view)
    if error is not None and _wants_to_write(error):
        row, estimator, error = _attempt(task, candidate, None, private_copy)
    return row, estimator, error


def _attempt(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share
) -> tuple[Row, Any, Exception | None]:
    row = _sizes(task.split) | {"started_at": datetime.now(UTC), "warm_started": fitted is not None}
    clock = Clock()
    try:
        estimator, predicted = task.contained(_fit_and_predict, task, candidate, fitted, share, row, clock)
        row |= _evaluate(task, estimator, predicted, share)
        row |= _verdict(row, task.protocol)
        row["finished_at"] = datetime.now(UTC)
    except Exception as error:
        log.info("a training of %s failed", task.arm.name, exc_info=True)
        unfinished = next((lap for lap in ("fit", "predict") if f"{lap}_seconds" not in row), None)
        row |= clock.lap(unfinished) if unfinished else {}
        return row | _failure(error), None, error
    return row, estimator, None


def _fit_and_predict(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share, row: Row, clock: "Clock"
) -> tuple[Any, Any]:
    """Return a fitted estimator and what it predicts; fill its row, as far as it gets."""
    split = task.split
    estimator = task.estimator(candidate) if fitted is None else fitted
    if fitted is not None:
        estimator.set_params(**candidate.as_dict())
    X_train, y_train = share(split.X_train), share(split.y_train)
    clock.restart()
    estimator.fit(X_train, y_train)
    row |= clock.lap("fit")
    predicted = estimator.predict(share(split.X_test))
    row |= clock.lap("predict")
    return estimator, predicted


def _evaluate(task: PathTask, estimator: Any, predicted: Any, share: Share) -> Row:
    """Return what the rows of the split and the estimator's attributes say of a training.

    What the estimator has changed in the process is undone by now, so that it has no part in the scores.
    """

    def ask(method: str) -> Any:
        require_classes(estimator, task.split.classes)
        return task.contained(lambda: getattr(estimator, method)(share(task.split.X_test)))

    labels = checked_labels(predicted, task.split.classes, len(task.split.y_test))
    responses = Responses(estimator, ask, labels, task.split.classes)
    return (
        _accuracy(task.split, labels)
        | _other_scores(responses, task.split, task.protocol)
        | published_columns(estimator, task.split.y_train)
    )


def _sizes(split: Split) -> Row:
    return {"n_train": len(split.y_train), "n_test": len(split.y_test)}


def _accuracy(split: Split, predicted: NDArray[Any]) -> Row:
    """Return the number of correct labels and their share, which is `accuracy_score` bit for bit.

    The labels are checked, so that a comparison does what `accuracy_score` does in 400 microseconds.
    """
    n_correct = int(np.count_nonzero(predicted == split.y_test))
    return {"n_correct": n_correct, "score": n_correct / len(split.y_test)}


def _other_scores(responses: Responses, split: Split, protocol: Protocol) -> Row:
    columns = {f"score_{name}": name for name in protocol.also}
    if protocol.metric != "accuracy":
        columns["score"] = protocol.metric
    scores = responses.scores(tuple(dict.fromkeys(columns.values())), split.y_test)
    return {column: scores[name] for column, name in columns.items()}


def _verdict(row: Row, protocol: Protocol) -> Row:
    """Give a finished training its status: ok, ended by the time limit, or not a number."""
    objective = row.get("objective", 0.0)
    if not np.isfinite(objective):
        message = f"the objective is {objective}, the score {row['score']}"
        return {"status": "diverged", "message": message, "score": None}
    limit = protocol.max_seconds
    # Machines share the time out: one that ran out of its share may leave the fit before the limit.
    is_out_of_time = limit is not None and (row["fit_seconds"] >= limit or row.get("fit_status") == TIMED_OUT)
    if is_out_of_time and row.get("converged") is False:
        return {"status": "timeout", "message": f"stopped after {limit:g} s with its best model so far"}
    return {"status": "ok", "message": ""}


def _failure(error: Exception) -> Row:
    message = storable_text(error) if isinstance(error, ResponseError) else describe_error(error)
    return {
        "status": "error",
        "message": message,
        "score": None,
        "finished_at": datetime.now(UTC),
    }


def _damage() -> Row:
    message = (
        "the estimator wrote into memory that it shares with other trainings, past numpy's protection; "
        "its fit and predict must leave their arguments alone, or copy them"
    )
    return _failure(ResponseError(message)) | {"n_correct": None}


def describe_error(error: BaseException) -> str:
    """Say in one line what was raised and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    name = storable_text(type(error).__name__, 200)
    return f"{name}: {_text(error)}{storable_text(where, 300)}"


def _text(error: BaseException) -> str:
    return " ".join(storable_text(error, TEXT_BYTES - 500).split())


def _wants_to_write(error: BaseException | None) -> bool:
    """Whether a training failed because numpy, scipy, Cython or numba found an array to be read-only."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = _text(error).lower()
        if any(word in text for word in ("read-only", "readonly", "read only", "writeable", "writable")):
            return True
        error = error.__cause__ or error.__context__
    return False


# -- a whole path in one call --------------------------------------------------------------------


def _train_in_calls(task: PathTask) -> Iterator[Row]:
    """Train a path in one call, and what would start from a diverged training anew in another."""
    left = task.path
    while len(left):
        rows = _train_whole(task if left is task.path else replace(task, path=left))
        diverged = (index for index, row in enumerate(rows) if row["status"] == "diverged")
        trained = next(diverged, len(rows) - 1) + 1
        yield from rows[:trained]
        left = left.only(range(trained, len(left)))


def _train_whole(task: PathTask) -> list[Row]:
    """Train by `fit_path(X, y, Cs)`, predict by `predict_path(X)`, and share the costs out among the rows."""
    rows, error = _attempt_whole(task, fresh_view)
    if error is not None and _wants_to_write(error):
        rows, _ = _attempt_whole(task, private_copy)
    return [row | {"warm_started": index > 0} for index, row in enumerate(rows)]


def _attempt_whole(task: PathTask, share: Share) -> tuple[list[Row], Exception | None]:
    shared = _sizes(task.split) | {"started_at": datetime.now(UTC)}
    clock = Clock()
    try:
        fitted, predicted, laps = task.contained(_fit_and_predict_whole, task, share, clock)
        return [shared | row for row in _evaluate_whole(task, fitted, predicted, *laps)], None
    except Exception as error:
        log.info("the trainings of a path of %s failed", task.arm.name, exc_info=True)
        each = {name: seconds / len(task.path) for name, seconds in clock.lap("fit").items()}
        return [shared | each | _failure(error)] * len(task.path), error


def _fit_and_predict_whole(task: PathTask, share: Share, clock: "Clock") -> tuple[Any, Any, tuple[Row, Row]]:
    split, path = task.split, task.path
    values = [candidate.as_dict()[PATH_PARAM] for candidate in path.candidates]
    estimator = task.estimator(path.candidates[0])
    X_train, y_train = share(split.X_train), share(split.y_train)
    clock.restart()
    fitted = estimator.fit_path(X_train, y_train, values)
    fit = clock.lap("fit")
    predicted = fitted.predict_path(share(split.X_test))
    return fitted, predicted, (fit, clock.lap("predict"))


def _evaluate_whole(task: PathTask, fitted: Any, predicted: Any, fit: Row, predict: Row) -> list[Row]:
    """Return the rows of trainings that were fitted, and predicted, together."""
    split, n = task.split, len(task.path)
    if len(predicted) != n:
        raise ResponseError(f"expected labels for each of {n} trainings, found {len(predicted)}")
    published = published_path_columns(fitted, n)
    each: Row = {name: seconds / n for name, seconds in predict.items()}
    each["finished_at"] = datetime.now(UTC)
    rows = []
    for part, labels, columns in zip(_shares(fitted, n), predicted, published, strict=True):
        row = each | {name: seconds * part for name, seconds in fit.items()} | columns
        try:
            row |= _accuracy(split, checked_labels(labels, task.split.classes, len(split.y_test)))
            row |= _verdict(row, task.protocol)
        except ResponseError as error:
            row |= _failure(error)
        rows.append(row)
    return rows


def _shares(fitted: Any, n: int) -> NDArray[np.float64]:
    """Return the share of each training in the seconds of its path."""
    seconds = np.asarray(fitted.fit_seconds_, dtype=float)
    if seconds.shape != (n,):
        raise ResponseError(f"expected fit_seconds_ of shape ({n},), found {seconds.shape}")
    total = seconds.sum()
    return seconds / total if np.isfinite(total) and total > 0 else np.full(n, 1 / n)


class Clock:
    """Measure wall and CPU seconds between laps."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin the next lap now."""
        self._last = (perf_counter(), process_time())

    def lap(self, name: str) -> dict[str, float]:
        """Return the columns of the lap that ends now."""
        wall, cpu = self._last
        self.restart()
        return {f"{name}_seconds": self._last[0] - wall, f"{name}_cpu_seconds": self._last[1] - cpu}
