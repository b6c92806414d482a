"""No search: every candidate is trained on each outer split, and none is selected."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.search.search import Selection
from orchestrator.search.space import Space
from orchestrator.study.study import PATH_PARAM, Candidate
from orchestrator.study.trials import REFIT
from orchestrator.study.values import is_number

MAX_TIMEOUTS = 2
"""Number of trainings of one group that reach the time limit, after which larger values of C are not run."""


class EveryCandidate:
    """All candidates of a space on one outer split, without a winner.

    With a time limit, candidates that differ only in C form a group. A candidate is skipped if the trainings
    of `MAX_TIMEOUTS` candidates of its group with a smaller C have reached the limit. Which candidates are
    skipped depends on these outcomes only, and not on the order in which trainings end.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    is_limited : bool
        Whether trainings have a time limit and are trained one by one, so that candidates may be skipped.

    Attributes
    ----------
    selection : Selection
        Selection of no candidate, because scores on test rows select none.
    """

    def __init__(self, space: Space, is_limited: bool = False):
        candidates = [space.candidate(point) for point in space.points()]
        self.selection = Selection(None, math.nan, 0, len(candidates), 0)
        self._awaited = set(candidates)
        self._timeouts: set[Candidate] = set()
        self._unasked = groups_by_C(candidates) if is_limited else []
        self._at_once = [] if is_limited else candidates
        self._asked: list[list[Candidate]] = [[] for _ in self._unasked]

    @property
    def done(self) -> bool:
        """Whether all trainings are finished."""
        return not self._awaited

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return the outer split with the candidates whose fate is known: to train, or to skip."""
        candidates, self._at_once = self._at_once, []
        for asked, unasked in zip(self._asked, self._unasked, strict=True):
            while unasked and (self._stopped(asked) or self._may_all_time_out(asked)):
                asked.append(unasked.pop(0))
                candidates.append(asked[-1])
        return [([REFIT], candidates)] if candidates else []

    def skips(self, candidate: Candidate) -> bool:
        """Return whether a candidate of `ask` is not trained, because smaller values of C took too long.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        """
        for asked in self._asked:
            if candidate in asked:
                return self._stopped(asked[: asked.index(candidate)])
        return False

    def _stopped(self, smaller: Iterable[Candidate]) -> bool:
        """Return whether enough trainings have reached the time limit.

        Parameters
        ----------
        smaller : iterable of Candidate
            Candidates of a group with smaller values of C.
        """
        return sum(each in self._timeouts for each in smaller) >= MAX_TIMEOUTS

    def _may_all_time_out(self, asked: Sequence[Candidate]) -> bool:
        """Return whether the next candidate is trained even if all trainings under way reach the limit.

        Parameters
        ----------
        asked : sequence of Candidate
            Candidates of a group that were asked.
        """
        return sum(each in self._timeouts or each in self._awaited for each in asked) < MAX_TIMEOUTS

    def timed_out(self, candidate: Candidate) -> None:
        """Report that a training has reached the time limit, before `tell`.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        """
        self._timeouts.add(candidate)

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


def groups_by_C(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Group candidates that differ only in C, or in the C of one step of a pipeline, in ascending order.

    Parameters
    ----------
    candidates : iterable of Candidate
        Points of a space.

    Returns
    -------
    list of list of Candidate
        Groups in the order of their first candidates. A candidate without a numeric C is a group by itself,
        and so is one with several.
    """
    groups: dict[object, list[tuple[float, Candidate]]] = {}
    for candidate in candidates:
        names = [name for name, _ in candidate.params if name.rpartition("__")[2] == PATH_PARAM]
        C: Any = candidate.value(names[0], None) if len(names) == 1 else None
        if not is_number(C):
            groups[candidate] = [(0.0, candidate)]
            continue
        others = tuple((name, repr(value)) for name, value in candidate.params if name != names[0])
        groups.setdefault(others, []).append((float(C), candidate))
    return [[each for _, each in sorted(group, key=lambda pair: pair[0])] for group in groups.values()]
