"""Tables whose cells are shaded by the difference they print: arms × arms, and datasets × arms."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from orchestrator.analysis.comparison_matrix import by_mean
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.limits import shown_arms
from orchestrator.report.marks import marked_arms, marked_name
from orchestrator.report.table import SHADES, Cell, Row, Table, print_table, records


def comparison_matrix(findings: Findings) -> Table:
    """Arms × arms: the mean difference, on how many datasets the row is ahead, and p."""
    frame, metric = findings.comparison_matrix, findings.design.metric
    arms = list(frame["row"].unique())
    shades = _shades(frame["difference"])
    found = {
        (row["row"], row["column"]): (row, shade) for row, shade in zip(records(frame), shades, strict=True)
    }
    most = frame["n"].max()

    def of(column: str) -> Callable[[Row], Cell]:
        def cell(place: Row) -> Cell:
            if place["arm"] == column:
                return Cell("", tone="quiet")
            row, shade = found[place["arm"], column]
            if not row["n"]:
                return Cell(fmt.MISSING, tone="quiet")
            lines = [
                fmt.difference(row["difference"], metric),
                f"{row['wins']}/{row['ties']}/{row['losses']}",
                fmt.p_value(row["p"]) + (" *" if row["marked"] else ""),
                *([f"n = {row['n']}"] if row["n"] < most else []),
            ]
            return Cell("\n".join(lines), strong=row["marked"], shade=shade)

        return cell

    return print_table(
        "comparison_matrix",
        "Every arm against every other",
        frame,
        {"Row − column": lambda row: row["arm"]} | {arm: of(arm) for arm in arms},
        rows=[{"arm": arm} for arm in arms],
    )


def heat_map(findings: Findings) -> Table:
    """Datasets × arms, the best arm first: the mean difference from the control."""
    frame, metric, marked = findings.differences, findings.design.metric, marked_arms(findings)
    frame = frame[["dataset", "solver", "reference", "difference"]]
    found = {
        (row["dataset"], row["solver"]): Cell(fmt.difference(row["difference"], metric), shade=shade)
        for row, shade in zip(records(frame), _shades(frame["difference"]), strict=True)
    }
    reference, kept = frame["reference"].iloc[0], set(shown_arms(findings))

    def of(arm: str) -> Callable[[Row], Cell]:
        return lambda row: found.get((row["dataset"], arm), Cell(fmt.MISSING, tone="quiet"))

    arms = [arm for arm in by_mean(findings.means) if arm in kept and arm != reference]
    return print_table(
        "heat_map",
        f"Where the arms differ from {marked_name(reference, marked)}",
        frame,
        {"Dataset": lambda row: row["dataset"]} | {marked_name(arm, marked): of(arm) for arm in arms},
        rows=[{"dataset": dataset} for dataset in findings.design.datasets],
    )


def _shades(differences: pd.Series) -> list[int]:
    """Return a shade for each difference, the strongest for the largest one in either direction."""
    values = differences.to_numpy(dtype=float)
    largest = np.nanmax(np.abs(values), initial=0.0)
    scaled = values / largest if largest > 0 else np.zeros_like(values)
    steps = np.sign(scaled) * np.ceil(SHADES * np.abs(scaled) - 1e-9)
    return [int(step) for step in np.nan_to_num(steps)]
