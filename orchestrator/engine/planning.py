"""Plan a run: count its trainings and estimate their cost, without training anything."""

from __future__ import annotations  # so that `status` does not import pandas

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from orchestrator.engine.cost_model import CostModel
from orchestrator.engine.overview import Overview
from orchestrator.engine.replay import replay_pair
from orchestrator.engine.typical_costs import typical_factors
from orchestrator.study.records import StoredTrial
from orchestrator.study.trials import Pair

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.engine.prepare import PreparedStudy


@dataclass(frozen=True, slots=True)
class PlanLine:
    """Counts and remaining cost of one dataset × arm.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    solver : str
        Name of the arm.
    planned : int
        Number of trainings. It is exact for a grid and an upper bound for other searches.
    stored : int
        Number of stored trainings that count.
    failed : int
        Number of stored trainings without a score.
    seconds_left : float
        Expected seconds of the remaining trainings, on one core.
    """

    dataset: str
    solver: str
    planned: int
    stored: int
    failed: int
    seconds_left: float

    @property
    def left(self) -> int:
        """Number of trainings still to run."""
        return max(0, self.planned - self.stored)


def plan(
    prepared: PreparedStudy, stored: Mapping[str, StoredTrial], seconds: Mapping[Any, float]
) -> list[PlanLine]:
    """Return the trainings of a run, by dataset × arm.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    stored : mapping of str to StoredTrial
        The stored trials, by key.
    seconds : mapping of object to float
        Mean seconds of stored trainings, by dataset × arm. The cost model estimates missing pairs.

    Returns
    -------
    list of PlanLine
        One line for each dataset × arm.
    """
    costs = CostModel(prepared.shapes, typical_factors(prepared.study.arms, prepared.study.protocol))
    lines = []
    for pair, identity in prepared.identities.items():
        state = replay_pair(identity, prepared.study.search, stored)
        mean = seconds.get(pair, costs.training_seconds(*pair, False))
        lines.append(_line(pair, state.planned, len(state.keys), state.failed, mean))
    return lines


def remaining(overview: Overview) -> list[PlanLine]:
    """Return the remaining trainings of a stored study, at the mean cost of the stored ones.

    Parameters
    ----------
    overview : Overview
        State of each dataset × arm.

    Returns
    -------
    list of PlanLine
        One line for each dataset × arm.
    """
    means = {pair: state.seconds / state.stored for pair, state in overview.pairs.items() if state.stored}
    overall = sum(means.values()) / len(means) if means else 0.0
    return [
        _line(pair, state.planned, state.stored, state.failed, means.get(pair, overall))
        for pair, state in overview.pairs.items()
    ]


def _line(pair: Pair, planned: int, stored: int, failed: int, mean: float) -> PlanLine:
    """Return the line of a dataset × arm.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    planned : int
        Number of trainings.
    stored : int
        Number of stored trainings.
    failed : int
        Number of stored trainings without a score.
    mean : float
        Mean seconds of a training.

    Returns
    -------
    PlanLine
        Planned and stored trials, with their expected cost.
    """
    return PlanLine(*pair, planned, stored, failed, seconds_left=mean * (planned - stored))


def mean_seconds(trials: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the mean seconds of a training, its preparation and its evaluation, by dataset × arm.

    Parameters
    ----------
    trials : DataFrame
        Trials with the columns `dataset`, `solver`, `fit_seconds`, `predict_seconds` and `prepare_seconds`.

    Returns
    -------
    dict of (str, str) to float
        Seconds.
    """
    if trials.empty:
        return {}
    columns = ("fit_seconds", "predict_seconds", "prepare_seconds")  # older trials have no preparation
    seconds = trials[[name for name in columns if name in trials]].sum(axis=1)
    means = seconds.groupby([trials["dataset"], trials["solver"]]).mean()
    return cast(dict[tuple[str, str], float], means.to_dict())
