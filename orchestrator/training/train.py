"""Train the candidates of one path on one split, and return the scores and costs of each.

Only scikit-learn's estimator protocol is used. A training that fails does not raise: its failure is a row.
This holds for any exception of an estimator, including `SystemExit` and `KeyboardInterrupt`. Only Ctrl-C of
the user is passed on.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.isolation.exits import raise_if_interrupted
from orchestrator.isolation.process_state import ProcessState
from orchestrator.study.records import PARTS_OF_FIT, Columns, Status
from orchestrator.study.sample import n_measurements
from orchestrator.study.study import Arm, Candidate, Protocol
from orchestrator.study.targets import instantiate
from orchestrator.study.text import describe_error, error_text, format_seconds, storable_text
from orchestrator.study.trials import REFIT, Path, further_metrics
from orchestrator.training.estimators import estimator_class, make_estimator
from orchestrator.training.fitted_attributes import fitted_columns
from orchestrator.training.prediction_cost import row_seconds
from orchestrator.training.preparation import PreparationError
from orchestrator.training.responses import (
    ResponseError,
    Responses,
    checked_labels,
    require_classes,
)
from orchestrator.training.shared_arrays import fresh_view, private_copy
from orchestrator.training.split_data import Split

log = logging.getLogger(__name__)

Row = dict[str, Any]
Share = Callable[[Any], Any]
"""Function that gives a training an array of its split: a new view, or a copy."""

TIMED_OUT = "2"
"""Value of `fit_status_` of an estimator that stopped at its `max_seconds`."""

_SECONDS = ("fit_seconds", "fit_cpu_seconds", "predict_seconds", "predict_cpu_seconds")
"""Columns that repeated measurements of a training change."""

EXTRA_SECONDS = 60.0
"""Time that an estimator with `max_seconds` may take beyond twice that limit, in seconds."""


class Monitor:
    """Callbacks that follow the trainings of a batch; those of this class do nothing."""

    def started(self, seconds: float, row: Row | None = None) -> None:
        """Receive the start of a training or of another step.

        Parameters
        ----------
        seconds : float
            Time limit of the step, in seconds.
        row : dict or None
            Columns of the training that are known so far. None by default, for a step that is not a training.
        """

    def finished(self, columns: Columns) -> None:
        """Receive the rows of trainings that have ended.

        Parameters
        ----------
        columns : dict
            Columns with one value for each training.
        """


class OvertimeError(RuntimeError):
    """A training whose estimator has no time limit exceeded the limit of the protocol."""


@dataclass(frozen=True)
class PathTask:
    """A path of trainings, with everything that they need.

    Attributes
    ----------
    arm : Arm
        If it warm-starts, each training starts from the solution of the one before.
    protocol : Protocol
        Metric, preparation and time limit.
    path : Path
        Candidates that differ only in C, with their split and seed.
    split : Split
        Read-only rows, with kernel values in place of features if `override` says so.
    process_state : ProcessState
        Undoes the changes that a training makes to this process.
    override : mapping
        Parameters that replace the arm's.
    monitor : Monitor
        Receives the progress.
    is_finite : bool
        Whether kernel values of the split are known to be finite, so that estimators need not check them.
    default_seconds : float
        Time limit of a training for a protocol without one, in seconds.
    repeats : int
        Number of measurements of each training of a timing sample; 0 for a study that is not a sample.
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
    repeats: int = 0

    def __post_init__(self) -> None:
        # Both are computed before the first training, because an estimator may write to the labels.
        self.first_checksum, self.split.classes  # noqa: B018

    @property
    def intact(self) -> bool:
        """Whether the split is unchanged; if not, an estimator has written to it."""
        return self.process_state.is_kept or self.split.checksum() == self.first_checksum

    @cached_property
    def first_checksum(self) -> tuple[Any, ...]:
        """The checksum of the split before the first training; empty if changes are impossible."""
        return () if self.process_state.is_kept else self.split.checksum()

    @cached_property
    def seconds_allowed(self) -> float:
        """The time limit of a fit or of a call of another method, in seconds, enforced from outside."""
        limit = self.protocol.max_seconds
        if limit is None:
            return self.default_seconds
        return 2 * limit + EXTRA_SECONDS if self.stops_itself else limit

    @cached_property
    def stops_itself(self) -> bool:
        """Whether the estimators take `max_seconds`, at which they return their best model."""
        return "max_seconds" in estimator_class(self.arm.target)[1]

    def started(self, row: Row, n_trainings: int = 1) -> None:
        """Report the start of a fit, or of a call of another method, to the monitor.

        Parameters
        ----------
        row : dict
            Columns of the training that are known so far.
        n_trainings : int
            Number of trainings of the call, each of which has the time limit. 1 by default.

        Raises
        ------
        KeyboardInterrupt
            If the user has interrupted the program and the exception was lost.
        """
        raise_if_interrupted()
        self.monitor.started(n_trainings * self.seconds_allowed, row)

    def require_in_time(self, seconds: float) -> None:
        """Raise if a call exceeded the time limit of the protocol.

        Parameters
        ----------
        seconds : float
            Elapsed time of the call, in seconds.

        Raises
        ------
        OvertimeError
            If it exceeded the limit, and the estimator takes no `max_seconds`.
        """
        limit = self.protocol.max_seconds
        if limit is not None and seconds >= limit and not self.stops_itself:
            raise OvertimeError(overtime_message(limit))

    def estimator(self, candidate: Candidate) -> Any:
        """Make the unfitted estimator of a candidate.

        Parameters
        ----------
        candidate : Candidate
            Chosen parameters.

        Returns
        -------
        estimator
            An unfitted estimator.
        """
        return make_estimator(self.arm, self.protocol, candidate, self.path.seed, self.override)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with the path's seed in the global random states.

        Parameters
        ----------
        function : callable
            Function to call, such as `fit`.
        *arguments : object
            Positional arguments of the function.

        Returns
        -------
        object
            Result of the function.
        """
        return self.process_state.run(self.path.seed, function, *arguments)


def overtime_message(limit: float) -> str:
    """Return the message of a training that exceeded the time limit of its protocol.

    Parameters
    ----------
    limit : float
        The limit, in seconds.

    Returns
    -------
    str
        Message that names the limit.
    """
    return f"stopped after {limit:g} s, the time limit"


def default_overtime_message(limit: float) -> str:
    """Return the message of a training that exceeded the default time limit.

    Parameters
    ----------
    limit : float
        The limit, in seconds.

    Returns
    -------
    str
        Message that names the limit.
    """
    return f"stopped after {format_seconds(limit)}, the time limit where protocol.max_seconds is null"


def train_each(task: PathTask, reopen: Callable[[], Split]) -> Iterator[Columns]:
    """Train the candidates of a path one after the other, and yield the row of each.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    reopen : callable
        Returns a new copy of the split, after an estimator has written to the old one.

    Yields
    ------
    dict
        Columns of one training.
    """
    fitted = None
    for candidate in task.path.candidates:
        row, fitted, _ = _train(task, candidate, fitted)
        if measures_rows(task, row):
            task.started(row)
            row["row_seconds"] = task.call(row_seconds, fitted.predict, fresh_view(task.split.X_test))
        if task.repeats and row["status"] == Status.OK:
            row |= _median_seconds(task, candidate, row)
        if not task.intact:
            row |= corrupted_split()
            task = replace(task, split=reopen())
        yield repeated(row, 1)
        if not task.arm.warm_starts or row["score"] is None:
            fitted = None  # the next training must not start from a failed or diverged one


def measures_rows(task: PathTask, row: Row) -> bool:
    """Return whether the prediction of one row at a time is measured after a training.

    Parameters
    ----------
    task : PathTask
        The path of the training.
    row : dict
        Columns of the training.

    Returns
    -------
    bool
        True for refits that succeeded, under the profile "timing", if the estimator receives features.
    """
    is_refit = task.path.inner == REFIT and row["status"] == Status.OK
    return is_refit and task.protocol.profile == "timing" and not task.override


def _median_seconds(task: PathTask, candidate: Candidate, row: Row) -> Row:
    """Repeat a training of a timing sample, and return the median of each time.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    candidate : Candidate
        Chosen parameters.
    row : dict
        Columns of the first measurement.

    Returns
    -------
    dict
        The columns of times.
    """
    number = n_measurements(task.repeats, row["fit_seconds"])
    again = [_train(task, candidate, None)[0] for _ in range(number - 1)]
    rows = [row, *(each for each in again if each["status"] == Status.OK)]
    names = (*_SECONDS, *(name for name in PARTS_OF_FIT if name in row))
    return {name: median(each[name] for each in rows) for name in names}


def try_training(task: PathTask) -> BaseException | None:
    """Train the first candidate of a path, and return the error.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.

    Returns
    -------
    BaseException or None
        None if the training succeeded.
    """
    _, _, error = _train(task, task.path.candidates[0], None)
    return error


def _train(task: PathTask, candidate: Candidate, fitted: Any) -> tuple[Row, Any, BaseException | None]:
    """Train one candidate, and repeat this with private copies if it writes to the split.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    candidate : Candidate
        Chosen parameters.
    fitted : estimator or None
        Fitted estimator from which to start; None for a cold start.

    Returns
    -------
    row : dict
        Columns of the training.
    estimator : estimator or None
        The fitted estimator; None after a failure.
    error : BaseException or None
        Exception of the last attempt; None if it succeeded.
    """
    row, estimator, error = _attempt(task, candidate, fitted, fresh_view)
    if error is not None and wants_to_write(error):
        row, estimator, error = _attempt(task, candidate, None, private_copy)
    return row, estimator, error


def _attempt(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share
) -> tuple[Row, Any, BaseException | None]:
    """Train one candidate.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    candidate : Candidate
        Chosen parameters.
    fitted : estimator or None
        Fitted estimator from which to start; None for a cold start.
    share : callable
        Returns a view or a copy of an array of the split.

    Returns
    -------
    row : dict
        Columns of the training.
    estimator : estimator or None
        The fitted estimator; None after a failure.
    error : BaseException or None
        Exception of the training; None if it succeeded.
    """
    row = sizes(task.split) | {"started_at": datetime.now(UTC), "warm_started": fitted is not None}
    timer = Timer()
    try:
        estimator, predicted = task.call(_fit_and_predict, task, candidate, fitted, share, row, timer)
        task.started(row)
        row |= _evaluate(task, estimator, predicted, share)
        row |= _outcome(row, task.protocol)
        row["finished_at"] = datetime.now(UTC)
    except BaseException as error:
        raise_if_interrupted()
        log.info("a training of %s failed", task.arm.name, exc_info=True)
        unfinished = next((call for call in ("fit", "predict") if f"{call}_seconds" not in row), None)
        if unfinished == "fit" or (unfinished and not isinstance(error, OvertimeError)):
            row |= timer.columns(unfinished)
        return row | failure(error), None, error
    return row, estimator, None


def _fit_and_predict(
    task: PathTask, candidate: Candidate, fitted: Any, share: Share, row: Row, timer: "Timer"
) -> tuple[Any, Any]:
    """Fit an estimator and predict the test rows.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    candidate : Candidate
        Chosen parameters.
    fitted : estimator or None
        Fitted estimator from which to start; None for a cold start.
    share : callable
        Returns a view or a copy of an array of the split.
    row : dict
        Receives the columns as soon as they are known, also if an exception follows.
    timer : Timer
        Measures the calls.

    Returns
    -------
    estimator : estimator
        The fitted estimator.
    predicted : object
        The result of `predict`.
    """
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
    """Return the columns that follow from the predictions and from the estimator's attributes.

    Changes that the estimator made to the process are undone before, so they do not affect the scores.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    estimator : fitted classifier
        Classifier that was fitted on the training rows.
    predicted : array-like
        The result of `predict`.
    share : callable
        Returns a view or a copy of an array of the split.

    Returns
    -------
    dict
        Scores, labels and columns of the fitted estimator.
    """
    split, protocol = task.split, task.protocol

    def call_method(method: str) -> Any:
        require_classes(estimator, split.classes)
        return task.call(lambda: getattr(estimator, method)(share(split.X_test)))

    labels = checked_labels(predicted, split.classes, len(split.y_test))
    row = _accuracy(split, labels) | {"predicted": labels}
    metrics = {f"score_{name}": name for name in further_metrics(protocol, task.path)}
    if protocol.metric != "accuracy":
        metrics["score"] = protocol.metric
    if metrics:
        responses = Responses(estimator, call_method, labels, split.classes)
        wanted = protocol.metrics(dict.fromkeys(metrics.values()))
        if protocol.custom_metrics:  # code of users may change the process
            scores = task.call(responses.scores, wanted, share(split.y_test), share(split.X_test))
        else:
            scores = responses.scores(wanted, split.y_test)
        row |= {column: scores[name] for column, name in metrics.items()}
    return row | fitted_columns(estimator, split.y_train)


def sizes(split: Split) -> Row:
    """Return the columns with the numbers of rows of a split.

    Parameters
    ----------
    split : Split
        Training and test rows of the split.

    Returns
    -------
    dict
        `n_train` and `n_test`.
    """
    return {"n_train": len(split.y_train), "n_test": len(split.y_test)}


def repeated(row: Row, n: int) -> Columns:
    """Return columns of n equal rows.

    Parameters
    ----------
    row : dict
        Columns of one trial, by name.
    n : int
        Number of rows.

    Returns
    -------
    dict
        Lists of n values.
    """
    return {name: [value] * n for name, value in row.items()}


def _accuracy(split: Split, labels: NDArray[Any]) -> Row:
    """Return the number of correct labels and their share, which equals `accuracy_score` bit for bit.

    The labels have been checked. A comparison therefore suffices, and saves the 400 µs of `accuracy_score`.

    Parameters
    ----------
    split : Split
        With the true labels.
    labels : ndarray, shape (n_test,)
        Labels that the estimator predicted.

    Returns
    -------
    dict
        `n_correct` and `score`.
    """
    n_correct = int(np.count_nonzero(labels == split.y_test))
    return {"n_correct": n_correct, "score": n_correct / len(split.y_test)}


def _outcome(row: Row, protocol: Protocol) -> Row:
    """Return the status of a finished training: ok, timeout or diverged.

    Parameters
    ----------
    row : dict
        Columns of the training.
    protocol : Protocol
        With the time limit.

    Returns
    -------
    dict
        `status` and `message`, and an empty `score` if the training diverged, or if the time limit ended it
        before it had a model.
    """
    objective, limit = row.get("objective", 0.0), protocol.max_seconds
    # Subproblems divide the limit. One that used up its share may end the fit before the limit.
    says_so = row.get("fit_status") == TIMED_OUT
    reached = limit is not None and (says_so or row["fit_seconds"] >= limit)
    is_out_of_time = reached and row.get("converged") is False
    if is_out_of_time and says_so and math.isnan(objective):
        message = f"stopped after {limit:g} s without a model: its objective is not known yet"
        return {"status": Status.TIMEOUT, "message": message, "score": None}
    if not math.isfinite(objective):
        return divergence(objective, row["score"])
    if is_out_of_time:
        return {"status": Status.TIMEOUT, "message": f"stopped after {limit:g} s with its best model so far"}
    return {"status": Status.OK, "message": row.get("message", "")}


def divergence(objective: float, score: float) -> Row:
    """Return the status of a training whose objective is not finite.

    Parameters
    ----------
    objective : float
        Value that the solver reports; NaN and infinity mean divergence.
    score : float
        The score, which only the message keeps.

    Returns
    -------
    dict
        `status`, `message` and an empty `score`.
    """
    message = f"the objective is {objective}, the score {score}"
    return {"status": Status.DIVERGED.value, "message": message, "score": None}


def failure(error: BaseException) -> Row:
    """Return the status of a failed training.

    Parameters
    ----------
    error : BaseException
        Exception that ended the training.

    Returns
    -------
    dict
        `status`, `message`, `finished_at` and an empty `score`.
    """
    ours = isinstance(error, (ResponseError, OvertimeError, PreparationError))
    return {
        "status": Status.TIMEOUT if isinstance(error, OvertimeError) else Status.ERROR,
        "message": storable_text(error) if ours else describe_error(error),
        "score": None,
        "finished_at": datetime.now(UTC),
    }


def corrupted_split() -> Row:
    """Return the status of a training after which the split had changed."""
    message = (
        "the estimator wrote into read-only memory that other trainings share; "
        "its fit and predict must copy arguments that they change"
    )
    return failure(ResponseError(message)) | {"n_correct": None}


def wants_to_write(error: BaseException | None) -> bool:
    """Return whether a training failed because an array was read-only, in the words of the usual libraries.

    These are NumPy, SciPy, Cython and numba.

    Parameters
    ----------
    error : BaseException or None
        The failure, whose causes are read as well.

    Returns
    -------
    bool
        False without a failure.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = error_text(error).lower()
        if any(word in text for word in ("read-only", "readonly", "read only", "writeable", "writable")):
            return True
        error = error.__cause__ or error.__context__
    return False


class Timer:
    """Measure wall and CPU seconds from one call to the next."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start the measurement now."""
        self._last = (perf_counter(), process_time())

    def columns(self, name: str) -> dict[str, float]:
        """Return the columns of the seconds since the start, and restart.

        Parameters
        ----------
        name : str
            Prefix of the columns, e.g. "fit".

        Returns
        -------
        dict of str to float
            `<name>_seconds` and `<name>_cpu_seconds`.
        """
        wall, cpu = self._last
        self.restart()
        return {f"{name}_seconds": self._last[0] - wall, f"{name}_cpu_seconds": self._last[1] - cpu}
