"""No search: every candidate is trained on each outer split, and none is selected."""

import math
from collections.abc import Sequence

from orchestrator.search.search import Selection
from orchestrator.search.space import Space
from orchestrator.study.study import Candidate
from orchestrator.study.trials import REFIT


class EveryCandidate:
    """All candidates of a space on one outer split, without a winner.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.

    Attributes
    ----------
    selection : Selection
        Selection of no candidate, because scores on test rows select none.
    """

    def __init__(self, space: Space):
        candidates = [space.candidate(point) for point in space.points()]
        self.selection = Selection(None, math.nan, 0, len(candidates), 0)
        self._unasked = candidates
        self._awaited = set(candidates)

    @property
    def done(self) -> bool:
        """Whether all trainings are finished."""
        return not self._awaited

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return the outer split with all candidates; an empty list from the second call on."""
        candidates, self._unasked = self._unasked, []
        return [([REFIT], candidates)] if candidates else []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report that a training is finished; a repeated report has no effect.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        split : int
            -1, the outer split.
        score : float
            Not used, because no candidate is selected.
        """
        self._awaited.discard(candidate)

    def scores(self, candidate: Candidate) -> list[float]:
        """Return an empty list, because there are no inner splits.

        Parameters
        ----------
        candidate : Candidate
            Not used.
        """
        return []
