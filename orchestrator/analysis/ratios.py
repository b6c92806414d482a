"""Cost ratios of two arms, per dataset and pooled. A trial that timed out contributes a lower bound."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from orchestrator.analysis.adjustment import MaxTFamily
from orchestrator.analysis.design import Design
from orchestrator.analysis.pairwise import ALPHA, verdict
from orchestrator.analysis.signed_rank import hodges_lehmann, signed_rank
from orchestrator.analysis.statistics import holm
from orchestrator.analysis.summaries import finished, rows_by_pair
from orchestrator.study.families import unit_names
from orchestrator.study.records import Status

FASTER, SLOWER = "faster", "slower"
DECIDED = (SLOWER, FASTER)
UNDECIDED = "not decided: the result depends on the trainings that were stopped"

_OF_PREDICTIONS = ("predict_seconds", "seconds_per_row")
"""Costs of using a model. The model of a training that is not stopped may predict faster."""

EXACT, AT_MOST, AT_LEAST, BETWEEN = "=", "≤", "≥", "between"
"""Relations of a summary to its bounds if some trainings were stopped; see `RatioSummary.bound`."""


@dataclass(frozen=True)
class RatioSummary:
    """Ratios of one cost, arm / reference, over datasets.

    Every quantity is computed twice: with all ratios at their lower ends, and with all at their upper ends.

    Attributes
    ----------
    n, n_censored : int
        Number of datasets, and of those with a stopped training.
    bound : {"=", "≤", "≥", "between"}
        Whether `ratio` and `typical` are the estimates, or bounds on them; "between": neither is known.
    ratio : float
        Geometric mean.
    ratio_low, ratio_high : float
        Its interval by Student's t on the logarithms; only without stopped trainings.
    median_low, median_high : float
        Ends of the median; equal unless stopped trainings leave it open.
    typical : float
        Hodges–Lehmann estimate on the logarithms.
    typical_low, typical_high, confidence : float
        Its distribution-free interval, valid with stopped trainings too, and the confidence attained.
    p_lower, p_upper : float
        Exact signed-rank p of the logarithms at the lower and at the upper ends.
    sign : {-1, 0, 1}
        Direction in which the rank sums point at both ends; 0 if they disagree or balance.
    n_zero : int
        Number of datasets with a ratio of 1.
    """

    n: int
    n_censored: int
    bound: str
    ratio: float
    ratio_low: float
    ratio_high: float
    median_low: float
    median_high: float
    typical: float
    typical_low: float
    typical_high: float
    confidence: float
    p_lower: float
    p_upper: float
    sign: int
    n_zero: int


def costs(rows: pd.DataFrame, design: Design, column: str) -> dict[str, np.ndarray]:
    """Bound the mean cost of every arm on every dataset.

    The mean is known only with a finished or timed-out refit on every outer fold. With a timed-out refit the
    mean has no upper end. The lower end of that refit is its cost at the time limit, or 0 for a cost of
    predictions and for merged studies with different limits.

    Parameters
    ----------
    rows : DataFrame
        Refits, one for each outer split of a dataset × arm.
    design : Design
        The design of the study.
    column : str
        Name of the cost.

    Returns
    -------
    dict of str to ndarray (2, n_datasets)
        The lower and the upper ends of each arm, NaN where unknown.
    """
    ends = {arm: np.full((2, len(design.datasets)), nan) for arm in design.arms}
    index = {dataset: i for i, dataset in enumerate(design.datasets)}
    pairs = design.pairs if column in rows else ()
    for (dataset, arm), group in rows_by_pair(rows, pairs, [column], ["status", "outer"]):
        fits = finished(group)
        values, stopped = fits[column], fits["status"] == Status.TIMEOUT
        known = ~np.isnan(values)
        if column in _OF_PREDICTIONS:
            values[stopped] = 0.0
        elif known.any() or column == "fit_seconds":
            # A training that was killed at the time limit cost at least that much.
            limit = design.max_seconds if column == "fit_seconds" else 0
            values[stopped & ~known] = limit or 0
        if len(set(fits["outer"])) == design.n_outer(dataset) and len(values) and not np.isnan(values).any():
            low = float(values.mean())
            if stopped.any() or low > 0:  # two costs of zero have no ratio
                ends[arm][:, index[dataset]] = low, inf if stopped.any() else low
    return ends


def divide(costs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the ends of an arm's costs divided by a reference's, by dataset; see `costs`.

    Parameters
    ----------
    costs : ndarray
        Ends of the costs of an arm, by dataset.
    reference : ndarray
        Ends of the costs of the reference, by dataset.
    """
    # A training that was stopped before its cost was measurable gives a ratio without an upper bound.
    with np.errstate(divide="ignore"):
        return costs / reference[::-1]


def summarise(ratios: np.ndarray, alpha: float = ALPHA) -> RatioSummary:
    """Summarise the lower and the upper ends of ratios over datasets that have one; intervals at 1 − α.

    Parameters
    ----------
    ratios : ndarray
        Lower and upper ends, by dataset; NaN where there is none.
    alpha : float, default=ALPHA
        Intervals are at 1 − α.
    """
    with np.errstate(divide="ignore"):
        ends = lower, upper = np.log(ratios[:, ~np.isnan(ratios[0])])
    n, bound = len(lower), _bound(lower, upper)
    shifts = [hodges_lehmann(pd.Series(end), 1 - alpha) for end in ends]
    tests = [signed_rank(pd.Series(end)) for end in ends]
    signs = {int(np.sign(test.w_plus - test.w_minus)) for test in tests}
    means, medians, reach = [nan, nan], [nan, nan], nan
    if n:
        with np.errstate(invalid="ignore"):  # a mean of −∞ and ∞ is nan
            means, medians = ([float(mean(end)) for end in ends] for mean in (np.mean, np.median))
    if bound == EXACT and n > 1:
        reach = float(stdtrit(n - 1, 1 - alpha / 2) * lower.std(ddof=1) / sqrt(n))
    side = 0 if bound == AT_LEAST else 1
    known = n > 0 and bound != BETWEEN
    return RatioSummary(
        n=n,
        n_censored=int((lower != upper).sum()),
        bound=bound,
        ratio=float(np.exp(means[side])) if known else nan,
        ratio_low=float(np.exp(means[0] - reach)),
        ratio_high=float(np.exp(means[0] + reach)),
        median_low=float(np.exp(medians[0])),
        median_high=float(np.exp(medians[1])),
        typical=float(np.exp(shifts[side].estimate)) if known else nan,
        typical_low=_exp(shifts[0].low),
        typical_high=_exp(shifts[1].high),
        confidence=nan if shifts[0].confidence is None else shifts[0].confidence,
        p_lower=tests[0].p if n else nan,
        p_upper=tests[1].p if n else nan,
        sign=signs.pop() if len(signs) == 1 else 0,
        n_zero=max(test.n_zero for test in tests),
    )


def _bound(lower: np.ndarray, upper: np.ndarray) -> str:
    down, up = bool(np.isneginf(lower).any()), bool(np.isposinf(upper).any())
    return {(False, False): EXACT, (True, False): AT_MOST, (False, True): AT_LEAST}.get((down, up), BETWEEN)


def _exp(value: float | None) -> float:
    return nan if value is None else float(np.exp(value))


def compare_costs(
    rows: pd.DataFrame, design: Design, columns: Iterable[str], arms: Iterable[str], reference: str
) -> pd.DataFrame:
    """Compare the costs of arms with those of a reference.

    Columns: solver, reference, and for every cost `<cost>_<field>` with the fields of `RatioSummary`, and
    `<cost>_excluded`, the datasets or families left out because an arm did not finish every outer fold.

    Parameters
    ----------
    rows : DataFrame
        Refits whose costs may be compared.
    design : Design
        The design of the study.
    columns : iterable of str
        Names of the costs.
    arms : iterable of str
        The arms to compare.
    reference : str
        The arm whose costs are the denominators.
    """
    known = {column: costs(rows, design, column) for column in columns}
    units = _units(design)
    table = []
    for arm in arms:
        row: dict[str, object] = {"solver": arm, "reference": reference}
        for column, bounds in known.items():
            ratios = _ratios_of_units(bounds[arm], bounds[reference], units)
            row |= {
                f"{column}_{name}": value for name, value in vars(summarise(ratios, design.alpha)).items()
            }
            row[f"{column}_excluded"] = ", ".join(compress(units, np.isnan(ratios[0])))
        table.append(row)
    return pd.DataFrame(table)


def log_ratios(
    rows: pd.DataFrame, design: Design, column: str, arms: Iterable[str], reference: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the logarithms of the lower and of the upper bounds of the ratios of a cost.

    Parameters
    ----------
    rows : DataFrame
        Refits whose costs may be compared.
    design : Design
        The design of the study.
    column : str
        Name of the cost.
    arms : iterable of str
        The arms to compare.
    reference : str
        The arm whose costs are the denominators.

    Returns
    -------
    lower, upper : DataFrame (units, arms)
        NaN if an arm did not finish every outer fold; infinite if nothing bounds the ratio.
    """
    bounds, units = costs(rows, design, column), _units(design)
    each = {arm: _ratios_of_units(bounds[arm], bounds[reference], units) for arm in arms}
    with np.errstate(divide="ignore"):
        lower, upper = (
            pd.DataFrame({arm: np.log(ratios[end]) for arm, ratios in each.items()}, index=list(units))
            for end in (0, 1)
        )
    return lower, upper


def _ratios_of_units(
    bounds: np.ndarray, of_reference: np.ndarray, units: Mapping[str, Sequence[int]]
) -> np.ndarray:
    """Return bounds of the ratio of two arms on each unit, the geometric mean over its datasets.

    Parameters
    ----------
    bounds, of_reference : ndarray of shape (2, n_datasets)
        Lower and upper bounds of the costs.
    units : mapping of str to sequence of int
        Positions of the datasets of each unit.
    """
    each = divide(bounds, of_reference)
    return np.stack([_geometric_mean(each[:, indices]) for indices in units.values()], axis=1)


def _units(design: Design) -> dict[str, list[int]]:
    """Return the positions of the datasets of each family, and of each other dataset, by name.

    Parameters
    ----------
    design : Design
        The design of the study.
    """
    units: dict[str, list[int]] = {}
    for index, name in enumerate(unit_names(design.datasets, design.families)):
        units.setdefault(name, []).append(index)
    return units


def _geometric_mean(ratios: np.ndarray) -> np.ndarray:
    if ratios.shape[1] == 1:
        return np.asarray(ratios[:, 0])
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(ratios).mean(axis=1)))


def tested_p(comparison: pd.DataFrame, column: str) -> list[float]:
    """Return a p-value for every arm. It is valid for any possible cost of stopped trainings; 1 if not known.

    Parameters
    ----------
    comparison : DataFrame
        Ratios, as `compare_costs` returns them.
    column : str
        Name of the cost.
    """
    two_ways = (comparison[f"{column}_n_censored"] > 0) & (comparison[f"{column}_sign"] == 0)
    return _p_of_ends(comparison, column).max(axis=1).mask(two_ways).fillna(1.0).tolist()


def _p_of_ends(comparison: pd.DataFrame, column: str) -> pd.DataFrame:
    return comparison[[f"{column}_p_lower", f"{column}_p_upper"]]


def decide(
    comparison: pd.DataFrame,
    column: str,
    also_tested: Sequence[float],
    alpha: float = ALPHA,
    unit: str = "dataset",
    joint: MaxTFamily | None = None,
) -> pd.DataFrame:
    """Add the verdicts on one cost: columns p, p_adjusted, family, verdict.

    Parameters
    ----------
    comparison : DataFrame
        The table of `compare_costs`.
    column : str
        Name of the cost.
    also_tested : sequence of float
        The p-values of other tests that belong to the family.
    alpha : float
        Level of the tests.
    unit : str
        Unit that is counted, "dataset" or "family".
    joint : MaxTFamily, optional
        The tests by max-t, which then decide. By default, Holm's method adjusts the signed-rank tests.
    """
    p = tested_p(comparison, column)
    size = len(p) + len(also_tested)
    # A comparison is undecided if only the smaller p of the two ends is significant.
    signs = comparison[f"{column}_sign"].to_numpy()
    if joint is None:
        smaller = _p_of_ends(comparison, column).min(axis=1).fillna(1.0)
        at_best, at_worst = (holm(np.array([*each, *also_tested]))[: len(p)] for each in (smaller, p))
    else:
        at_best, at_worst, signs = joint.times_at_best, joint.times_at_worst, joint.times_sign
    verdicts = [
        UNDECIDED
        if row[f"{column}_n_censored"] and best <= alpha < each
        # The first word of `DECIDED` belongs to ratios above 1.
        else verdict(
            each,
            sign,
            row[f"{column}_n"],
            row[f"{column}_n_zero"],
            size if joint is None else 1,
            alpha,
            DECIDED,
            unit,
        )
        for row, each, best, sign in zip(comparison.to_dict("records"), at_worst, at_best, signs, strict=True)
    ]
    known = comparison[f"{column}_n"] > 0
    tests = pd.DataFrame({"p": p, "p_adjusted": at_worst}).where(known, axis=0)
    return comparison.assign(**tests, family=size, verdict=verdicts)
