"""What the store hands to the analysis and the report: one study's frames and their provenance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class StudyResults:
    """All that is known about a study, read from its store.

    Attributes
    ----------
    name : str
    folder : Path
        The study's folder, `results/NAME`.
    trials : DataFrame
        One row per trial; `inner == -1` marks the refits.
    selections : DataFrame
        One row per dataset × arm × outer fold: the chosen candidate, its inner score, ties and failures.
    outer : DataFrame
        The refits alone: the numbers that tests use.
    provenance : list of dict
        One entry per run, oldest first: what was asked for, by which software, on which machines.
    """

    name: str
    folder: Path
    trials: pd.DataFrame
    selections: pd.DataFrame
    outer: pd.DataFrame
    provenance: list[dict[str, Any]]


def current_identities(provenance: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the identities in force: of each dataset × arm, the one its latest run declared."""
    latest: dict[tuple[str, str], str] = {}
    for run in provenance:
        for dataset, arms in run.get("identities", {}).items():
            for arm, identity in arms.items():
                latest[dataset, arm] = identity
    return set(latest.values())
