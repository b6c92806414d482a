"""The short answer: which metric it speaks of, times, and whether the study could have found anything."""

import re

import numpy as np
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.ratios import FASTER, SLOWER
from orchestrator.report.brief import brief
from orchestrator.report.too_few import attainable, too_few
from orchestrator.report.verdict import answers, verdict
from orchestrator.study.report_choices import HOLM, MAX_T, ReportChoices
from tests.messages import assert_says, assert_sentence, lacks
from tests.orchestrator.report.frames import drop, make_results

ARMS = "abcd"
SECONDS = {"a": 1.0, "b": 0.5, "c": 3.0, "d": 4.0}


def alike(n):
    """Means of four arms without a significant difference."""
    generator = np.random.default_rng(5)
    return {f"d{i}": {arm: 0.8 + 0.01 * generator.normal() for arm in ARMS} for i in range(n)}


def said(findings, start):
    found = [text for text in brief(findings) if text.startswith(start)]
    return found[0] if found else ""


@pytest.mark.parametrize("adjust", [MAX_T, HOLM])
def test_significant_times_are_named_beside_scores_that_do_not_differ(adjust):
    findings = analyse(
        make_results("x", alike(9), profile="timing", seconds=SECONDS), ReportChoices(adjust=adjust)
    )
    ratios = frames.time_ratios(findings)
    assert set(ratios["verdict"]) == {FASTER, SLOWER}
    assert_says(said(findings, "Real"), "no difference in accuracy", "declared pairs")
    text = said(findings, "Training time")
    assert_says(text, "against a", "3 other arms")
    assert_says(text, "1 significantly faster (0.50× the time)")
    assert_says(text, "2 significantly slower (3.0× to 4.0× the time)")


def test_times_that_do_not_differ_are_not_called_different():
    equal = dict.fromkeys(ARMS, 1.0)
    findings = analyse(make_results("x", alike(9), profile="timing", seconds=equal))
    text = said(findings, "Training time")
    assert_says(text, "no difference", "significant")
    assert lacks(text, "could have been")
    assert said(analyse(make_results("x", alike(9))), "Training time") == ""


@pytest.mark.parametrize(("n", "adjust"), [(5, MAX_T), (6, MAX_T), (9, HOLM), (8, HOLM)])
def test_the_short_answer_says_if_no_difference_could_have_been_significant(n, adjust):
    findings = analyse(
        make_results("x", alike(n), profile="timing", seconds=SECONDS), ReportChoices(adjust=adjust)
    )
    tests, times = frames.tests(findings), frames.time_ratios(findings)
    factor = 1 if adjust == MAX_T else len(tests) + len(times)  # 9 tests of 4 arms, and none of times
    impossible = factor * 2.0 ** (1 - n) > 0.05
    assert impossible == (n in (5, 8))
    for start in ("Real", "Training time"):
        assert (f"with {n} datasets none could have been" in said(findings, start)) == impossible
    assert bool(too_few(findings)) == impossible


def test_an_arm_that_is_significantly_lower_than_the_control_has_no_significant_lead():
    """One dataset gives b the highest mean, and the signed ranks of the 13 others are against it."""
    means = {f"d{i:02}": {"a": 0.5, "b": 0.49 - 0.0005 * i, "c": 0.4 - 0.001 * i} for i in range(13)}
    means["d13"] = {"a": 0.5, "b": 0.95, "c": 0.4}
    findings = analyse(make_results("x", means), ReportChoices(adjust=HOLM))
    assert_says(said(findings, "Highest"), "Highest: b")
    tests = frames.tests(findings).set_index(["first", "second"])
    assert tests.loc[("a", "b"), "verdict"] == "higher"
    assert_says(
        said(findings, "Real"), "3 of 3 declared pairs differ significantly", "the lead over a is not"
    )


def test_one_pair_that_differs_is_one():
    means = {f"d{i}": {"a": 0.85, "b": 0.88 if i % 2 else 0.84, "c": 0.82 if i else 0.84} for i in range(6)}
    findings = analyse(make_results("x", means), ReportChoices(adjust=MAX_T))
    number = int(frames.tests(findings)["verdict"].isin(["higher", "lower"]).sum())
    assert number == 1
    assert_says(said(findings, "Real"), "1 of 3 declared pairs differs significantly")


def test_the_metric_of_the_study_is_named():
    results = make_results("x", alike(9))
    results.provenance[0]["study"]["protocol"]["metric"] = "balanced_accuracy"
    findings = analyse(results)
    assert_says(said(findings, "Real"), "in balanced accuracy")
    (differ,) = [each.text for each in answers(findings) if "differ" in each.question]
    assert_says(differ, "in balanced accuracy")


def test_a_study_that_is_not_finished_says_that_it_could_find_nothing():
    """Pairs have different numbers of datasets, of which the largest is too small."""
    results = drop(make_results("x", alike(5)), lambda f: (f.solver == "d") & (f.dataset != "d0"))
    findings = analyse(results)
    assert frames.tests(findings)["n"].nunique() == 2
    needed = attainable(findings)[0].needed
    assert_sentence(verdict(findings), "at most 5 datasets", "smallest attainable p")
    assert_sentence(verdict(findings), "no difference", "could have been", f"at least {needed} datasets")
    more = drop(make_results("x", alike(9)), lambda f: (f.solver == "d") & (f.dataset != "d0"))
    assert lacks(verdict(analyse(more)), "could have been significant")


def test_significant_times_leave_a_smaller_factor_to_scores():
    """By Holm's method, four times that are rejected leave the factor 4 to four scores in a family of 8."""
    arms = "abcde"
    generator = np.random.default_rng(0)
    means = {
        f"d{i}": {arm: 0.8 + (0.01 * generator.normal() if i < 7 else 0.0) for arm in arms} for i in range(12)
    }
    seconds = dict(zip(arms, (1, 2, 3, 4, 5), strict=True))
    findings = analyse(
        make_results("x", means, profile="timing", seconds=seconds), ReportChoices(adjust=HOLM)
    )
    tests, times = frames.tests(findings), frames.time_ratios(findings)
    assert (len(tests), len(times)) == (4, 4)
    assert times["p_adjusted"].max() <= 0.05
    scores, of_times = attainable(findings)
    assert (scores.n_differing, scores.factor, of_times.factor) == (7, 4, 8)
    assert scores.needed == 8, "4 · 2^(1−8) = 0.03, and 4 · 2^(1−7) = 0.06"
    assert_sentence(" ".join(too_few(findings)), "Only 7 of 12", "over 4 tests")


def test_problems_claim_no_more_than_the_checks_of_the_report():
    findings = analyse(make_results("x", alike(9)))
    assert_says(said(findings, "Problems"), "checks of this report found none")
    selected = make_results("x", alike(9))
    selected.provenance[0]["study"]["search"] = {
        "target": "selected",
        "options": {"study": "medium", "arm": "mnsvm"},
    }
    assert_says(said(analyse(selected), "Problems"), "test rows took part in the selection")


def test_the_short_answer_is_short(thirteen_arms):
    """A reader reads about four words a second, and the four facts in ten seconds."""
    text = " ".join(brief(thirteen_arms))
    assert len(re.findall(r"\S+", text)) <= 70


@pytest.fixture(scope="module")
def thirteen_arms():
    from tests.orchestrator.report.frames import thirteen

    return analyse(make_results("x", thirteen(), profile="timing", seconds={"control": 1.0, "equal0": 0.5}))
