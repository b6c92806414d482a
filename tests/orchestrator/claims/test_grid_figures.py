"""Figures over a grid: their numbers, their verdicts without an interval, and what declares them."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.findings import against_references, analyse
from orchestrator.claims.decisions import NO_DATA, NOT_REPRODUCED, REPRODUCED, UNDECIDED, decide
from orchestrator.claims.declared import read_claims
from orchestrator.claims.rows import printed_rows
from orchestrator.store.results import PairState
from orchestrator.study.errors import ConfigError
from tests.messages import assert_each_says, assert_says
from tests.orchestrator.points import GAMMA, SPACE, C, study, trials_of

ARMS = dict.fromkeys(("exact", "fast"), SPACE)


@pytest.fixture(scope="module")
def trials():
    generator = np.random.default_rng(2)
    frames = [
        trials_of(arm, *(lambda *_: 1 + generator.random() for _ in range(3)), dataset=dataset, reduction=0.1)
        for dataset in ("d", "e")
        for arm in ARMS
    ]
    trials = pd.concat(frames, ignore_index=True)
    sizes = trials["param_gamma"] * np.where(trials["solver"] == "fast", 40, 80)
    return trials.assign(score=trials["score"] / 2, n_representatives=sizes, n_train=100)


def outcomes(trials, complete=True, hosts=(), **test):
    results = study(trials, ARMS)
    results.provenance[0]["hosts"] = list(hosts)
    pairs = [(dataset, arm) for dataset in "de" for arm in ARMS]
    results.__dict__["states"] = {pair: PairState(12, complete=complete) for pair in pairs}
    node = {"claim": "c", "source": "s", "published": "p"}
    tests = [{"test": "figure", "study": "s", "arms": "fast", **test}]
    (claim,) = read_claims({"X1": {**node, "tests": tests}})
    return decide(claim, {"s": analyse(results)}, {})


def test_a_measure_is_that_of_the_report_on_each_dataset_and_has_no_interval(trials):
    decision = outcomes(trials, quantity="rmse", reference="exact", at_most=1)
    expected = against_references(analyse(study(trials, ARMS))).set_index(["dataset", "solver"])["rmse"]
    assert decision.verdict == REPRODUCED
    found = [outcome.figure.estimate for outcome in decision.outcomes]
    assert found == pytest.approx([expected["d", "fast"], expected["e", "fast"]])
    for row in printed_rows(decision):
        assert row[2] == ""  # no interval
        assert "a figure, no test" in row[-1]
    refuted = outcomes(trials, quantity="rmse", reference="exact", at_least=1)
    assert refuted.verdict == NOT_REPRODUCED


def test_a_dataset_that_lacks_or_is_not_complete_leaves_the_claim_undecided(trials):
    decision = outcomes(trials, quantity="maximum", datasets=["d", "other"], at_most=1)
    assert [outcome.verdict for outcome in decision.outcomes] == [REPRODUCED, UNDECIDED]
    assert decision.reason == NO_DATA
    decision = outcomes(trials, complete=False, quantity="maximum", at_most=1)
    assert decision.verdict == UNDECIDED
    assert {outcome.figure.n for outcome in decision.outcomes} == {0}


def test_times_of_different_kinds_of_processors_have_no_measure(trials):
    hosts = [{"host": name, "cpu": cpu} for name, cpu in (("a", "x"), ("b", "x"), ("c", "y"))]

    def verdicts(quantity, host_of_the_rest):
        rows = trials.assign(host=np.where(trials["solver"] == "fast", "a", host_of_the_rest))
        decision = outcomes(rows, hosts=hosts, quantity=quantity, reference="exact", at_least=0)
        return [(outcome.verdict, outcome.figure.n > 0) for outcome in decision.outcomes]

    for quantity in ("ets", "ots"):
        assert verdicts(quantity, "b") == [(REPRODUCED, True)] * 2
        assert verdicts(quantity, "c") == [(UNDECIDED, False)] * 2
    assert verdicts("rmse", "c") == [(REPRODUCED, True)] * 2


def test_sizes_of_sets_by_parameter_along_it_and_against_another_arm(trials):
    def estimate(**test):
        return outcomes(trials, datasets="d", at_least=0, **test).outcomes[0].figure.estimate

    share = {"quantity": "representatives_share"}
    assert estimate(**share) == pytest.approx(0.4 * np.mean(GAMMA))
    assert estimate(**share, at={"gamma": 0.25}) == pytest.approx(0.1)
    assert estimate(**share, along="gamma", direction="rises") == 1
    assert estimate(**share, along="gamma", direction="falls") == 0
    assert estimate(**share, over="exact") == pytest.approx(0.5)
    assert estimate(quantity="reduction_seconds") == pytest.approx(0.1)
    (outcome,) = outcomes(trials, datasets="d", at_least=0, **share, at={"gamma": 0.25}).outcomes
    assert_says(outcome.figure.what, "gamma=0.25")
    rows = trials[(trials["dataset"] == "d") & (trials["solver"] == "fast")]
    assert estimate(quantity="n_sv") == pytest.approx(rows["n_sv"].mean())
    best = rows.groupby(["param_C", "param_gamma"])["score"].mean().max()
    assert estimate(quantity="maximum") == pytest.approx(best)
    others = trials[(trials["dataset"] == "d") & (trials["solver"] == "exact")]
    best -= others.groupby(["param_C", "param_gamma"])["score"].mean().max()
    minus = outcomes(trials, datasets="d", between=[-1, 1], quantity="maximum", minus="exact")
    assert minus.outcomes[0].figure.estimate == pytest.approx(best)


def test_steps_along_a_parameter_keep_the_other_ones(trials, monkeypatch):
    monkeypatch.setitem(ARMS, "fast", SPACE | {"degree": [2, 3], "kind": ["a", "b"]})
    each = [
        trials.assign(
            param_degree=float(degree),
            param_kind=kind,
            n_representatives=30 * trials["param_gamma"] + 20 * (degree == 2) + 10 * (kind == "a"),
        )
        for degree in (2, 3)
        for kind in ("a", "b")
    ]
    steps = {"quantity": "representatives_share", "along": "gamma", "direction": "rises", "datasets": "d"}
    (outcome,) = outcomes(pd.concat(each, ignore_index=True), **steps, at_least=1).outcomes
    assert (outcome.figure.estimate, outcome.figure.n) == (1, 2 * 2 * (len(GAMMA) - 1))


def test_stopped_points_are_counted(trials):
    stopped = (trials["param_C"] == C[1]) & (trials["solver"] == "fast")
    late = trials.assign(status=trials["status"].mask(stopped, "timeout"))
    decision = outcomes(late, quantity="timeout_share", at_least=0.5)
    assert [outcome.figure.estimate for outcome in decision.outcomes] == [0.5, 0.5]


def test_a_figure_that_cannot_be_is_refused():
    tests = [
        {"quantity": "rmse"},
        {"quantity": "maximum", "reference": "exact"},
        {"quantity": "rmsd", "reference": "exact"},
        {"quantity": "maximum", "at": {"gamma": 1}},
        {"quantity": "representatives_share", "along": "gamma"},
        {"quantity": "representatives_share", "at": [1]},
        {"quantity": "maximum", "over": "a", "minus": "b"},
    ]
    tests = [{"test": "figure", "study": "s", "arms": "fast", "at_most": 1, **test} for test in tests]
    with pytest.raises(ConfigError) as refusal:
        read_claims({"X1": {"claim": "c", "source": "s", "published": "p", "tests": tests}})
    assert_each_says(
        refusal.value.problems,
        ("test 1", "rmse", "needs 'reference'"),
        ("test 2", "maximum", "no use for 'reference'"),
        ("test 3", "rmsd", "did you mean"),
        ("test 4", "at", "representatives_share"),
        ("test 5", "direction"),
        ("test 6", "at", "{gamma: 1}"),
        ("test 7", "over", "minus", "two tests"),
    )
