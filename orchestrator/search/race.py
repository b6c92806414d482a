"""Racing grid search: no candidate is trained on further splits once it can win no more.

Each candidate has a score on some inner splits, and at most the highest value of the metric on the others. As
soon as the mean of these is below the mean of a candidate that is known on all of them, nothing that is left
to train can change the selection. Unlike the races of Maron and Moore (NIPS 1994), which leave candidates out
by a statistical bound, this one selects what the grid selects.
"""

import numpy as np

from orchestrator.search.rounds import Rounds
from orchestrator.search.selection import SCORE_DECIMALS
from orchestrator.search.space import Space
from orchestrator.study.study import Candidate

TIE = 2.0 * 10.0**-SCORE_DECIMALS
"""Means that differ by less may count as equal."""

LEADERS = 0.15
"""Of the candidates, those that may lead and go on before the others; one at least.

With fewer a race trains a little less, and takes more rounds, each of which waits for its last training.
"""

_BOUNDED_BY_ONE = (
    "accuracy", "average_precision", "balanced_accuracy", "d2_brier_score", "d2_log_loss_score", "f1",
    "jaccard", "matthews_corrcoef", "precision", "recall", "roc_auc", "top_k_accuracy",
)  # fmt: skip


def highest_score(metric: str) -> float | None:
    """Return the highest value of one of scikit-learn's scorers; None where it is not known."""
    if metric.startswith("neg_"):  # what is negated is an error, or another number that is not negative
        return 0.0
    return 1.0 if metric.startswith(_BOUNDED_BY_ONE) else None


class Race(Rounds):
    """Propose candidates and inner splits in rounds, until the winner of the grid is certain.

    The candidate in the middle of the grid goes first, on all splits. All others follow on the split that it
    found hardest. From then on those that may be the best are trained on one split after the other, and when
    none is left, each of the others on one more, if it can still win; always on the split on which the
    candidate is expected to do worst, so that it leaves soon.

    Parameters
    ----------
    space : Space
    n_splits : int
        Number of inner splits.
    highest : float
        No score is higher; if one is, all candidates are trained on all splits.
    together : bool
        Whether candidates that differ only in C are trained together, as paths with warm starts are.

    Attributes
    ----------
    done : bool
        Whether no candidate that is left can win.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """

    def __init__(self, space: Space, n_splits: int, highest: float, together: bool):
        super().__init__(space, n_splits, together)
        self._highest = highest

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report a score, as in `Rounds`; one above the highest makes the race a whole grid."""
        if score > self._highest:
            self._highest = np.inf
        super().tell(candidate, split, score)

    def _first_round(self) -> list[tuple[int, int]]:
        return [(self._middle_unit(), split) for split in range(self._scores.shape[1])]

    def _next_round(self) -> list[tuple[int, int]]:
        """Return what to train next; nothing if the winner is certain."""
        failed = self._failed()
        complete = self._told.all(axis=1) & ~failed
        ease = self._ease(complete)
        if untried := [unit for unit, indices in enumerate(self._units) if not self._told[indices].any()]:
            return [(unit, int(ease.argmin())) for unit in untried]
        most = np.where(self._told, self._scores, self._highest).mean(axis=1)
        best = most[complete].max(initial=-np.inf) - TIE
        able = ~self._told.all(axis=1) & ~failed & ~(most < best)  # nan: infinite scores of both signs
        # The mean that a candidate is expected to have, from the splits where it is known.
        level = (self._scores - ease).mean(axis=1, where=self._told)
        levels = {
            unit: level[indices[able[indices]]].max()
            for unit, indices in enumerate(self._units)
            if able[indices].any()
        }
        leaders = sorted((unit for unit in levels if levels[unit] >= best), key=lambda unit: -levels[unit])
        some = leaders[: max(1, int(LEADERS * len(self._units)))] or list(levels)
        return [(unit, min(self._open_splits(unit), key=lambda split: ease[split])) for unit in some]

    def _ease(self, complete: np.ndarray) -> np.ndarray:
        """Return by how much the scores on each split exceed the means of the candidates known on all."""
        scores = self._scores[complete]
        return (scores - scores.mean(axis=1, keepdims=True)).sum(axis=0) / max(1, len(scores))

    def _open_splits(self, unit: int) -> list[int]:
        return np.flatnonzero(~self._told[self._units[unit][0]]).tolist()
