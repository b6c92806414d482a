"""No search: trainings drawn from those of a finished study, and the refits of its selections."""

import math
from collections.abc import Iterable, Sequence

from orchestrator.search.search import Selection
from orchestrator.study.sample import Cell, Stratum, declared_refits, declared_strata
from orchestrator.study.study import Candidate, SearchSpec
from orchestrator.study.values import digest


def draw(dataset: str, candidate: Candidate, cells: Iterable[Cell], folds: int, seed: int) -> Stratum:
    """Draw inner trainings of a candidate without replacement.

    The cells are ordered by a hash that does not depend on the arm, and the first ones are drawn. So arms
    with the same candidates are measured on the same cells, and a larger sample contains a smaller one.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    candidate : Candidate
        Hyper-parameters of the trainings.
    cells : iterable of (int, int)
        Outer and inner split of each of its trainings in the source study.
    folds : int
        Number of trainings to draw. All are drawn if there are fewer.
    seed : int
        Seed of the draw.
    """
    known = sorted(set(cells), key=lambda cell: digest([seed, dataset, candidate.text, *cell]))
    return Stratum(candidate, len(known), tuple(sorted(known[:folds])))


class DrawnCells:
    """Given trainings on the inner splits of one outer split, and a given winner.

    Parameters
    ----------
    search : SearchSpec
        Search that measures a sample.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    outer : int
        Index of the outer split.

    Attributes
    ----------
    selection : Selection
        The candidate that the source study has selected. It is known before the trainings.
    """

    def __init__(self, search: SearchSpec, dataset: str, arm: str, outer: int):
        best = dict(enumerate(declared_refits(search, dataset, arm))).get(outer)
        self.selection = Selection(best, math.nan, 0, 0, 0)
        self._unasked: dict[int, list[Candidate]] = {}
        for stratum in declared_strata(search, dataset, arm):
            for known, inner in stratum.cells:
                if known == outer:
                    self._unasked.setdefault(inner, []).append(stratum.candidate)
        self._awaited = {
            (candidate, inner) for inner, candidates in self._unasked.items() for candidate in candidates
        }

    @property
    def done(self) -> bool:
        """Whether all trainings on inner splits are finished."""
        return not self._awaited

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return pairs of an inner split and the candidates to train on it; empty from the second call on."""
        asked = sorted(self._unasked.items())
        self._unasked = {}
        return [([inner], candidates) for inner, candidates in asked]

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report that a training is finished; a repeated report has no effect.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        split : int
            Inner split, from 0.
        score : float
            Not used, because the winner is given.
        """
        self._awaited.discard((candidate, split))

    def scores(self, candidate: Candidate) -> list[float]:
        """Return an empty list, because the winner was not selected by these trainings.

        Parameters
        ----------
        candidate : Candidate
            Not used.
        """
        return []
