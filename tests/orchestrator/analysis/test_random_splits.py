"""t over random splits, its correction, and the scores without the splits that selected."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.random_splits import split_tests
from orchestrator.report.contents import all_tables
from orchestrator.report.section import flat
from orchestrator.report.sections import random_splits
from orchestrator.report.table import Table
from orchestrator.study.study import SELECTION_SPLITS, SearchSpec
from tests.messages import assert_says
from tests.orchestrator.report.frames import QUICKSTART, edit, make_results


@pytest.fixture
def drawn(tmp_path):
    """Five splits of three datasets, whose 200 test rows are drawn from 300."""
    return edit(make_results(tmp_path, QUICKSTART), lambda f: f.n_test > 0, n_train=100)


def of_first_splits(results, n_first):
    """Return the prepared study, with medians over its first splits as hyper-parameters."""
    study = analyse(results)
    search = SearchSpec("selected", {"study": "first", SELECTION_SPLITS: n_first})
    return replace(study, design=replace(study.design, search=search))


def test_t_is_that_of_scipy_and_its_correction_that_of_a_hundred_splits_of_heart():
    rng = np.random.default_rng(0)
    scores = {arm: rng.normal(0.8, 0.03, 100) for arm in ("svm", "bpm", "esvm")}
    rows = [
        {"dataset": "heart", "solver": arm, "outer": k, "score": score, "n_train": 170, "n_test": 100}
        for arm, values in scores.items()
        for k, score in enumerate(values)
    ]
    means = pd.DataFrame({arm: [values.mean()] for arm, values in scores.items()}, index=["heart"])
    frame = split_tests(pd.DataFrame(rows), means, ["heart", "absent"], None)
    assert list(zip(frame["first"], frame["second"], strict=True)) == [
        ("svm", "bpm"),
        ("svm", "esvm"),
        ("bpm", "esvm"),
    ]
    for row in frame.to_dict("records"):
        expected = stats.ttest_rel(scores[row["first"]], scores[row["second"]]).statistic
        assert row["t"] == pytest.approx(expected)
        assert row["factor"] == pytest.approx(7.7, abs=0.05)
        assert row["corrected_t"] == pytest.approx(expected / np.sqrt(1 + 100 * 100 / 170))
    of_control = split_tests(pd.DataFrame(rows), means, ["heart"], "svm")
    assert set(of_control["second"]) == {"svm"}
    means.loc["heart", "bpm"] = np.nan  # not complete
    assert len(split_tests(pd.DataFrame(rows), means, ["heart"], None)) == 1


def test_folds_have_no_t_over_splits(tmp_path, drawn):
    assert random_splits.section(analyse(make_results(tmp_path, QUICKSTART))) is None
    assert list(findings.split_tests(analyse(drawn))["dataset"]) == list(QUICKSTART)


def test_equal_differences_have_no_t(drawn):
    """Both arms of the example vary equally over its splits."""
    study = analyse(drawn)
    assert findings.split_tests(study)[["t", "corrected_t"]].isna().all(axis=None)
    assert [row[-1].text for row in all_tables(study)["split_tests"].rows] == ["–"] * 3


def test_scores_without_the_splits_that_selected(drawn):
    study = of_first_splits(drawn, 2)
    frame = findings.later_splits(study)
    assert len(frame) == 6
    offsets = np.linspace(-0.01, 0.01, 5)
    first = frame.iloc[0]
    assert first["later_mean"] == pytest.approx(0.960 + offsets[2:].mean())
    assert frame["difference"].to_numpy() == pytest.approx(offsets[2:].mean())
    table = all_tables(study)["later_splits"]
    assert "Without the first 2" in table.header
    assert_says(table.caption, "selected", "training rows")


@pytest.mark.parametrize("n_first", [5, None])
def test_without_later_splits_there_is_no_such_table(drawn, n_first):
    assert findings.later_splits(of_first_splits(drawn, n_first)).empty


def test_of_many_arms_the_tables_show_those_that_their_captions_name(tmp_path):
    means = {"iris": {f"arm{i:02}": 0.5 + 0.01 * i for i in range(45)}}
    results = edit(make_results(tmp_path, means, inner=1), lambda f: f.n_test > 0, n_train=100)
    found = {
        each.name: each
        for each in flat(random_splits.section(of_first_splits(results, 2)).content)
        if isinstance(each, Table)
    }
    for name in ("later_splits", "split_tests"):
        assert_says(found[name].caption, "Of 45 arms", "39 with the best mean ranks")
        names = " ".join(row[1].text for row in found[name].rows)
        assert "arm00" in names
        assert not any(f"arm{i:02}" in names for i in range(1, 6))
        assert len(found[name].data) > len(found[name].rows)


def test_a_missing_score_leaves_an_arm_out(drawn):
    lost = edit(drawn, lambda f: (f.solver == "mnsvm") & (f.outer == 4), score=float("nan"))
    assert set(findings.later_splits(of_first_splits(lost, 2))["solver"]) == {"libsvm_l1"}
