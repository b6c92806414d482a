"""Statistical race: candidates leave by a paired test, and by a share of the grid's trainings.

After F-race (Birattari et al., GECCO 2002) and successive halving (Jamieson and Talwalkar, AISTATS 2016).
What it selects need not be what the grid selects.
"""

import math
from fractions import Fraction

import numpy as np

from orchestrator.search.rounds import Rounds
from orchestrator.search.selection import SCORE_DECIMALS
from orchestrator.search.space import Space

STATISTICAL = "statistical"
"""The option `mode` of this race."""

DEFAULTS = {"level": 0.2, "share": 0.35}
"""Of the options; declared with a study, so that its selections do not change with this file."""

_SCOUT = 0.05  # Of the grid's trainings, the most that may be spent on the order of the splits
_MOST_ROWS = 10**6  # of a split, whose number is read from scores
_EXACT = 200  # the most draws of which a probability is computed term by term


class StatisticalRace(Rounds):
    """Train all candidates on one inner split, and on each further one those that are left.

    Where it costs little, the candidate in the middle of the grid goes first, on all splits, and the split
    that it finds hardest is the first for all, the next hardest the second.

    Before each further split, candidates are compared with the one that leads, the one with the highest mean
    so far, by a sign test that is paired over test rows and splits. Where the metric is the accuracy, its
    units are the test rows that one of the two gets right and the other wrong. Scores tell no more than how
    many rows each gets wrong; the test takes the largest number of such rows that is possible, which makes p
    an upper bound of that of McNemar's exact test. For other metrics its units are the splits. Candidates
    with p below a level leave, and failed ones.

    No test tells candidates apart that are equal so far, so that of those left only the best go on, fewer on
    each further split, within a share of the grid's trainings; one at least.

    Parameters
    ----------
    space : Space
    n_splits : int
        Number of inner splits.
    together : bool
        Whether candidates that differ only in C are trained together; they stay and leave together, by the
        best of them. Of paths with equal best scores those with the higher mean come first.
    counts_rows : bool
        Whether scores are shares of rows that are right.
    level : float
        Of each comparison, one-sided, without adjustment for their number.
    share : float
        Largest part of the grid's inner trainings.

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
        self._most = int(share * len(self._units) * n_splits)
        self._left = list(range(len(self._units)))
        self._n_known = 1  # splits that those left are known on

    def _first_round(self) -> list[tuple[int, int]]:
        n_units, n_splits = len(self._units), self._scores.shape[1]
        self._order = list(range(n_splits))
        if n_splits - 1 > _SCOUT * n_units * n_splits:
            return [(unit, 0) for unit in range(n_units)]
        return [(self._middle_unit(), split) for split in range(n_splits)]

    def _next_round(self) -> list[tuple[int, int]]:
        if not self._told.all(axis=0).any():  # the one in the middle only
            middle = self._scores[self._units[self._middle_unit()]].mean(axis=0)
            self._order = np.argsort(middle, kind="stable").tolist()
            return self._untold(self._left, self._order[0])
        if self._n_known == len(self._order):
            return []
        trained = sum(int(self._told[indices[0]].sum()) for indices in self._units)
        # In equal steps from one split to the next, down to none after the last.
        room = int(2 * (self._most - trained) / (len(self._order) - self._n_known + 1))
        self._left = self._within_level(self._order[: self._n_known])[: max(1, room)]
        self._n_known += 1
        return self._untold(self._left, self._order[self._n_known - 1])

    def _untold(self, units: list[int], split: int) -> list[tuple[int, int]]:
        return [(unit, split) for unit in units if not self._told[self._units[unit][0], split]]

    def _within_level(self, splits: list[int]) -> list[int]:
        """Return the units, best first, that the test leaves after some splits."""
        known = self._scores[:, splits]
        means = np.where(self._failed(), -np.inf, known.mean(axis=1).round(SCORE_DECIMALS))
        best = {unit: means[self._units[unit]].max() for unit in self._left}
        levels = {unit: means[self._units[unit]].mean() for unit in self._left}
        ranked = sorted((unit for unit in best if best[unit] > -np.inf), key=lambda u: (-best[u], -levels[u]))
        if not ranked:
            return []
        leader = self._units[ranked[0]][means[self._units[ranked[0]]].argmax()]
        worse, better = self._discordant(known, leader)
        return [
            unit
            for unit in ranked
            if any(
                sign_test(int(better[index]), int(worse[index])) >= self._level
                for index in self._units[unit]
                if means[index] > -np.inf
            )
        ]

    def _discordant(self, known: np.ndarray, leader: int) -> tuple[np.ndarray, np.ndarray]:
        """Count units of the test on which each candidate is worse than the leader, and better."""
        if not self._counts_rows:
            return (known < known[leader]).sum(axis=1), (known > known[leader]).sum(axis=1)
        n_rows = np.array([rows_of(scores[~np.isnan(scores)]) for scores in known.T])
        wrong = np.rint((np.nan_to_num(1.0 - known) * n_rows).sum(axis=1)).astype(int)
        return wrong, np.broadcast_to(wrong[leader], wrong.shape)


def rows_of(shares: np.ndarray) -> int:
    """Return the smallest number of rows of which all shares are whole numbers of rows.

    It is a split's number of test rows unless all counts share a factor with it; then it is smaller, and so
    is what a test of them finds.
    """
    return math.lcm(*(Fraction(share).limit_denominator(_MOST_ROWS).denominator for share in shares))


def sign_test(better: int, worse: int) -> float:
    """Return the probability of at most `better` heads in `better + worse` throws of a coin.

    Of more than 200 throws by the normal distribution, with correction for continuity.
    """
    n = better + worse
    if n <= _EXACT:
        return sum(math.comb(n, heads) for heads in range(better + 1)) / 2**n
    return 0.5 * math.erfc((n / 2 - better - 0.5) / math.sqrt(n / 2))
