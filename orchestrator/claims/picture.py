"""Small pictures of a claim: the interval of each test against the region that the claim asks for."""

from collections.abc import Sequence
from math import isfinite, isnan, log

from orchestrator.claims.decisions import NOT_REPRODUCED, OTHER_TERMS, REPRODUCED, Outcome
from orchestrator.claims.figures import counted

WIDTH, LINE = 170, 12
"""Width of a picture and height of one test, in pixels."""
MAX_LINES = 12
"""Largest number of tests in a picture."""
_MARGIN = 6.0

_COLOURS = {REPRODUCED: "#2e7d32", NOT_REPRODUCED: "#c62828"}
_UNDECIDED, _REGION = "#757575", "#90caf9"


def picture(outcomes: Sequence[Outcome]) -> str:
    """Return an SVG picture of the tests of a claim that have a figure.

    Each line is a test: the blue band is the region of the claim, the dot the estimate and the stroke its
    interval, which reaches the edge of the picture where it has no end. Every line has its own scale; ratios
    are on a logarithmic one. A hollow dot is a figure on other terms, which does not count.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Outcomes of the claim.

    Returns
    -------
    str
        The SVG element; empty if no test has a figure.
    """
    lines = [_line(each, LINE * (number + 0.5)) for number, each in enumerate(drawn(outcomes)[:MAX_LINES])]
    if not lines:
        return ""
    height, label = LINE * len(lines), counted(len(lines), "tests")
    return (
        f'<svg class="interval" role="img" aria-label="{label}" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">{"".join(lines)}</svg>'
    )


def drawn(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that have a line in a picture: those with a figure.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Outcomes of the claim.
    """
    return [each for each in outcomes if each.figure and isfinite(each.figure.estimate)]


def _line(outcome: Outcome, y: float) -> str:
    """Return the marks of one test.

    Parameters
    ----------
    outcome : Outcome
        Outcome with a figure.
    y : float
        Vertical position of the line, in pixels.

    Returns
    -------
    str
        SVG elements.
    """
    figure = outcome.figure
    assert figure is not None
    logs = figure.is_ratio and figure.estimate > 0
    points = [_scaled(value, logs) for value in (figure.estimate, figure.low, figure.high)]
    region = [_scaled(value, logs) for value in outcome.part.region]
    shown = [value for value in (*points, *region) if isfinite(value)]
    low, high = min(shown), max(shown)
    room = 0.12 * (high - low) or 1.0
    low, high = low - room, high + room

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return _MARGIN + (WIDTH - 2 * _MARGIN) * share

    colour = _COLOURS.get(outcome.found, _UNDECIDED)
    band = x(region[0]), x(region[1])
    marks = [
        f'<rect x="{band[0]:.1f}" y="{y - 4.5:.1f}" width="{max(band[1] - band[0], 1.0):.1f}" height="9" '
        f'fill="{_REGION}" fill-opacity="0.45"/>'
    ]
    ends = [points[0] if isnan(value) else value for value in points[1:]]
    marks.append(f'<path d="M{x(ends[0]):.1f} {y:.1f}H{x(ends[1]):.1f}" stroke="{colour}" stroke-width="2"/>')
    fill = "none" if outcome.reason == OTHER_TERMS else colour
    marks.append(
        f'<circle cx="{x(points[0]):.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{colour}" '
        'stroke-width="1.5"/>'
    )
    return "".join(marks)


def _scaled(value: float, logs: bool) -> float:
    """Return a value on the scale of a line.

    Parameters
    ----------
    value : float
        Value of a ratio or difference; may be infinite.
    logs : bool
        Whether the scale is logarithmic.

    Returns
    -------
    float
        The value or its logarithm; minus infinity for values without a logarithm.
    """
    if not logs:
        return value
    return log(value) if value > 0 else float("-inf")
