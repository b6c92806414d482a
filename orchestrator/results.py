"""One study's frames and provenance, as the analysis and the report read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.declaration import Pair
from orchestrator.replay import PairState


@dataclass(frozen=True)
class StudyResults:
    """All that is known about a study: what belongs to the declaration in force, and what does not.

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
    apart : DataFrame
        Stored trials that do not count, by dataset and solver: columns dataset, solver, trials, why.
    states : dict of (dataset, arm) to PairState
        How far each dataset × arm is; empty if no run recorded what it declared.
    """

    name: str
    folder: Path
    trials: pd.DataFrame
    selections: pd.DataFrame
    outer: pd.DataFrame
    provenance: list[dict[str, Any]]
    apart: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["dataset", "solver", "trials", "why"])
    )
    states: Mapping[Pair, PairState] = field(default_factory=dict)
