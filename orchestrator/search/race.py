"""Racing grid search: a candidate is not trained on further splits once it cannot win.

A candidate has scores on some inner splits. On each other split, its score is at most the highest value of
the metric. If the mean of these values is below the mean of a candidate that is known on all splits, the
former cannot win. The races of Maron and Moore (NIPS 1994) drop candidates by a statistical bound; this race
always selects the same candidate as the grid.
"""

import numpy as np

from orchestrator.search.rounds import Rounds
from orchestrator.search.search import SCORE_DECIMALS
from orchestrator.search.space import Space
from orchestrator.study.study import Candidate

TIE = 2.0 * 10.0**-SCORE_DECIMALS
"""Difference of means below which two candidates may count as tied."""

LEADERS = 0.15
"""Share of the candidates that form the leading group, which is trained first; at least one candidate.

A smaller share saves a few trainings but needs more rounds, and each round waits for its last training.
"""


class Race(Rounds):
    """Proposals of candidates and inner splits in rounds, until the winner of the grid is certain.

    The candidate in the middle of the grid is trained first, on all splits. All others follow on the split on
    which it scored lowest. Then the leading candidates are trained on one split after another. When none of
    them remains, every other candidate that can still win is trained on one more split. The next split is
    always the one on which the lowest score is expected, so that a candidate is dropped early.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    n_splits : int
        Number of inner splits.
    highest : float
        Upper bound of the scores. If a score exceeds it, all candidates are trained on all splits.
    together : bool
        Whether candidates that differ only in C are trained together, as paths with warm starts.

    Attributes
    ----------
    done : bool
        Whether no remaining candidate can win.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """

    def __init__(self, space: Space, n_splits: int, highest: float, together: bool):
        super().__init__(space, n_splits, together)
        self._highest = highest

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report a score; a score above the upper bound turns the race into a full grid.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        split : int
            Inner split, from 0.
        score : float
            Score; nan for a failure.

        Raises
        ------
        ValueError
            If the candidate was not proposed on this split.
        """
        if score > self._highest:
            self._highest = np.inf
        super().tell(candidate, split, score)

    def _first_round(self) -> list[tuple[int, int]]:
        """Return the middle unit of the grid on every split."""
        return [(self._middle_unit(), split) for split in range(self._scores.shape[1])]

    def _next_round(self) -> list[tuple[int, int]]:
        """Return the units of candidates and splits to train next; empty if the winner is certain."""
        failed = self._failed()
        complete = self._reported.all(axis=1) & ~failed
        ease = self._ease(complete)
        untrained = [unit for unit, indices in enumerate(self._units) if not self._reported[indices].any()]
        if untrained:
            return [(unit, int(ease.argmin())) for unit in untrained]
        bounds = np.where(self._reported, self._scores, self._highest).mean(axis=1)
        best = bounds[complete].max(initial=-np.inf) - TIE
        # A bound is nan if a candidate has infinite scores of both signs; such a candidate stays eligible.
        eligible = ~self._reported.all(axis=1) & ~failed & ~(bounds < best)
        # Expected mean of a candidate, from the splits on which its score is known.
        level = (self._scores - ease).mean(axis=1, where=self._reported)
        levels = {
            unit: level[indices[eligible[indices]]].max()
            for unit, indices in enumerate(self._units)
            if eligible[indices].any()
        }
        leaders = sorted((unit for unit in levels if levels[unit] >= best), key=lambda unit: -levels[unit])
        chosen = leaders[: max(1, int(LEADERS * len(self._units)))] or list(levels)
        return [(unit, min(self._open_splits(unit), key=lambda split: ease[split])) for unit in chosen]

    def _ease(self, complete: np.ndarray) -> np.ndarray:
        """Return by how much the scores on each split exceed the mean over splits, on average.

        Parameters
        ----------
        complete : bool array, shape (n_candidates,)
            Candidates with scores on all splits.
        """
        scores = self._scores[complete]
        return (scores - scores.mean(axis=1, keepdims=True)).sum(axis=0) / max(1, len(scores))

    def _open_splits(self, unit: int) -> list[int]:
        """Return the splits on which a unit has no scores.

        Parameters
        ----------
        unit : int
            Index of the unit of candidates.
        """
        return np.flatnonzero(~self._reported[self._units[unit][0]]).tolist()
