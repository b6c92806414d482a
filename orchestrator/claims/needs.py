"""Compute what would decide an undecided claim: how many datasets, folds or seeds, and how many hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite, isnan, log, nan, sqrt
from typing import NamedTuple

from scipy.special import stdtrit

from orchestrator.claims.decisions import (
    NO_DATA,
    NOT_RUN,
    OTHER_TERMS,
    UNDECIDED,
    Decision,
    Outcome,
)
from orchestrator.claims.figures import LEVEL, TRAININGS, Figure
from orchestrator.claims.terms import Terms

_MAX_VALUES, _MAX_DATASETS = 10_000, 100
"""Largest numbers of values and of datasets that are reported. Beyond them another design is needed."""

_MIN_DATASETS = 5
"""Smallest number of datasets for an exact interval at `LEVEL`: 2⁻⁵ is below 0.05."""


class Hours(NamedTuple):
    """Core hours of an experiment.

    Attributes
    ----------
    whole : float
        Hours of all its trainings; NaN if they are not known.
    left : float
        Hours of those that are not stored.
    """

    whole: float
    left: float


@dataclass(frozen=True)
class Need:
    """What would decide a test.

    Attributes
    ----------
    text : str
        Sentence for a reader.
    hours : float
        Core hours of it; NaN if they are not known.
    n : int
        Number of values that would decide the test; 0 if it needs a run.
    unit : str
        Unit of `n`, in the plural; empty if the test needs a run.
    """

    text: str
    hours: float = nan
    n: int = 0
    unit: str = ""


def needed_values(figure: Figure, region: tuple[float, float]) -> int | None:
    """Return how many values would decide a test, if estimate and spread stayed as they are.

    The interval is that of Student's t. An estimate inside the region needs an interval inside the region. An
    estimate outside needs an interval outside, at the adjusted level.

    Parameters
    ----------
    figure : Figure
        Undecided figure.
    region : (float, float)
        Lower and upper end of the claim.

    Returns
    -------
    int or None
        The number; None if it is not known, or if it exceeds the largest numbers that are reported.
    """
    distance, inside = _distance(figure, region)
    if isnan(figure.spread) or isnan(distance) or distance <= 0:
        return None
    factor = 1.0 if inside else _adjusted(figure)
    over_datasets = figure.unit in ("datasets", "families")
    least = max(figure.n + 1, _MIN_DATASETS if over_datasets else 2)
    ends = [least, max(least, _MAX_DATASETS if over_datasets else _MAX_VALUES)]
    if _reach(figure, ends[1]) * factor > distance:
        return None
    while ends[0] < ends[1]:
        middle = sum(ends) // 2
        ends = [ends[0], middle] if _reach(figure, middle) * factor <= distance else [middle + 1, ends[1]]
    return ends[0]


def _reach(figure: Figure, n: int) -> float:
    """Return half the width of the interval of a figure with another number of values.

    Parameters
    ----------
    figure : Figure
        Figure with its spread.
    n : int
        Number of values.

    Returns
    -------
    float
        Half the width, in the unit of the spread.
    """
    quantile = float(stdtrit(n - 1, 1 - LEVEL))
    return quantile * figure.spread * sqrt(1 / n + figure.floor)


def _adjusted(figure: Figure) -> float:
    """Return how much wider the interval for a refutation is.

    Parameters
    ----------
    figure : Figure
        Figure with both intervals.

    Returns
    -------
    float
        Ratio of the widths; 1.3 if it is not known.
    """
    scale = log if figure.is_ratio else float
    low, high = figure.refuting
    ends = (figure.low, figure.high, low, high)
    if (
        not all(isfinite(end) and (end > 0 or not figure.is_ratio) for end in ends)
        or figure.low == figure.high
    ):
        return 1.3
    return (scale(high) - scale(low)) / (scale(figure.high) - scale(figure.low))


def _distance(figure: Figure, region: tuple[float, float]) -> tuple[float, bool]:
    """Return the distance of an estimate from the nearest end of the region, and whether it is inside.

    Parameters
    ----------
    figure : Figure
        Figure with its estimate.
    region : (float, float)
        Lower and upper end of the claim.

    Returns
    -------
    distance : float
        Distance in the unit of the spread; NaN if the estimate is not known.
    inside : bool
        Whether the estimate lies in the region.
    """

    def scaled(value: float) -> float:
        if not figure.is_ratio:
            return value
        return log(value) if value > 0 else -inf

    estimate, (lower, upper) = scaled(figure.estimate), map(scaled, region)
    inside = lower <= estimate <= upper
    return min(abs(estimate - lower), abs(estimate - upper)), inside


def need_of(outcome: Outcome, terms: Mapping[str, Terms], hours: Mapping[str, Hours]) -> Need | None:
    """Return what would decide a test.

    Parameters
    ----------
    outcome : Outcome
        Outcome of the test.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.
    hours : mapping of str to Hours
        Core hours of each experiment, by name.

    Returns
    -------
    Need or None
        None if the test is decided.
    """
    if outcome.verdict != UNDECIDED:
        return None
    names = outcome.part.studies
    known = [hours[name] for name in names if name in hours]
    is_known = len(known) == len(names)
    left = sum(each.left for each in known) if is_known else nan
    named = " and ".join(names)
    if outcome.reason == NOT_RUN:
        return Need(f"a run of {named}", left)
    if not named:  # no study can answer it
        return Need(outcome.why)
    lacks = any(each.startswith("without ") for name in names for each in terms.get(name, Terms()).coverage)
    if outcome.reason in (OTHER_TERMS, NO_DATA) or lacks or outcome.figure is None:
        return Need(f"a run of {named} as declared", left)
    figure = outcome.figure
    n = needed_values(figure, outcome.part.region)
    if n is None:
        return Need(f"another design: more {figure.unit} would not, at this estimate and spread")
    share = n / figure.n - (1 if figure.unit in ("datasets", "families", TRAININGS) else 0)
    whole = sum(each.whole for each in known) if is_known else nan
    return Need(f"about {n:,} {figure.unit} in place of {figure.n}", whole * share, n, figure.unit)


def needs_of(decision: Decision, terms: Mapping[str, Terms], hours: Mapping[str, Hours]) -> list[Need]:
    """Return what would decide a claim, for each test that leaves it undecided.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    terms : mapping of str to Terms
        Differences between the studies and their experiments, by name.
    hours : mapping of str to Hours
        Core hours of each experiment, by name.

    Returns
    -------
    list of Need
        Distinct needs. Of several numbers of values for the same study, only the largest.
    """
    if decision.verdict != UNDECIDED:
        return []
    most: dict[tuple[object, ...], Need] = {}
    for outcome in decision.outcomes:
        if (need := need_of(outcome, terms, hours)) is None:
            continue
        key = (outcome.part.studies, need.unit) if need.unit else (need.text,)
        if key not in most or need.n > most[key].n:
            most[key] = need
    return list(most.values())


def hours_text(hours: float) -> str:
    """Return core hours as text.

    Parameters
    ----------
    hours : float
        Core hours; may be NaN.

    Returns
    -------
    str
        For example `about 3 core hours`; empty for NaN.
    """
    if isnan(hours):
        return ""
    if hours < 1:
        minutes = max(1, ceil(60 * hours))
        return "about a core minute" if minutes == 1 else f"about {minutes} core minutes"
    return f"about {hours:,.0f} core hours" if hours >= 10 else f"about {hours:.1f} core hours"
