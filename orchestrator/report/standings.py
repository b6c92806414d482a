"""The table that answers for many arms: a row for each, the best first."""

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.marks import marked_arms, marked_name
from orchestrator.report.ratio_cells import geometric_mean
from orchestrator.report.table import Cell, Printer, Row, Table, print_table

_NOTHING = Cell(fmt.MISSING, tone="quiet")


def standings(findings: Findings) -> Table:
    """Print a row for each arm: mean and rank, the comparisons with the control and with the best, time."""
    metric, marked = findings.design.metric, marked_arms(findings)
    frame = findings.standings
    columns: dict[str, Printer] = {
        "Arm": lambda row: marked_name(row["solver"], marked),
        f"Mean{', %' if fmt.is_percent(metric) else ''}": lambda row: fmt.score(row["mean"], metric),
        "Mean rank": lambda row: fmt.MISSING if pd.isna(row["mean_rank"]) else f"{row['mean_rank']:.2f}",
        "Wins / ties / losses": wins,
        "Typical difference": lambda row: difference(row, metric),
        "Adjusted p": adjusted_p,
    }
    if len(findings.practical):
        columns |= {
            "Better": lambda row: fmt.probability(row["better"]),
            "Equal": lambda row: fmt.probability(row["equal"]),
            "Worse": lambda row: fmt.probability(row["worse"]),
        }
    if frame["equal_to_best"].notna().any():
        columns["Against the best"] = against_best
    if frame["fit_seconds_n"].notna().any():
        columns["Training time, ratio"] = lambda row: (
            "1" if row["is_control"] else geometric_mean(row, "fit_seconds")
        )
    return print_table("standings", "The arms, the best first", frame, columns)


def standings_in_brief(findings: Findings) -> Table:
    """Print the same with what a terminal has room for."""
    metric, marked = findings.design.metric, marked_arms(findings)
    frame = findings.standings
    columns: dict[str, Printer] = {
        "Arm": lambda row: marked_name(row["solver"], marked),
        "Mean": lambda row: fmt.score(row["mean"], metric),
        "W/T/L": lambda row: Cell(wins(row).text.replace(" ", "")),
        "Difference": lambda row: difference(row, metric),
        "Adjusted p": lambda row: Cell(fmt.p_value(row["p_holm"]), strong=bool(_direction(row))),
    }
    control, unit = next(iter(findings.design.arms)), fmt.in_unit(metric)
    caption = f"W/T/L, difference{unit} with its interval, and p: against {control}."
    if frame["equal_to_best"].notna().any():
        columns["= / < best"] = _shares_of_best
        caption += (
            f" = / < best: probabilities of being practically equal to {frame['best'].iloc[0]}, and worse."
        )
    return print_table("standings", "The arms, the best first", frame, columns, caption=caption)


def _shares_of_best(row: Row) -> Cell:
    if pd.isna(row["equal_to_best"]):
        return Cell("best" if row["standing"] == "best" else fmt.MISSING)
    texts = (fmt.probability(row[name]).replace(" ", "") for name in ("equal_to_best", "worse_than_best"))
    return Cell(" / ".join(texts), strong=row["standing"] == "equal")


def _direction(row: Row) -> str:
    return {"higher": " higher", "lower": " lower"}.get(row["verdict"], "")


def wins(row: Row) -> Cell:
    """Print on how many datasets an arm is higher than the control, the same, and lower."""
    if row["is_control"]:
        return Cell("control", tone="quiet")
    if not row["n"] or pd.isna(row["n"]):
        return _NOTHING
    return Cell(" / ".join(f"{row[name]:.0f}" for name in ("wins", "n_zero", "losses")))


def difference(row: Row, metric: str) -> Cell:
    """Print the typical difference from the control with its interval."""
    if not row["n"] or pd.isna(row["n"]):
        return _NOTHING
    estimate, low, high = (fmt.difference(row[name], metric) for name in ("estimate", "low", "high"))
    return Cell(estimate if pd.isna(row["confidence"]) else f"{estimate} [{low}, {high}]")


def adjusted_p(row: Row) -> Cell:
    """Print the adjusted p, and which way a difference goes that it shows."""
    direction = _direction(row)
    return Cell(fmt.p_value(row["p_holm"]) + direction, strong=bool(direction))


def against_best(row: Row) -> Cell:
    """Print how an arm compares with the best, and the probability of that."""
    standing, equal, worse = (row[name] for name in ("standing", "equal_to_best", "worse_than_best"))
    if standing == "best":
        return Cell("best", strong=True, tone="good")
    if pd.isna(equal):
        return _NOTHING
    if standing == "open":
        return Cell(f"open: equal {fmt.probability(equal)}, worse {fmt.probability(worse)}")
    tone, probability = {"equal": ("good", equal), "worse": ("bad", worse)}[standing]
    return Cell(f"{standing} {fmt.probability(probability)}", strong=True, tone=tone)
