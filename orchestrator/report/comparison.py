"""The printed comparison of arms: pairwise tests, their sensitivity, mean ranks."""

from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.analysis.signed_rank import smallest_p
from orchestrator.report import captions, words
from orchestrator.report.printed import Cell, Table, records


def tests(findings: Findings) -> Table:
    """The family of pairwise tests, one row a pair."""
    metric, frame = findings.design.metric, findings.tests
    return Table(
        name="tests",
        title="Is the difference real? Pairwise tests over datasets",
        caption=captions.tests(findings),
        header=[
            "Pair, A − B",
            "Datasets",
            "A higher / same / lower",
            "Median difference",
            "Typical difference",
            "r",
            "W⁺ / W⁻",
            "p",
            "Smallest possible p",
            "Adjusted p",
            "Verdict",
        ],
        rows=[_test_row(row, metric) for row in records(frame)],
        data=frame,
        last_is_text=True,
    )


def _test_row(row: dict[str, Any], metric: str) -> list[Cell]:
    significant = row["verdict"] in (HIGHER, LOWER)
    verdict = f"{row['first']} is {row['verdict']}" if significant else row["verdict"]
    if row["low"] is None or pd.isna(row["low"]):
        interval = "no interval" if row["n"] else words.MISSING
    else:
        low, high = words.difference(row["low"], metric), words.difference(row["high"], metric)
        interval = f"[{low}, {high}], {100 * row['confidence']:.1f} %"
    estimate = words.difference(row["estimate"], metric)
    return [
        Cell(f"{row['first']} − {row['second']}"),
        Cell(words.count(row["n"])),
        Cell(f"{row['wins']} / {row['n_zero']} / {row['losses']}"),
        Cell(words.difference(row["median_difference"], metric)),
        Cell(f"{estimate} ({interval})" if row["n"] else interval),
        Cell(f"{row['rank_biserial']:+.2f}".replace("-", "−") if row["n"] else words.MISSING),
        Cell(f"{row['w_plus']:g} / {row['w_minus']:g}"),
        Cell(words.p_value(row["p"])),
        Cell(words.p_value(row["smallest_p"])),
        Cell(words.p_value(row["p_holm"]), strong=significant),
        Cell(verdict, strong=significant),
    ]


def sensitivity(findings: Findings) -> Table:
    """How the p-values move when one dataset is left out."""
    frame = findings.tests[
        ["first", "second", "n", "p", "loo_p_low", "loo_p_high", "verdict", "datasets_needed"]
    ]
    return Table(
        name="sensitivity",
        title="Sensitivity: leaving one dataset out",
        caption=captions.SENSITIVITY,
        header=["Pair, A − B", "Datasets", "p", "Lowest p", "Highest p", "Smallest possible p, one left out"],
        rows=[
            [
                Cell(f"{row['first']} − {row['second']}"),
                Cell(words.count(row["n"])),
                Cell(words.p_value(row["p"])),
                Cell(words.p_value(row["loo_p_low"])),
                Cell(words.p_value(row["loo_p_high"])),
                Cell(words.p_value(smallest_p(max(0, row["n"] - 1)))),
            ]
            for row in records(frame)
        ],
        data=frame.drop(columns=["verdict", "datasets_needed"]),
    )


def ranks(findings: Findings) -> Table:
    """Mean ranks over complete datasets."""
    frame = findings.ranks
    return Table(
        name="ranks",
        title="Mean ranks",
        caption=captions.ranks(findings),
        header=["Arm", "Mean rank"],
        rows=[[Cell(row["solver"]), Cell(f"{row['mean_rank']:.2f}")] for row in records(frame)],
        data=frame,
    )
