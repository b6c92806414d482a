"""The declared sample of a timing study: which trainings of a finished study are measured."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from orchestrator.study.study import REFITS, SAMPLE, STRATA, Candidate, SearchSpec

Cell = tuple[int, int]
"""Indices of an outer and of an inner split."""

SHORT_SECONDS, SHORT_REPEATS = 0.05, 3
"""Time of a fit, in seconds, below which a training of a timing sample is measured several times, and the
smallest number of these measurements."""


@dataclass(frozen=True)
class Stratum:
    """Inner trainings of one candidate of a dataset × arm, of which some are drawn.

    Attributes
    ----------
    candidate : Candidate
        Hyper-parameters of the trainings.
    size : int
        Number of its inner trainings in the source study.
    cells : tuple of (int, int)
        Splits on which it is trained here, which were drawn without replacement.
    """

    candidate: Candidate
    size: int
    cells: tuple[Cell, ...]

    @property
    def weight(self) -> float:
        """Number of trainings of the source study that each drawn one represents."""
        return self.size / len(self.cells)


def recorded_strata(strata: Mapping[str, Iterable[Stratum]]) -> list[dict[str, Any]]:
    """Return the strata of a dataset as values that can be stored as JSON, those of equal arms together.

    Parameters
    ----------
    strata : mapping of str to iterable of Stratum
        Strata by arm.
    """
    groups: dict[tuple[Stratum, ...], list[str]] = {}
    for arm, each in strata.items():
        groups.setdefault(tuple(each), []).append(arm)
    return [
        {
            "arms": arms,
            "candidates": [
                [dict(stratum.candidate.params), stratum.size, [list(cell) for cell in stratum.cells]]
                for stratum in group
            ],
        }
        for group, arms in groups.items()
    ]


@lru_cache(maxsize=1024)
def declared_strata(search: SearchSpec, dataset: str, arm: str) -> tuple[Stratum, ...]:
    """Return the strata of a dataset × arm; empty if there are none.

    Parameters
    ----------
    search : SearchSpec
        Search of the study.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    """
    groups = search.options.get(STRATA, {}).get(dataset, ()) if search.target == SAMPLE else ()
    return tuple(
        Stratum(Candidate.of(params), size, tuple((outer, inner) for outer, inner in cells))
        for group in groups
        if arm in group["arms"]
        for params, size, cells in group["candidates"]
    )


def declared_refits(search: SearchSpec, dataset: str, arm: str) -> list[Candidate | None]:
    """Return the candidate of each outer split, None where the source study has selected none.

    Parameters
    ----------
    search : SearchSpec
        Search that measures a sample.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    """
    found = search.options.get(REFITS, {}).get(dataset, {}).get(arm, ())
    return [None if params is None else Candidate.of(params) for params in found]


def sampled_trainings(search: SearchSpec, dataset: str, arm: str) -> int:
    """Return the number of trainings that a sample has of a dataset × arm.

    Parameters
    ----------
    search : SearchSpec
        Search that measures a sample.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    """
    inner = sum(len(stratum.cells) for stratum in declared_strata(search, dataset, arm))
    return inner + sum(best is not None for best in declared_refits(search, dataset, arm))


def requested_repeats(search: SearchSpec) -> int:
    """Return the requested number of measurements of each training; 0 unless the study measures a sample.

    Parameters
    ----------
    search : SearchSpec
        Search of the study.
    """
    return int(search.options.get("repeats", 1)) if search.target == SAMPLE else 0


def n_measurements(repeats: int, seconds: float) -> int:
    """Return how many times a training is run to measure it; 1 unless the study measures a sample.

    Parameters
    ----------
    repeats : int
        Requested number; 0 for a study that is not a sample.
    seconds : float
        Time of one measurement, in seconds.
    """
    return max(1, repeats, SHORT_REPEATS if repeats and seconds < SHORT_SECONDS else 1)
