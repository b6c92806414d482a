"""Statistical race: a paired test drops candidates, and a budget of trainings drops further ones.

The race combines F-race (Birattari et al., GECCO 2002) and successive halving (Jamieson and Talwalkar,
AISTATS 2016). It does not always select the same candidate as the grid.
"""

import math
from fractions import Fraction

import numpy as np

from orchestrator.search.rounds import Rounds
from orchestrator.search.search import SCORE_DECIMALS
from orchestrator.search.space import Space

STATISTICAL = "statistical"
"""Value of the option `mode` for this race."""

DEFAULTS = {"level": 0.2, "share": 0.35}
"""Default options. They are stored with a study, so that a later change does not affect its selections."""

_SCOUT_SHARE = 0.05
"""Largest share of the grid's trainings that is used to order the splits."""

_MAX_ROWS = 2**26
"""Largest number of test rows of a split that `rows_of` can infer from the scores.

Fractions with such denominators differ by at least 2⁻⁵², more than the rounding of a score.
"""

_MAX_EXACT = 200
"""Largest number of throws for which the probability is computed exactly."""


class StatisticalRace(Rounds):
    """Race that trains all candidates on one inner split, and the remaining ones on each further split.

    If it costs few trainings, the candidate in the middle of the grid is trained first, on all splits. All
    candidates then start with the split on which it scored lowest; the split with the next lowest score is
    second, and so on.

    Before each further split, the remaining candidates are compared with the leader, which has the highest
    mean so far. The comparison is a sign test, paired over test rows and splits. If the metric is the
    accuracy, the units are the test rows on which exactly one of the two is right. Scores reveal only the
    number of wrong rows of each. The test therefore assumes the largest possible number of such rows, so its
    p-value is an upper bound of that of McNemar's exact test. For other metrics, the units are the splits.
    Candidates with a p-value below the level are dropped, and so are failed ones.

    The test cannot separate candidates with equal scores. The race therefore keeps only the best of the
    remaining candidates: fewer on each further split, and at least one. All trainings together stay within
    a share of the grid's.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    n_splits : int
        Number of inner splits.
    together : bool
        Whether candidates that differ only in C are trained together, as a path. A path is kept or dropped by
        its best candidate. Paths with equal best scores are ordered by their means.
    counts_rows : bool
        Whether a score is the share of rows that are right.
    level : float
        Level of each one-sided comparison, without adjustment for their number.
    share : float
        Largest share of the grid's inner trainings.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """

    def __init__(
        self, space: Space, n_splits: int, together: bool, counts_rows: bool, level: float, share: float
    ):
        super().__init__(space, n_splits, together)
        self._counts_rows, self._level = counts_rows, level
        self._max_trainings = int(share * len(self._units) * n_splits)
        self._remaining = list(range(len(self._units)))
        self._n_known = 1  # number of splits on which the remaining units are known

    def _first_round(self) -> list[tuple[int, int]]:
        """Return the middle unit on every split if that is cheap, else all units on the first split."""
        n_units, n_splits = len(self._units), self._scores.shape[1]
        self._order = list(range(n_splits))
        if n_splits - 1 > _SCOUT_SHARE * n_units * n_splits:
            return [(unit, 0) for unit in range(n_units)]
        return [(self._middle_unit(), split) for split in range(n_splits)]

    def _next_round(self) -> list[tuple[int, int]]:
        """Return the remaining units and the split to train next; empty after the last split."""
        if not self._reported.all(axis=0).any():  # only the middle unit is known
            middle = self._scores[self._units[self._middle_unit()]].mean(axis=0)
            self._order = np.argsort(middle, kind="stable").tolist()
            return self._unreported(self._remaining, self._order[0])
        if self._n_known == len(self._order):
            return []
        trained = sum(int(self._reported[indices[0]].sum()) for indices in self._units)
        # The number of units falls in equal steps, down to zero after the last split.
        n_kept = int(2 * (self._max_trainings - trained) / (len(self._order) - self._n_known + 1))
        self._remaining = self._within_level(self._order[: self._n_known])[: max(1, n_kept)]
        self._n_known += 1
        return self._unreported(self._remaining, self._order[self._n_known - 1])

    def _unreported(self, units: list[int], split: int) -> list[tuple[int, int]]:
        """Return the pairs of units and a split that have no scores.

        Parameters
        ----------
        units : list of int
            Indices of units.
        split : int
            Inner split, from 0.
        """
        return [(unit, split) for unit in units if not self._reported[self._units[unit][0], split]]

    def _within_level(self, splits: list[int]) -> list[int]:
        """Return the units that the test keeps, in order from the best.

        Parameters
        ----------
        splits : list of int
            Inner splits on which the remaining units are known.
        """
        known = self._scores[:, splits]
        means = np.where(self._failed(), -np.inf, known.mean(axis=1).round(SCORE_DECIMALS))
        best = {unit: means[self._units[unit]].max() for unit in self._remaining}
        levels = {unit: means[self._units[unit]].mean() for unit in self._remaining}
        ranked = sorted((unit for unit in best if best[unit] > -np.inf), key=lambda u: (-best[u], -levels[u]))
        if not ranked:
            return []
        leader = self._units[ranked[0]][means[self._units[ranked[0]]].argmax()]
        worse, better = self._discordant(known, leader)
        return [
            unit
            for unit in ranked
            if unit == ranked[0]  # a level above 0.5 would drop the leader, too
            or any(
                sign_test(int(better[index]), int(worse[index])) >= self._level
                for index in self._units[unit]
                if means[index] > -np.inf
            )
        ]

    def _discordant(self, known: np.ndarray, leader: int) -> tuple[np.ndarray, np.ndarray]:
        """Count the units of the test on which each candidate is worse, and better, than the leader.

        Parameters
        ----------
        known : array, shape (n_candidates, n_known_splits)
            Scores of all candidates on the splits that the remaining ones have finished.
        leader : int
            Index of the leading candidate.
        """
        if not self._counts_rows:
            return (known < known[leader]).sum(axis=1), (known > known[leader]).sum(axis=1)
        n_rows = np.array([rows_of(scores[~np.isnan(scores)]) for scores in known.T])
        wrong = np.rint((np.nan_to_num(1.0 - known) * n_rows).sum(axis=1)).astype(int)
        return wrong, np.broadcast_to(wrong[leader], wrong.shape)


def rows_of(shares: np.ndarray) -> int:
    """Return the smallest number of rows for which all shares are whole numbers of rows.

    The result is the number of test rows of the split, unless all counts share a factor with it. Then the
    result is smaller, and the test is less powerful.

    Parameters
    ----------
    shares : array
        Scores of one split, as shares of the rows.
    """
    return math.lcm(*(Fraction(share).limit_denominator(_MAX_ROWS).denominator for share in shares))


def sign_test(better: int, worse: int) -> float:
    """Return the probability of at most `better` heads in `better + worse` throws of a fair coin.

    Above `_MAX_EXACT` throws, it uses the normal approximation with continuity correction.

    Parameters
    ----------
    better, worse : int
        Numbers of heads and tails.
    """
    n = better + worse
    if n <= _MAX_EXACT:
        return sum(math.comb(n, heads) for heads in range(better + 1)) / 2**n
    return 0.5 * math.erfc((n / 2 - better - 0.5) / math.sqrt(n / 2))
