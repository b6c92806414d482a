"""The main table of a study of three or more arms: one row for each arm, ordered by mean score."""

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.bayesian import EQUAL_FROM
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
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
        f"Mean{', %' if fmt.is_percent(metric) else ''}": lambda row: fmt.score(row["mean"], metric),
        "Mean rank": lambda row: fmt.MISSING if pd.isna(row["mean_rank"]) else f"{row['mean_rank']:.2f}",
        "Wins / ties / losses": _wins,
        "Typical difference": lambda row: _difference(row, metric),
        "Adjusted p": _adjusted_p,
    }
    if len(findings.practical(study)):
        columns |= {
            "Better": lambda row: fmt.probability(row["better"]),
            "Equal": lambda row: fmt.probability(row["equal"]),
            "Worse": lambda row: fmt.probability(row["worse"]),
        }
    if frame["equal_to_best"].notna().any():
        columns["Against the best"] = _against_best
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
        f"{design.unit}. Wins, ties and losses, typical difference{unit} and adjusted p compare the arm with "
        f"the control {control}, as in the table of tests. “Higher” and “lower” mark differences that are "
        f"significant at level {design.alpha:g}."
    )
    if len(findings.practical(study)) and design.rope is not None:
        text += (
            " Better, equal, worse: the probabilities that the arm is practically better than, equal to or "
            f"worse than {control}. “Practically” means that the typical difference is above "
            f"{fmt.margin(design.rope, design.metric)}; single "
            f"{fmt.plural_of(design.unit)} may differ by more."
        )
    if frame["equal_to_best"].notna().any():
        is_unique = (frame["standing"] == "best").sum() == 1
        which = "the arm with the highest mean"
        several = "the arms with the highest mean; the smallest probability over these arms counts"
        text += (
            f" Against the best: the same probabilities for the comparison with {frame['best'].iloc[0]}, "
            f"{which if is_unique else several}. “Equal” and “worse” require a probability of at least "
            f"{EQUAL_FROM}; otherwise the comparison is “undecided”. “Equal” is followed by the number of "
            f"{fmt.plural_of(design.unit)} on which the difference itself is within the region. The best arm "
            "was selected by the same "
            "scores, so no probability is an error rate."
        )
    if frame["fit_seconds_n"].notna().any():
        text += (
            f" Training time: geometric mean of the ratios to {control}, with its {fmt.level(design.alpha)} "
            "interval; values below 1 are faster."
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
        "Typical difference": lambda row: _difference(row, metric),
        "Adjusted p": lambda row: Cell(fmt.p_value(row["p_holm"]), strong=bool(_direction(row))),
    }
    control, unit = next(iter(study.design.arms)), fmt.in_unit(metric)
    caption = f"W/T/L, typical difference{unit} with its interval, and p compare the arm with {control}."
    if frame["equal_to_best"].notna().any():
        columns["= / < best"] = _shares_of_best
        best = frame["best"].iloc[0]
        caption += f" = / < best: probabilities of being practically equal to and worse than {best}."
    return print_table("standings", TITLE, frame, columns, caption=caption)


def _shares_of_best(row: Row) -> Cell:
    if pd.isna(row["equal_to_best"]):
        return Cell("best" if row["standing"] == "best" else fmt.MISSING)
    texts = (fmt.probability(row[name]).replace(" ", "") for name in ("equal_to_best", "worse_than_best"))
    return Cell(" / ".join(texts), strong=row["standing"] == "equal")


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
    return Cell(fmt.p_value(row["p_holm"]) + direction, strong=bool(direction))


def _against_best(row: Row) -> Cell:
    """Print the standing of an arm relative to the best, with its probability.

    Parameters
    ----------
    row : dict
        A row of `findings.standings`.
    """
    standing, equal, worse = (row[name] for name in ("standing", "equal_to_best", "worse_than_best"))
    if standing == "best":
        return Cell("best", strong=True, tone="good")
    if pd.isna(equal):
        return _NOTHING
    if standing == "open":
        return Cell(f"undecided: equal {fmt.probability(equal)}, worse {fmt.probability(worse)}")
    tone, probability = {"equal": ("good", equal), "worse": ("bad", worse)}[standing]
    within = (
        f", within it on {row['n_within_best']:.0f} of {row['n_best']:.0f}" if standing == "equal" else ""
    )
    return Cell(f"{standing} {fmt.probability(probability)}{within}", strong=True, tone=tone)
