"""The printed comparison of arms: pairwise tests, their sensitivity, mean ranks."""

from collections.abc import Collection
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
        caption=captions.with_mark(captions.tests(findings), findings),
        header=[
            "Pair, A − B",
            "Datasets",
            "A higher / same / lower",
            "Typical difference",
            "p",
            "Smallest possible p",
            "Adjusted p",
            "Verdict",
        ],
        rows=[_test_row(row, metric, marked_arms(findings)) for row in records(frame)],
        data=frame,
        last_is_text=True,
    )


def _test_row(row: dict[str, Any], metric: str, marked: Collection[str]) -> list[Cell]:
    significant = row["verdict"] in (HIGHER, LOWER)
    verdict = {HIGHER: "A is higher", LOWER: "B is higher"}.get(row["verdict"], row["verdict"])
    return [
        _pair(row, marked),
        Cell(words.count(row["n"])),
        Cell(f"{row['wins']} / {row['n_zero']} / {row['losses']}"),
        Cell(_estimate(row, metric)),
        Cell(words.p_value(row["p"])),
        Cell(words.p_value(row["smallest_p"])),
        Cell(words.p_value(row["p_holm"]), strong=significant),
        Cell(verdict, strong=significant),
    ]


def _estimate(row: dict[str, Any], metric: str) -> str:
    if not row["n"]:
        return words.MISSING
    estimate = words.difference(row["estimate"], metric)
    if row["confidence"] is None or pd.isna(row["confidence"]):
        return f"{estimate} (no interval)"
    low, high = words.difference(row["low"], metric), words.difference(row["high"], metric)
    return f"{estimate} [{low}, {high}] at {100 * row['confidence']:.1f} %"


def _pair(row: dict[str, Any], marked: Collection[str]) -> Cell:
    first, second = (with_mark(row[name], marked) for name in ("first", "second"))
    return Cell(f"{first} − {second}")


def with_mark(arm: str, marked: Collection[str]) -> str:
    """Return an arm's name, marked where its refits are not known to be near their optimum."""
    return arm + words.MARK if arm in marked else arm


def marked_arms(findings: Findings) -> frozenset[str]:
    """Return the arms that carry the mark on some dataset."""
    return frozenset(findings.marked["solver"]) if len(findings.marked) else frozenset()


def details(findings: Findings) -> Table:
    """Rank sums and effect sizes behind the pairwise tests."""
    metric, marked = findings.design.metric, marked_arms(findings)
    frame = findings.tests[
        ["first", "second", "n", "n_zero", "w_plus", "w_minus", "rank_biserial", "median_difference"]
    ]
    return Table(
        name="test_details",
        title="Behind the tests",
        caption=captions.details(metric),
        header=["Pair, A − B", "Datasets that differ", "W⁺", "W⁻", "r", "Median difference"],
        rows=[
            [
                _pair(row, marked),
                Cell(words.count(row["n"] - row["n_zero"])),
                Cell(f"{row['w_plus']:g}"),
                Cell(f"{row['w_minus']:g}"),
                Cell(words.correlation(row["rank_biserial"]) if row["n"] else words.MISSING),
                Cell(words.difference(row["median_difference"], metric)),
            ]
            for row in records(frame)
        ],
        data=frame,
    )


def sensitivity(findings: Findings) -> Table:
    """How the p-values move when one dataset is left out."""
    marked = marked_arms(findings)
    frame = findings.tests[
        ["first", "second", "n", "p", "loo_p_low", "loo_p_high", "verdict", "datasets_needed"]
    ]
    return Table(
        name="sensitivity",
        title="Sensitivity: leaving one dataset out",
        caption=captions.SENSITIVITY,
        header=["Pair, A − B", "Datasets", "p", "Lowest p", "Highest p", "Smallest possible p"],
        rows=[
            [
                _pair(row, marked),
                Cell(words.count(row["n"])),
                Cell(words.p_value(row["p"])),
                Cell(words.p_value(row["loo_p_low"])),
                Cell(words.p_value(row["loo_p_high"])),
                Cell(words.p_value(smallest_p(row["n"] - 1)) if row["n"] > 1 else words.MISSING),
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
        caption=captions.with_mark(captions.ranks(findings), findings),
        header=["Arm", "Mean rank"],
        rows=[
            [Cell(with_mark(row["solver"], marked_arms(findings))), Cell(f"{row['mean_rank']:.2f}")]
            for row in records(frame)
        ],
        data=frame,
    )
