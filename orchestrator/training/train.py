"""Train the candidates of one path on one split, and return for each its scores and what it cost.

Of estimators scikit-learn's protocol is all that is used. A training that fails does not raise: its failure
is a row like any other, whatever an estimator raises, `SystemExit` and `KeyboardInterrupt` included. Only the
user's own Ctrl-C is passed on.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from inspect import signature
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.isolation.interrupts import was_interrupted
from orchestrator.isolation.process_state import ProcessState
from orchestrator.study.records import Columns, Status, number_of_rows
from orchestrator.study.storable import describe_error, error_text, storable_text
from orchestrator.study.study import PATH_PARAM, Arm, Candidate, Protocol
from orchestrator.study.targets import instantiate
from orchestrator.study.text import format_seconds, shown
from orchestrator.study.trials import Path
from orchestrator.training.estimators import estimator_class, make_estimator
from orchestrator.training.fitted_attributes import fitted_columns, fitted_path_columns, seconds_of_trainings
from orchestrator.training.responses import (
    ResponseError,
    Responses,
    checked_labels,
    checked_path_labels,
    require_classes,
)
from orchestrator.training.shared_arrays import fresh_view, private_copy
from orchestrator.training.split_data import Split

log = logging.getLogger(__name__)

Row = dict[str, Any]
Share = Callable[[Any], Any]
"""How a training gets an array of its split: as a view of its own, or as a copy of its own."""

TIMED_OUT = "2"
"""What `fit_status_` is where an estimator's own `max_seconds` ended it."""

OWN_LIMIT_SECONDS = 60.0
"""What an estimator with a time limit of its own may take beyond twice that limit."""


class Monitor:
    """Callbacks that follow the trainings of a batch; these do nothing."""

    def started(self, seconds: float, row: Row | None = None) -> None:
        """Take how long what starts now may take and, if it is a training, its row so far."""

    def finished(self, columns: Columns) -> None:
        """Take the rows of the trainings that have ended."""


class OvertimeError(RuntimeError):
    """A training without a time limit of its own has taken longer than the protocol's."""


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
    process_state : ProcessState
        Undoes what a training leaves changed in this process.
    override : mapping
        Parameters that replace the arm's.
    monitor : Monitor
    is_finite : bool
        Whether kernel values of the split are known to be finite, so that no estimator has to look.
    default_seconds : float
        Time limit of a training where the protocol has none.
    """

    arm: Arm
    protocol: Protocol
    path: Path
    split: Split
    process_state: ProcessState
    override: Mapping[str, Any] = field(default_factory=dict)
    monitor: Monitor = field(default_factory=Monitor)
    is_finite: bool = False
    default_seconds: float = math.inf

    def __post_init__(self) -> None:
        # Read before anything is trained, for an estimator may find a way to write to the labels.
        self.first_checksum, self.split.classes  # noqa: B018

    @property
    def intact(self) -> bool:
        """Whether the split is as it was; if not, an estimator has found a way to write to it."""
        return self.process_state.is_kept or self.split.checksum() == self.first_checksum

    @cached_property
    def first_checksum(self) -> tuple[Any, ...]:
        """The checksum of the split at first, if there is anything to compare it with."""
        return () if self.process_state.is_kept else self.split.checksum()

    @cached_property
    def seconds_allowed(self) -> float:
        """How long a fit, or a call of another method, may take before it is stopped from outside."""
        limit = self.protocol.max_seconds
        if limit is None:
            return self.default_seconds
        return 2 * limit + OWN_LIMIT_SECONDS if self.stops_itself else limit

    @cached_property
    def stops_itself(self) -> bool:
        """Whether the estimators have a time limit of their own, to which they keep their best model."""
        return "max_seconds" in estimator_class(self.arm.target)[1]

    def started(self, row: Row) -> None:
        """Report to the monitor that a fit or a call of another method starts."""
        self.monitor.started(self.seconds_allowed, row)

    def require_in_time(self, seconds: float) -> None:
        """Raise OvertimeError if a call took longer than it may, and nothing has stopped it."""
        limit = self.protocol.max_seconds
        if limit is not None and seconds >= limit and not self.stops_itself:
            raise OvertimeError(overtime_message(limit))

    def estimator(self, candidate: Candidate) -> Any:
        """Make the unfitted estimator of a candidate."""
        return make_estimator(self.arm, self.protocol, candidate, self.path.seed, self.override)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with the path's seed in the global random states."""
        return self.process_state.run(self.path.seed, function, *arguments)


def takes_whole_path(arm: Arm, protocol: Protocol, candidate: Candidate) -> bool:
    """Whether an estimator solves a path in one call, and nothing needs its trainings one by one.

    Time limits are a training's own, the protocol's or the estimator's, and scorers other than accuracy want
    a fitted estimator.

    Parameters
    ----------
    arm : Arm
    protocol : Protocol
    candidate : Candidate
        Of the path.
    """
    own_limit = candidate.value("max_seconds", arm.params.get("max_seconds"))
    unlimited = protocol.max_seconds is None and own_limit is None
    plain = protocol.metric == "accuracy" and not protocol.also and unlimited
    return plain and arm.warm_starts and _has_own_path(estimator_class(arm.target)[0])


def _has_own_path(kind: Any) -> bool:
    """Whether a class has a `fit_path` that is as much its own as its `fit` and its `predict`.

    One that is inherited knows nothing of what a derived class does otherwise.
    """
    if not hasattr(kind, "fit_path"):
        return False
    path, *others = (place_of(kind, name) for name in ("fit_path", "fit", "predict"))
    return path <= min(others)


def place_of(kind: Any, name: str) -> int:
    """Return which of a class and those that it derives from gives it an attribute, the first being 0."""
    bases = getattr(kind, "__mro__", (kind,))
    return next((place for place, base in enumerate(bases) if name in vars(base)), len(bases))


def unchecked(method: Callable[..., Any]) -> dict[str, bool]:
    """Return the arguments that tell a method not to search its matrix for NaN, if it knows such."""
    try:
        return {"check_finite": False} if "check_finite" in signature(method).parameters else {}
    except (TypeError, ValueError):  # compiled methods need not have one
        return {}


def overtime_message(limit: float) -> str:
    """Say why a training has no result."""
    return f"stopped after {limit:g} s, the time limit"


def default_overtime_message(limit: float) -> str:
    """Say why a training has no result, though its protocol has no time limit."""
    return f"stopped after {format_seconds(limit)}, the time limit where protocol.max_seconds is null"


def train_path(task: PathTask, reopen: Callable[[], Split]) -> Iterator[Columns]:
    """Train a path's candidates in order and yield their rows, of those that were trained together at once.

    The arrays of a split are read-only, for other trainings use them too. A training that fails because it
    writes to them is done again, from the start, with copies of its own.

    Parameters
    ----------
    task : PathTask
    reopen : callable
        Returns the split anew, after an estimator has found a way to write to it.
    """
    if takes_whole_path(task.arm, task.protocol, task.path.candidates[0]):
        parts = list(_train_in_calls(task))
        if not task.intact:
            parts = [part | repeated(_corrupted_split(), number_of_rows(part)) for part in parts]
            reopen()
        yield from parts
        return
    fitted = None
    for candidate in task.path.candidates:
        row, fitted, _ = _train(task, candidate, fitted)
        if not task.intact:
            row |= _corrupted_split()
            task = replace(task, split=reopen())
        yield repeated(row, 1)
        if not task.arm.warm_starts or row["score"] is None:
            fitted = None  # neither a failed training nor a diverged one is a start


def try_training(task: PathTask) -> BaseException | None:
    """Train the first candidate of a path, and return what went wrong."""
    _, _, error = _train(task, task.path.candidates[0], None)
    return error


# -- one training after the other ----------------------------------------------------------------


def _train(task: PathTask, candidate: Candidate, fitted: Any) -> tuple[Row, Any, BaseException | None]:
    """Return the row of a training, its estimator and what went wrong; start from a fitted one if any."""
    row, estimator, error = _attempt(task, candidate, fitted, fresh_view)
    if error is not None and _wants_to_write(error):
        row, estimator, error = _attempt(task, candidate, None, private_copy)
    return row, estimator, error


def _attempt(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share
) -> tuple[Row, Any, BaseException | None]:
    row = _sizes(task.split) | {"started_at": datetime.now(UTC), "warm_started": fitted is not None}
    timer = Timer()
    try:
        estimator, predicted = task.call(_fit_and_predict, task, candidate, fitted, share, row, timer)
        task.started(row)
        row |= _evaluate(task, estimator, predicted, share)
        row |= _outcome(row, task.protocol)
        row["finished_at"] = datetime.now(UTC)
    except BaseException as error:
        pass_on_interrupt(error)
        log.info("a training of %s failed", task.arm.name, exc_info=True)
        unfinished = next((call for call in ("fit", "predict") if f"{call}_seconds" not in row), None)
        if unfinished == "fit" or (unfinished and not isinstance(error, OvertimeError)):
            row |= timer.columns(unfinished)
        return row | _failure(error), None, error
    return row, estimator, None


def _fit_and_predict(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share, row: Row, timer: "Timer"
) -> tuple[Any, Any]:
    """Return a fitted estimator and what it predicts; fill its row, as far as it gets."""
    split = task.split
    task.started(row)
    estimator = task.estimator(candidate) if fitted is None else fitted
    if fitted is not None:
        estimator.set_params(**instantiate(candidate.as_dict()))
    X_train, y_train = share(split.X_train), share(split.y_train)
    task.started(row)
    timer.restart()
    estimator.fit(X_train, y_train)
    row |= timer.columns("fit")
    task.require_in_time(row["fit_seconds"])
    task.started(row)
    timer.restart()
    predicted = estimator.predict(share(split.X_test))
    row |= timer.columns("predict")
    task.require_in_time(row["predict_seconds"])
    return estimator, predicted


def _evaluate(task: PathTask, estimator: Any, predicted: Any, share: Share) -> Row:
    """Return the columns that follow from the test rows and from the estimator's attributes.

    What the estimator has changed in the process is undone by now, so that it has no part in the scores.
    """
    split, protocol = task.split, task.protocol

    def call_method(method: str) -> Any:
        require_classes(estimator, split.classes)
        return task.call(lambda: getattr(estimator, method)(share(split.X_test)))

    labels = checked_labels(predicted, split.classes, len(split.y_test))
    row = _accuracy(split, labels) | {"predicted": labels}
    metrics = {f"score_{name}": name for name in protocol.also}
    if protocol.metric != "accuracy":
        metrics["score"] = protocol.metric
    if metrics:
        responses = Responses(estimator, call_method, labels, split.classes)
        wanted = protocol.metrics(dict.fromkeys(metrics.values()))
        if protocol.own_metrics:  # whose code may change the process
            scores = task.call(responses.scores, wanted, share(split.y_test), share(split.X_test))
        else:
            scores = responses.scores(wanted, split.y_test)
        row |= {column: scores[name] for column, name in metrics.items()}
    return row | fitted_columns(estimator, split.y_train)


def _sizes(split: Split) -> Row:
    return {"n_train": len(split.y_train), "n_test": len(split.y_test)}


def repeated(row: Row, n: int) -> Columns:
    """Return n rows of the same values."""
    return {name: [value] * n for name, value in row.items()}


def _accuracy(split: Split, labels: NDArray[Any]) -> Row:
    """Return the number of correct labels and their share, which is `accuracy_score` bit for bit.

    The labels are checked, so that a comparison does what `accuracy_score` does in 400 microseconds.
    """
    n_correct = int(np.count_nonzero(labels == split.y_test))
    return {"n_correct": n_correct, "score": n_correct / len(split.y_test)}


def _outcome(row: Row, protocol: Protocol) -> Row:
    """Give a finished training its status: ok, ended by the time limit, or not a number."""
    objective = row.get("objective", 0.0)
    if not math.isfinite(objective):
        return _divergence(objective, row["score"])
    limit = protocol.max_seconds
    # Machines share the time out: one that ran out of its share may leave the fit before the limit.
    is_out_of_time = limit is not None and (row["fit_seconds"] >= limit or row.get("fit_status") == TIMED_OUT)
    if is_out_of_time and row.get("converged") is False:
        return {"status": Status.TIMEOUT, "message": f"stopped after {limit:g} s with its best model so far"}
    return {"status": Status.OK, "message": row.get("message", "")}


def _divergence(objective: float, score: float) -> Row:
    message = f"the objective is {objective}, the score {score}"
    return {"status": Status.DIVERGED.value, "message": message, "score": None}


def pass_on_interrupt(error: BaseException) -> None:
    """Raise the user's Ctrl-C, whatever the estimator has made of it."""
    if was_interrupted():
        raise KeyboardInterrupt from error


def _failure(error: BaseException) -> Row:
    ours = isinstance(error, (ResponseError, OvertimeError))
    return {
        "status": Status.TIMEOUT if isinstance(error, OvertimeError) else Status.ERROR,
        "message": storable_text(error) if ours else describe_error(error),
        "score": None,
        "finished_at": datetime.now(UTC),
    }


def _corrupted_split() -> Row:
    message = (
        "the estimator wrote into memory that it shares with other trainings, past numpy's protection; "
        "its fit and predict must leave their arguments alone, or copy them"
    )
    return _failure(ResponseError(message)) | {"n_correct": None}


def _wants_to_write(error: BaseException | None) -> bool:
    """Whether a training failed because numpy, scipy, Cython or numba found an array to be read-only."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = error_text(error).lower()
        if any(word in text for word in ("read-only", "readonly", "read only", "writeable", "writable")):
            return True
        error = error.__cause__ or error.__context__
    return False


# -- a whole path in one call --------------------------------------------------------------------


def _train_in_calls(task: PathTask) -> Iterator[Columns]:
    """Train a path in one call, and what would start from a diverged training anew in another."""
    columns = _train_whole(task)
    while Status.DIVERGED in columns["status"]:
        trained = columns["status"].index(Status.DIVERGED) + 1
        yield {name: values[:trained] for name, values in columns.items()}
        if trained == len(task.path):
            return
        task = replace(task, path=task.path.only(range(trained, len(task.path))))
        columns = _train_whole(task)
    yield columns


def _train_whole(task: PathTask) -> Columns:
    """Train by `fit_path(X, y, Cs)`, predict by `predict_path(X)`, and share the costs out among the rows."""
    columns, error = _attempt_whole(task, fresh_view)
    if error is not None and _wants_to_write(error):
        columns, _ = _attempt_whole(task, private_copy)
    return columns | {"warm_started": [False] + [True] * (len(task.path) - 1)}


def _attempt_whole(task: PathTask, share: Share) -> tuple[Columns, BaseException | None]:
    n = len(task.path)
    common = _sizes(task.split) | {"started_at": datetime.now(UTC)}
    timer = Timer()
    try:
        fitted, predicted, *seconds = task.call(_fit_and_predict_whole, task, share, timer)
        if not isinstance(predicted, (np.ndarray, list, tuple)):
            raise ResponseError(
                f"expected a sequence of {n} arrays from predict_path, found {shown(predicted)}"
            )
        if len(predicted) != n:
            raise ResponseError(f"expected labels for each of {n} trainings, found {len(predicted)}")
        return repeated(common, n) | columns_of_trainings(task.split, fitted, predicted, *seconds), None
    except BaseException as error:
        pass_on_interrupt(error)
        log.info("the trainings of a path of %s failed", task.arm.name, exc_info=True)
        each = {name: seconds / n for name, seconds in timer.columns("fit").items()}
        return repeated(common | each | _failure(error), n), error


def _fit_and_predict_whole(task: PathTask, share: Share, timer: "Timer") -> tuple[Any, Any, Row, Row]:
    split, path = task.split, task.path
    values = [candidate.value(PATH_PARAM) for candidate in path.candidates]
    estimator = task.estimator(path.candidates[0])
    X_train, y_train = share(split.X_train), share(split.y_train)
    options = unchecked(type(estimator).fit_path) if task.is_finite else {}
    timer.restart()
    fitted = estimator.fit_path(X_train, y_train, values, **options)
    fit = timer.columns("fit")
    predicted = fitted.predict_path(share(split.X_test))
    return fitted, predicted, fit, timer.columns("predict")


def columns_of_trainings(split: Split, fitted: Any, predicted: Any, fit: Row, predict: Row) -> Columns:
    """Return the rows of trainings that were fitted, and predicted, together.

    Parameters
    ----------
    split : Split
    fitted : object
        With what `fitted_path_columns` reads, and `fit_seconds_`, by which those of `fit` are shared out.
    predicted : sequence of array-like
        Labels, by training.
    fit, predict : dict
        The columns of the seconds that they took together.
    """
    n = len(predicted)
    columns = fitted_path_columns(fitted, n)
    shares = _shares_of_time(fitted, n)
    columns |= {name: (seconds * shares).tolist() for name, seconds in fit.items()}
    each = {name: seconds / n for name, seconds in predict.items()}
    columns |= repeated(_sizes(split) | each | {"finished_at": datetime.now(UTC)}, n)
    labels, errors = checked_path_labels(predicted, split.classes, len(split.y_test))
    n_correct = np.count_nonzero(labels == split.y_test, axis=1).tolist()
    scores = [number / len(split.y_test) for number in n_correct]
    columns |= {"n_correct": n_correct, "score": scores, "predicted": list(labels)}
    columns = repeated({"status": Status.OK.value, "message": ""}, n) | columns
    odd = {k: _failure(error) | {"n_correct": None, "predicted": None} for k, error in errors.items()}
    for k, objective in enumerate(columns.get("objective", ())):
        if k not in odd and objective is not None and not math.isfinite(objective):
            odd[k] = _divergence(objective, scores[k])
    for k, row in odd.items():
        for name, value in row.items():
            columns[name][k] = value
    return columns


def _shares_of_time(fitted: Any, n: int) -> NDArray[np.float64]:
    """Return the share of each training in the seconds of its path."""
    seconds = seconds_of_trainings(fitted)
    if seconds is None:
        raise ResponseError(f"expected {n} real numbers in fit_seconds_, found {shown(fitted.fit_seconds_)}")
    if seconds.shape != (n,):
        raise ResponseError(f"expected fit_seconds_ of shape ({n},), found {seconds.shape}")
    if not np.isfinite(seconds).all() or (seconds < 0).any():
        raise ResponseError(
            f"expected finite seconds of at least 0 in fit_seconds_, found {seconds.tolist()}"
        )
    total = seconds.sum()
    return seconds / total if np.isfinite(total) and total > 0 else np.full(n, 1 / n)


class Timer:
    """Measure wall and CPU seconds from one call to the next."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Measure from now on."""
        self._last = (perf_counter(), process_time())

    def columns(self, name: str) -> dict[str, float]:
        """Return the columns of the seconds that end now, and restart."""
        wall, cpu = self._last
        self.restart()
        return {f"{name}_seconds": self._last[0] - wall, f"{name}_cpu_seconds": self._last[1] - cpu}
