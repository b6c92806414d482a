"""The main table of a study of three or more arms: one row for each arm, ordered by mean score."""

from collections.abc import Callable

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import difference_of, difference_title, if_fixed, is_max_t
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.processor_note import processor_note
from orchestrator.report.ratio_cells import geometric_mean
from orchestrator.report.section import Glance, Section
from orchestrator.report.table import Cell, Printer, Row, Table, print_table

_NOTHING = Cell(fmt.MISSING, tone="quiet")


TITLE = "Arms by mean score"


def section(study: Findings) -> Section | None:
    """Return the section; None for fewer than three arms, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        One table, shown before its caption.
    """
    if findings.is_empty(study) or findings.standings(study).empty:
        return None
    return Section(TITLE, "", [Glance(table(study))], link="Arms")


def table(study: Findings) -> Table:
    """Print a row for each arm: mean and rank, the comparisons with the control and with the best, time.

    Parameters
    ----------
    study : Findings
        A study of at least three arms.

    Returns
    -------
    Table
        Its data are `findings.standings`.
    """
    metric, marked = study.design.metric, marked_arms(study)
    frame = findings.standings(study)
    columns: dict[str, Printer] = {
        "Arm": lambda row: marked_name(row["solver"], marked),
        f"Mean{', %' if fmt.is_percent(metric) else ''}": lambda row: _mean(row, metric),
        "Mean rank": lambda row: _with_ends(row, "mean_rank", "rank", lambda value: f"{value:.2f}"),
        "Share of wins": lambda row: _with_ends(row, "wins_share", "wins", lambda value: f"{value:.2f}"),
        "Wins / ties / losses": _wins,
        difference_title(study): lambda row: _difference(row, metric),
        "Adjusted p": _adjusted_p,
    }
    if len(findings.practical(study)):
        columns |= {
            "Better": lambda row: fmt.probability(row["better"]),
            "Equal": lambda row: fmt.probability(row["equal"]),
            "Worse": lambda row: fmt.probability(row["worse"]),
        }
    if frame["p_best"].notna().any():
        columns["May be the best"] = _may_be_best
    if frame["fit_seconds_n"].notna().any():
        columns["Training time, ratio"] = lambda row: (
            "1" if row["is_control"] else geometric_mean(row, "fit_seconds")
        )
    return print_table("standings", TITLE, frame, columns, caption=_caption(study, frame))


def _caption(study: Findings, frame: pd.DataFrame) -> str:
    design, units = study.design, fmt.plural(frame["n_complete"].iloc[0], "dataset")
    control, unit = next(iter(design.arms)), fmt.in_unit(design.metric)
    text = (
        f"Arms are ordered by the mean over {units} that every arm completed"
        f"{' (a family counts as one)' if design.families else ''}. Mean rank: 1 is the highest score on a "
        f"{design.unit}. Share of wins: of {fmt.plural_of(design.unit)} on which the arm is the highest, "
        f"where arms that tie share one. Their intervals are {fmt.level(design.alpha)} bootstrap intervals "
        f"over {fmt.plural_of(design.unit)}, with folds resampled within, not adjusted for the number of "
        f"arms.{_narrow(study, int(frame['n_complete'].iloc[0]))} Wins, ties and losses, "
        f"{difference_title(study).lower()}{unit} and adjusted p compare the arm with the control {control}, "
        "as in the table of tests. “Higher” and “lower” mark differences that are significant at level "
        f"{design.alpha:g}{if_fixed(study)}. {_interval(study)}"
    )
    if len(findings.practical(study)) and design.rope is not None:
        text += (
            " Better, equal, worse: the probabilities that the arm is practically better than, equal to or "
            f"worse than {control}. Equal means that the typical difference is at most "
            f"{fmt.margin(design.rope, design.metric)}; single {fmt.plural_of(design.unit)} may differ by "
            "more."
        )
    if frame["p_best"].notna().any():
        text += (
            f" May be the best: the arms that may have the highest expected mean. All such arms are among "
            f"those marked “yes” with {fmt.level(design.alpha)} confidence (step-down max-t of each arm "
            "against the best of the others; p in parentheses)."
        )
    if frame["fit_seconds_n"].notna().any():
        text += (
            f" Training time: geometric mean of the ratios to {control}, with its {fmt.level(design.alpha)} "
            "interval, not adjusted for the number of tests; values below 1 are faster."
            f"{processor_note(study)}"
        )
    return text + mark_note(study)


def brief_table(study: Findings) -> Table:
    """Print the same rows in the columns that fit a terminal.

    Parameters
    ----------
    study : Findings
        A study of at least three arms.

    Returns
    -------
    Table
        Its data are `findings.standings`.
    """
    metric, marked = study.design.metric, marked_arms(study)
    frame = findings.standings(study)
    columns: dict[str, Printer] = {
        "Arm": lambda row: marked_name(row["solver"], marked),
        "Mean": lambda row: fmt.score(row["mean"], metric),
        "W/T/L": lambda row: Cell(_wins(row).text.replace(" ", "")),
        difference_title(study): lambda row: _difference(row, metric),
        "Adjusted p": lambda row: Cell(fmt.p_value(row["p_adjusted"]), strong=bool(_direction(row))),
    }
    control, unit = next(iter(study.design.arms)), fmt.in_unit(metric)
    difference = f"{difference_title(study).lower()}{unit}"
    caption = f"W/T/L, {difference} with its interval, and p compare the arm with {control}."
    if frame["p_best"].notna().any():
        columns["Best? (p)"] = lambda row: _may_be_best(row, fmt.p_value)
        caption += (
            f" Best?: whether the arm may be the best, with {fmt.level(study.design.alpha)} confidence, and "
            "the p of an arm that may not."
        )
    return print_table("standings", TITLE, frame, columns, caption=caption)


def _narrow(study: Findings, n: int) -> str:
    """Warn that bootstrap intervals over few datasets are too narrow; empty for enough of them.

    Parameters
    ----------
    study : Findings
        The study of the report.
    n : int
        Number of datasets, or of families, that every arm completed.
    """
    if n >= _ENOUGH_UNITS:
        return ""
    return f" They are too narrow for fewer than {_ENOUGH_UNITS} {fmt.plural_of(study.design.unit)}."


_ENOUGH_UNITS = 10
"""Smallest number of units over which a bootstrap interval covers about as often as it states."""


def _interval(study: Findings) -> str:
    """Return a sentence on the intervals of differences.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if is_max_t(study):
        return "The intervals of mean differences hold together, as in the table of tests."
    return "The intervals of typical differences are not adjusted for the number of tests."


def _mean(row: Row, metric: str) -> str:
    """Print the mean of an arm with its interval.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    metric : str
        Name of the scorer.
    """
    return _with_ends(row, "mean", "score", lambda value: fmt.score(value, metric))


def _with_ends(row: Row, name: str, ends: str, text: Callable[[float], str]) -> str:
    """Print a number of an arm with its interval.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    name : str
        Name of the number.
    ends : str
        Name of the interval, before `_low` and `_high`.
    text : callable
        Prints a value.
    """
    if pd.isna(row[name]):
        return fmt.MISSING
    low, high = row[f"{ends}_low"], row[f"{ends}_high"]
    return text(row[name]) if pd.isna(low) else f"{text(row[name])} [{text(low)}, {text(high)}]"


def _direction(row: Row) -> str:
    return {"higher": " higher", "lower": " lower"}.get(row["verdict"], "")


def _wins(row: Row) -> Cell:
    """Print the numbers of datasets on which an arm is higher than, equal to and lower than the control.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    """
    if row["is_control"]:
        return Cell("control", tone="quiet")
    if not row["n"] or pd.isna(row["n"]):
        return _NOTHING
    return Cell(" / ".join(f"{row[name]:.0f}" for name in ("wins", "n_zero", "losses")))


def _difference(row: Row, metric: str) -> Cell:
    """Print the typical difference from the control with its interval.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    metric : str
        Name of the scorer.
    """
    if not row["n"] or pd.isna(row["n"]):
        return _NOTHING
    if "mean_low" in row:
        return Cell(difference_of(row, metric))
    estimate, low, high = (fmt.difference(row[name], metric) for name in ("estimate", "low", "high"))
    return Cell(estimate if pd.isna(row["confidence"]) else f"{estimate} [{low}, {high}]")


def _adjusted_p(row: Row) -> Cell:
    """Print the adjusted p, and the direction of a significant difference.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    """
    direction = _direction(row)
    return Cell(fmt.p_value(row["p_adjusted"]) + direction, strong=bool(direction))


def _may_be_best(row: Row, p: Callable[[float], str] = fmt.p_equals) -> Cell:
    """Print whether an arm may have the highest expected mean, with the p of an arm that may not.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    p : callable, default `format.p_equals`
        Prints a p-value.
    """
    if pd.isna(row["p_best"]):
        return _NOTHING
    if row["may_be_best"]:
        return Cell("yes", strong=True, tone="good")
    return Cell(f"no ({p(row['p_best'])})", tone="bad")
