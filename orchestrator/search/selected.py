"""No search: the candidate that another study has selected, which goes to the refit at once."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.search.selection import Selection
from orchestrator.study.study import CANDIDATES, Arm, Candidate, SearchSpec

_Params = Mapping[str, Any]


def selected_params(search: SearchSpec, dataset: str, arm: Arm) -> _Params | None:
    """Return what a search that takes another study's selections holds for an arm; None if nothing.

    That is what the arm named by the option `arm` has selected, else the arm of the same name, else that of
    the same solver.
    """
    of_dataset: Mapping[str, _Params] = search.options.get(CANDIDATES, {}).get(dataset, {})
    names = [search.options["arm"]] if search.options.get("arm") else [arm.name, arm.solver]
    return next((of_dataset[name] for name in names if name in of_dataset), None)


class SelectedBefore:
    """A search that is done before it begins, and asks for no inner training.

    Parameters
    ----------
    params : mapping
        The candidate's.
    """

    done = True

    def __init__(self, params: _Params):
        self.selection = Selection(Candidate.of(params), math.nan, 0, 0, 0)

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return nothing."""
        return []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Refuse a score, for none was asked for."""
        raise ValueError(f"expected no score, found one of {candidate}")

    def scores(self, candidate: Candidate) -> list[float]:
        """Return nothing."""
        return []
