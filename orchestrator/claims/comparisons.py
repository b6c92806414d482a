"""Differences and ratios of two sides, over datasets and on single ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.measured_on import are_comparable
from orchestrator.analysis.paired_means import without_ties
from orchestrator.analysis.random_effects import moderated_variances, random_effects
from orchestrator.analysis.ratios import summarise
from orchestrator.analysis.sample_totals import Sample, estimate_ratio
from orchestrator.analysis.signed_rank import DECIMALS, hodges_lehmann, signed_rank
from orchestrator.analysis.summaries import corrected_standard_error, numbers, test_share
from orchestrator.claims.figures import (
    LEVEL,
    NO_TEST,
    OVER_MEAN,
    TRAININGS,
    Figure,
    Side,
    Unanswered,
    counted,
    t_quantile,
)
from orchestrator.study.families import families, unit_names
from orchestrator.study.schemes import PREDEFINED, n_repeats
from orchestrator.study.targets import TARGET

OTHER_SPLITS, OTHER_PROCESSORS = "different splits", "times of different kinds of processors"
"""Why two arms cannot be compared on a dataset."""
LEFT_OUT = {
    OTHER_SPLITS: "other splits of",
    OTHER_PROCESSORS: "times of different kinds of processors on",
    "": "without",
}
"""Beginning of the note that names the datasets which a figure leaves out, by reason."""
_LARGEST_EXPONENT = 709.0
"""Largest logarithm of a float, rounded down."""
NO_VALUE = "not every outer fold of both arms has a value"


def compared(
    arm: Side,
    reference: Side,
    quantity: str,
    ratio: bool,
    datasets: Callable[[str], bool],
    apart: bool | str = False,
    looks: int = 1,
    over: str = "",
    expected: Sequence[str] = (),
) -> list[Figure]:
    """Compare two arms, or two quantities of an arm, over datasets or on each dataset.

    Over datasets, the figure is the Hodges–Lehmann estimate of the difference, or of the ratio by logarithms,
    with its exact interval. Datasets of one family count once. On each dataset, the figure is the mean over
    outer folds, with an interval by the corrected standard error. That interval is approximate and holds for
    this dataset only. A ratio of seconds of whole searches, of which both arms have a sample, is that of the
    estimated totals, with the interval of the draw.

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
    apart : bool or "seeds", default False
        Compute one figure for each dataset. With "seeds" its sample is the mean of each seed, and its
        interval shows the variation from splits and draws.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.
    over : str, default ''
        Quantity of the reference, one of `QUANTITIES`. By default, the same one. With `OVER_MEAN` the figure
        over datasets is the random-effects mean of the same quantity in place of the typical value.
    expected : sequence of str, default ()
        Names of datasets, without settings, that the test needs. Those that no study of the arm has are
        missing.

    Returns
    -------
    list of Figure
        One figure, or one for each dataset.

    Raises
    ------
    Unanswered
        If no dataset has values of both arms on the same splits.
    """
    is_mean, over = over == OVER_MEAN, "" if over == OVER_MEAN else over
    what = f"{arm.arm} {'/' if ratio else '−'} {_name(reference, arm)}, {quantity}"
    what = f"{arm.arm}, {quantity} / {over}" if over else what
    named = [name for name in arm.datasets if datasets(name)]
    named += [name for name in expected if name not in {each.partition("[")[0] for each in named}]
    quantities = quantity, over or quantity
    sides = list(zip((arm, reference), quantities, strict=True))
    unlike = {name: why for name in named if (why := _unlike(name, arm, reference, *quantities))}
    ends = [each.folds(name) if apart or is_mean else each.means(name) for each, name in sides]
    both = ends[0].add_suffix("_arm").join(ends[1].add_suffix("_reference"), how="inner")
    used = both.index.get_level_values("dataset")
    both = both[used.isin(named) & ~used.isin(unlike)]
    missing = [name for name in named if name not in set(both.index.get_level_values("dataset"))]
    phrases = [
        f"{phrase} {', '.join(names)}"
        for why, phrase in LEFT_OUT.items()
        if (names := [name for name in missing if unlike.get(name, "") == why])
    ]
    estimated = [each.estimated(name, both.index.unique("dataset")) for each, name in sides]
    note = "; ".join(filter(None, dict.fromkeys([*phrases, *estimated])))
    if both.empty:
        if named and len(reasons := {unlike.get(name, "") for name in named}) == 1 and reasons != {""}:
            raise Unanswered(f"{arm.arm} and {_name(reference, arm)} have {reasons.pop()} on every dataset")
        of = f"{over} of {arm.arm}" if over else f"of {_name(reference, arm)}"
        raise Unanswered(f"no dataset has {quantity} of {arm.arm} and {of}")
    if is_mean:
        return [_over_mean(what, both, arm, ratio, note, looks)]
    if not apart:
        return [_over(what, both, arm, quantity, ratio, note, looks)]
    undecided = [
        Figure(f"{what}, {name}", nan, nan, nan, 0, "outer folds", note=unlike.get(name, NO_VALUE))
        for name in missing
    ]
    found = on_each_dataset(what, both, arm, ratio, looks, apart == "seeds")
    if ratio and quantity == "total_seconds" and not over:
        found = _with_sampled_ratios(found, both, arm, reference, looks)
    return [*with_estimates(found, both, sides), *undecided]


def _with_sampled_ratios(
    figures: Sequence[Figure], folds: pd.DataFrame, arm: Side, reference: Side, looks: int
) -> list[Figure]:
    """Return ratios of estimated totals in place of means over outer folds, where both sides are samples.

    The candidates that a sample draws on one outer fold are not those of another. So ratios of single folds
    differ more than those of complete studies, and the mean of their logarithms is biased.

    Parameters
    ----------
    figures : sequence of Figure
        One figure for each dataset, as `on_each_dataset` returns them.
    folds : DataFrame
        The values from which they are computed, indexed by dataset and outer fold.
    arm, reference : Side
        Arms to compare, each with the studies that have it.
    looks : int
        Number of comparisons of the claim.
    """
    found = []
    for dataset, figure in zip(folds.index.unique("dataset"), figures, strict=True):
        first, second = arm.sample(dataset), reference.sample(dataset)
        if first is not None and second is not None:
            figure = _ratio_of_totals(figure.what, first, second, looks * len(figures))
        found.append(figure)
    return found


def _ratio_of_totals(what: str, first: Sample, second: Sample, looks: int) -> Figure:
    """Return the ratio of the estimated totals of two samples.

    Parameters
    ----------
    what : str
        Description of the ratio.
    first, second : Sample
        Measured trainings of the arm and of the reference.
    looks : int
        Number of comparisons, each of which may refute the claim.
    """
    ratio, wide = (estimate_ratio(first, second, 1 - 2 * level) for level in (LEVEL, LEVEL / looks))
    n = int(np.isfinite(first.costs).sum())
    return Figure(
        what,
        *(ratio.value, ratio.low, ratio.high, n, TRAININGS),
        wide=(wide.low, wide.high),
        spread=ratio.se / ratio.value * sqrt(n),
        is_ratio=True,
    )


def with_estimates(
    figures: Sequence[Figure], folds: pd.DataFrame, sides: Sequence[tuple[Side, str]]
) -> list[Figure]:
    """Return figures of single datasets that say from how many trainings they are estimated.

    Parameters
    ----------
    figures : sequence of Figure
        One figure for each dataset, as `on_each_dataset` returns them.
    folds : DataFrame
        The values from which they are computed, indexed by dataset and outer fold.
    sides : sequence of (Side, str)
        Arms with their quantities.

    Returns
    -------
    list of Figure
        The figures with longer notes.
    """
    found = []
    for dataset, figure in zip(folds.index.unique("dataset"), figures, strict=True):
        estimated = [each.estimated(quantity, [dataset]) for each, quantity in sides]
        note = "; ".join(filter(None, dict.fromkeys([figure.note, *estimated])))
        found.append(replace(figure, note=note))
    return found


def _unlike(dataset: str, arm: Side, reference: Side, *quantities: str) -> str:
    """Return why two arms cannot be compared on a dataset.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    arm : Side
        Arm and the studies that have it.
    reference : Side
        Arm to compare with, and the studies that have it.
    *quantities : str
        Quantity of the arm, and that of the reference.

    Returns
    -------
    str
        A key of `LEFT_OUT`; empty if they can, or if one of them lacks the dataset.
    """
    if dataset not in arm.datasets or dataset not in reference.datasets:
        return ""  # there are no values, which the comparison names
    if not _same_splits(dataset, arm, reference):
        return OTHER_SPLITS
    if not any("seconds" in name for name in quantities):
        return ""
    kinds = [each.processors(dataset, name) for each, name in zip((arm, reference), quantities, strict=True)]
    return "" if are_comparable(*kinds) else OTHER_PROCESSORS


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
    summaries = [each.datasets[dataset] for each in (arm, reference)]
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
        of_each, spread = _measured(by_unit.index, *ratios), _spread(by_unit["low"])
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
        of_each, spread = _measured(ends[0].index, *ends), _spread(ends[0])
        estimates = {hodges_lehmann(end).estimate for end in ends}
        estimate = estimates.pop() if len(estimates) == 1 else nan
        tests = [*map(signed_rank, ends)]
        wide = _shift(ends, 2 * LEVEL / looks)
        interval, n, p = (estimate, *_shift(ends, 2 * LEVEL)), len(ends[0]), max(test.p for test in tests)
        two_ways = len({np.sign(test.w_plus - test.w_minus) for test in tests}) > 1
    p = 1.0 if two_ways else p
    unit = "datasets" if len(set(names)) == len(both) else "families"
    if np.isnan(interval[1]):
        few = f"with {counted(n, unit)} the smallest attainable p is 2^−{n} = {2.0**-n:g}, above {LEVEL:g}"
        note = f"{few}; {note}" if note else few
    return Figure(what, *interval, n, unit, p, note, wide, of_each, spread, is_ratio=ratio)


def _over_mean(what: str, both: pd.DataFrame, arm: Side, ratio: bool, note: str, looks: int) -> Figure:
    """Return the random-effects mean of a comparison over datasets.

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
    note : str
        Description of the omitted data; empty if nothing was omitted.
    looks : int
        Number of comparisons of the claim.

    Returns
    -------
    Figure
        Precision-weighted mean over datasets, with its intervals.
    """
    rows = {}
    for dataset, folds in both.groupby(level="dataset", sort=False):
        values = _paired(folds, ratio)
        error = corrected_standard_error(values, _test_share(arm, str(dataset)))
        rows[str(dataset)] = {"mean": values.mean(), "variance": error**2, "degrees": len(values) - 1}
    frame = pd.DataFrame.from_dict(rows, orient="index").dropna()
    if lost := [name for name in rows if name not in frame.index]:
        reasons = "where a training was stopped, both values are 0, or there is a single outer fold"
        note = "; ".join(filter(None, [note, f"without {', '.join(lost)}, {reasons}"]))
    # Members of a family may share their errors, so that their mean has the mean of their variances.
    units = frame.groupby(unit_names(frame.index, families(arm.datasets)), sort=False).mean()
    mean, variance, degrees = (units[name].to_numpy(float) for name in ("mean", "variance", "degrees"))
    found = random_effects(mean, variance, degrees, 2 * LEVEL)
    ends = np.array([(found.low, found.high), found.interval(2 * LEVEL / looks)])
    back: Callable[[Any], Any] = np.exp if ratio else np.asarray
    estimate, (low, high), wide = float(back(found.estimate)), back(ends[0]).tolist(), back(ends[1]).tolist()
    of_each = {str(name): float(back(value)) for name, value in units["mean"].items()}
    unit = "datasets" if len(units) == len(frame) else "families"
    note = "; ".join(filter(None, [f"random-effects mean, τ = {found.tau:.3g}", note]))
    return Figure(
        f"{what}, mean",
        *(estimate, low, high, found.n, unit, found.p, note, (wide[0], wide[1]), of_each),
        spread=found.error * sqrt(found.n) if found.n > 1 else nan,
        is_ratio=ratio,
    )


def _spread(values: pd.Series) -> float:
    """Return the standard deviation of values.

    Parameters
    ----------
    values : Series
        Values of datasets or families, some of which may be infinite bounds.

    Returns
    -------
    float
        NaN for a single value and for infinite ones.
    """
    known = values.to_numpy(float)
    return float(known.std(ddof=1)) if len(known) > 1 and np.isfinite(known).all() else nan


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


def on_each_dataset(
    what: str, both: pd.DataFrame, arm: Side, ratio: bool, looks: int, by_seed: bool = False
) -> list[Figure]:
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
    by_seed : bool, default False
        Whether the sample is the mean of each seed instead of each outer fold.

    Returns
    -------
    list of Figure
        One figure for each dataset, with an interval over its outer folds or seeds. One published split is no
        sample, so that its figure has no interval and alone decides the test. One split with rows drawn at
        random decides nothing.
    """
    found = []
    groups = list(both.groupby(level="dataset", sort=False))
    for dataset, folds in groups:
        values, floor, unit = _paired(folds, ratio), _test_share(arm, str(dataset)), "outer folds"
        if by_seed:
            values, floor, unit = _seed_means(values, arm.study_of(str(dataset))), 0.0, "seeds"
        figure = _mean_figure(f"{what}, {dataset}", values, floor, unit, ratio, looks * len(groups))
        if len(values) == 1 and not by_seed and np.isfinite(values[0]) and _is_published_split(arm):
            at, unit = figure.estimate, "published splits"
            figure = replace(figure, low=at, high=at, wide=None, unit=unit, note=NO_TEST)
        found.append(figure)
    return found


def with_common_level(figures: Sequence[Figure], looks: int) -> list[Figure]:
    """Return figures whose intervals for a refutation hold together, so that the largest excess refutes.

    The excess of a figure over an end of the region is divided by its standard error. The variances are
    moderated over the figures, which adds degrees of freedom. The critical value of the largest of m excesses
    is the quantile of Student's t at 1 − (1 − level)^(1/m) (Šidák, 1967).

    Parameters
    ----------
    figures : sequence of Figure
        Figures of several arms and datasets, each with an interval over its outer folds.
    looks : int
        Number of comparisons of the claim, of which all of these are one.

    References
    ----------
    Z. Šidák (1967), Rectangular confidence regions for the means of multivariate normal distributions,
    *Journal of the American Statistical Association* 62.
    """
    known = [
        figure for figure in figures if np.isfinite([figure.spread, figure.estimate]).all() and figure.n > 1
    ]
    variances = np.array([figure.spread**2 * (1 / figure.n + figure.floor) for figure in known])
    degrees = np.array([figure.n - 1.0 for figure in known])
    moderated, prior = moderated_variances(variances, degrees)
    level = 1 - (1 - LEVEL / looks) ** (1 / max(1, len(known)))
    wide: dict[int, tuple[float, float]] = {}
    for figure, variance, degree in zip(known, moderated, degrees, strict=True):
        reach = sqrt(variance) * t_quantile(min(1e6, degree + prior), level)
        scale, back = (log, _exp) if figure.is_ratio else (float, float)
        wide[id(figure)] = back(scale(figure.estimate) - reach), back(scale(figure.estimate) + reach)
    return [replace(figure, wide=wide.get(id(figure), figure.wide)) for figure in figures]


def _paired(folds: pd.DataFrame, ratio: bool) -> np.ndarray:
    """Return the difference of both arms on each outer fold, or the logarithm of their ratio.

    Parameters
    ----------
    folds : DataFrame
        Bounds of both arms, by outer fold.
    ratio : bool
        Compute a ratio instead of a difference.

    Returns
    -------
    ndarray of shape (n_folds,)
        NaN where a training was stopped or both values are 0.
    """
    if ratio:
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = np.log(_ratios(folds))
        return np.where(low == high, low, nan)
    low, high = folds["low_arm"] - folds["high_reference"], folds["high_arm"] - folds["low_reference"]
    return np.where(low == high, np.round(low, DECIMALS), nan)


def _seed_means(values: np.ndarray, study: Findings) -> np.ndarray:
    """Return the means of the values of each seed.

    Parameters
    ----------
    values : ndarray of shape (n_folds,)
        Values of the outer folds, one seed after another.
    study : Findings
        The study that they come from.

    Returns
    -------
    ndarray of shape (n_seeds,)
        Means.
    """
    repeats = n_repeats(study.design.protocol)
    means: np.ndarray = values.reshape(repeats, -1).mean(axis=1)
    return means


def _mean_figure(what: str, values: np.ndarray, floor: float, unit: str, ratio: bool, looks: int) -> Figure:
    """Return the mean of values with its interval by Student's t.

    Parameters
    ----------
    what : str
        Description of the comparison.
    values : ndarray of shape (n,)
        Differences, or logarithms of ratios.
    floor : float
        Ratio of test rows to training rows, for the corrected standard error; 0 for independent values.
    unit : str
        Unit that `n` counts, in the plural.
    ratio : bool
        Whether the values are logarithms of ratios.
    looks : int
        Number of comparisons, each of which may refute the claim.

    Returns
    -------
    Figure
        Mean with its intervals.
    """
    back: Callable[[float], float] = _exp if ratio else float
    estimate, n = float(values.mean()), len(values)
    error = corrected_standard_error(values, floor)
    reaches = [error * t_quantile(n - 1, level) for level in (LEVEL, LEVEL / looks)] if n > 1 else [nan] * 2
    ends = [(back(estimate - reach), back(estimate + reach)) for reach in reaches]
    mean = nan if np.isnan(estimate) else back(estimate)
    note = "" if not np.isnan(estimate) else "a training was stopped, or both values are 0"
    spread = float(values.std(ddof=1)) if n > 1 else nan
    of = {"spread": spread, "floor": floor, "is_ratio": ratio}
    return Figure(what, mean, *ends[0], n, unit, nan, note, ends[1], **of)  # type: ignore[arg-type]


def _exp(value: float) -> float:
    """Return the exponential of a number; infinite if it exceeds the largest float.

    Parameters
    ----------
    value : float
        End of an interval of logarithms, which is far off for two folds and many comparisons.
    """
    return inf if value > _LARGEST_EXPONENT else exp(value)


def _is_published_split(arm: Side) -> bool:
    """Return whether the outer splits of all studies of an arm are those of the datasets.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.

    Returns
    -------
    bool
        False if a splitter draws rows.
    """
    outer = (study.design.protocol.get("outer") for study in arm.studies)
    return all(isinstance(each, Mapping) and each.get(TARGET) == PREDEFINED for each in outer)


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
    rows = arm.study_of(dataset).results.outer
    rows = rows[(rows["dataset"] == dataset) & (rows["solver"] == arm.arm)]
    return test_share({name: numbers(rows[name]) for name in ("n_train", "n_test")})
