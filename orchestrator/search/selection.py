"""Rule that chooses the winner of every search."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.search.space import Point, Space
from orchestrator.study.study import Candidate

SCORE_DECIMALS = 12
"""Number of decimals to which scores are compared: means of equal counts differ by rounding errors."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Result of a search.

    Attributes
    ----------
    best : Candidate or None
        Winner; None if every candidate failed.
    score : float
        Its score, not rounded; nan if every candidate failed.
    n_tied : int
        Number of candidates with the best score, the winner included; 0 if every candidate failed.
    n_candidates : int
        Number of evaluated candidates.
    n_failed : int
        Number of candidates without a score.
    """

    best: Candidate | None
    score: float
    n_tied: int
    n_candidates: int
    n_failed: int


def comparable(score: float) -> float:
    """Return a score for comparison: rounded, and -inf for a failure.

    Parameters
    ----------
    score : float
        Score; nan for a failure.
    """
    return -math.inf if math.isnan(score) else round(score, SCORE_DECIMALS)


def select(space: Space, scores: Mapping[Point, float]) -> Selection:
    """Choose the highest score; ties go to the smaller value of the first parameter, then of the next.

    On an axis with values other than numbers, the value listed first counts as the smallest.

    Parameters
    ----------
    space : Space
        Space of the points.
    scores : mapping of point to float
        Mean inner score of each evaluated point; nan for a failure, which never wins.
    """
    valid = {point: comparable(score) for point, score in scores.items() if not math.isnan(score)}
    n_failed = len(scores) - len(valid)
    if not valid:
        return Selection(None, math.nan, 0, len(scores), n_failed)
    highest = max(valid.values())
    tied = [point for point, score in valid.items() if score == highest]
    # A point is a tuple of indices on axes in ascending or declared order, so the smallest tuple wins.
    winner = min(tied)
    return Selection(space.candidate(winner), scores[winner], len(tied), len(scores), n_failed)
