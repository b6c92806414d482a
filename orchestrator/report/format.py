"""Printing of numbers, lists and machines in a report."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from orchestrator.analysis.design import PERCENT_METRICS
from orchestrator.analysis.ratios import BETWEEN, EXACT
from orchestrator.study.text import plural as plural
from orchestrator.study.text import plural_of as plural_of

MISSING = "–"
MARK = "‡"
"""Mark of an arm with a refit that did not converge or claims a large duality gap."""

DIGITS = 10
"""Significant digits of numbers in files. Processors differ in the last of the 16 digits of a float64."""

_MOST_DECIMALS = 4
"""Largest number of decimals of a percentage."""

_METRIC_NAMES = {"roc_auc": "area under the ROC curve"}


def reproducible(value: float) -> float:
    """Round a number to the digits that another processor reproduces.

    Parameters
    ----------
    value : float
        The number. Whole numbers are unchanged, because counts are exact; so are NaN and infinities.

    Returns
    -------
    float
        The number, rounded to `DIGITS` significant digits.
    """
    value = float(value)
    return value if value.is_integer() else float(f"{value:.{DIGITS}g}")


def metric_name(metric: str) -> str:
    """Return the displayed name of a scorer.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    """
    return _METRIC_NAMES.get(metric, metric.replace("_", " "))


def is_percent(metric: str) -> bool:
    """Return whether a metric is a share that is printed in per cent.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    """
    return metric in PERCENT_METRICS


def score(value: float, metric: str, digits: int = 2) -> str:
    """Print a score, or a standard error of scores, without its unit; large values have fewer decimals.

    Parameters
    ----------
    value : float
        A score, or a standard error of scores.
    metric : str
        Name of the scorer.
    digits : int, default=2
        Decimals of a percentage.
    """
    if _missing(value):
        return MISSING
    if is_percent(metric):
        return f"{100 * value:.{digits}f}"
    return f"{value:,.{max(0, digits + 2 - int(math.log10(max(1.0, abs(value)))))}f}"


def difference(value: float, metric: str, digits: int = 2) -> str:
    """Print a signed difference of scores without its unit.

    Parameters
    ----------
    value : float
        A difference of scores.
    metric : str
        Name of the scorer.
    digits : int, default=2
        Decimals of a percentage.
    """
    if _missing(value):
        return MISSING
    return _signed(value, score(abs(value), metric, digits))


def decimals(values: Iterable[float], metric: str, least: int = 1) -> int:
    """Return the smallest number of decimals with which no number but 0 is printed as 0.

    Parameters
    ----------
    values : iterable of float
        Scores or differences of scores; missing ones are omitted.
    metric : str
        Name of the scorer.
    least : int, default=1
        Smallest number of decimals of a percentage.

    Returns
    -------
    int
        At most `_MOST_DECIMALS`.
    """
    sizes = [abs(value) for value in values if not _missing(value) and value]
    enough = (
        digits
        for digits in range(least, _MOST_DECIMALS)
        if all(score(size, metric, digits).strip("0.") for size in sizes)
    )
    return next(enough, _MOST_DECIMALS)


def correlation(value: float) -> str:
    """Print a number between −1 and 1 with its sign.

    Parameters
    ----------
    value : float
        A correlation coefficient or an exponent.
    """
    return _signed(value, f"{abs(value):.2f}")


def in_unit(metric: str) -> str:
    """Return a phrase with the unit of differences, to follow a noun; empty without a unit.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    """
    return " (in percentage points)" if is_percent(metric) else ""


def margin(value: float, metric: str) -> str:
    """Print a chosen margin of scores with its unit.

    Parameters
    ----------
    value : float
        Half the width of the region of practical equivalence.
    metric : str
        Name of the scorer.
    """
    if not is_percent(metric):
        return f"{value:g}"
    points = f"{100 * value:g}"
    return f"{points} percentage {'point' if points == '1' else 'points'}"


def probability(value: float) -> str:
    """Print an estimated probability with two decimals, or as a bound near 0 and 1.

    Parameters
    ----------
    value : float
        Probability, from 0 to 1.
    """
    if _missing(value):
        return MISSING
    return "< 0.01" if value < 0.005 else "> 0.99" if value > 0.995 else f"{value:.2f}"


def p_value(value: float) -> str:
    """Print a p-value with three decimals, four below 0.1, and as a bound below 0.0001.

    Parameters
    ----------
    value : float
        A p-value.
    """
    if _missing(value):
        return MISSING
    if value < 1e-4:
        return "< 0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}"


def p_equals(value: float) -> str:
    """Print a p-value as part of a sentence: `p = 0.0312`, `p < 0.0001`.

    Parameters
    ----------
    value : float
        A p-value.
    """
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def evidence(value: float) -> str:
    """Print an e-value with three significant digits.

    Parameters
    ----------
    value : float
        An e-value.
    """
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def count(value: float) -> str:
    """Print a count or a mean of counts with a thousands separator.

    Parameters
    ----------
    value : float
        A count, or a mean of counts.
    """
    if _missing(value):
        return MISSING
    if value < 100 and value != int(value):
        return f"{value:.1f}"
    return f"{value:,.0f}"


def time(value: float, like: float | None = None) -> str:
    """Print a duration without its unit, with three significant digits or the decimals of another duration.

    At most six decimals are printed, and none from 1000 on.

    Parameters
    ----------
    value : float
        Duration in the unit that the caller prints beside it, such as seconds or milliseconds.
    like : float, optional
        The duration whose number of decimals is taken; by default the value itself.
    """
    if _missing(value):
        return MISSING
    like = value if like is None else like
    if value <= 0:
        return "0"
    if like <= 0 or like >= 1000:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(like))
    return f"{value:.{min(max(digits, 0), 6)}f}"


def time_interval(low: float, high: float) -> str:
    """Print the ends of an interval of a duration, or the lower end if there is no upper one.

    Parameters
    ----------
    low, high : float
        Ends in the unit that the caller prints beside them; `high` is infinite if there is no upper end.
    """
    return f"at least {time(low)}" if math.isinf(high) else f"{time(low)} to {time(high)}"


def ratio(value: float) -> str:
    """Print a ratio with two decimals, and with two significant digits below a tenth.

    Parameters
    ----------
    value : float
        A ratio of costs.
    """
    if math.isinf(value):
        return "∞"
    if _missing(value):
        return MISSING
    if 0 < value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def time_ratio(value: float) -> str:
    """Print a ratio of times with two significant digits: another processor would change the others.

    Parameters
    ----------
    value : float
        A ratio of measured times.
    """
    if _missing(value) or math.isinf(value) or not value > 0:
        return ratio(value)
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    digits = 1 - math.floor(math.log10(rounded))  # 9.96 rounds to 10
    return f"{rounded:,.{max(0, digits)}f}"


def bounded_ratio(
    bound: str,
    value: float,
    median_low: float,
    median_high: float,
    printer: Callable[[float], str] = ratio,
) -> str:
    """Print a geometric mean, a bound on it, or only a median, as far as stopped trainings allow.

    Parameters
    ----------
    bound : str
        Kind of the number: `EXACT`, `AT_MOST`, `AT_LEAST` or `BETWEEN`.
    value : float
        The geometric mean, or a bound on it.
    median_low : float
        Lower end of the median.
    median_high : float
        Upper end of the median.
    printer : callable
        Prints a ratio. Default: `ratio`.
    """
    if bound != BETWEEN:
        return printer(value) if bound == EXACT or _missing(value) else f"{bound} {printer(value)}"
    if median_low == median_high:
        return f"median {printer(median_low)}"
    return f"median {printer(median_low)} to {printer(median_high)}"


def with_interval(estimate: str, low: str, high: str, confidence: float) -> str:
    """Print an estimate, its interval and the confidence of the interval.

    Parameters
    ----------
    estimate : str
        The printed estimate.
    low : str
        The printed lower end.
    high : str
        The printed upper end.
    confidence : float
        Confidence of the interval; NaN if there is none.
    """
    interval = "(no interval)" if _missing(confidence) else f"[{low}, {high}] at {100 * confidence:.1f} %"
    return f"{estimate} {interval}"


def level(alpha: float) -> str:
    """Print the confidence level of the intervals that go with tests at a level.

    Parameters
    ----------
    alpha : float
        Level of the tests; intervals are at 1 − α.
    """
    return f"{100 * (1 - alpha):g} %"


def gap(value: float) -> str:
    """Print a relative duality gap.

    Parameters
    ----------
    value : float
        A relative duality gap.
    """
    if math.isinf(value):
        return "∞"
    return MISSING if _missing(value) else f"{value:.1e}" if value < 1e-3 else f"{value:.2g}"


def share(value: float) -> str:
    """Print a share in per cent, without the sign.

    Parameters
    ----------
    value : float
        A share from 0 to 1.
    """
    return MISSING if _missing(value) else f"{100 * value:.1f}"


def superscript(number: int) -> str:
    """Print a number as an exponent.

    Parameters
    ----------
    number : int
        A whole number from 0.
    """
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def listed(names: Sequence[str]) -> str:
    """Join names with commas, and “and” before the last one.

    Parameters
    ----------
    names : sequence of str
        The names in order.
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def machine(host: Mapping[str, Any]) -> str:
    """Print the processor, the cores and the memory of a machine.

    Parameters
    ----------
    host : mapping of str to object
        Description of the machine in the record of a run.
    """
    cores = plural(int(host.get("cores", 0)), "core")
    return f"{host.get('cpu', 'unknown processor')}, {cores}, {host.get('memory_gb', '?')} GiB"


def file_suffix(number: int) -> str:
    """Return the end of the name of one of several tables or figures of a kind.

    Parameters
    ----------
    number : int
        Index of the table or figure, from 0.

    Returns
    -------
    str
        Empty for the first; "_2" for the second.
    """
    return f"_{number + 1}" if number else ""


def _signed(value: float, magnitude: str) -> str:
    # A value that is printed as zero has no sign.
    sign = "" if not magnitude.strip("0.") else "+" if value > 0 else "−"
    return sign + magnitude


def _missing(value: float | None) -> bool:
    return value is None or not math.isfinite(value)
