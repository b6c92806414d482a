"""Accuracies within half a prediction are ties in every comparison; other metrics tie at 12 decimals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.paired_means import PairedMeans, half_predictions
from orchestrator.analysis.score_profiles import share_near_best
from orchestrator.analysis.statistics import friedman
from orchestrator.analysis.summaries import n_tested
from orchestrator.report.sections.methods import methods
from orchestrator.study.families import Family
from orchestrator.study.report_choices import ReportChoices
from tests.orchestrator.report.frames import make_results

SIZES = np.array([162, 161, 161, 161, 161])
"""Test rows of five folds of 806 rows."""

EVEN, SHIFTED = (114, 113, 113, 113, 114), (113, 114, 114, 113, 113)
"""Correct rows of each fold, 567 in all."""


def counted(folder, correct, metric="accuracy", sizes=SIZES, seeds=1):
    """Return a study whose refits have so many correct rows: by dataset and arm, a number for each fold."""
    means = {dataset: dict.fromkeys(arms, 0.5) for dataset, arms in correct.items()}
    results = make_results(folder, means, outer=len(sizes))
    protocol = results.provenance[0]["study"]["protocol"]
    for facts in results.provenance[0]["study"]["datasets"]:
        facts["n_inner"] = [2] * len(sizes)
    protocol |= {"metric": metric, "outer": len(sizes) // seeds, "seed": list(range(seeds))}
    outer = results.outer.copy()
    outer["n_test"] = [int(sizes[fold]) for fold in outer["outer"]]
    outer["score"] = [
        correct[row.dataset][row.solver][row.outer] / sizes[row.outer] for row in outer.itertuples()
    ]
    return replace(results, outer=outer)


def every(*arms, n=7):
    """Return datasets on all of which arms `a`, `b`, … have these numbers of correct rows."""
    return {f"d{i}": dict(zip("abcdef", arms, strict=False)) for i in range(n)}


def test_arms_with_the_same_number_of_correct_rows_tie_everywhere(tmp_path):
    worse = tuple(number - 5 for number in EVEN)
    results = counted(tmp_path, every(EVEN, SHIFTED, worse))
    raw = results.outer.groupby("solver")["score"].mean()
    assert 0 < abs(raw["a"] - raw["b"]) < 1e-4, "the folds weigh the means apart"
    findings = analyse(results, ReportChoices(sequential=True))
    (test,) = frames.tests(findings).query("first == 'a' and second == 'b'").to_dict("records")
    assert (test["wins"], test["losses"], test["n_zero"]) == (0, 0, 7)
    assert (test["p"], test["p_pratt"], test["rank_biserial"], test["estimate"]) == (1, 1, 0, 0)
    assert dict(
        zip(frames.arm_ranks(findings)["solver"], frames.arm_ranks(findings)["mean_rank"], strict=True)
    ) == {
        "a": 1.5,
        "b": 1.5,
        "c": 3,
    }
    matrix = frames.comparison_matrix(findings).query("row == 'a' and column == 'b'")
    assert matrix[["wins", "ties", "losses"]].to_numpy().tolist() == [[0, 7, 0]]
    assert set(frames.scores(findings).loc[frames.scores(findings)["best"], "solver"]) == {"a", "b"}
    (sequence,) = frames.sequence(findings).query("first == 'a' and second == 'b'").to_dict("records")
    assert sequence["largest_evidence"] == 1
    assert set(frames.standings(findings)["best"]) == {"a and b"}
    assert frames.standings(findings).set_index("solver")["wins_share"].to_dict() == {
        "a": 0.5,
        "b": 0.5,
        "c": 0,
    }
    profile = frames.score_profile(findings)
    assert [share_near_best(profile, arm, 0.0) for arm in "abc"] == [1, 1, 0]
    assert "half a prediction" in methods(findings)


def test_no_arm_differs_where_all_have_the_same_number_of_correct_rows(tmp_path):
    test = frames.friedman_test(analyse(counted(tmp_path, every(EVEN, SHIFTED, EVEN[::-1]))))
    assert (test.chi2, test.p) == (0, 1)


@pytest.mark.parametrize("more", [1, -1])
def test_one_prediction_is_a_difference(tmp_path, more):
    other = (EVEN[0], EVEN[1] + more, *EVEN[2:])
    (test,) = frames.tests(analyse(counted(tmp_path, every(EVEN, other)))).to_dict("records")
    assert (test["wins"], test["losses"]) == ((0, 7) if more > 0 else (7, 0))
    assert test["p"] == 2**-6


def test_one_prediction_of_two_seeds_is_a_difference_and_another_fold_is_none(tmp_path):
    sizes, one = np.tile(SIZES, 2), EVEN + EVEN
    for other, wins in (((*EVEN, 114, 112, *EVEN[2:]), 7), (SHIFTED + EVEN, 0)):
        (test,) = frames.tests(analyse(counted(tmp_path, every(one, other), sizes=sizes, seeds=2))).to_dict(
            "records"
        )
        assert test["wins"] == wins


def test_other_metrics_tie_at_twelve_decimals(tmp_path):
    findings = analyse(counted(tmp_path, every(EVEN, SHIFTED), metric="f1"))
    (test,) = frames.tests(findings).to_dict("records")
    assert test["n_zero"] == 0
    assert "half a prediction" not in methods(findings)
    assert half_predictions("balanced_accuracy", pd.Series({"d": 100.0})).empty


def test_ranks_are_those_of_the_pairwise_differences():
    generator = np.random.default_rng(0)
    columns = list("abcd")
    means = pd.DataFrame(generator.integers(80, 90, (6, 4)) / 100, columns=columns, index=list("uvwxyz"))
    limits = pd.Series(0.005, means.index)
    exact = PairedMeans(means).ranks()
    noisy = PairedMeans(means + generator.uniform(-1e-4, 1e-4, means.shape), ties_below=limits)
    assert noisy.ranks().equals(exact), "noise below the limit changes no rank"
    assert friedman(noisy).p == friedman(means).p
    chain = PairedMeans(pd.DataFrame([[0.9, 0.897, 0.894]], index=["u"]), ties_below=limits)
    assert chain.ranks().to_numpy().tolist() == [[1.5, 2, 2.5]], "0 and 1 tie, 1 and 2 tie, 0 and 2 do not"


def test_a_family_ties_where_its_datasets_do():
    means = pd.DataFrame({"a": [0.80001, 0.9, 0.7], "b": [0.8, 0.9, 0.6]}, index=["large", "small", "alone"])
    limits = pd.Series({"large": 0.005, "small": 1e-6, "alone": 0.005})
    family = Family("family f", ("large", "small"), ())
    paired = PairedMeans(means, (family,), limits)
    assert paired.difference("a", "b").tolist() == [0, 0.1]
    assert paired.ranks().to_numpy().tolist() == [[1.5, 1.5], [1, 2]]
    assert paired.shortfalls().to_numpy().tolist() == [[0, 0], [0, 0.1]]


def test_all_that_share_the_highest_mean_are_named():
    means = pd.DataFrame({"a": [0.8, 0.9], "b": [0.9, 0.8], "c": [0.8, 0.8], "d": [0.8, 0.8]})
    paired = PairedMeans(means)
    assert (paired.highest(), paired.highest(sign=-1)) == (["a", "b"], ["c", "d"])
    assert PairedMeans(means * np.nan).highest() == []
    means["a"] += 1e-5
    assert PairedMeans(means).highest() == ["a"]
    assert PairedMeans(means, ties_below=pd.Series(0.0005, means.index)).highest() == ["a", "b"]


def test_the_number_of_predictions_is_that_of_the_arm_with_the_most():
    # An arm that has failed on a fold has fewer test rows; the mean of the others is no coarser for it.
    rows = [("d", "a", 30), ("d", "a", 30), ("d", "b", 30), ("e", "b", 7)]
    outer = pd.DataFrame(rows, columns=["dataset", "solver", "n_test"])
    assert n_tested(outer).to_dict() == {"d": 60, "e": 7}
