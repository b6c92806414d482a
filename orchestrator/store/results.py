"""Hold the frames and the provenance of one study, for the analysis and the report."""

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
    """Progress of one dataset × arm.

    Attributes
    ----------
    planned : int
        Number of its trainings; an upper bound while an adaptive search is not finished.
    keys : list of str
        Keys of the stored trials that count.
    failed : int
        Number of those without a score.
    complete : bool
        Whether no trial remains.
    selections : list of dict
        One row for each outer fold whose search is finished.
    refits : dict of str to str
        Selection key of each stored refit, by the key of the refit.
    """

    planned: int
    keys: list[str] = field(default_factory=list)
    failed: int = 0
    complete: bool = True
    selections: list[dict[str, Any]] = field(default_factory=list)
    refits: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Refit:
    """A stored refit that was trained again.

    Attributes
    ----------
    estimator : object
        The fitted estimator. It takes prepared rows.
    params : dict of str to object
        Parameters of the selected candidate.
    X_train, X_test : array, CSR matrix or DataFrame, shape (n, d)
        Prepared training and test rows of the outer fold.
    y_train, y_test : ndarray of shape (n,)
        Their labels.
    score : float
        Score of the estimator on the test rows.
    stored_score : float
        Score that the study has stored for the refit.
    """

    estimator: Any
    params: dict[str, Any]
    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    score: float
    stored_score: float


@dataclass(frozen=True, repr=False)
class StudyResults:
    """Results of a study, with the trials of older declarations kept apart.

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
        The refits, whose scores the tests use.
    provenance : list of dict
        One entry per run, oldest first: its declaration, software and hosts.
    excluded : DataFrame
        Stored trials that do not count, by dataset and solver: columns dataset, solver, trials, why.
    states : dict of (dataset, arm) to PairState
        Progress of each dataset × arm; empty if no run recorded its declaration.
    lost : list of str
        One sentence for each group of stored trials that are missing.
    changed : list of str
        One sentence for each dataset file whose size or modification time has changed.
    declaration : Declaration or None
        The newest declaration in the provenance; None if no run recorded it.
    search_all_rows : callable or None
        Function that `final_estimator` calls; None for results that were not loaded from a store.
    train_again : callable or None
        Function that `refit` calls; None for results that were not loaded from a store.
    read_study : callable or None
        Function that returns the results of another study in the same folder, by its name. None for results
        that were not loaded from a store.
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
    train_again: Callable[..., Refit] | None = None
    read_study: Callable[[str], StudyResults] | None = None

    def mean_scores(self) -> pd.DataFrame:
        """Return the mean score of the refits, with a row for each dataset and a column for each arm."""
        return self.outer.pivot_table("score", "dataset", "solver", sort=False)

    def final_estimator(self, dataset: str, arm: str, cache: str | Path | None = None) -> Any:
        """Return the unfitted estimator that a search on all rows selects, for use after the study.

        This method runs the search, with inner splits of all rows. It takes about as many trainings as one
        outer fold. The scores of the study belong to this procedure, and not to this one estimator.

        Parameters
        ----------
        dataset : str
            Name of a dataset of the study.
        arm : str
            Name of an arm of the study.
        cache : path, optional
            The folder `paths.cache` of the study's run, which holds the prepared dataset. None by default,
            for the folder of this host.

        Returns
        -------
        estimator
            An instance of the arm's class, in a pipeline behind the preparation of the features, if there is
            one.

        Raises
        ------
        StoreError
            If the study does not have the dataset and arm, or no candidate could be trained.
        DatasetError
            If the dataset is not in the cache.
        """
        if self.search_all_rows is None:
            raise StoreError("these results were not loaded from a store; load the study with load_study")
        return self.search_all_rows(self, dataset, arm, None if cache is None else Path(cache))

    def refit(self, dataset: str, arm: str, outer: int = 0, cache: str | Path | None = None) -> Refit:
        """Train the refit of an outer fold again, to look at its model.

        A study stores the numbers of its trainings, and no models. This method trains the selected candidate
        on the training rows of the fold, without warm start and shared Gram matrix.

        Parameters
        ----------
        dataset : str
            Name of a dataset of the study.
        arm : str
            Name of an arm of the study.
        outer : int, default 0
            Index of the outer fold.
        cache : path, optional
            The folder `paths.cache` of the study's run, which holds the prepared dataset. None by default,
            for the folder of this host.

        Returns
        -------
        Refit
            The fitted estimator, the prepared rows, and the stored score beside that of the estimator.

        Raises
        ------
        StoreError
            If no refit of this dataset, arm and outer fold is stored.
        DatasetError
            If the dataset or its splits are not in the cache.
        """
        if self.train_again is None:
            raise StoreError("these results were not loaded from one store; load the study with load_study")
        return self.train_again(self, dataset, arm, outer, None if cache is None else Path(cache))

    def predictions(self) -> pd.DataFrame:
        """Return the predictions of each refit on its test rows.

        Only a study with `protocol.predictions=outer` stores them.

        Returns
        -------
        DataFrame
            One row for each refit and test row. Columns: dataset, solver, outer, row (its index in the
            dataset), true and predicted (labels, as text).
        """
        kept = Store(self.folder).predictions().to_pandas().dropna(subset="predicted_class")
        refits = self.outer[["key", "dataset", "solver", "outer"]].merge(kept, on="key")
        lists = {"test_row": "row", "true_class": "true", "predicted_class": "predicted"}
        frame = refits.rename(columns=lists).explode([*lists.values()], ignore_index=True)
        datasets = self._recorded_datasets()
        labels = {dataset["name"]: [*dataset.get("class_counts", ())] for dataset in datasets}
        for name in ("true", "predicted"):
            pairs = zip(frame["dataset"], frame[name], strict=True)
            frame[name] = [labels[dataset][code] for dataset, code in pairs]
        return frame[["dataset", "solver", "outer", *lists.values()]].astype({"row": int})

    def _recorded_datasets(self) -> list[Mapping[str, Any]]:
        """Return the descriptions of datasets that runs recorded, oldest first."""
        return [each for run in self.provenance for each in (run.get("study") or {}).get("datasets", ())]

    def __repr__(self) -> str:
        arms, datasets = (self.trials[name].nunique() for name in ("solver", "dataset"))
        failed = int(self.trials["score"].isna().sum())
        return (
            f"<study {self.name}: {len(self.trials):,} trials of datasets × arms {datasets} × {arms}, "
            f"{failed:,} failed; {self.folder}>"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return f"<p>{escape(repr(self)[1:-1])}</p>{self.mean_scores().to_html(float_format='{:.4f}'.format)}"


def excluded_trials(rows: Sequence[tuple[str, str, int, str]]) -> pd.DataFrame:
    """Return the frame of trials that do not count; see `StudyResults.excluded`.

    Parameters
    ----------
    rows : sequence of (str, str, int, str)
        Dataset, solver, number of trials, and reason.

    Returns
    -------
    DataFrame
        One row for each of them.
    """
    import pandas as pd

    return pd.DataFrame(rows, columns=["dataset", "solver", "trials", "why"])
