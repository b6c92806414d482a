"""Train several candidates in one call: those of a path, or the paths of one split for several γ.

`fit_path` trains a path in one call. On small datasets most of the cost of a path precedes or follows the
training. Solvers with `path_grid` pay this cost once for a split. Their results equal those of paths that are
trained one by one, bit for bit.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from inspect import signature
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.isolation.exits import raise_if_interrupted
from orchestrator.isolation.process_state import ProcessState
from orchestrator.study.records import PARTS_OF_FIT, Columns, Status, number_of_rows
from orchestrator.study.study import PATH_PARAM, Arm, Candidate, Protocol
from orchestrator.study.text import represented
from orchestrator.study.trials import REFIT, Path, further_metrics
from orchestrator.training.estimators import estimator_class, gamma_of, make_estimator
from orchestrator.training.fitted_attributes import fitted_path_columns, seconds_of_trainings
from orchestrator.training.gram import SplitGram
from orchestrator.training.responses import ResponseError, checked_path_labels
from orchestrator.training.shared_arrays import fresh_view, private_copy
from orchestrator.training.split_data import Split
from orchestrator.training.train import (
    PathTask,
    Row,
    Share,
    Timer,
    corrupted_split,
    divergence,
    failure,
    repeated,
    sizes,
    train_each,
    wants_to_write,
)

log = logging.getLogger(__name__)

MAX_WEIGHTS = 1 << 21
"""Largest number of weights of all subproblems of a split for which its paths are trained together.

Beyond it, the trainings dominate the cost.
"""


def train_path(task: PathTask, reopen: Callable[[], Split]) -> Iterator[Columns]:
    """Train the candidates of a path in order, and yield their rows.

    The arrays of a split are read-only, because other trainings use them too. A training that fails because
    it writes to them is repeated with private copies.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    reopen : callable
        Returns a new copy of the split, after an estimator has written to the old one.

    Yields
    ------
    dict
        Columns of one training, or of all that were trained in one call.
    """
    if takes_whole_path(task.arm, task.protocol, task.path):
        parts = list(_train_in_calls(task))
        if not task.intact:
            parts = [part | repeated(corrupted_split(), number_of_rows(part)) for part in parts]
            reopen()
        yield from parts
    else:
        yield from train_each(task, reopen)


# -- a path in one call ----------------------------------------------------------------------------


def takes_whole_path(arm: Arm, protocol: Protocol, path: Path) -> bool:
    """Return whether a path can be trained in one call of `fit_path`.

    Time limits apply to single trainings, and scorers other than accuracy need a fitted estimator. Both rule
    out the one call.

    Parameters
    ----------
    arm : Arm
        Class and fixed parameters.
    protocol : Protocol
        Metric and time limit.
    path : Path
        The path. Only refits record the further metrics of the protocol.

    Returns
    -------
    bool
        Whether one call suffices.
    """
    limit = path.candidates[0].value("max_seconds", arm.params.get("max_seconds"))
    unlimited = protocol.max_seconds is None and limit is None
    plain = (protocol.metric, *further_metrics(protocol, path)) == ("accuracy",) and unlimited
    return plain and arm.warm_starts and _has_matching_path(estimator_class(arm.target)[0])


def _has_matching_path(kind: Any) -> bool:
    """Return whether the `fit_path` of a class belongs to its `fit` and `predict`.

    An inherited `fit_path` does not include the changes that a derived class makes to `fit` or `predict`.

    Parameters
    ----------
    kind : class
        Class of an estimator.

    Returns
    -------
    bool
        False also without a `fit_path`.
    """
    if not hasattr(kind, "fit_path"):
        return False
    path, *others = (mro_index(kind, name) for name in ("fit_path", "fit", "predict"))
    return path <= min(others)


def mro_index(kind: Any, name: str) -> int:
    """Return the position, in the method resolution order, of the class that defines an attribute.

    Parameters
    ----------
    kind : class
        Class whose method resolution order is searched.
    name : str
        Name of the attribute.

    Returns
    -------
    int
        0 for the class itself; the length of the order if no class defines the attribute.
    """
    bases = getattr(kind, "__mro__", (kind,))
    return next((index for index, base in enumerate(bases) if name in vars(base)), len(bases))


def unchecked(method: Callable[..., Any]) -> dict[str, bool]:
    """Return the arguments that switch off a method's search for NaN.

    Parameters
    ----------
    method : callable
        Method of an estimator, such as `predict`.

    Returns
    -------
    dict
        `check_finite`, or empty if the method does not take it.
    """
    try:
        return {"check_finite": False} if "check_finite" in signature(method).parameters else {}
    except (TypeError, ValueError):  # compiled methods may have no signature
        return {}


def _train_in_calls(task: PathTask) -> Iterator[Columns]:
    """Train a path in one call, and the candidates after a diverged training in another.

    The next training does not start from a diverged one.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.

    Yields
    ------
    dict
        Columns of the trainings of one call.
    """
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
    """Train by `fit_path(X, y, Cs)`, predict by `predict_path(X)`, and divide the costs among the rows.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.

    Returns
    -------
    dict
        Columns with one value for each training.
    """
    columns, error = _attempt_whole(task, fresh_view)
    if error is not None and wants_to_write(error):
        columns, _ = _attempt_whole(task, private_copy)
    return columns | {"warm_started": [False] + [True] * (len(task.path) - 1)}


def _attempt_whole(task: PathTask, share: Share) -> tuple[Columns, BaseException | None]:
    """Train a path in one call.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    share : callable
        Returns a view or a copy of an array of the split.

    Returns
    -------
    columns : dict
        Columns with one value for each training.
    error : BaseException or None
        Exception of the training; None if it succeeded.
    """
    n = len(task.path)
    common = sizes(task.split) | {"started_at": datetime.now(UTC)}
    timer = Timer()
    try:
        task.started(common, n)
        fitted, predicted, *seconds = task.call(_fit_and_predict_whole, task, share, timer)
        if not isinstance(predicted, (np.ndarray, list, tuple)):
            raise ResponseError(
                f"expected a sequence of {n} arrays from predict_path, found {represented(predicted)}"
            )
        if len(predicted) != n:
            raise ResponseError(f"expected labels for each of {n} trainings, found {len(predicted)}")
        return repeated(common, n) | columns_of_trainings(task.split, fitted, predicted, *seconds), None
    except BaseException as error:
        raise_if_interrupted()
        log.info("the trainings of a path of %s failed", task.arm.name, exc_info=True)
        each = {name: seconds / n for name, seconds in timer.columns("fit").items()}
        return repeated(common | each | failure(error), n), error


def _fit_and_predict_whole(task: PathTask, share: Share, timer: "Timer") -> tuple[Any, Any, Row, Row]:
    """Fit a path in one call and predict the test rows.

    Parameters
    ----------
    task : PathTask
        The path, and everything that its trainings need.
    share : callable
        Returns a view or a copy of an array of the split.
    timer : Timer
        Measures the calls.

    Returns
    -------
    fitted : object
        The result of `fit_path`.
    predicted : object
        The result of `predict_path`.
    fit : dict
        Columns of the seconds of `fit_path`.
    predict : dict
        Columns of the seconds of `predict_path`.
    """
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


# -- the paths of a grid in one call ---------------------------------------------------------------


@dataclass(frozen=True)
class GridTask:
    """Paths of one split that differ in γ, with everything that they need.

    Attributes
    ----------
    arm : Arm
        Class and fixed parameters.
    protocol : Protocol
        Metric and time limit.
    paths : tuple of Path
        Paths to train together, one for each γ.
    gram : SplitGram
        Gram matrices of the split.
    overrides : sequence of mapping
        Parameters that replace the arm's, for each path.
    process_state : ProcessState
        Undoes the changes that a training makes to this process.
    """

    arm: Arm
    protocol: Protocol
    paths: tuple[Path, ...]
    gram: SplitGram
    overrides: Sequence[Mapping[str, Any]]
    process_state: ProcessState


def grids(
    arm: Arm, protocol: Protocol, paths: Iterable[Path], n_rows: int, n_classes: int
) -> Iterator[tuple[Path, ...]]:
    """Group the paths of a batch into those that are trained together, in order.

    Parameters
    ----------
    arm : Arm
        Arm whose trainings share the Gram matrices of their split.
    protocol : Protocol
        Metric and time limit.
    paths : iterable of Path
        Paths of the batch.
    n_rows : int
        Number of rows of the dataset.
    n_classes : int
        Number of classes of the dataset.

    Yields
    ------
    tuple of Path
        Paths to train together; one path if that is not possible.
    """
    for (_, inner, _), group in groupby(paths, _all_but_gamma):
        together = tuple(group)
        n_C = len(together[0])
        is_small = len(together) * n_C * n_rows * (n_classes - 1) <= MAX_WEIGHTS
        if inner != REFIT and n_C > 1 and is_small and _takes_grid(arm, protocol, together[0]):
            yield together
        else:
            yield from ((path,) for path in together)


def _all_but_gamma(path: Path) -> tuple[int, int, Any]:
    """Return the properties in which paths that are trained together must agree.

    Parameters
    ----------
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    tuple
        Split and parameters, without γ.
    """
    return path.outer, path.inner, _params_but_gamma(path.candidates)


@lru_cache(maxsize=1024)  # the paths of a grid are the same for every split of all datasets
def _params_but_gamma(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Return candidates without γ.

    Parameters
    ----------
    candidates : tuple of Candidate
        Candidates of a path.

    Returns
    -------
    tuple of Candidate
        Candidates with the other parameters.
    """
    return tuple(
        Candidate(tuple(pair for pair in candidate.params if pair[0] != "gamma")) for candidate in candidates
    )


def _takes_grid(arm: Arm, protocol: Protocol, path: Path) -> bool:
    """Return whether a class can train the paths of an arm together.

    Parameters
    ----------
    arm : Arm
        Solver with its fixed parameters and sweep values.
    protocol : Protocol
        Metric and time limit.
    path : Path
        Any path of the arm, from which its parameters are taken.

    Returns
    -------
    bool
        Whether the class has a `path_grid` that belongs to its `fit_path`.
    """
    kind, _ = estimator_class(arm.target)
    whole = takes_whole_path(arm, protocol, path)
    # The inherited grid does not include the changes of a derived class that overrides fit_path.
    return (
        whole and hasattr(kind, "path_grid") and mro_index(kind, "path_grid") <= mro_index(kind, "fit_path")
    )


def train_grid(task: GridTask) -> Columns | None:
    """Train the paths and return their rows.

    Parameters
    ----------
    task : GridTask
        The paths, and everything that they need.

    Returns
    -------
    dict or None
        Columns of all trainings, in order. None if one of them failed, so that the paths must be trained one
        by one.
    """
    started_at = datetime.now(UTC)
    try:
        columns = task.process_state.run(task.paths[0].seed, _fit_and_predict, task)
    except BaseException:
        raise_if_interrupted()
        log.info("trainings of %s failed together", task.arm.name, exc_info=True)
        return None
    if set(columns["status"]) != {Status.OK}:
        return None
    warm_started = [k > 0 for path in task.paths for k in range(len(path))]
    return repeated({"started_at": started_at}, len(warm_started)) | columns | {"warm_started": warm_started}


def _fit_and_predict(task: GridTask) -> Columns:
    """Fit the grid of paths and predict the test rows.

    Parameters
    ----------
    task : GridTask
        The paths, and everything that they need.

    Returns
    -------
    dict
        Columns with one value for each training.
    """
    kind, _ = estimator_class(task.arm.target)
    estimators = [
        make_estimator(task.arm, task.protocol, path.candidates[0], path.seed, override)
        for path, override in zip(task.paths, task.overrides, strict=True)
    ]
    Cs = [candidate.value(PATH_PARAM) for candidate in task.paths[0].candidates]
    elapsed: Counter[str] = Counter()  # seconds by column
    labels, timer = [], Timer()
    grid = kind.path_grid(estimators, task.gram.y_train, Cs)
    elapsed.update(timer.columns("fit"))
    gammas = [gamma_of(task.arm, path.candidates[0]) for path in task.paths]
    options = unchecked(type(grid).fit) if all(map(task.gram.is_finite, gammas)) else {}
    for start in range(0, len(gammas), task.gram.at_once):
        split = task.gram.splits(gammas[start : start + task.gram.at_once])
        elapsed.update(timer.columns("gram"))
        grid.fit(fresh_view(split.X_train), **options)
        elapsed.update(timer.columns("fit"))
        labels.extend(grid.predict(fresh_view(split.X_test)))
        elapsed.update(timer.columns("predict"))
    fitted = grid.fitted()
    elapsed.update(timer.columns("fit"))
    fit, predict = (
        {name: elapsed[name] for name in elapsed if name.startswith(of)} for of in ("fit", "predict")
    )
    columns = columns_of_trainings(split, fitted, np.concatenate(labels), fit, predict)
    n = len(columns.pop("predicted"))  # only refits store predictions
    return columns | repeated({"gram_seconds": elapsed["gram_seconds"] / n}, n)


# -- rows ------------------------------------------------------------------------------------------


def columns_of_trainings(split: Split, fitted: Any, predicted: Any, fit: Row, predict: Row) -> Columns:
    """Return the columns of trainings that were fitted, and predicted, together.

    Parameters
    ----------
    split : Split
        With the true labels.
    fitted : object
        Has the attributes that `fitted_path_columns` reads, and `fit_seconds_`, which divide the seconds of
        `fit` among the trainings.
    predicted : sequence of array-like
        Predicted labels of each training.
    fit : dict
        Columns of the seconds of fitting, for all trainings together.
    predict : dict
        Columns of the seconds of prediction, for all trainings together.

    Returns
    -------
    dict
        Columns with one value for each training.
    """
    n = len(predicted)
    columns = fitted_path_columns(fitted, n)
    shares = _shares_of_time(fitted, n)
    parts = sum(sum(columns[name]) for name in PARTS_OF_FIT if name in columns and None not in columns[name])
    if parts:  # each training gets an equal share of them, as its columns say
        part = min(1.0, parts / fit["fit_seconds"])
        shares = (1.0 - part) * shares + part / n
    columns |= {name: (seconds * shares).tolist() for name, seconds in fit.items()}
    each = {name: seconds / n for name, seconds in predict.items()}
    columns |= repeated(sizes(split) | each | {"finished_at": datetime.now(UTC)}, n)
    labels, errors = checked_path_labels(predicted, split.classes, len(split.y_test))
    n_correct = np.count_nonzero(labels == split.y_test, axis=1).tolist()
    scores = [number / len(split.y_test) for number in n_correct]
    columns |= {"n_correct": n_correct, "score": scores, "predicted": list(labels)}
    columns = repeated({"status": Status.OK.value, "message": ""}, n) | columns
    odd = {k: failure(error) | {"n_correct": None, "predicted": None} for k, error in errors.items()}
    for k, objective in enumerate(columns.get("objective", ())):
        if k not in odd and objective is not None and not math.isfinite(objective):
            odd[k] = divergence(objective, scores[k])
    for k, row in odd.items():
        for name, value in row.items():
            columns[name][k] = value
    return columns


def _shares_of_time(fitted: Any, n: int) -> NDArray[np.float64]:
    """Return the share of each training in the seconds of its path.

    Parameters
    ----------
    fitted : object
        The result of `fit_path`.
    n : int
        Number of trainings.

    Returns
    -------
    float64 array, shape (n,)
        Shares with sum 1; equal ones if the path took no measurable time.

    Raises
    ------
    ResponseError
        If `fit_seconds_` is not valid.
    """
    seconds = seconds_of_trainings(fitted)
    if seconds is None:
        raise ResponseError(
            f"expected {n} real numbers in fit_seconds_, found {represented(fitted.fit_seconds_)}"
        )
    if seconds.shape != (n,):
        raise ResponseError(f"expected fit_seconds_ of shape ({n},), found {seconds.shape}")
    if not np.isfinite(seconds).all() or (seconds < 0).any():
        raise ResponseError(
            f"expected finite seconds of at least 0 in fit_seconds_, found {seconds.tolist()}"
        )
    total = seconds.sum()
    return seconds / total if np.isfinite(total) and total > 0 else np.full(n, 1 / n)
