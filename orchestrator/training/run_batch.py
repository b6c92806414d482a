"""Run a batch on a worker: open its splits, share Gram matrices, train and record."""

import math
import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from orchestrator.isolation.process_state import ProcessState, kept_process_state
from orchestrator.study.records import PREDICTION_COLUMNS, Columns, Records, Status, number_of_rows
from orchestrator.study.study import Arm
from orchestrator.study.targets import resolve
from orchestrator.study.trials import REFIT, BatchResult, Path, WorkOrder
from orchestrator.training.environment import host_name, versions_json
from orchestrator.training.estimators import gamma_of, takes
from orchestrator.training.gram import SplitGram, forget_gram, gram_parameters, gram_type, open_gram
from orchestrator.training.metrics import metric_objects
from orchestrator.training.open_data import open_data
from orchestrator.training.preparation import PreparationError
from orchestrator.training.source_hash import depends_on
from orchestrator.training.split_data import Split, forget_splits, open_split, start_run, take_prepare_seconds
from orchestrator.training.train import (
    Monitor,
    OvertimeError,
    PathTask,
    default_overtime_message,
    failure,
    overtime_message,
    repeated,
)
from orchestrator.training.train_together import GridTask, grids, takes_whole_path, train_grid, train_path
from orchestrator.training.warm_up import train_few_rows


def run_batch(
    order: WorkOrder, worker: str = "client", monitor: Monitor | None = None, warm_up: bool = True
) -> BatchResult:
    """Train and evaluate every trial of a batch.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    worker : str
        Name of the worker, stored in each row. "client" by default.
    monitor : Monitor, optional
        Receives the progress. None by default.
    warm_up : bool
        Whether to train on a few rows first, so that no record includes compilation. True by default.

    Returns
    -------
    BatchResult
        The rows of the trials, and the time that they took.

    Raises
    ------
    DatasetError
        If this host cannot get the dataset, or its dataset differs from the client's.
    ProcessUnusableError
        If a training has made this process unusable for others.
    """
    _ignore_convergence_warnings()
    started = perf_counter()
    monitor = monitor or Monitor()
    parts: list[Columns] = []
    compiled_for: set[Any] = set()
    kinds = *map(resolve, order.arm.targets), *metric_objects(order.protocol.custom_metrics)
    start_run(order.run_id)
    take_prepare_seconds()  # those of other batches
    with kept_process_state(*kinds) as state:
        for paths in _together(order, state):
            monitor.started(math.inf)
            compiled, usage = 0.0, _usage(order, paths[0])
            if warm_up and usage not in compiled_for:
                compiled_for.add(usage)
                monitor.started(_warm_up_seconds(order))
                compiled = _compile(order, paths[0], usage)
                monitor.started(math.inf)
            for columns in _run_paths(order, paths, state, monitor):
                state.require_usable()
                others = [0.0] * (number_of_rows(columns) - 1)
                columns["compile_seconds"] = [compiled, *others]
                columns["prepare_seconds"] = [take_prepare_seconds(), *others]
                parts.append(columns)
                monitor.finished(columns)
                compiled = 0.0
    return batch_result(order, worker, parts, perf_counter() - started)


def batch_result(order: WorkOrder, worker: str, parts: list[Columns], busy_seconds: float) -> BatchResult:
    """Return the result of a batch with the rows of all its trainings.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    worker : str
        Name of the worker.
    parts : list of dict
        Columns of the trainings, in order.
    busy_seconds : float
        Time that the worker spent on the batch, in seconds.

    Returns
    -------
    BatchResult
        The rows, and the seconds of training and compilation.
    """
    records = Records.joined(common_columns(order, worker), parts)

    def total(*columns: str) -> float:
        return sum(value or 0.0 for column in columns for value in records.columns.get(column, ()))

    training = total("prepare_seconds", "fit_seconds", "predict_seconds")
    compiling = total("compile_seconds")
    return BatchResult(records, busy_seconds, training, compiling)


def limit_message(order: WorkOrder, seconds: float, n_trainings: int = 1) -> str:
    """Return the message of a training that was stopped from outside.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    seconds : float
        Elapsed time, in seconds; used if no limit is known.
    n_trainings : int
        Number of trainings of the call that was stopped. 1 by default.

    Returns
    -------
    str
        Message that names the time limit.
    """
    if order.protocol.max_seconds is None and not math.isinf(order.default_seconds):
        return default_overtime_message(n_trainings * order.default_seconds)
    return overtime_message(order.protocol.max_seconds or seconds)


def _warm_up_seconds(order: WorkOrder) -> float:
    """Return the time limit of a training on a few rows, including compilation.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.

    Returns
    -------
    float
        Seconds.
    """
    if order.protocol.max_seconds is None:
        return order.default_seconds
    return 600.0 if any(depends_on(target, "numba") for target in order.arm.targets) else 10.0


@cache
def _ignore_convergence_warnings() -> None:
    """Silence convergence warnings, because the rows say which trainings did not converge."""
    warnings.filterwarnings("ignore", category=ConvergenceWarning)


def _together(order: WorkOrder, state: ProcessState) -> Iterable[tuple[Path, ...]]:
    """Group the paths of a batch into those that are trained together.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    state : ProcessState
        Process state; paths are grouped only if the trainings leave it unchanged.

    Returns
    -------
    iterable of tuple of Path
        The groups, in order.
    """
    if not (order.shared_gram and state.is_kept):
        return ((path,) for path in order.batch.paths)
    dataset, _ = open_data(order.source, order.protocol)
    return grids(order.arm, order.protocol, order.batch.paths, len(dataset.y), len(dataset.classes))


def _run_paths(
    order: WorkOrder, paths: tuple[Path, ...], state: ProcessState, monitor: Monitor
) -> Iterator[Columns]:
    """Train a group of paths, together if possible, and yield their rows.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    paths : tuple of Path
        Paths of the group, which `_together` formed.
    state : ProcessState
        Detects changes of the process.
    monitor : Monitor
        Receives the progress.

    Yields
    ------
    dict
        Columns of one or more trainings.
    """
    columns = _run_grid(order, paths, state, monitor) if len(paths) > 1 else None
    if columns is not None:
        yield columns
        return
    for path in paths:
        yield from _run_path(order, path, state, monitor)


def _run_grid(
    order: WorkOrder, paths: tuple[Path, ...], state: ProcessState, monitor: Monitor
) -> Columns | None:
    """Train paths that differ in γ together.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    paths : tuple of Path
        Paths of one split.
    state : ProcessState
        Detects changes of the process.
    monitor : Monitor
        Receives the start of the preparation.

    Returns
    -------
    dict or None
        Columns of all trainings, in order; None if a training failed.
    """
    try:
        _prepare(order, paths[0], monitor)
    except PreparationError:
        return None  # the rows of the single paths name the error
    started = perf_counter()
    gram = _opened_gram(order, paths[0])
    opening = perf_counter() - started
    overrides = [gram_parameters(gram, gamma_of(order.arm, path.candidates[0]), order.arm) for path in paths]
    columns = train_grid(GridTask(order.arm, order.protocol, paths, gram, overrides, state))
    if columns is None:
        return None
    n = number_of_rows(columns)
    axes = [axis_columns(order.arm, path) for path in paths]
    columns |= {name: [*chain.from_iterable(each[name] for each in axes)] for name in axes[0]}
    columns["gram_seconds"] = [seconds + opening / n for seconds in columns["gram_seconds"]]
    return columns | {"shared_gram": [True] * n}


def _run_path(order: WorkOrder, path: Path, state: ProcessState, monitor: Monitor) -> Iterator[Columns]:
    """Train one path and yield its rows.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C.
    state : ProcessState
        Detects changes of the process.
    monitor : Monitor
        Receives the progress.

    Yields
    ------
    dict
        Columns of one or more trainings.
    """
    shared_gram, gram_seconds = shares_gram(order, path), 0.0

    def open_() -> tuple[Split, dict[str, Any], bool]:
        if shared_gram:
            return _open_gram(order, path)
        return open_split(order.source, order.protocol, path.outer, path.inner), {}, False

    def reopen() -> Split:
        forget_splits()
        forget_gram()
        return open_()[0]

    try:
        _prepare(order, path, monitor)
    except PreparationError as error:
        yield axis_columns(order.arm, path) | _unprepared(error, len(path))
        return
    started = perf_counter()
    split, override, is_finite = open_()
    if shared_gram:
        gram_seconds = (perf_counter() - started) / len(path)
    task = PathTask(
        order.arm,
        order.protocol,
        path,
        split,
        state,
        override,
        monitor,
        is_finite,
        order.default_seconds,
        order.repeats,
    )
    axes, done = axis_columns(order.arm, path), 0
    for columns in train_path(task, reopen):
        n = number_of_rows(columns)
        predicted = columns.pop("predicted", None)
        if order.predictions and path.inner == REFIT and predicted is not None:
            columns |= _predictions(order, path.outer, predicted)
        columns |= {name: values[done : done + n] for name, values in axes.items()}
        yield columns | {"shared_gram": [shared_gram] * n, "gram_seconds": [gram_seconds] * n}
        done += n


def _prepare(order: WorkOrder, path: Path, monitor: Monitor) -> None:
    """Prepare the split of a path, within the time limit of a training if the transformer is custom.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split.
    monitor : Monitor
        Receives the limit, and the row of a trial for which it is exceeded.

    Raises
    ------
    PreparationError
        If the preparation fails.
    """
    preparation = order.protocol.preparation
    if preparation.transformer is not None:  # a class of the user may never return
        seconds = order.protocol.max_seconds or order.default_seconds
        message = f"preparation {preparation.words}: {limit_message(order, seconds)}"
        untrained = {"fit_seconds": None, "predict_seconds": None}
        monitor.started(seconds, untrained | {"started_at": datetime.now(UTC), "message": message})
    try:
        open_split(order.source, order.protocol, path.outer, path.inner)
    finally:
        monitor.started(math.inf)


def _unprepared(error: PreparationError, n: int) -> Columns:
    """Return the columns of trials that fail because the rows of their split cannot be prepared.

    Parameters
    ----------
    error : PreparationError
        Reason, which is their message.
    n : int
        Number of trials.

    Returns
    -------
    dict
        Columns with one value for each trial.
    """
    began = {"started_at": datetime.now(UTC), "shared_gram": False, "gram_seconds": 0.0}
    outcome = failure(error)
    if isinstance(error.__cause__, OvertimeError):
        outcome["status"] = Status.TIMEOUT
    return repeated(began | outcome, n)


def _predictions(order: WorkOrder, outer: int, predicted: list[NDArray[Any] | None]) -> Columns:
    """Return `PREDICTION_COLUMNS` of a refit, which is a path of one candidate.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    outer : int
        Index of the outer split.
    predicted : list of ndarray or None
        Predicted labels of the only training; None if it failed.

    Returns
    -------
    dict
        Columns with one value each; empty if the training failed.
    """
    dataset, splits = open_data(order.source, order.protocol)
    _, test = splits.train_test(outer)
    (labels,) = predicted
    if labels is None:
        return {}
    codes = np.searchsorted(dataset.classes, labels)
    columns = (test.tolist(), dataset.codes[test].tolist(), codes.tolist())
    return {name: [values] for name, values in zip(PREDICTION_COLUMNS, columns, strict=True)}


def shares_gram(order: WorkOrder, path: Path) -> bool:
    """Return whether a path is trained on the float32 Gram matrices of its split.

    Refits are not, because their certificates are computed in float64.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    bool
        False for a refit.
    """
    return order.shared_gram and path.inner != REFIT


def _open_gram(order: WorkOrder, path: Path) -> tuple[Split, dict[str, Any], bool]:
    """Open a split of kernel values.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C, so they share one γ.

    Returns
    -------
    split : Split
        Kernel values in place of features.
    parameters : dict
        Parameters that declare the kernel values to the estimator.
    is_finite : bool
        Whether all values are known to be finite.
    """
    gram, gamma = _opened_gram(order, path), gamma_of(order.arm, path.candidates[0])
    return gram.split(gamma), gram_parameters(gram, gamma, order.arm), gram.is_finite(gamma)


def _opened_gram(order: WorkOrder, path: Path) -> SplitGram:
    """Open the Gram matrices of a path's split.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    SplitGram
        Gram matrices of the training and test rows.
    """
    arm = order.arm
    # A single fit would add the shift to a copy of the matrix, so only whole paths are shifted.
    may_shift = takes(arm, "gram_shift") and takes_whole_path(arm, order.protocol, path)
    data = order.source, order.protocol, path.outer, path.inner
    return open_gram(*data, order.gram_memory, gram_type(arm), may_shift)


def common_columns(order: WorkOrder, worker: str) -> dict[str, Any]:
    """Return the columns in which all rows of a batch agree.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    worker : str
        Name of the worker.

    Returns
    -------
    dict
        One value for each column.
    """
    dataset, _ = open_data(order.source, order.protocol)
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


def axis_columns(arm: Arm, path: Path) -> Columns:
    """Return the columns that identify the trials of a path within the study.

    Parameters
    ----------
    arm : Arm
        Solver with its fixed parameters and sweep values.
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    dict
        Columns with one value for each trial.
    """
    params = [arm.param_columns(candidate) for candidate in path.candidates]
    common = {"outer": path.outer, "inner": path.inner, "seed": path.seed}
    return {
        "key": [*path.keys],
        **{name: [value] * len(path) for name, value in common.items()},
        **{name: [row[name] for row in params] for name in params[0]},
    }


# -- compilation ---------------------------------------------------------------------------------

_compiled: set[tuple[Any, ...]] = set()
"""Kinds of data for which this process has run an arm, and so compiled its code."""


def _usage(order: WorkOrder, path: Path) -> tuple[Any, ...]:
    """Return the properties of a path that decide which code its trainings run.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    tuple
        Equal tuples need no further compilation within a batch.
    """
    texts = tuple(value for _, value in path.candidates[0].params if isinstance(value, (str, bool)))
    return texts, order.arm.warm_starts and len(path) > 1, shares_gram(order, path)


def _compile(order: WorkOrder, path: Path, usage: tuple[Any, ...]) -> float:
    """Train a path on a few rows, so that no record includes just-in-time compilation.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    path : Path
        Trials of one split that differ only in C.
    usage : tuple
        Properties of the path, as `_usage` returns them.

    Returns
    -------
    float
        Elapsed seconds; 0 if this process has run the arm on such data before.
    """
    arm, shared = order.arm, shares_gram(order, path)
    try:
        split = open_split(order.source, order.protocol, path.outer, path.inner)
    except PreparationError:
        return 0.0
    signature = (
        arm.target,
        str(sorted(arm.params.items(), key=str)),
        *usage,
        str(type(split.X_train)),
        str(getattr(split.X_train, "dtype", "")),
    )
    if signature in _compiled:
        return 0.0
    _compiled.add(signature)
    started = perf_counter()
    train_few_rows(arm, order.protocol, path, split, shared)
    return perf_counter() - started


def compile_code(order: WorkOrder) -> float:
    """Train every path of a batch on a few rows, and keep nothing but compiled code.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.

    Returns
    -------
    float
        Elapsed seconds.
    """
    _ignore_convergence_warnings()
    kinds = *map(resolve, order.arm.targets), *metric_objects(order.protocol.custom_metrics)
    with kept_process_state(*kinds):
        return sum(_compile(order, path, _usage(order, path)) for path in order.batch.paths)
