"""A search whose candidates are evaluated on all inner splits of an outer one."""

from collections.abc import Sequence

import numpy as np

from orchestrator.search.search import Search
from orchestrator.search.selection import Selection
from orchestrator.study.study import Candidate


class EverySplit:
    """Evaluate each candidate that a search proposes on every inner split, and tell it the mean.

    Parameters
    ----------
    search : Search
    n_splits : int
        Number of inner splits.
    """

    def __init__(self, search: Search, n_splits: int):
        self.search = search
        self._n_splits = n_splits
        self._scores: dict[Candidate, list[float | None]] = {}

    @property
    def done(self) -> bool:
        """Whether every score that the search wants is told."""
        return self.search.done

    @property
    def selection(self) -> Selection:
        """The winner; RuntimeError while scores are missing."""
        return self.search.selection

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return inner splits, and the candidates to train on them that were not returned before."""
        candidates = self.search.ask()
        self._scores |= {candidate: [None] * self._n_splits for candidate in candidates}
        return [(range(self._n_splits), candidates)] if candidates else []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report a score, nan for a failure."""
        scores = self._scores[candidate]
        scores[split] = score
        if None not in scores:
            # A candidate that failed on any split cannot be compared: its mean is nan.
            # The sum is that of `np.mean`, which takes five times as long for a few numbers.
            self.search.tell(candidate, float(np.add.reduce(scores) / len(scores)))  # type: ignore[arg-type]

    def scores(self, candidate: Candidate) -> list[float]:
        """Return the scores of a candidate on all inner splits."""
        return self._scores[candidate]  # type: ignore[return-value]
