"""Selections on a border that no equal candidate inside matches, on grids that are counted by hand."""

import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.verdict import answers
from tests.messages import assert_says
from tests.orchestrator.report.frames import edit, make_results

MEANS = {f"d{i}": {"a": 0.9, "b": 0.8} for i in range(3)}


@pytest.fixture
def results(tmp_path):
    """Two arms on 3 datasets × 5 folds over C = ¼, 1, 4 and two values of gamma, with equal inner scores."""
    return make_results(tmp_path, MEANS)


def test_a_border_that_an_equal_candidate_inside_matches_is_not_counted(results):
    frame = frames.borders(analyse(results)).set_index("solver")
    on_border = (results.selections["param_C"] != 1.0).groupby(results.selections["solver"]).sum()
    assert frame["n"].tolist() == [15, 15]
    assert frame["n_border"].to_dict() == on_border.to_dict()  # gamma has two values and no inside
    assert frame["n_unmatched"].tolist() == [0, 0]


def test_a_higher_score_on_the_border_is_counted_with_its_end(results):
    """The best of d0 is C = 4 alone for arm a; its fold 2 selected C = 4, its folds 0 and 3 C = ¼."""
    better = edit(
        results,
        lambda f: (f.dataset == "d0") & (f.solver == "a") & (f.inner >= 0) & (f.param_C == 4.0),
        score=0.95,
    )
    frame = frames.borders(analyse(better)).set_index("solver")
    assert frame.loc["a", "n_unmatched"] == 3
    assert frame.loc["a", "ends"] == "smallest C (2×), largest C (1×)"
    assert frame.loc["b", "n_unmatched"] == 0
    text = next(
        each.text for each in answers(analyse(better)) if each.question == "Was the grid wide enough?"
    )
    assert_says(text, "On 10 % of outer folds (3 of 30)", "20 lie", "Most often for a", "largest C (1×)")


def test_a_value_that_is_fixed_on_a_dataset_is_no_border(results):
    """On d0, C = 4 is fixed, and is not inside the grid of the other datasets."""
    fixed = edit(results, lambda f: f.dataset == "d0", param_C=4.0)
    fixed.selections.loc[fixed.selections["dataset"] == "d0", "param_C"] = 4.0
    free = frames.borders(analyse(fixed)).set_index("solver")
    options = {"by_dataset": {"d0": {"C": 4.0}}}
    fixed.provenance[0]["study"]["search"] = {"target": "grid", "options": options}
    study = analyse(fixed)
    frame = frames.borders(study).set_index("solver")
    assert (free["n_border"] - frame["n_border"]).tolist() == [5, 5]
    chosen = frames.selections(study).set_index("dataset")
    assert chosen.loc["d0", "high_C"].tolist() == [0, 0]
    assert (chosen.loc[["d1", "d2"], ["low_C", "high_C"]].sum() > 0).all()
    assert study.design.planned("d0", "a") == 5 * (2 * 2 + 1)
    assert study.design.planned("d1", "a") == 5 * (2 * 6 + 1)
    assert_says(protocol(study)["Search"], "C=4.0 on d0")


def test_without_ranges_nothing_is_said(tmp_path):
    study = analyse(make_results(tmp_path, MEANS))
    study.design.arms["a"]["space"] = study.design.arms["b"]["space"] = {"gamma": [0.1, 1.0]}
    assert frames.borders(study).empty
