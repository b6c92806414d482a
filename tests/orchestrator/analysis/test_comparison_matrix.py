"""The Multi-Comparison Matrix and the table with a row for each arm, on Demšar's table (2006, Table 6)."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.comparison_matrix import ARMS_SHOWN, compare_all_pairs
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.pairwise import HIGHER, LOWER
from tests.orchestrator.analysis.golden import DEMSAR, table
from tests.orchestrator.report.frames import make_results, many

ARMS = ["C4.5", "m", "cf", "m+cf"]


@pytest.fixture(scope="module")
def demsar():
    return table(DEMSAR).set_axis(ARMS, axis=1)


def cell(matrix, row, column):
    (found,) = matrix[(matrix["row"] == row) & (matrix["column"] == column)].to_dict("records")
    return found


@pytest.mark.parametrize(
    ("arm", "points", "counts", "p"), [("m", 1.55, (10, 2, 2), 0.0073), ("m+cf", 2.23, (11, 1, 2), 0.0125)]
)
def test_golden_cells(demsar, arm, points, counts, p):
    found = cell(compare_all_pairs(demsar), arm, "C4.5")
    assert 100 * found["difference"] == pytest.approx(points, abs=0.005)
    assert (found["wins"], found["ties"], found["losses"]) == counts
    assert found["p"] == pytest.approx(p, abs=5e-5)
    assert found["marked"]


def test_cells_mirror_each_other_and_the_best_arm_comes_first(demsar):
    matrix = compare_all_pairs(demsar)
    assert list(matrix["row"].unique()) == ["m+cf", "m", "cf", "C4.5"]
    for found in matrix.to_dict("records"):
        mirror = cell(matrix, found["column"], found["row"])
        assert (mirror["wins"], mirror["p"]) == (found["losses"], found["p"])
        assert mirror["difference"] == -found["difference"]


def test_another_arm_reorders_cells_and_changes_none(demsar):
    before = compare_all_pairs(demsar)
    after = compare_all_pairs(demsar.assign(another=demsar.mean(axis=1) + np.linspace(-0.02, 0.05, 14)))
    kept = after[(after["row"] != "another") & (after["column"] != "another")]
    order = ["row", "column"]
    assert kept.sort_values(order, ignore_index=True).equals(before.sort_values(order, ignore_index=True))
    assert list(after["row"].unique()) != list(before["row"].unique())


def test_a_pair_is_compared_where_both_are_complete(demsar):
    demsar = demsar.copy()
    demsar.iloc[:3, 2] = np.nan
    matrix = compare_all_pairs(demsar.assign(none=np.nan))
    assert cell(matrix, "cf", "m")["n"] == 11
    assert cell(matrix, "m", "C4.5")["n"] == 14
    assert np.isnan(cell(matrix, "m", "none")["p"])
    assert not cell(matrix, "m", "none")["marked"]


def test_the_matrix_of_a_large_study_holds_the_control_and_the_best():
    means = pd.DataFrame(many(6, 50)).T
    arms = compare_all_pairs(means)["row"].unique()
    assert len(arms) == ARMS_SHOWN + 1
    assert set(arms) == {means.columns[0], *means.mean().nlargest(ARMS_SHOWN).index}


@pytest.fixture(scope="module")
def found(demsar):
    values = demsar.assign(equal=demsar["m+cf"] - 0.001, tree=demsar["C4.5"]).drop(columns="cf")
    means = {f"d{i}": row for i, row in enumerate(values.to_dict("records"))}
    return analyse(make_results("x", means, profile="timing", seconds={"m": 0.02, "C4.5": 0.01}))


def test_a_row_for_each_arm_compares_it_with_the_control_and_the_best(found):
    rows = frames.standings(found).set_index("solver")
    assert list(rows.index) == ["m+cf", "equal", "m", "C4.5", "tree"]
    assert list(rows["is_control"]) == [False, False, False, True, False]
    m = rows.loc["m"]
    assert (m["wins"], m["n_zero"], m["losses"]) == (10, 2, 2)
    assert [m["estimate"], m["low"], m["high"]] == pytest.approx([0.0130, 0.0030, 0.0275])
    assert [m["better"], m["equal"], m["worse"]] == pytest.approx([0.671, 0.329, 0], abs=0.005)
    assert m["fit_seconds_ratio"] == pytest.approx(2)
    assert rows.loc["C4.5", ["n", "p", "better", "fit_seconds_ratio"]].isna().all()
    # Always 0.1 points behind, "equal" is certainly not the best; its p is the smallest of 14 datasets.
    assert rows["may_be_best"].tolist() == [True, False, True, False, False]
    assert rows.loc["equal", "p_best"] == 2.0**-13
    assert rows.loc["m+cf", ["score_low", "score_high"]].is_monotonic_increasing
    assert rows["wins_share"].sum() == pytest.approx(1)
    assert rows["best"].unique().tolist() == ["m+cf"]


def test_standings_of_four_arms_are_oriented_alike(demsar):
    # All pairs are tested, and the control comes first in its own.
    means = {f"d{i}": row for i, row in enumerate(demsar.to_dict("records"))}
    found = analyse(make_results("x", means))
    row = frames.standings(found).set_index("solver").loc["m"]
    assert (row["wins"], row["losses"]) == (10, 2)
    assert [row["estimate"], row["low"], row["high"]] == pytest.approx([0.0130, 0.0030, 0.0275])
    assert [row["better"], row["worse"]] == pytest.approx([0.671, 0], abs=0.005)
    assert row["verdict"] == HIGHER
    (test,) = frames.tests(found).query("first == 'C4.5' and second == 'm'").to_dict("records")
    assert test["verdict"] == LOWER


def test_nothing_is_told_of_the_best_below_six_datasets():
    found = analyse(make_results("x", many(5, 3)))
    assert frames.standings(found)[["p_best", "may_be_best"]].isna().all(axis=None)
    assert frames.standings(analyse(make_results("x", many(5, 2)))).empty
