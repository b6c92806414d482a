"""Train the paths of one split for several γ together.

On small datasets most of what a path costs is what leads to its training and follows from it. This is paid
once for a split by solvers that have `path_grid`; the numbers are those of paths that are trained one by one,
bit for bit.
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
    pass_on_interrupt,
    place_of,
    repeated,
    takes_whole_path,
    unchecked,
)

log = logging.getLogger(__name__)

MOST_WEIGHTS = 1 << 21
"""Up to how many weights the machines of a split have together: beyond, trainings cost more than the rest."""


@dataclass(frozen=True)
class GridTask:
    """Paths of one split that differ in γ, and all they need.

    Attributes
    ----------
    arm : Arm
    protocol : Protocol
    paths : tuple of Path
    gram : SplitGram
    overrides : sequence of mapping
        For each path the parameters that replace the arm's.
    process_state : ProcessState
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
    """Cut the paths of a batch into those that are trained together, in order.

    Parameters
    ----------
    arm : Arm
        Whose trainings share the Gram matrices of their split.
    protocol : Protocol
    paths : iterable of Path
    n_rows, n_classes : int
        Of the dataset.
    """
    for (_, inner, _), group in groupby(paths, _all_but_gamma):
        together = tuple(group)
        n_C = len(together[0])
        is_small = len(together) * n_C * n_rows * (n_classes - 1) <= MOST_WEIGHTS
        if inner != REFIT and n_C > 1 and is_small and _takes_grid(arm, protocol, together[0]):
            yield together
        else:
            yield from ((path,) for path in together)


def _all_but_gamma(path: Path) -> tuple[int, int, Any]:
    return path.outer, path.inner, _params_but_gamma(path.candidates)


@lru_cache(maxsize=1024)  # the paths of a grid are the same for every split of all datasets
def _params_but_gamma(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(tuple(pair for pair in candidate.params if pair[0] != "gamma")) for candidate in candidates
    )


def _takes_grid(arm: Arm, protocol: Protocol, path: Path) -> bool:
    kind, _ = estimator_class(arm.target)
    whole = takes_whole_path(arm, protocol, path.candidates[0])
    # A class with a fit_path of its own does otherwise than the grid of the class that it derives from.
    return whole and hasattr(kind, "path_grid") and place_of(kind, "path_grid") <= place_of(kind, "fit_path")


def train_grid(task: GridTask) -> Columns | None:
    """Train the paths and return their rows, in order; None if one failed, for then each is on its own."""
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
    kind, _ = estimator_class(task.arm.target)
    estimators = [
        make_estimator(task.arm, task.protocol, path.candidates[0], path.seed, override)
        for path, override in zip(task.paths, task.overrides, strict=True)
    ]
    Cs = [candidate.value(PATH_PARAM) for candidate in task.paths[0].candidates]
    spent: Counter[str] = Counter()  # seconds
    labels, timer = [], Timer()
    grid = kind.path_grid(estimators, task.gram.y_train, Cs)
    spent.update(timer.columns("fit"))
    gammas = [gamma_of(task.arm, path.candidates[0]) for path in task.paths]
    options = unchecked(type(grid).fit) if all(map(task.gram.is_finite, gammas)) else {}
    for start in range(0, len(gammas), task.gram.at_once):
        split = task.gram.splits(gammas[start : start + task.gram.at_once])
        spent.update(timer.columns("gram"))
        grid.fit(fresh_view(split.X_train), **options)
        spent.update(timer.columns("fit"))
        labels.extend(grid.predict(fresh_view(split.X_test)))
        spent.update(timer.columns("predict"))
    fitted = grid.fitted()
    spent.update(timer.columns("fit"))
    fit, predict = ({name: spent[name] for name in spent if name.startswith(of)} for of in ("fit", "predict"))
    columns = columns_of_trainings(split, fitted, np.concatenate(labels), fit, predict)
    n = len(columns.pop("predicted"))  # which are kept of refits only
    return columns | repeated({"gram_seconds": spent["gram_seconds"] / n}, n)
