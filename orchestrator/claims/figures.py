"""Compute the figures that decide claims, each with an interval, from the rows of finished studies."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from orchestrator.analysis.findings import Findings, computed, estimated_totals
from orchestrator.analysis.measured_on import processor_shares
from orchestrator.analysis.paired_means import half_predictions
from orchestrator.analysis.sample_totals import Sample
from orchestrator.analysis.sampled_times import WALL, is_sample, sample_of, sample_weights
from orchestrator.analysis.summaries import n_tested, numbers, timing_rows
from orchestrator.study.records import FINISHED, Status
from orchestrator.study.targets import did_you_mean
from orchestrator.study.trials import Pair

NO_TEST = "a figure, no test"
"""Note of a figure without an interval that decides a test: one over a grid, or on one published split."""

LEVEL = 0.05
"""Level of each of the two one-sided tests that correspond to an interval at 1 − 2 LEVEL."""

OF_REFITS = (
    "score",
    "fit_seconds",
    "predict_seconds",
    "n_iter",
    "n_clipped",
    "n_full_updates",
    "n_kernel_evals",
    "n_sv",
    "sv_share",
    "n_nodes",
    "model_values",
    "row_seconds",
)
"""Quantities of refits, which are columns of their rows."""
OF_SEARCHES = {
    "total_seconds": ("fit_seconds", "predict_seconds"),
    "total_iter": ("n_iter",),
    "total_clipped": ("n_clipped",),
    "total_kernel_evals": ("n_kernel_evals",),
}
"""Quantities of whole searches, by name: the columns that are summed over all trainings of an outer fold."""
_GROWING = ("fit_seconds", "n_iter", "n_clipped", "n_full_updates", "n_kernel_evals")
"""Columns that can only grow during a training. Their values are lower bounds for a training that was
stopped."""

OVER_MEAN = "mean"
"""Value of the option `over` of a test whose figure is the random-effects mean over datasets."""

TRAININGS = "trainings"
"""Unit of a ratio that is estimated from a sample of the trainings."""

LARGEST_EXCESS = "largest"
"""Value of the option `refute` of a test that its largest standardised excess over the region refutes."""

QUANTITIES = (*OF_REFITS, *OF_SEARCHES, "n_candidates")
"""All quantities that a test can use."""


class Unanswered(Exception):
    """The studies do not answer a claim; the text contains the reason."""


@dataclass(frozen=True)
class Figure:
    """A number with the interval that decides a claim.

    Attributes
    ----------
    what : str
        Description of the number, with its arms or datasets.
    estimate : float
        Value of the figure.
    low, high : float
        Ends of the interval at 1 − 2 `LEVEL`; NaN if there is none.
    n : int
        Sample size.
    unit : str
        Unit that `n` counts, in the plural.
    p : float
        Two-sided p-value of no difference, no slope or a ratio of 1; NaN if nothing was tested.
    note : str
        Why there is no interval, and what was omitted.
    wide : (float, float) or None
        Interval that must lie outside a region for a refutation, if each of several figures may refute the
        claim. It is adjusted for their number. Its ends are NaN if there is no interval at that level.
    of_each : mapping of str to float
        For a typical value, the value of each dataset or family that has one.
    spread : float
        Standard deviation of the `n` values, of their logarithms for ratios; NaN if it is not known. It tells
        how many values would decide the claim.
    floor : float
        Ratio of test rows to training rows. The squared error of a mean over outer folds does not fall below
        this multiple of the squared spread.
    is_ratio : bool
        Whether the interval is one of logarithms.
    """

    what: str
    estimate: float
    low: float
    high: float
    n: int
    unit: str
    p: float = nan
    note: str = ""
    wide: tuple[float, float] | None = None
    of_each: Mapping[str, float] = field(default_factory=dict)
    spread: float = nan
    floor: float = 0.0
    is_ratio: bool = False

    @property
    def refuting(self) -> tuple[float, float]:
        """The interval that must lie outside a region for a refutation."""
        return (self.low, self.high) if self.wide is None else self.wide


@dataclass(frozen=True)
class Side:
    """An arm in the studies that have it.

    Attributes
    ----------
    arm : str
        Name of the arm.
    studies : sequence of Findings
        Analysed studies that have the arm.
    """

    arm: str
    studies: Sequence[Findings]

    def folds(self, quantity: str) -> pd.DataFrame:
        """Return bounds of a quantity on every outer fold of the complete datasets.

        If studies share a dataset, the first study that declares it counts, even where it is not complete.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.

        Returns
        -------
        DataFrame
            Columns low and high, indexed by dataset and outer fold. A stopped training has an infinite upper
            bound.
        """
        frames, known = [], set[str]()
        for study in self.studies:
            frame = _folds(study, self.arm, quantity)
            frames.append(frame[~frame.index.get_level_values("dataset").isin(known)])
            known.update(study.design.datasets)
        return pd.concat([frame for frame in frames if len(frame)] or frames[:1])

    def study_of(self, dataset: str) -> Findings:
        """Return the study whose values of a dataset count: the first that declares it.

        Parameters
        ----------
        dataset : str
            Name of a dataset that some study declares.
        """
        return next(study for study in self.studies if dataset in study.design.datasets)

    def means(self, quantity: str) -> pd.DataFrame:
        """Return the means of the bounds over outer folds.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.

        Returns
        -------
        DataFrame
            Columns low and high, indexed by dataset.
        """
        folds = self.folds(quantity)
        return folds.groupby(level="dataset", sort=False).mean()

    def measured(self, quantity: str) -> pd.Series:
        """Return the means of the datasets on which no training was stopped.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.

        Returns
        -------
        Series
            Means by dataset.
        """
        means = self.means(quantity)
        return means.loc[means["low"] == means["high"], "low"]

    def ties_below(self, quantity: str) -> pd.Series:
        """Return the difference below which two means count as equal.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.

        Returns
        -------
        Series
            Half a prediction, by dataset; empty unless the quantity is a score.
        """
        if quantity != "score":
            return pd.Series(dtype=float)
        found = pd.concat(
            [half_predictions(each.design.metric, n_tested(each.results.outer)) for each in self.studies]
        )
        return found[~found.index.duplicated()]

    def estimated(self, quantity: str, datasets: Collection[str]) -> str:
        """Return the number of trainings from which a quantity is estimated; empty if it is complete.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.
        datasets : collection of str
            Names of the datasets whose values are used.
        """
        drawn = trainings = 0
        for study in self.studies if quantity in OF_SEARCHES else ():
            if is_sample(study.design):
                totals = estimated_totals(study)
                of_study = [name for name in datasets if self.study_of(name) is study]
                used = (totals["solver"] == self.arm) & totals["dataset"].isin(of_study)
                drawn += int(totals.loc[used, "drawn"].sum())
                trainings += int(totals.loc[used, "trainings"].sum())
        return f"{self.arm} estimated from {drawn:,} of {trainings:,} trainings" if trainings else ""

    def sample(self, dataset: str) -> Sample | None:
        """Return the sample that estimates the seconds of whole searches on a dataset.

        Parameters
        ----------
        dataset : str
            Name of a dataset that some study declares.

        Returns
        -------
        Sample or None
            None if the study measured all trainings, or a time is missing.
        """
        study = self.study_of(dataset)
        if not is_sample(study.design):
            return None
        return _sample(study, (dataset, self.arm))

    def processors(self, dataset: str, quantity: str) -> dict[str, float]:
        """Return the kinds of processors that measured the arm on a dataset.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        quantity : str
            One of `QUANTITIES`, which tells whether refits or all trainings count.

        Returns
        -------
        dict of str to float
            Shares of the trainings, by kind.
        """
        study = next((each for each in self.studies if dataset in each.design.datasets), None)
        if study is None:
            return {}
        rows = study.results.outer if quantity in OF_REFITS else study.results.trials
        rows = rows[(rows["dataset"] == dataset) & (rows["solver"] == self.arm)]
        return processor_shares(rows, study.results.provenance)

    @property
    def datasets(self) -> dict[str, Mapping[str, Any]]:
        """The recorded summaries of the datasets, by name."""
        found: dict[str, Mapping[str, Any]] = {}
        for study in self.studies:
            found = {**study.design.datasets, **found}
        return found


@dataclass(frozen=True)
class Least(Side):
    """On each dataset, the one of several arms whose mean is the smallest.

    Attributes
    ----------
    arm : str
        Names of the arms, as text.
    studies : sequence of Findings
        Studies that have one of the arms.
    sides : tuple of Side
        The arms.
    """

    sides: tuple[Side, ...] = ()

    def folds(self, quantity: str) -> pd.DataFrame:
        """Return bounds of a quantity on every outer fold, for the arm with the smallest mean.

        Parameters
        ----------
        quantity : str
            One of `QUANTITIES`.

        Returns
        -------
        DataFrame
            Columns low and high, indexed by dataset and outer fold.
        """
        frames = [each.folds(quantity) for each in self.sides]
        best = _smallest(frames)
        found = [
            frame[frame.index.get_level_values("dataset").isin(best.index[best == i])]
            for i, frame in enumerate(frames)
        ]
        return pd.concat([frame for frame in found if len(frame)] or frames[:1])

    def sample(self, dataset: str) -> Sample | None:
        """Return the sample of the arm with the smallest mean seconds of whole searches on a dataset.

        Parameters
        ----------
        dataset : str
            Name of a dataset that some study declares.
        """
        best = _smallest([each.folds("total_seconds") for each in self.sides])
        return self.sides[best[dataset]].sample(dataset)

    def processors(self, dataset: str, quantity: str) -> dict[str, float]:
        """Return the kinds of processors that measured the arms on a dataset.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        quantity : str
            One of `QUANTITIES`, which tells whether refits or all trainings count.

        Returns
        -------
        dict of str to float
            Mean shares over the arms that have trainings, by kind.
        """
        shares = filter(None, (each.processors(dataset, quantity) for each in self.sides))
        means = pd.DataFrame(shares).fillna(0.0).mean()
        return {str(kind): float(share) for kind, share in means.items()}


def _smallest(frames: Sequence[pd.DataFrame]) -> pd.Series:
    """Return the position of the frame with the smallest mean of each dataset that all of them have.

    Parameters
    ----------
    frames : sequence of DataFrame
        Bounds as `Side.folds` returns them.
    """
    means = [frame["low"].groupby(level="dataset").mean() for frame in frames]
    return pd.DataFrame(dict(enumerate(means))).dropna().idxmin(axis=1)


def least(arms: Sequence[str], studies: Sequence[Findings]) -> Side:
    """Return the arm of a reference, or of several the one with the smallest mean on each dataset.

    Parameters
    ----------
    arms : sequence of str
        Names of the arms, at least one.
    studies : sequence of Findings
        Analysed studies that the claim names.

    Returns
    -------
    Side
        The reference.

    Raises
    ------
    Unanswered
        If no study has an arm.
    """
    sides = tuple(side(arm, studies) for arm in arms)
    return sides[0] if len(sides) == 1 else Least(" or ".join(arms), sides[0].studies, sides)


def side(arm: str, studies: Sequence[Findings]) -> Side:
    """Return an arm in the studies that have it.

    Parameters
    ----------
    arm : str
        Name of the arm.
    studies : sequence of Findings
        Analysed studies that the claim names.

    Returns
    -------
    Side
        The arm, with the studies that have it.

    Raises
    ------
    Unanswered
        If no study has the arm.
    """
    having = [study for study in studies if arm in study.design.arms]
    if not having:
        known = [name for study in studies for name in study.design.arms]
        names = " and ".join(study.results.name for study in studies)
        raise Unanswered(f"study {names} has no arm {arm}{did_you_mean(arm, known)}")
    return Side(arm, having)


@computed
def _sample(study: Findings, pair: Pair) -> Sample | None:
    """Return the sample of a dataset × arm; None if a time is missing.

    Parameters
    ----------
    study : Findings
        Analysed study whose search is a sample.
    pair : (str, str)
        Names of the dataset and the arm.
    """
    rows = timing_rows(study.results.trials)
    of_pair = (rows["dataset"] == pair[0]) & (rows["solver"] == pair[1])
    return sample_of(rows[of_pair], study.design, pair, WALL)


@computed
def _folds(study: Findings, arm: str, quantity: str) -> pd.DataFrame:
    """Return bounds of a quantity on every outer fold of the complete datasets of a study.

    Parameters
    ----------
    study : Findings
        Analysed study, with its trials, selections and design.
    arm : str
        Name of the arm.
    quantity : str
        One of `QUANTITIES`.

    Returns
    -------
    DataFrame
        Columns low and high, indexed by dataset and outer fold.

    Raises
    ------
    Unanswered
        If the study does not have the quantity.
    """
    results = study.results
    columns: Sequence[str] = OF_SEARCHES.get(quantity, (quantity,))
    if quantity == "n_candidates":
        rows = results.selections.assign(status=Status.OK)
    else:
        rows = results.outer if quantity in OF_REFITS else results.trials
        rows = timing_rows(rows) if "seconds" in quantity else rows
    if absent := [name for name in columns if name not in rows and quantity != "n_candidates"]:
        raise Unanswered(f"study {results.name} has no column {', '.join(absent)}")
    rows = rows[rows["solver"] == arm]
    stopped = (rows["status"] == Status.TIMEOUT).to_numpy() & (quantity != "score")
    limit = study.design.protocol.get("max_seconds")
    value = sum(
        (_at_least(name, numbers(rows[name]), stopped, limit) for name in columns), np.zeros(len(rows))
    )
    if quantity in OF_SEARCHES:  # each training of a sample represents several
        value = value * sample_weights(rows, study.design)
    if quantity != "score":
        value = np.where(rows["status"].isin(FINISHED), value, nan)
    ends = pd.DataFrame(
        {"dataset": rows["dataset"].astype(str), "outer": rows["outer"].astype(int), "low": value}
    ).assign(high=np.where(stopped, inf, value))
    by_fold = ["dataset", "outer"]
    incomplete = ends["low"].isna().groupby([ends[name] for name in by_fold], sort=False).any()
    folds = ends.groupby(by_fold, sort=False)[["low", "high"]].sum()[~incomplete]
    counts = folds.groupby(level="dataset", sort=False).size()
    states = results.states
    complete = [
        name
        for name, n in counts.items()
        if n == study.design.n_outer(str(name)) and states[(str(name), arm)].complete
    ]
    return folds[folds.index.get_level_values("dataset").isin(complete)]


def _at_least(name: str, values: np.ndarray, stopped: np.ndarray, limit: float | None) -> np.ndarray:
    """Return the values of a column, with lower bounds where trainings were stopped.

    Parameters
    ----------
    name : str
        Name of the column.
    values : ndarray
        Its values; NaN where none was recorded.
    stopped : ndarray
        Mask of the trainings that were stopped.
    limit : float or None
        Time limit of the trainings, in seconds, or None.

    Returns
    -------
    ndarray of shape (n,)
        The values and bounds.
    """
    bound = np.zeros(len(values))
    if name in _GROWING:
        bound = np.where(np.isnan(values), (limit or 0.0) if name == "fit_seconds" else 0.0, values)
    return np.where(stopped, bound, values)


def counted(n: int, unit: str) -> str:
    """Return a sample size with its unit, such as `7 datasets` or `1 family`.

    Parameters
    ----------
    n : int
        Sample size.
    unit : str
        Unit in the plural, as in `Figure.unit`.
    """
    words = unit.split(" ") if n == 1 else []
    singular = (f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s") for word in words)
    return f"{n} {' '.join(singular) or unit}"


def t_quantile(degrees: float, level: float) -> float:
    """Return a quantile of Student's t distribution.

    Parameters
    ----------
    degrees : float
        Degrees of freedom.
    level : float
        Probability above the quantile.

    Returns
    -------
    float
        Quantile at 1 − `level`.
    """
    return float(stdtrit(degrees, 1 - level))
