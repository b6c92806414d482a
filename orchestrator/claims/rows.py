"""Print the outcomes of claims as rows of text."""

from math import isfinite, isinf, isnan

from orchestrator.claims.decisions import OTHER_TERMS, UNDECIDED, Decision
from orchestrator.claims.declared import Part
from orchestrator.claims.figures import Figure, counted
from orchestrator.report import format as fmt

COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
"""Header of the printed outcomes."""


def verdict_text(verdict: str, reason: str, found: str) -> str:
    """Return a verdict with the reason why it is undecided.

    Parameters
    ----------
    verdict : str
        The verdict that counts.
    reason : str
        One of `REASONS`; empty for a decided test or claim.
    found : str
        The verdict on other terms, if that is the reason.

    Returns
    -------
    str
        For example `undecided: no power`, or `undecided: on other terms (reproduced there)`.
    """
    if not reason:
        return verdict
    there = f" ({found} there)" if reason == OTHER_TERMS and found not in ("", UNDECIDED) else ""
    return f"{verdict}: {reason}{there}"


def printed_rows(decision: Decision) -> list[tuple[str, ...]]:
    """Return the outcomes of a claim as printed cells.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.

    Returns
    -------
    list of tuple of str
        One row for each outcome, with the columns of `COLUMNS`.
    """
    rows: list[tuple[str, ...]] = []
    for row, outcome in zip(decision.frame().to_dict("records"), decision.outcomes, strict=True):
        is_score = (
            outcome.part.test == "difference" and outcome.part.options.get("quantity", "score") == "score"
        )
        lower, upper = (_end(row[name], is_score) for name in ("least", "most"))
        of_times = _is_ratio_of_times(outcome.part)
        estimate, low, high = (
            fmt.time_ratio(value) if of_times and value is not None else _number(value, is_score)
            for value in (row[name] for name in ("estimate", "low", "high"))
        )
        figure = outcome.figure
        asked = "" if outcome.part.test == "unanswered" else _interval(lower, upper)
        rows.append(
            (
                str(row["what"]),
                estimate,
                f"{low} to {high}" if figure and _has_interval(figure) else "",
                asked,
                counted(figure.n, figure.unit) if figure else "",
                "" if figure is None or isnan(figure.p) else f"{figure.p:.3g}",
                verdict_text(outcome.verdict, outcome.reason, outcome.found),
                "; ".join(filter(None, [str(row["note"]), *outcome.terms])),
            )
        )
    return rows


def _is_ratio_of_times(part: Part) -> bool:
    """Return whether the figures of a test are ratios of measured times.

    Such ratios have two digits, as in reports, because another processor would change the others.

    Parameters
    ----------
    part : Part
        Test of the claim.
    """
    quantity = str(part.options.get("quantity", ""))
    return part.test in ("ratio", "candidate_ratio") and quantity.endswith("seconds")


def _has_interval(figure: Figure) -> bool:
    """Return whether a figure is an estimate with an interval, which may be a point, and not a count.

    Parameters
    ----------
    figure : Figure
        Number with its intervals.

    Returns
    -------
    bool
        False for counts and for figures without an interval.
    """
    return figure.low < figure.high or (figure.low == figure.high and figure.wide is not None)


def _interval(low: str, high: str) -> str:
    """Return an interval as text.

    Parameters
    ----------
    low : str
        Printed lower end.
    high : str
        Printed upper end.

    Returns
    -------
    str
        For example `≤ 3` or `1 to 3`.
    """
    if low == "−∞":
        return f"≤ {high}"
    return f"≥ {low}" if high == "∞" else f"{low} to {high}"


def _end(value: float, is_score: bool) -> str:
    """Return an end of a region with all digits that are declared.

    Parameters
    ----------
    value : float
        The end, which may be infinite.
    is_score : bool
        Whether it is a difference of scores, in percentage points.

    Returns
    -------
    str
        For example `+0.05 points`, or `+0.001 points`.
    """
    text, points = _number(value, is_score), 100 * value
    if is_score and isfinite(value) and abs(points - round(points, 2)) > 1e-9:
        return f"{points:+.6g} points"
    return text


def _number(value: float | None, is_score: bool) -> str:
    """Return a number with three significant digits, or a difference of scores in percentage points.

    Parameters
    ----------
    value : float or None
        The number. None and NaN are printed as a dash.
    is_score : bool
        Whether it is a difference of scores.

    Returns
    -------
    str
        The number; a dash for None and NaN.
    """
    if value is None or isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{100 * value:+.2f} points" if is_score else f"{value:.3g}"
