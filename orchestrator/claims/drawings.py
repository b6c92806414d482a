"""Figures of the literature that are drawn from the data of a claim: curves as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

import numpy as np

from orchestrator.analysis.findings import Findings
from orchestrator.claims.declared import Claim, Part, listed
from orchestrator.claims.exact_numbers import by_candidate, unseen_violators
from orchestrator.claims.figures import Unanswered, side
from orchestrator.study.text import format_share

_WIDTH, _HEIGHT = 330, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 78, 36, 40
_COLOURS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#d8b500")
"""Colours of curves, from the first to the last: a scale that every reader can order."""


@dataclass(frozen=True)
class Panel:
    """Curves over one axis. Both axes are logarithmic.

    Attributes
    ----------
    title, x_label, y_label : str
        Texts of the panel.
    curves : mapping of str to (sequence of float, sequence of float)
        Positive x and y of each curve, by its label.
    """

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]


def drawing(claim: Claim, studies: Mapping[str, Findings]) -> str:
    """Return the figure of the literature for a claim, drawn from our data.

    A claim on steps between candidates gets a column by C for every gamma, as in Figure 4.2 of Strack (2013).
    A claim on unseen violators gets the bound by the number of draws, as in its Figure 5.1.

    Parameters
    ----------
    claim : Claim
        The claim.
    studies : mapping of str to Findings
        Findings of the studies, by name.

    Returns
    -------
    str
        SVG elements; empty if the claim has no such figure.
    """
    for part in claim.parts:
        if part.test == "candidate_steps":
            return _drawn(_of_candidates(part, studies))
    if any(part.test == "unseen_violators" for part in claim.parts):
        return _drawn([_of_draws()])
    return ""


def _of_candidates(part: Part, studies: Mapping[str, Findings]) -> list[Panel]:
    """Return a panel for each dataset: the square root of a column by C, with a curve for each gamma.

    Parameters
    ----------
    part : Part
        Test on steps between candidates.
    studies : mapping of str to Findings
        Findings of the studies, by name.

    Returns
    -------
    list of Panel
        Empty if no study has the trainings.
    """
    having = [studies[name] for name in part.studies if name in studies]
    panels = []
    try:
        for name in listed(part.options["arms"]):
            means = by_candidate(side(name, having), part.options["quantity"])
            if [*means.index.names][1:] != ["param_C", "param_gamma"]:
                continue
            for dataset, values in means.groupby(level="dataset"):
                table = values.droplevel("dataset").unstack("param_gamma")
                ys = np.sqrt(table.to_numpy(float))
                gammas, cs = (index.to_numpy(float).tolist() for index in (table.columns, table.index))
                curves = {f"γ = {gamma:.2g}": _known(cs, ys[:, i]) for i, gamma in enumerate(gammas)}
                curves = {label: (xs, heights) for label, (xs, heights) in curves.items() if xs}
                panels.append(Panel(f"{name} on {dataset}", "C", "‖c‖", curves))
    except Unanswered:
        return []
    return sorted(panels, key=lambda panel: (len(panel.title), panel.title))


def _known(xs: Sequence[float], ys: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the points of a curve that have a place on a logarithmic axis.

    Parameters
    ----------
    xs : sequence of float
        Positions of the points.
    ys : ndarray
        Heights of the points; NaN for a candidate whose trainings all failed.
    """
    points = [(x, float(y)) for x, y in zip(xs, ys, strict=True) if y > 0]
    return [x for x, _ in points], [y for _, y in points]


def _of_draws() -> Panel:
    """Return the panel of the upper bound of unseen violators by the number of draws.

    Returns
    -------
    Panel
        One curve for each confidence.
    """
    draws = [round(float(x)) for x in np.geomspace(10, 1000, 60)]
    curves = {}
    for confidence in (0.99, 0.95, 0.9):
        bounds = [100 * unseen_violators(n, confidence)[0].estimate for n in draws]
        curves[format_share(confidence)] = ([*map(float, draws)], bounds)
    return Panel("Upper bound of unseen violators", "draws", "% of the samples", curves)


def _drawn(panels: Sequence[Panel]) -> str:
    """Return panels side by side as SVG.

    Parameters
    ----------
    panels : sequence of Panel
        Panels with curves; those of one figure share their vertical axis.

    Returns
    -------
    str
        One SVG element for each panel.
    """
    drawn = [panel for panel in panels if panel.curves]
    every = [y for panel in drawn for _, ys in panel.curves.values() for y in ys]
    return "".join(_panel(panel, min(every), max(every)) for panel in drawn)


def _panel(panel: Panel, lowest: float, highest: float) -> str:
    """Return one panel as SVG.

    Parameters
    ----------
    panel : Panel
        Curves with their labels.
    lowest, highest : float
        Range of the vertical axis.

    Returns
    -------
    str
        The SVG element.
    """
    xs = [x for values, _ in panel.curves.values() for x in values]
    x_ends, y_ends = (log10(min(xs)), log10(max(xs))), (log10(lowest), log10(highest))
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - x_ends[0]) / ((x_ends[1] - x_ends[0]) or 1.0)
        up = (log10(y) - y_ends[0]) / ((y_ends[1] - y_ends[0]) or 1.0)
        return _LEFT + wide * across, _TOP + high * (1 - up)

    marks = [
        f'<text x="{_LEFT}" y="15" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{_LEFT + wide / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(panel.x_label)}</text>",
        f'<text x="4" y="{_TOP - 2}">{escape(panel.y_label)}</text>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{wide}" height="{high}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.4"/>',
    ]
    for x in _ticks(*x_ends):
        left, _ = at(x, lowest)
        marks.append(f'<text x="{left:.1f}" y="{_TOP + high + 14}" text-anchor="middle">{x:g}</text>')
    for y in _ticks(*y_ends):
        _, top = at(10 ** x_ends[0], y)
        marks.append(f'<text x="{_LEFT - 5}" y="{top + 4:.1f}" text-anchor="end">{y:g}</text>')
    ends = {name: at(values[-1], heights[-1])[1] for name, (values, heights) in panel.curves.items()}
    labels = _spread_out(ends, _TOP + high + 4)
    colours = {name: _COLOURS[i * len(_COLOURS) // len(panel.curves)] for i, name in enumerate(panel.curves)}
    for name, (values, heights) in panel.curves.items():
        points = [at(x, y) for x, y in zip(values, heights, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>')
        below = labels[name]
        marks.append(
            f'<text x="{_LEFT + wide + 4}" y="{below:.1f}" fill="{colours[name]}">{escape(name)}</text>'
        )
    return (
        f'<svg class="curves" role="img" aria-label="{escape(panel.title)}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="11" fill="currentColor">'
        f"{''.join(marks)}</svg>"
    )


def _spread_out(ends: Mapping[str, float], bottom: float) -> dict[str, float]:
    """Return heights of labels that do not overlap.

    Parameters
    ----------
    ends : mapping of str to float
        Height of the end of each curve, in pixels from the top.
    bottom : float
        Largest height of a label.

    Returns
    -------
    dict of str to float
        Heights of the base lines.
    """
    names = sorted(ends, key=lambda name: ends[name])
    heights: dict[str, float] = {}
    for name in names:
        heights[name] = max(ends[name] + 4, max(heights.values(), default=0.0) + 11)
    for name in reversed(names):
        heights[name] = min(heights[name], bottom)
        bottom = heights[name] - 11
    return heights


def _ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis: powers of ten, and for short axes also 2 and 5 times these.

    Parameters
    ----------
    low, high : float
        Decimal logarithms of both ends.

    Returns
    -------
    list of float
        At least two values if the axis is not a point.
    """
    factors = (1,) if high - low > 2 else (1, 2, 5)
    found = [factor * 10.0**power for power in range(floor(low), ceil(high) + 1) for factor in factors]
    return [value for value in found if low - 1e-9 <= log10(value) <= high + 1e-9]
