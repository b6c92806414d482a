"""Train the paths of one split for several γ together.

On small datasets most of the cost of a path precedes or follows the training. Solvers with `path_grid` pay
this cost once for a split. Their results equal those of paths that are trained one by one, bit for bit.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from orchestrator.isolation.process_state import ProcessState
from orchestrator.study.records import Columns, Status
from orchestrator.study.study import PATH_PARAM, Arm, Candidate, Protocol
from orchestrator.study.trials import REFIT, Path
from orchestrator.training.estimators import estimator_class, gamma_of, make_estimator
from orchestrator.training.gram import SplitGram
from orchestrator.training.shared_arrays import fresh_view
from orchestrator.training.train import (
    Timer,
    columns_of_trainings,
    mro_index,
    pass_on_interrupt,
    repeated,
    takes_whole_path,
    unchecked,
)

log = logging.getLogger(__name__)

MAX_WEIGHTS = 1 << 21
"""Largest number of weights of all subproblems of a split for which its paths are trained together.

Beyond it, the trainings dominate the cost.
"""


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
        Number of its classes.

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
        One of the paths.

    Returns
    -------
    bool
        Whether the class has a `path_grid` that belongs to its `fit_path`.
    """
    kind, _ = estimator_class(arm.target)
    whole = takes_whole_path(arm, protocol, path.candidates[0])
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
    except BaseException as error:
        pass_on_interrupt(error)
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
