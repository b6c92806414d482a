"""Failed refits: on how many datasets arms are compared, and what the score of the majority class changes."""

from dataclasses import replace

import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report.sections.methods import methods
from orchestrator.report.verdict import answers
from orchestrator.store.results import PairState
from orchestrator.study.report_choices import CONSTANT, ReportChoices
from tests.messages import assert_says
from tests.orchestrator.report.frames import edit, make_results

TEN = {f"d{i}": {"a": 0.8, "b": 0.81 + i / 1000} for i in range(10)}
FAILED = ("d0", "d1", "d2")


@pytest.fixture
def results(tmp_path):
    """A study in which b is better on 7 datasets, and whose first refit failed on 3."""
    made = edit(
        make_results(tmp_path, TEN),
        lambda f: f.dataset.isin(FAILED) & (f.solver == "b") & (f.inner == -1) & (f.outer == 0),
        score=float("nan"),
        status="error",
    )
    return replace(made, states={(dataset, arm): PairState(11) for dataset in TEN for arm in "ab"})


def answer(study, question):
    return next((each.text for each in answers(study) if each.question == question), "")


def test_the_answer_counts_the_datasets_that_both_completed(results):
    study = analyse(results)
    assert_says(answer(study, "Do the arms differ?"), "On the 7 of 10 datasets that both completed")
    assert_says(answer(study, "Which arm scores highest?"), "the 7 of 10 datasets that every arm completed")


def test_a_failed_refit_scores_as_the_majority_class(results):
    """Half of the rows belong to the largest class; four folds of b have 0.815, 0.81 + i/1000 ± 0.01."""
    failed = frames.failed_refits(analyse(results))
    assert failed["n_failed"].tolist() == [1, 1, 1]
    assert failed["mean"][0] == pytest.approx((0.5 + 0.805 + 0.81 + 0.815 + 0.82) / 5)
    study = analyse(results, ReportChoices(failed=CONSTANT))
    (test,) = frames.tests(study).to_dict("records")
    assert (test["n"], test["wins"], test["losses"]) == (10, 3, 7)
    assert frames.failure_sensitivity(study).equals(frames.tests(analyse(results)))
    assert_says(methods(study), "failed refits scored as the majority class")


def test_aggregates_hold_failed_refits_as_the_means_beside_them_do(results):
    """b has no score at all on d3, and four of five on d0, d1 and d2."""
    none = edit(
        results, lambda f: (f.dataset == "d3") & (f.solver == "b") & (f.inner == -1), score=float("nan")
    )
    study = analyse(replace(none, states=results.states), ReportChoices(failed=CONSTANT))
    found = frames.aggregates(study).set_index("solver")
    means = frames.compared_means(study).means
    assert found["wins"].tolist() == [0.4, 0.6]
    for arm in "ab":
        assert found.loc[arm, "mean_low"] <= means[arm].mean() <= found.loc[arm, "mean_high"]


def test_the_sensitivity_line_names_the_verdicts_that_change(results):
    """With 7 of 7 wins p = 2/2⁷; with 7 small wins and 3 large losses it is far above 0.05."""
    line = answer(analyse(results), "Would failed refits change this?")
    assert_says(line, "3 refits of b", "majority class", "a − b would be no evidence of a difference", "10")
    constant = analyse(results, ReportChoices(failed=CONSTANT))
    assert_says(
        answer(constant, "Would failed refits change this?"), "left out instead", "a − b would be lower"
    )
    complete = replace(results, states={pair: PairState(11, complete=False) for pair in results.states})
    assert answer(analyse(complete), "Would failed refits change this?") == ""  # refits may still come
