"""What a run would do and what is left of one: counts and costs, without training anything."""

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
    """One dataset × arm: trainings in all (at most, unless the search is a grid), those stored, and cost."""

    dataset: str
    solver: str
    planned: int
    stored: int
    failed: int
    seconds_left: float

    @property
    def left(self) -> int:
        """Trainings still to run."""
        return max(0, self.planned - self.stored)


def plan(
    prepared: PreparedStudy, stored: Mapping[str, StoredTrial], seconds: Mapping[Any, float]
) -> list[PlanLine]:
    """Tell what a run would train.

    Parameters
    ----------
    prepared : PreparedStudy
    stored : mapping of key to StoredTrial
    seconds : mapping of (dataset, arm) to float
        Mean seconds of its stored trainings, where there are any; the cost model guesses the others.

    Returns
    -------
    list of PlanLine
    """
    costs = CostModel(prepared.shapes, typical_factors(prepared.study.arms, prepared.study.protocol))
    lines = []
    for pair, identity in prepared.identities.items():
        state = replay_pair(identity, prepared.study.search, stored)
        mean = seconds.get(pair, costs.training_seconds(*pair, False))
        lines.append(_line(pair, state.planned, len(state.keys), state.failed, mean))
    return lines


def remaining(overview: Overview) -> list[PlanLine]:
    """Tell how far each dataset × arm of a stored study is, and what is left at its mean cost so far."""
    means = {pair: state.seconds / state.stored for pair, state in overview.pairs.items() if state.stored}
    overall = sum(means.values()) / len(means) if means else 0.0
    return [
        _line(pair, state.planned, state.stored, state.failed, means.get(pair, overall))
        for pair, state in overview.pairs.items()
    ]


def _line(pair: Pair, planned: int, stored: int, failed: int, mean: float) -> PlanLine:
    return PlanLine(*pair, planned, stored, failed, seconds_left=mean * (planned - stored))


def mean_seconds(trials: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the mean seconds of a training and its evaluation, by dataset × arm."""
    if trials.empty:
        return {}
    seconds = trials["fit_seconds"].fillna(0.0) + trials["predict_seconds"].fillna(0.0)
    means = seconds.groupby([trials["dataset"], trials["solver"]]).mean()
    return cast(dict[tuple[str, str], float], means.to_dict())
