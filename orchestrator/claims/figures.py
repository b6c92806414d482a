"""Compute the figures that decide claims, each with an interval, from the rows of finished studies."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit
from scipy.stats import linregress

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.paired_means import half_predictions, without_ties
from orchestrator.analysis.ratios import summarise
from orchestrator.analysis.signed_rank import DECIMALS, hodges_lehmann, signed_rank
from orchestrator.analysis.summaries import (
    corrected_standard_error,
    n_tested,
    numbers,
    test_share,
    timing_rows,
)
from orchestrator.study.families import families, unit_names
from orchestrator.study.records import FINISHED, Status
from orchestrator.study.targets import did_you_mean
from orchestrator.study.trials import REFIT
from orchestrator.study.values import is_number

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

        If studies share a dataset, the first study counts.

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

    @property
    def datasets(self) -> dict[str, Mapping[str, Any]]:
        """The recorded summaries of the datasets, by name."""
        found: dict[str, Mapping[str, Any]] = {}
        for study in self.studies:
            found = {**study.design.datasets, **found}
        return found


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
    if quantity != "score":
        value = np.where(rows["status"].isin(FINISHED), value, nan)
    ends = pd.DataFrame(
        {"dataset": rows["dataset"].astype(str), "outer": rows["outer"].astype(int), "low": value}
    ).assign(high=np.where(stopped, inf, value))
    by_fold = ["dataset", "outer"]
    incomplete = ends["low"].isna().groupby([ends[name] for name in by_fold], sort=False).any()
    folds = ends.groupby(by_fold, sort=False)[["low", "high"]].sum()[~incomplete]
    counts = folds.groupby(level="dataset", sort=False).size()
    complete = [name for name, n in counts.items() if n == study.design.n_outer(str(name))]
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


# -- differences and ratios ----------------------------------------------------------------------


def compared(
    arm: Side,
    reference: Side,
    quantity: str,
    ratio: bool,
    datasets: Callable[[str], bool],
    apart: bool = False,
    looks: int = 1,
    over: str = "",
) -> list[Figure]:
    """Compare two arms, or two quantities of an arm, over datasets or on each dataset.

    Over datasets, the figure is the Hodges–Lehmann estimate of the difference, or of the ratio by logarithms,
    with its exact interval. Datasets of one family count once. On each dataset, the figure is the mean over
    outer folds, with an interval by the corrected standard error. That interval is approximate and holds for
    this dataset only.

    Parameters
    ----------
    arm, reference : Side
        Arms to compare, each with the studies that have it.
    quantity : str
        One of `QUANTITIES`.
    ratio : bool
        Compute arm / reference instead of arm − reference.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    apart : bool, default False
        Compute one figure for each dataset.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.
    over : str, default ''
        Quantity of the reference, one of `QUANTITIES`. By default, the same one.

    Returns
    -------
    list of Figure
        One figure, or one for each dataset.

    Raises
    ------
    Unanswered
        If no dataset has values of both arms on the same splits.
    """
    what = f"{arm.arm} {'/' if ratio else '−'} {_name(reference, arm)}, {quantity}"
    what = f"{arm.arm}, {quantity} / {over}" if over else what
    named = [name for name in arm.datasets if datasets(name)]
    other = {name for name in named if not _same_splits(name, arm, reference)}
    ends = [
        each.folds(name) if apart else each.means(name)
        for each, name in ((arm, quantity), (reference, over or quantity))
    ]
    both = ends[0].add_suffix("_arm").join(ends[1].add_suffix("_reference"), how="inner")
    used = both.index.get_level_values("dataset")
    both = both[used.isin(named) & ~used.isin(other)]
    missing = [name for name in named if name not in set(both.index.get_level_values("dataset"))]
    split, rest = ([name for name in missing if (name in other) is is_split] for is_split in (True, False))
    notes = {"other splits of": split, "without": rest}
    note = "; ".join(f"{what} {', '.join(names)}" for what, names in notes.items() if names)
    if both.empty:
        if named and other.issuperset(named):
            raise Unanswered(f"{arm.arm} and {_name(reference, arm)} have different splits on every dataset")
        of = f"{over} of {arm.arm}" if over else f"of {_name(reference, arm)}"
        raise Unanswered(f"no dataset has {quantity} of {arm.arm} and {of}")
    if not apart:
        return [_over(what, both, arm, quantity, ratio, note, looks)]
    undecided = [
        Figure(f"{what}, {name}", nan, nan, nan, 0, "outer folds", note=_lacks(name, other))
        for name in missing
    ]
    return [*_apart(what, both, arm, ratio, looks), *undecided]


def _lacks(name: str, other: Collection[str]) -> str:
    """Return why a dataset has no figure.

    Parameters
    ----------
    name : str
        Name of the dataset.
    other : collection of str
        Names of the datasets whose splits differ between both arms.

    Returns
    -------
    str
        Text for the note of the figure.
    """
    return "other splits" if name in other else "not every outer fold of both arms has a value"


def _name(reference: Side, arm: Side) -> str:
    """Return the name of a reference, followed by its studies if the arm is in none of them.

    Parameters
    ----------
    reference : Side
        Arm to compare with, and the studies that have it.
    arm : Side
        The arm that is compared with it.

    Returns
    -------
    str
        Name of the arm, such as `svc` or `svc of STUDY`.
    """
    names = [study.results.name for study in reference.studies]
    same = any(study in arm.studies for study in reference.studies)
    return reference.arm if same else f"{reference.arm} of {' and '.join(names)}"


def _same_splits(dataset: str, arm: Side, reference: Side) -> bool:
    """Return whether both arms have the same rows and splits of a dataset.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    arm : Side
        Arm and the studies that have it.
    reference : Side
        Arm to compare with, and the studies that have it.

    Returns
    -------
    bool
        True if fingerprint and hash of the splits are equal.
    """
    summaries = [each.datasets.get(dataset, {}) for each in (arm, reference)]
    first, second = ((each.get("fingerprint"), each.get("split_hash")) for each in summaries)
    return first == second


def _over(
    what: str, both: pd.DataFrame, arm: Side, quantity: str, ratio: bool, note: str, looks: int
) -> Figure:
    """Return the figure of a comparison over datasets.

    Parameters
    ----------
    what : str
        Description of the comparison.
    both : DataFrame
        Bounds of both arms, by dataset.
    arm : Side
        Arm and the studies that have it.
    quantity : str
        One of `QUANTITIES`.
    ratio : bool
        Compute a ratio instead of a difference.
    note : str
        Description of the omitted data; empty if nothing was omitted.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    Figure
        Typical value over datasets, with its intervals.
    """
    names = unit_names(both.index, families(arm.datasets))
    if ratio:
        with np.errstate(divide="ignore"):
            logarithms = np.log(_ratios(both))
        by_unit = pd.DataFrame(logarithms.T, columns=["low", "high"]).groupby(names, sort=False).mean()
        ratios = np.exp(by_unit.to_numpy().T)
        of_each = _measured(by_unit.index, *ratios)
        found, adjusted = summarise(ratios, 2 * LEVEL), summarise(ratios, 2 * LEVEL / looks)
        wide = adjusted.typical_low, adjusted.typical_high
        interval = found.typical, found.typical_low, found.typical_high
        n, p = found.n, max(found.p_lower, found.p_upper)
        two_ways = found.n_censored > 0 and found.sign == 0
    else:
        ends = [
            without_ties(each, arm.ties_below(quantity)).groupby(names, sort=False).mean().round(DECIMALS)
            for each in (both["low_arm"] - both["high_reference"], both["high_arm"] - both["low_reference"])
        ]
        of_each = _measured(ends[0].index, *ends)
        estimates = {hodges_lehmann(end).estimate for end in ends}
        estimate = estimates.pop() if len(estimates) == 1 else nan
        tests = [*map(signed_rank, ends)]
        wide = _shift(ends, 2 * LEVEL / looks)
        interval, n, p = (estimate, *_shift(ends, 2 * LEVEL)), len(ends[0]), max(test.p for test in tests)
        two_ways = len({np.sign(test.w_plus - test.w_minus) for test in tests}) > 1
    p = 1.0 if two_ways else p
    if np.isnan(interval[1]):
        few = f"with {n} the smallest attainable p is 2^−{n} = {2.0**-n:g}, above {LEVEL:g}"
        note = f"{few}; {note}" if note else few
    unit = "datasets" if len(set(names)) == len(both) else "families"
    return Figure(what, *interval, n, unit, p, note, wide, of_each)


def _measured(names: pd.Index, low: Any, high: Any) -> dict[str, float]:
    """Return the values whose two bounds are equal.

    Parameters
    ----------
    names : pd.Index
        Name of each value.
    low : object
        Lower bounds.
    high : object
        Upper bounds.

    Returns
    -------
    dict of str to float
        The values by name.
    """
    ends = zip(names, np.asarray(low, float), np.asarray(high, float), strict=True)
    return {str(name): float(low) for name, low, high in ends if low == high}


def _shift(ends: Sequence[pd.Series], alpha: float) -> tuple[float, float]:
    """Return the Hodges–Lehmann interval of differences that are known by bounds.

    Parameters
    ----------
    ends : sequence of Series
        Lower and upper bounds of the differences.
    alpha : float
        One minus the confidence of the interval.

    Returns
    -------
    (float, float)
        Lower end from the lower bounds and upper end from the upper ones; NaN if there is none.
    """
    low, high = (hodges_lehmann(end, 1 - alpha) for end in ends)
    return nan if low.low is None else low.low, nan if high.high is None else high.high


def _ratios(both: pd.DataFrame) -> np.ndarray:
    """Return bounds of the ratio arm / reference.

    Parameters
    ----------
    both : DataFrame
        Bounds of both arms.

    Returns
    -------
    ndarray of shape (2, n)
        Lower and upper bounds.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = both["low_arm"] / both["high_reference"], both["high_arm"] / both["low_reference"]
    return np.stack([low, high])


def _apart(what: str, both: pd.DataFrame, arm: Side, ratio: bool, looks: int) -> list[Figure]:
    """Return one figure of a comparison for each dataset.

    Parameters
    ----------
    what : str
        Description of the comparison.
    both : DataFrame
        Bounds of both arms, by dataset and outer fold.
    arm : Side
        Arm and the studies that have it.
    ratio : bool
        Compute a ratio instead of a difference.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    list of Figure
        One figure for each dataset, with an interval over its outer folds.
    """
    found = []
    groups = list(both.groupby(level="dataset", sort=False))
    for dataset, folds in groups:
        if ratio:
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = np.log(_ratios(folds))
            values = np.where(low == high, low, nan)
        else:
            low, high = folds["low_arm"] - folds["high_reference"], folds["high_arm"] - folds["low_reference"]
            values = np.where(low == high, np.round(low, DECIMALS), nan)
        back: Callable[[float], float] = exp if ratio else float
        estimate, n = float(values.mean()), len(values)
        error = corrected_standard_error(values, _test_share(arm, str(dataset)))
        reaches = (
            [error * _t(n - 1, level) for level in (LEVEL, LEVEL / looks / len(groups))]
            if n > 1
            else [nan] * 2
        )
        ends = [(back(estimate - reach), back(estimate + reach)) for reach in reaches]
        figure = nan if np.isnan(estimate) else back(estimate)
        note = "" if not np.isnan(estimate) else "a training was stopped, or both values are 0"
        found.append(Figure(f"{what}, {dataset}", figure, *ends[0], n, "outer folds", nan, note, ends[1]))
    return found


def _t(degrees: int, level: float) -> float:
    """Return a quantile of Student's t distribution.

    Parameters
    ----------
    degrees : int
        Degrees of freedom.
    level : float
        Probability above the quantile.

    Returns
    -------
    float
        Quantile at 1 − `level`.
    """
    return float(stdtrit(degrees, 1 - level))


def _test_share(arm: Side, dataset: str) -> float:
    """Return the ratio of test rows to training rows, for the corrected standard error.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    dataset : str
        Name of the dataset.

    Returns
    -------
    float
        The mean over outer folds.
    """
    rows = pd.concat([study.results.outer for study in arm.studies])
    rows = rows[(rows["dataset"] == dataset) & (rows["solver"] == arm.arm)]
    return test_share({name: numbers(rows[name]) for name in ("n_train", "n_test")})


# -- slopes --------------------------------------------------------------------------------------


def slope_over_datasets(
    arm: Side, x: str, y: str, datasets: Callable[[str], bool], minimum: float, maximum: float, looks: int = 1
) -> list[Figure]:
    """Return the slope of log y on log x over the datasets of an arm.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    x, y : str
        Quantities. `x` may also be a number that is recorded about datasets, such as `n`.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    minimum, maximum : float
        Limits of x.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.

    Returns
    -------
    list of Figure
        A single figure.

    Raises
    ------
    Unanswered
        If `x` is neither measured nor recorded.
    """
    measured = arm.measured(y)
    if x in QUANTITIES:
        across = arm.measured(x)
    else:
        recorded = {name: summary.get(x) for name, summary in arm.datasets.items()}
        across = pd.Series({name: value for name, value in recorded.items() if is_number(value)}, dtype=float)
        if across.empty:
            raise Unanswered(f"{x} is neither measured nor recorded as a number of the datasets")
    points = pd.DataFrame({"x": across, "y": measured}).dropna()
    points = points[[datasets(str(name)) for name in points.index]]
    return [_slope(f"{arm.arm}, log {y} on log {x}", points, minimum, maximum, "datasets", looks)]


def slopes_over_settings(
    solver: str,
    studies: Sequence[Findings],
    axis: str,
    y: str,
    datasets: Callable[[str], bool],
    minimum: float,
    maximum: float,
    looks: int = 1,
) -> list[Figure]:
    """Return the slope of log y on the logarithm of a swept value, for each dataset.

    Parameters
    ----------
    solver : str
        Name of the solver.
    studies : sequence of Findings
        Analysed studies that the claim names.
    axis : str
        Name of the swept parameter.
    y : str
        One of `QUANTITIES`.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    minimum, maximum : float
        Limits of the swept value.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.

    Returns
    -------
    list of Figure
        One figure for each dataset.

    Raises
    ------
    Unanswered
        If the parameter is not swept, or no dataset has values.
    """
    settings = {
        name: float(declared["sweep"][axis])
        for study in studies
        for name, declared in study.design.arms.items()
        if declared.get("solver") == solver and is_number((declared.get("sweep") or {}).get(axis))
    }
    if not settings:
        names = " and ".join(study.results.name for study in studies)
        raise Unanswered(f"study {names} has no sweep of {axis} for {solver}")
    means = pd.DataFrame({value: side(arm, studies).measured(y) for arm, value in settings.items()})
    found = []
    used = [name for name in means.index if datasets(str(name))]
    for dataset in used:
        points = means.loc[dataset].rename("y").rename_axis("x").reset_index().dropna()
        what = f"{solver} on {dataset}, log {y} on log {axis}"
        found.append(_slope(what, points, minimum, maximum, "settings", looks * len(used)))
    if not found:
        raise Unanswered(f"no dataset has {y} of {solver} for several values of {axis}")
    return found


def _slope(what: str, points: pd.DataFrame, minimum: float, maximum: float, unit: str, looks: int) -> Figure:
    """Return the least-squares slope of log y on log x.

    Parameters
    ----------
    what : str
        Description of the slope.
    points : DataFrame
        Columns x and y. Points that are not positive are omitted.
    minimum : float
        Lower limit of x.
    maximum : float
        Upper limit of x.
    unit : str
        Unit of the points, in the plural.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    Figure
        The figure; without an interval for fewer than three points.
    """
    points = points[
        (points["x"] >= minimum) & (points["x"] <= maximum) & (points["x"] > 0) & (points["y"] > 0)
    ]
    n = len(points)
    if n < 3 or points["x"].nunique() < 2:
        return Figure(what, nan, nan, nan, n, unit, note="a slope with an interval requires three points")
    line = linregress(np.log(points["x"]), np.log(points["y"]))
    ends = [
        (line.slope - _t(n - 2, level) * line.stderr, line.slope + _t(n - 2, level) * line.stderr)
        for level in (LEVEL, LEVEL / looks)
    ]
    note = f"R² = {line.rvalue**2:.2f}, x from {points['x'].min():g} to {points['x'].max():g}"
    return Figure(what, float(line.slope), *ends[0], n, unit, float(line.pvalue), note, ends[1])


# -- numbers without sampling error --------------------------------------------------------------


def candidate_ratios(arm: Side, quantity: str, above: str, below: str) -> list[Figure]:
    """Return the median ratio of a column between two datasets over candidates.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.
    above : str
        Name of the dataset in the numerator.
    below : str
        Name of the dataset in the denominator.

    Returns
    -------
    list of Figure
        A single figure, whose interval contains the ratios of nine candidates in ten.

    Raises
    ------
    Unanswered
        If the arm has no trainings on both datasets.
    """
    means = _by_candidate(arm, quantity)
    try:
        ratios = (means.loc[above] / means.loc[below]).dropna()
    except KeyError:
        raise Unanswered(f"no trainings of {arm.arm} on {above} and on {below}") from None
    what = f"{arm.arm}, {quantity}, {above} / {below}"
    middle = ratios.quantile(LEVEL), ratios.quantile(1 - LEVEL)
    return [_whole(what, float(ratios.median()), *middle, len(ratios), "candidates")]


def candidate_steps(arm: Side, quantity: str, along: str, rises: bool) -> list[Figure]:
    """Return the share of neighbouring candidates between which a column rises or falls.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.
    along : str
        Name of the parameter in which the neighbours differ.
    rises : bool
        Count rising steps; otherwise falling ones.

    Returns
    -------
    list of Figure
        A single figure.

    Raises
    ------
    Unanswered
        If the parameter does not exist or has only one value.
    """
    means = _by_candidate(arm, quantity)
    levels = [name for name in means.index.names if name != f"param_{along}"]
    if len(levels) == len(means.index.names):
        raise Unanswered(f"the trainings of {arm.arm} have no parameter {along}")
    steps = means.sort_index().groupby(level=levels, sort=False).diff().dropna()
    if steps.empty:
        raise Unanswered(f"the trainings of {arm.arm} have one value of {along} only")
    share = float((steps > 0).mean() if rises else (steps < 0).mean())
    what = f"{arm.arm}, {quantity} {'rises' if rises else 'falls'} with {along}"
    return [_whole(what, share, share, share, len(steps), "steps")]


def unseen_violators(draws: int, confidence: float) -> list[Figure]:
    """Return an upper bound of the share of violators if no draw found one, as in Strack (2013), 5.1.

    Parameters
    ----------
    draws : int
        Number of draws.
    confidence : float
        Confidence of the bound.

    Returns
    -------
    list of Figure
        A single figure.
    """
    z = float(ndtri((1 + confidence) / 2))
    n = draws + z * z
    share = z * z / (2 * n)
    bound = share + z * sqrt(share * (1 - share) / n)
    return [_whole(f"{draws} draws at {confidence:.0%}", bound, bound, bound, draws, "draws")]


def _by_candidate(arm: Side, quantity: str) -> pd.Series:
    """Return the mean of a column over the inner trainings of each dataset and candidate.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.

    Returns
    -------
    Series
        Means, indexed by dataset and parameters.

    Raises
    ------
    Unanswered
        If there are no such trainings.
    """
    trials = pd.concat([study.results.trials for study in arm.studies])
    rows = trials[(trials["solver"] == arm.arm) & (trials["inner"] != REFIT)]
    if rows.empty or quantity not in rows:
        raise Unanswered(f"no inner trainings of {arm.arm} with {quantity}")
    params = [name for name in map(str, rows.columns) if name.startswith("param_")]
    params = [name for name in params if rows[name].notna().all()]
    return rows.assign(value=numbers(rows[quantity])).groupby(["dataset", *params])["value"].mean()


def _whole(what: str, estimate: float, low: float, high: float, n: int, unit: str) -> Figure:
    """Return a figure that is not an estimate. Its interval extends from the smallest to the largest value.

    Parameters
    ----------
    what : str
        Description of the number.
    estimate : float
        Value of the figure.
    low : float
        Smallest value.
    high : float
        Largest value.
    n : int
        Number of values.
    unit : str
        Unit that `n` counts, in the plural.

    Returns
    -------
    Figure
        The number with the interval from `low` to `high`.
    """
    return Figure(what, estimate, float(low), float(high), n, unit)
