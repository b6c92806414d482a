"""Scores in two pictures: each arm against the control, and how often each arm is near the best."""

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.score_profiles import LOSS, TIE, WIN, share_near_best
from orchestrator.report import format as fmt
from orchestrator.report.figures import MUTED, RULE, WIDTH, colours, literal, step_chart, wrapped
from orchestrator.report.limits import arms_note, shown_arms, shown_in_figures
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.section import Drawing, Part, Section, titled
from orchestrator.report.table import Row, Table, print_table

TITLE = "Scores in pictures"

_PANELS = 6
"""Largest number of arms whose scores are drawn against the control's, those with the highest means."""

_POINTS = (0.0, 0.005, 0.01, 0.02, 0.05)
"""Distances from the best score that the table has a column for, for scores in percent."""


def section(study: Findings) -> Section | None:
    """Return the section; None for a single arm, or without a dataset that two arms completed.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Scatter plots, and the performance profile of scores with its table.
    """
    scatter, steps = findings.against_control(study), findings.score_profile(study)
    if scatter.empty:
        return None
    parts: list[Part] = [_scatter(study, scatter)]
    if len(steps) and steps["n"].iloc[0] > 1:
        parts += _profile(study, steps)
    return Section(TITLE, "", parts, link="Pictures", needs_scores=True)


def _scatter(study: Findings, frame: pd.DataFrame) -> Drawing:
    """Return the scatter plots of the arms with the highest means against the control.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Scores beside those of the control, as `findings.against_control` returns them.
    """
    reference, unit = frame["reference"].iloc[0], study.design.unit
    means = frame.groupby("solver", sort=False)["score"].mean().sort_values(ascending=False, kind="stable")
    kept = list(means.index[:_PANELS])
    rows = frame[frame["solver"].isin(kept)]
    number = f" Shown: the {_PANELS} arms with the highest means." if len(means) > _PANELS else ""
    caption = (
        f"Each point is a {unit}: the mean {fmt.metric_name(study.design.metric)} of {reference} across, and "
        "that of the other arm upwards. Points above the line are wins of the other arm; equal scores lie on "
        "the line. Wins, ties and losses count points and say nothing about the size of differences. The "
        f"table of tests decides whether they are more than chance.{number}"
    )
    return Drawing("scatter", caption, lambda: _scatter_figure(rows, kept, study.design.metric), rows)


def _scatter_figure(frame: pd.DataFrame, arms: list[str], metric: str) -> Figure:
    n_columns = min(3, len(arms))
    n_rows = -(-len(arms) // n_columns)
    figure = Figure(figsize=(WIDTH * n_columns / 3 if n_columns > 1 else 3.6, 3.1 * n_rows))
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in grid.flat[len(arms) :]:
        ax.set_visible(False)
    for ax, arm in zip(grid.flat, arms, strict=False):
        _panel(ax, frame[frame["solver"] == arm], metric)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, metric: str) -> None:
    """Draw the scores of one arm against those of the control, with the numbers of wins, ties and losses.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    rows : DataFrame
        Scores of one arm beside those of the control.
    metric : str
        Name of the metric, which decides whether scores are drawn in percent.
    """
    scale = 100 if fmt.is_percent(metric) else 1
    x, y = (scale * rows[name].to_numpy(dtype=float) for name in ("reference_score", "score"))
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    pad = 0.05 * (high - low or 1)
    ends = (low - pad, high + pad)
    ax.plot(ends, ends, color=RULE, linewidth=1, zorder=1)
    ax.scatter(x, y, s=18, color=MUTED, alpha=0.8, zorder=2)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    counts = rows["outcome"].value_counts()
    numbers = " / ".join(str(counts.get(name, 0)) for name in (WIN, TIE, LOSS))
    arm, reference = rows["solver"].iloc[0], rows["reference"].iloc[0]
    ax.set_title(literal(f"{wrapped(arm, 26)}\nwins / ties / losses: {numbers}"), fontsize=8)
    ax.set_xlabel(literal(wrapped(reference, 26)))
    ax.set_ylabel(literal(wrapped(arm, 26)))


def _profile(study: Findings, steps: pd.DataFrame) -> list[Part]:
    """Return the performance profile of scores, and its table.

    Parameters
    ----------
    study : Findings
        The study of the report.
    steps : DataFrame
        Steps, as `findings.score_profile` returns them.
    """
    caption = (
        f"Performance profiles of scores: the share of {fmt.plural_of(study.design.unit)} on which an arm is "
        "at most a given distance below the best arm. Higher is better. A line starts at the share on "
        "which the arm is the best or ties with it. The best of many arms is selected by the same scores, so "
        "no arm is at 100 % from the start."
    )
    rows = shown_in_figures(study, steps)
    drawing = Drawing("score_profile", caption + arms_note(study), lambda: _profile_figure(study, rows), rows)
    return [*titled(_table(study, steps)), drawing]


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the share of units on which each arm is within some distances of the best.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Steps of the profiles.
    """
    marked, metric = marked_arms(study), study.design.metric
    unit = " points" if fmt.is_percent(metric) else ""

    def near(below: float) -> Callable[[Row], str]:
        return lambda row: f"{100 * share_near_best(frame, row['solver'], below):.0f}"

    scale = 100 if fmt.is_percent(metric) else 1
    columns = {
        "Best, %" if below == 0 else f"Within {scale * below:g}{unit}, %": near(below) for below in _POINTS
    }
    units = fmt.plural(frame["n"].iloc[0], study.design.unit)
    return print_table(
        "score_profile",
        "Performance profiles of scores",
        frame,
        {"Arm": lambda row: marked_name(row["solver"], marked)} | columns,
        rows=[{"solver": arm} for arm in frame["solver"].unique() if arm in shown_arms(study)],
        caption=f"Share of {units} that every arm completed, in per cent, on which an arm is at most the "
        "given distance below the highest score of all arms. The shares describe these datasets and "
        "depend on which arms take part. The CSV file contains every step."
        f"{mark_note(study)}{arms_note(study)}",
    )


def _profile_figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw the share of units on which each arm is within a distance of the best.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Steps of the profiles.
    """
    percent = fmt.is_percent(study.design.metric)
    scale = 100 if percent else 1
    scaled = frame.assign(below=scale * frame["below"])
    end = max(1e-3 * scale, scaled["below"].max()) * 1.05
    figure, ax = step_chart(scaled, "below", colours(list(study.design.arms)), end)
    ax.set_xlim(0, end)
    ax.set_xlabel(f"Distance below the best arm{', percentage points' if percent else ''}")
    ax.set_ylabel(f"{fmt.plural_of(study.design.unit).capitalize()} (%)")
    return figure
