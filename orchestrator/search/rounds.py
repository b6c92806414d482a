"""Base class of the races: rounds of candidates on inner splits, and the scores reported so far."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from orchestrator.search.search import Selection, select
from orchestrator.search.space import Space
from orchestrator.study.study import Candidate
from orchestrator.study.trials import candidates_by_path


class Rounds(ABC):
    """Proposals of candidates and inner splits in rounds; each round depends on the scores of earlier ones.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    n_splits : int
        Number of inner splits.
    together : bool
        Whether candidates that differ only in C are trained together, as paths with warm starts.

    Attributes
    ----------
    done : bool
        Whether the search needs no further score.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """

    def __init__(self, space: Space, n_splits: int, together: bool):
        space.require_lists("race")
        self._space = space
        self._points = space.points()
        self._candidates = list(map(space.candidate, self._points))
        self._index = {candidate: index for index, candidate in enumerate(self._candidates)}
        paths = candidates_by_path(self._candidates) if together else [(each,) for each in self._candidates]
        self._units = [np.array([self._index[each] for each in path]) for path in paths]
        self._scores = np.full((len(self._points), n_splits), np.nan)
        self._reported = np.zeros(self._scores.shape, dtype=bool)
        self._asked = np.zeros(self._scores.shape, dtype=bool)
        self._n_awaited = 0
        self._unasked = self._first_round()
        self.done = False

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return pairs of inner splits and the new candidates to train on them."""
        asked: dict[int, list[Candidate]] = {}
        for unit, split in self._unasked:
            asked.setdefault(split, []).extend(self._candidates[index] for index in self._units[unit])
            self._asked[self._units[unit], split] = True
            self._n_awaited += len(self._units[unit])
        self._unasked = []
        return [([split], candidates) for split, candidates in sorted(asked.items())]

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report a score; the next round starts when all scores of this one are reported.

        A repeated report has no effect.

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
        index = self._index[candidate]
        if not self._asked[index, split]:
            raise ValueError(
                f"expected a score that was asked for, found a score of {candidate} on split {split}"
            )
        if self._reported[index, split]:
            return
        self._scores[index, split], self._reported[index, split] = score, True
        self._n_awaited -= 1
        if not self._n_awaited and not self._unasked:
            self._unasked = self._next_round()
            self.done = not self._unasked

    @property
    def selection(self) -> Selection:
        """The winner among the candidates that are known on all splits.

        A candidate counts as failed only if it failed on a split on which it was trained.

        Raises
        ------
        RuntimeError
            If scores are missing.
        """
        if not self.done:
            raise RuntimeError("the search is not done; report the scores of all candidates it asked for")
        failed = self._failed()
        known = np.flatnonzero(self._reported.all(axis=1) | failed)
        means = {self._points[index]: float(np.mean(self._scores[index])) for index in known}
        chosen = select(self._space, means)
        return Selection(chosen.best, chosen.score, chosen.n_tied, len(self._points), chosen.n_failed)

    def scores(self, candidate: Candidate) -> Sequence[float]:
        """Return the scores of a candidate on all inner splits, shape (n_splits,).

        Parameters
        ----------
        candidate : Candidate
            Candidate of the space.
        """
        return self._scores[self._index[candidate]]

    def _failed(self) -> np.ndarray:
        """Return a mask of the candidates that failed on at least one split."""
        return np.isnan(self._scores).any(axis=1, where=self._reported)

    def _middle_unit(self) -> int:
        """Return the unit of candidates in the middle of the grid."""
        middle = self._points.index(tuple(size // 2 for size in self._space.shape))
        return next(unit for unit, indices in enumerate(self._units) if middle in indices)

    @abstractmethod
    def _first_round(self) -> list[tuple[int, int]]:
        """Return the units of candidates and splits to train first."""

    @abstractmethod
    def _next_round(self) -> list[tuple[int, int]]:
        """Return the units of candidates and splits to train next; empty if the search is finished."""
