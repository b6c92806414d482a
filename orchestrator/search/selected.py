"""No search: the candidate that another study has selected is refitted without inner trainings."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.search.search import Selection
from orchestrator.study.study import CANDIDATES, Arm, Candidate, SearchSpec

_Params = Mapping[str, Any]


def selected_params(search: SearchSpec, dataset: str, arm: Arm) -> _Params | None:
    """Return the parameters that another study has selected for an arm; None if there are none.

    The selection of the arm named by the option `arm` is used. Without that option, it is the selection of
    the arm with the same name, else that of the same solver.

    Parameters
    ----------
    search : SearchSpec
        Search that takes the selections of another study.
    dataset : str
        Name of the dataset.
    arm : Arm
        Solver with its fixed parameters and sweep values.
    """
    of_dataset: Mapping[str, _Params] = search.options.get(CANDIDATES, {}).get(dataset, {})
    names = [search.options["arm"]] if search.options.get("arm") else [arm.name, arm.solver]
    return next((of_dataset[name] for name in names if name in of_dataset), None)


class SelectedBefore:
    """Finished search with a given candidate and no inner trainings.

    Parameters
    ----------
    params : mapping
        Parameters of the candidate.
    """

    done = True

    def __init__(self, params: _Params):
        self.selection = Selection(Candidate.of(params), math.nan, 0, 0, 0)

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return an empty list, because the search needs no training."""
        return []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Raise a ValueError, because the search has proposed no candidate.

        Parameters
        ----------
        candidate : Candidate
            Candidate that was scored, for the message.
        split : int
            Not used.
        score : float
            Not used.
        """
        raise ValueError(f"expected no score, found a score of {candidate}")

    def scores(self, candidate: Candidate) -> list[float]:
        """Return an empty list.

        Parameters
        ----------
        candidate : Candidate
            Not used.
        """
        return []
