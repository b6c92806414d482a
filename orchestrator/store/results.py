"""One study's frames and provenance, as the analysis and the report read them."""

from __future__ import annotations  # so that `status` does not import pandas

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.store.store import Store, StoreError
from orchestrator.study.declaration import Declaration
from orchestrator.study.trials import Pair

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class PairState:
    """How far one dataset × arm is.

    Attributes
    ----------
    planned : int
        Its trainings; at most, while a search that decides as it goes is not done.
    keys : list of str
        Those of the stored trials that count.
    failed : int
        Those among them without a score.
    complete : bool
        Whether nothing is left to run.
    selections : list of dict
        A row for each outer fold whose search is done.
    refits : dict of str to str
        Key of each stored refit, and the selection key that goes with it.
    """

    planned: int
    keys: list[str] = field(default_factory=list)
    failed: int = 0
    complete: bool = True
    selections: list[dict[str, Any]] = field(default_factory=list)
    refits: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class StudyResults:
    """All that is known about a study: what belongs to the declaration in force, and what does not.

    Attributes
    ----------
    name : str
        The study's name.
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
    excluded : DataFrame
        Stored trials that do not count, by dataset and solver: columns dataset, solver, trials, why.
    states : dict of (dataset, arm) to PairState
        How far each dataset × arm is; empty if no run recorded what it declared.
    lost : list of str
        What is known of trials that were stored and are missing, a sentence each.
    changed : list of str
        Which files of datasets have changed since, by size and time of change, a sentence each.
    declaration : Declaration or None
        What the provenance declares; None if no run recorded it.
    search_all_rows : callable or None
        What `final_estimator` calls.
    """

    name: str
    folder: Path
    trials: pd.DataFrame
    selections: pd.DataFrame
    outer: pd.DataFrame
    provenance: list[dict[str, Any]]
    excluded: pd.DataFrame = field(default_factory=lambda: excluded_trials([]))
    states: Mapping[Pair, PairState] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    declaration: Declaration | None = None
    search_all_rows: Callable[..., Any] | None = None

    def mean_scores(self) -> pd.DataFrame:
        """Return the mean score of the refits: a row for each dataset, a column for each arm."""
        return self.outer.pivot_table("score", "dataset", "solver", sort=False)

    def final_estimator(self, dataset: str, arm: str, cache: str | Path | None = None) -> Any:
        """Return the estimator to use after the study: unfitted, with what a search on all rows selects.

        The search is done here and now, by inner splits of all rows: about as many trainings as one outer
        fold has taken. The scores of the study are those of this procedure, not of this one estimator.

        Parameters
        ----------
        dataset, arm : str
        cache : path, optional
            The folder `paths.cache` of the study's run, where the dataset is prepared.

        Returns
        -------
        estimator
            Of the arm's class; in a pipeline behind a scaler if the protocol scales.

        Raises
        ------
        StoreError
            When the study does not have the two, or no candidate could be trained.
        DatasetError
            When the dataset is not in the cache.
        """
        if self.search_all_rows is None:
            raise StoreError("these results come from no store; load the study with load_study")
        return self.search_all_rows(self, dataset, arm, None if cache is None else Path(cache))

    def predictions(self) -> pd.DataFrame:
        """Return what each refit predicted of its test rows, as far as `protocol.predictions=outer` kept it.

        Returns
        -------
        DataFrame
            A row for each refit and test row. Columns: dataset, solver, outer, row (its place in the
            dataset), true and predicted (labels, as text).
        """
        kept = Store(self.folder).predictions().to_pandas().dropna(subset="predicted_class")
        refits = self.outer[["key", "dataset", "solver", "outer"]].merge(kept, on="key")
        lists = {"test_row": "row", "true_class": "true", "predicted_class": "predicted"}
        frame = refits.rename(columns=lists).explode([*lists.values()], ignore_index=True)
        labels = {facts["name"]: [*facts.get("class_counts", ())] for facts in self._dataset_facts()}
        for name in ("true", "predicted"):
            pairs = zip(frame["dataset"], frame[name], strict=True)
            frame[name] = [labels[dataset][code] for dataset, code in pairs]
        return frame[["dataset", "solver", "outer", *lists.values()]].astype({"row": int})

    def _dataset_facts(self) -> list[Mapping[str, Any]]:
        """Return what runs recorded about datasets, oldest first."""
        return [facts for run in self.provenance for facts in (run.get("study") or {}).get("datasets", ())]

    def __repr__(self) -> str:
        arms, datasets = (self.trials[name].nunique() for name in ("solver", "dataset"))
        failed = int(self.trials["score"].isna().sum())
        return (
            f"<study {self.name}: {len(self.trials):,} trials of datasets × arms {datasets} × {arms}, "
            f"{failed:,} failed; {self.folder}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<p>{escape(repr(self)[1:-1])}</p>{self.mean_scores().to_html(float_format='{:.4f}'.format)}"


def excluded_trials(rows: Sequence[tuple[str, str, int, str]]) -> pd.DataFrame:
    """Return `StudyResults.excluded` of dataset, solver, number of trials, and reason."""
    import pandas as pd

    return pd.DataFrame(rows, columns=["dataset", "solver", "trials", "why"])
