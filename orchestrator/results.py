"""What the store hands to the analysis and the report: one study's frames and their provenance."""

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
