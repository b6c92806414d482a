"""The look that all figures share, and their way into SVG."""

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.plain_text import printable

WIDTH = 9.0
"""Width of every figure in inches; a page shows them all at one scale."""

INK = "#1f2328"
MUTED = "#6b7280"
RULE = "#e3e6ea"

# Okabe and Ito's palette, continued with Tol's “muted”: told apart with any common colour vision.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#332288",
    "#882255",
    "#999933",
    "#44AA99",
    "#7F7F7F",
    "#661100",
)

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 8.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "svg.fonttype": "path",
}


@contextmanager
def style(name: str) -> Iterator[None]:
    """Draw in the house style; `name` salts the identifiers inside the SVG, so that runs give equal files."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        yield


def colours(arms: Sequence[str]) -> dict[str, str]:
    """Give every arm its colour; figures name arms in words too, so a repeated colour does no harm."""
    return {arm: PALETTE[i % len(PALETTE)] for i, arm in enumerate(arms)}


def new_figure(height: float) -> Figure:
    """Return an empty figure of the common width that makes room for its labels."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def to_svg(figure: Figure) -> str:
    """Return the figure as an SVG document, the same for the same figure."""
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    return re.sub(r"[ \t]+\n", "\n", buffer.getvalue())


def plain_axis(ax: Axes) -> None:
    """Leave an axis only its vertical grid lines and the numbers below them."""
    ax.grid(axis="x")
    ax.tick_params(length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)


def literal(text: str) -> str:
    """Return a text for matplotlib in which dollar signs do not enclose mathematics."""
    return "\n".join(map(printable, text.split("\n"))).replace("$", r"\$")


def wrapped(name: str, width: int = 24) -> str:
    """Break a long name where a reader would, and anywhere else if need be; to be followed by `literal`."""
    name = printable(name)
    lines = [""]
    for piece in re.findall(r"\[?[^\[,_\- ]+[,_\- \]]*|.", name):
        for start in range(0, len(piece), width):
            part = piece[start : start + width]
            if len(lines[-1]) + len(part.rstrip(" ")) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.strip(" ") for line in lines if line.strip(" "))


def spans_decades(values: Iterable[float], factor: float = 30.0) -> bool:
    """Whether positive values differ so much that a linear axis would hide the small ones."""
    positive = [value for value in values if math.isfinite(value) and value > 0]
    return bool(positive) and max(positive) > factor * min(positive)


def value_labels(values: Sequence[float]) -> list[str]:
    """Print the values of an axis: as powers of 2 or 10 if all are such and some are unwieldy otherwise."""
    plain = [f"{value:.3g}".replace("-", "−") for value in values]
    if max(map(len, plain)) <= 3 or min(values) <= 0:
        return plain
    for base in (2, 10):
        exponents = [math.log(value, base) for value in values]
        if all(abs(exponent - round(exponent)) < 1e-9 for exponent in exponents):
            return [f"${base}^{{{round(exponent)}}}$" for exponent in exponents]
    return plain
