"""The rule by which a search's winner is chosen, the same for every search."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.search.space import Point, Space
from orchestrator.study.study import Candidate

SCORE_DECIMALS = 12
"""Scores equal to this many decimals are ties: means of the same counts differ by round-off."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a search chose, and how clear the choice was.

    Attributes
    ----------
    best : Candidate or None
        The winner; None if every candidate failed.
    score : float
        Its score, not rounded; nan if every candidate failed.
    n_tied : int
        Candidates that share the best score, the winner included; 0 if every candidate failed.
    n_candidates : int
        Candidates evaluated.
    n_failed : int
        Those among them without a score.
    """

    best: Candidate | None
    score: float
    n_tied: int
    n_candidates: int
    n_failed: int


def comparable(score: float) -> float:
    """Return a score as searches compare it: rounded, and below all others for a failure (nan)."""
    return -math.inf if math.isnan(score) else round(score, SCORE_DECIMALS)


def select(space: Space, scores: Mapping[Point, float]) -> Selection:
    """Choose the highest score; ties go to the smaller value of the first parameter, then of the next.

    Of values that are not all numbers the one listed first counts as the smallest.

    Parameters
    ----------
    space : Space
    scores : mapping of point to float
        The mean inner score of each evaluated point; nan for a failed one, which never wins.
    """
    valid = {point: comparable(score) for point, score in scores.items() if not math.isnan(score)}
    n_failed = len(scores) - len(valid)
    if not valid:
        return Selection(None, math.nan, 0, len(scores), n_failed)
    highest = max(valid.values())
    tied = [point for point, score in valid.items() if score == highest]
    # A point is a tuple of positions on axes that ascend, or are in declared order: the smallest tuple wins.
    winner = min(tied)
    return Selection(space.candidate(winner), scores[winner], len(tied), len(scores), n_failed)
