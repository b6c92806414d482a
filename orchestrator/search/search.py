"""The ask/tell interface of every search, the rule that chooses its winner, and the search of a grid."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

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


Plan = Callable[[Space, Mapping[Point, float]], Iterator[list[Point] | None]]
"""A search written as a generator: it yields the points of a step, and is resumed when all have a score.

Its second argument contains every score reported so far (nan for a failure), by point. A step may contain
points with a known score; they are not evaluated again. A yielded None means that the next step is unknown.
"""


class Search:
    """Search that proposes candidates and receives their scores.

    A step is complete when the scores of all its candidates are reported; only then does the plan continue.
    The proposals therefore depend on the scores, but not on the order of their arrival.

    Parameters
    ----------
    space : Space
        Space of the candidates.
    plan : Plan
        Generator function that decides what to evaluate next.

    Attributes
    ----------
    done : bool
        Whether the search needs no further score.
    rounds : list of list of Candidate
        Proposed candidates, by step.
    """

    def __init__(self, space: Space, plan: Plan):
        self.space = space
        self._scores: dict[Point, float] = {}
        self._asked: dict[Candidate, Point] = {}
        self._unasked: list[Point] = []
        self._awaited: set[Point] = set()
        self.done = False
        self.rounds: list[list[Candidate]] = []
        self._steps = plan(space, MappingProxyType(self._scores))
        self._advance()

    def ask(self) -> list[Candidate]:
        """Return the new candidates to evaluate; empty while scores are awaited."""
        candidates = [self.space.candidate(point) for point in self._unasked]
        self._asked.update(zip(candidates, self._unasked, strict=True))
        self._unasked = []
        return candidates

    def tell(self, candidate: Candidate, score: float) -> None:
        """Report the score of a candidate; a repeated report has no effect.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        score : float
            Score; nan for a failure.

        Raises
        ------
        ValueError
            If the candidate was not proposed, or has another score.
        """
        point = self._asked.get(candidate)
        if point is None:
            raise ValueError(f"expected the score of a candidate that was asked for, found {candidate}")
        score = float(score)
        known = self._scores.get(point)
        if known is not None:
            if known != score and not (math.isnan(known) and math.isnan(score)):
                raise ValueError(f"candidate {candidate} has two scores, {known!r} and {score!r}")
            return
        self._scores[point] = score
        self._awaited.remove(point)
        if not self._awaited:
            self._advance()

    @cached_property
    def selection(self) -> Selection:
        """The winner.

        Raises
        ------
        RuntimeError
            If scores are missing.
        """
        if not self.done:
            raise RuntimeError("the search is not done; report the scores of all candidates it asked for")
        return select(self.space, self._scores)

    def _advance(self) -> None:
        """Run the plan until a step has candidates without a score, or the plan ends."""
        for step in self._steps:
            if step is None:
                return
            self.rounds.append(list(map(self.space.candidate, step)))
            self._unasked = [point for point in dict.fromkeys(step) if point not in self._scores]
            self._awaited = set(self._unasked)
            if self._awaited:
                return
        self.done = True


def grid_plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Yield every point of the space in one step.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    scores : mapping of point to float
        Scores, which this search does not use.

    Yields
    ------
    list of point
        All points.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """
    space.require_lists("grid")
    yield space.points()
