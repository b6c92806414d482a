"""Datasets of one family count once in every test over datasets; the golden numbers are exact."""

import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.paired_means import of_units
from orchestrator.analysis.pairwise import pairwise
from orchestrator.report.verdict import verdict
from orchestrator.study.families import Family, families
from orchestrator.study.report_choices import ReportChoices
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.report.frames import edit, make_results

DIFFERENCES = {
    "a1a": 0.010,
    "a5a": 0.012,
    "a9a": 0.011,
    "w1a": 0.004,
    "w8a": 0.006,
    "iris": 0.020,
    "wine": -0.005,
    "usps": 0.003,
    "letter": 0.008,
}
FAMILY = {"a1a": "adult", "a5a": "adult", "a9a": "adult", "w1a": "web", "w8a": "web"}


def study(folder, seconds=None, families=FAMILY):
    means = {name: {"a": 0.8 + difference, "b": 0.8} for name, difference in DIFFERENCES.items()}
    results = make_results(folder, means, profile="timing" if seconds else "throughput", seconds=seconds)
    for facts in results.provenance[0]["study"]["datasets"]:
        facts["family"] = families.get(facts["name"], "")
    return results


def test_families_count_once_as_the_golden_numbers_have_it(tmp_path):
    findings = analyse(study(tmp_path))
    (test,) = frames.tests(findings).to_dict("records")
    assert (test["n"], test["w_plus"], test["w_minus"]) == (6, 18.5, 2.5)
    assert test["p"] == 1 / 8
    assert [test[name] for name in ("estimate", "low", "high")] == pytest.approx([0.007, -0.005, 0.02])
    assert test["confidence"] == 0.96875
    answer = verdict(findings)
    assert_says(answer, "9 datasets", "6 families")
    means = of_units(frames.means(findings), findings.design.families).mean()
    first, second = means.index
    assert_says(answer, first, second, f"{100 * means[first]:.2f} %")
    assert_sentence(answer, "over 6 families", "family counts as one")
    assert list(frames.means(findings).index) == list(DIFFERENCES)
    assert frames.practical(findings)["n"].tolist() == [6]


def test_they_count_apart_where_that_is_said_which_is_told(tmp_path):
    results = study(tmp_path)
    findings = analyse(results, ReportChoices(families="apart", first=ReportChoices(control="a")))
    (test,) = frames.tests(findings).to_dict("records")
    assert (test["n"], test["p"]) == (9, 5 / 256)
    assert_sentence(verdict(findings), "post hoc", "each dataset")
    assert frames.tests(analyse(study(tmp_path, families={})))["p"].tolist() == [5 / 256]


def test_a_family_lacks_a_score_if_one_of_its_datasets_does(tmp_path):
    results = edit(
        study(tmp_path),
        lambda rows: rows["dataset"].eq("w8a") & rows["solver"].eq("b") & rows["outer"].eq(1),
        score=float("nan"),
    )
    (test,) = frames.tests(analyse(results)).to_dict("records")
    assert (test["n"], test["excluded"]) == (5, "family web")


def test_ratios_of_times_are_averaged_as_logarithms_within_a_family(tmp_path):
    results = study(tmp_path, seconds={"a": 1.0, "b": 4.0})
    slow = edit(results, lambda rows: rows["dataset"].eq("w1a") & rows["solver"].eq("b"), fit_seconds=16.0)
    slow = edit(slow, lambda rows: rows["dataset"].eq("w1a") & rows["solver"].eq("a"), fit_seconds=1.0)
    (row,) = frames.time_ratios(analyse(slow)).to_dict("records")
    assert row["fit_seconds_n"] == 6
    assert row["fit_seconds_ratio"] == pytest.approx((4**5 * 8) ** (1 / 6))
    (apart,) = frames.time_ratios(analyse(slow, ReportChoices(families="apart"))).to_dict("records")
    assert apart["fit_seconds_ratio"] == pytest.approx((4**8 * 16) ** (1 / 9))


def test_sharing_and_declaring_make_one_family_across_others():
    facts = {
        "a": {"related": {"c": "share rows", "gone": "share rows"}},
        "b": {},
        "c": {"family": "sea", "related": {"d": "declare the family 'sea'"}},
        "d": {"family": "sea"},
        "e": {"family": "land"},
    }
    assert families(facts) == [Family("family sea", ("a", "c", "d"), ("a and c share rows",))]


def test_without_a_family_nothing_changes():
    means = pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.1]}, index=["x", "y"])
    assert of_units(means, []) is means
    assert "smallest attainable" in pairwise(means, unit="family")["verdict"].iloc[0]
    assert_says(pairwise(means, unit="family")["verdict"].iloc[0], "2 families")
