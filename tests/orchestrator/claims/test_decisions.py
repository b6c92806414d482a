import xml.etree.ElementTree as Xml
from dataclasses import replace
from math import inf, nan, sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress, t, wilcoxon

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.random_effects import moderated_variances, random_effects
from orchestrator.analysis.signed_rank import hodges_lehmann
from orchestrator.claims.decisions import (
    NO_DATA,
    NO_POWER,
    NOT_REPRODUCED,
    NOT_RUN,
    OTHER_TERMS,
    REPRODUCED,
    UNDECIDED,
    Decision,
    Outcome,
    decide,
    verdict_of,
)
from orchestrator.claims.declared import read_claims
from orchestrator.claims.drawings import drawing
from orchestrator.claims.figures import Figure
from orchestrator.claims.needs import Hours, needed_values, needs_of
from orchestrator.claims.page import claims_page, claims_text, paper_sentences
from orchestrator.claims.picture import picture
from orchestrator.claims.rows import COLUMNS, printed_rows
from orchestrator.claims.terms import Terms
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import SearchSpec
from tests.messages import assert_each_says, assert_says, raises


def study(name, values, sweep=None, facts=None, **columns):
    """What a study of two folds found.

    Parameters
    ----------
    values : dict of arm to dict of dataset to list
        The scores of each fold.
    columns : dict of column to the same, in place of scores
    """
    rows = [
        {
            "dataset": dataset,
            "solver": arm,
            "outer": outer,
            "inner": -1,
            "status": "ok",
            "profile": "timing",
            "run_id": "run",
            "host": "a",
            "score": score,
            "n_train": 80,
            "n_test": 20,
            "predict_seconds": 0.0,
            **{column: given[arm][dataset][outer] for column, given in columns.items()},
        }
        for arm, datasets in values.items()
        for dataset, scores in datasets.items()
        for outer, score in enumerate(scores)
    ]
    frame = pd.DataFrame(rows)
    folds = frame.groupby("dataset")["outer"].nunique()
    facts = facts or {}
    design = SimpleNamespace(
        metric="f1_macro",  # of which means that differ are no ties
        search=SearchSpec("grid"),
        protocol={"max_seconds": 100},
        arms={arm: {"solver": arm.partition("[")[0], "sweep": (sweep or {}).get(arm, {})} for arm in values},
        datasets={each: {"split_hash": each, **facts.get(each, {})} for each in frame["dataset"].unique()},
        n_outer=lambda dataset: int(folds[dataset]),
    )
    states = {(d, arm): SimpleNamespace(complete=True) for d in design.datasets for arm in design.arms}
    selections = frame.assign(n_candidates=8)
    of_store = {"name": name, "folder": None, "states": states, "provenance": []}
    frames = {"outer": frame, "trials": frame, "selections": selections, "published": frame.iloc[:0]}
    return Findings(**of_store, **frames, design=design)


def decided(test, **studies):
    (claim,) = read_claims({"X": {"claim": "", "source": "", "published": "", "tests": [test]}})
    return decide(claim, studies, {})


def of_means(name, **arms):
    """A study of two equal folds on each of a, b, c, …."""
    return study(
        name, {arm: {chr(97 + i): [x, x] for i, x in enumerate(values)} for arm, values in arms.items()}
    )


DIFFERENCE = {"test": "difference", "study": "s", "arms": "m", "reference": "r"}


def test_an_interval_within_the_region_reproduces_and_one_outside_refutes():
    figure = Figure("", 0.001, -0.002, 0.004, 9, "datasets")
    assert verdict_of(figure, (-0.005, 0.005)) == REPRODUCED
    assert verdict_of(figure, (-0.003, 0.003)) == UNDECIDED
    assert verdict_of(figure, (0.005, inf)) == NOT_REPRODUCED
    assert verdict_of(Figure("", 0.001, nan, nan, 1, "datasets"), (-inf, inf)) == UNDECIDED
    several = Figure("", 0.001, -0.002, 0.004, 5, "outer folds", wide=(-0.004, 0.006))
    assert verdict_of(several, (0.005, inf)) == UNDECIDED
    assert verdict_of(several, (0.007, inf)) == NOT_REPRODUCED


@pytest.mark.parametrize("seed", range(8))
def test_equivalence_is_two_one_sided_signed_rank_tests(seed):
    differences = np.random.default_rng(seed).normal(0.001, 0.004, 11)
    found = decided({**DIFFERENCE, "within": 0.005}, s=of_means("s", m=0.9 + differences, r=[0.9] * 11))
    above = wilcoxon(differences + 0.005, alternative="greater", method="exact").pvalue
    below = wilcoxon(differences - 0.005, alternative="less", method="exact").pvalue
    assert (found.verdict == REPRODUCED) == (max(above, below) <= 0.05)
    (row,) = found.frame().to_dict("records")
    assert row["p"] == pytest.approx(wilcoxon(differences, method="exact").pvalue)
    assert row["n"] == 11


def test_datasets_outside_a_region_that_holds_the_typical_value_are_named():
    of = of_means("s", m=[0.90, 0.90, 0.90, 0.90, 0.90, 0.90, 0.99], r=[0.9] * 7)
    found = decided({**DIFFERENCE, "within": 0.05}, s=of)
    assert found.verdict == REPRODUCED
    assert_says(found.outcomes[0].figure.note, "1 of 7 datasets", "g")
    of = seconds({name: [3 if name == "g" else 1] for name in "abcdefg"}, {name: [2] for name in "abcdefg"})
    found = decided({**RATIO, "at_most": 1}, s=of)
    assert_says(found.outcomes[0].figure.note, "1 of 7 datasets", "g")


def test_four_datasets_decide_nothing_and_five_do():
    better = [0.91, 0.92, 0.93, 0.94, 0.95]
    four = of_means("s", m=better[:4], r=[0.9] * 4)
    found = decided({**DIFFERENCE, "at_least": 0.0}, s=four)
    assert found.verdict == UNDECIDED
    assert_says(found.outcomes[0].figure.note, "2^−4 = 0.0625", "0.05")
    assert found.outcomes[0].figure.estimate == pytest.approx(0.025)
    five = of_means("s", m=better, r=[0.9] * 5)
    assert decided({**DIFFERENCE, "at_least": 0.0}, s=five).verdict == REPRODUCED
    assert decided({**DIFFERENCE, "at_most": 0.0}, s=five).verdict == NOT_REPRODUCED
    assert decided({**DIFFERENCE, "within": 0.03}, s=five).verdict == UNDECIDED


def test_a_family_of_datasets_counts_once():
    together = study(
        "s",
        {
            arm: {name: [x, x] for name, x in zip("abcdef", values, strict=True)}
            for arm, values in {"m": [0.91, 0.92, 0.93, 0.94, 0.96, 0.98], "r": [0.9] * 6}.items()
        },
        facts={"e": {"family": "x"}, "f": {"family": "x"}},
    )
    (outcome,) = decided({**DIFFERENCE, "at_least": 0.0}, s=together).outcomes
    assert (outcome.figure.n, outcome.figure.unit) == (5, "families")
    assert outcome.figure.high == pytest.approx(0.07)


def seconds(m, r, status="ok"):
    scores = {arm: {name: [1.0] for name in m} for arm in ("m", "r")}
    found = study("s", scores, fit_seconds={"m": m, "r": r})
    found.results.outer.loc[found.results.outer["fit_seconds"] == 70, "status"] = status
    return found


CLIPPED = {
    "test": "ratio",
    "study": "s",
    "arms": "m",
    "quantity": "total_clipped",
    "over": "total_iter",
    "at_most": 0.01,
}
RATIO = {"test": "ratio", "study": "s", "arms": "m", "reference": "r", "quantity": "fit_seconds"}


def test_a_ratio_is_typical_over_datasets_with_its_exact_interval():
    # The golden example of the speed ratios, at 90 per cent.
    m = dict(zip("abcdefgh", ([x] for x in (2, 5, 10, 40, 8, 3, 20, 60)), strict=True))
    r = dict(zip("abcdefgh", ([x] for x in (4, 20, 25, 50, 12, 9, 160, 75)), strict=True))
    (outcome,) = decided({**RATIO, "at_most": 0.8}, s=seconds(m, r)).outcomes
    assert outcome.figure.estimate == pytest.approx(0.4472, abs=1e-4)
    assert outcome.figure.p == pytest.approx(1 / 128)
    assert outcome.verdict == REPRODUCED
    stopped = decided({**RATIO, "at_most": 0.8}, s=seconds(m, {**r, "c": [70], "d": [70]}, "timeout"))
    assert stopped.outcomes[0].figure.high <= outcome.figure.high  # slower by an unknown factor


def test_total_seconds_sum_the_trainings_of_an_outer_fold_and_times_need_timing_rows():
    found = seconds({"a": [3.0]}, {"a": [6.0]})
    inner = found.results.outer.assign(inner=0, predict_seconds=1.0)
    found = replace(found, trials=pd.concat([found.results.outer, inner]))
    (outcome,) = decided({**RATIO, "quantity": "total_seconds", "at_most": 1}, s=found).outcomes
    assert outcome.figure.estimate == pytest.approx(7 / 13)
    found = replace(found, trials=found.results.trials.assign(profile="throughput"))
    (outcome,) = decided({**RATIO, "quantity": "total_seconds", "at_most": 1}, s=found).outcomes
    assert_says(outcome.why, "no dataset", "total_seconds", "m", "r")


def test_the_share_of_clipped_updates_is_a_ratio_of_two_columns_of_an_arm():
    names = "abcdef"
    shares = [0.001, 0.002, 0.0, 0.004, 0.003, 0.05]

    def clipping(shares):
        clipped = {name: [1000 * share, 3000 * share] for name, share in zip(names, shares, strict=True)}
        values = {"m": {name: [1.0, 1.0] for name in names}}
        steps = {"m": {name: [1000, 3000] for name in names}}
        return study("s", values, n_iter=steps, n_clipped={"m": clipped})

    found = decided(CLIPPED, s=clipping(shares))
    figure = found.outcomes[0].figure
    assert (figure.what, figure.n) == ("m, total_clipped / total_iter", 6)
    assert figure.high == pytest.approx(np.sqrt(0.003 * 0.05))  # the third largest of the Walsh averages
    assert decided(CLIPPED, s=clipping([0.004] * 5 + [0.006])).verdict == REPRODUCED
    assert decided(CLIPPED, s=clipping([0.03] * 6)).verdict == NOT_REPRODUCED
    apart = decided({**CLIPPED, "apart": True}, s=clipping([0.003, *[0.03] * 5])).frame()
    assert apart["estimate"].tolist() == pytest.approx([0.003, *[0.03] * 5])
    (outcome,) = decided(CLIPPED, s=of_means("s", m=[0.9])).outcomes
    assert_says(outcome.why, "study s", "column n_clipped")


def test_on_each_dataset_alone_the_interval_is_the_corrected_one():
    values = {"m": {"a": [0.91, 0.93, 0.95]}, "r": {"a": [0.9, 0.91, 0.9]}}
    (outcome,) = decided({**DIFFERENCE, "apart": True, "at_least": 0.0}, s=study("s", values)).outcomes
    differences = np.array([0.01, 0.02, 0.05])
    reach = t.ppf(0.95, 2) * differences.std(ddof=1) * sqrt(1 / 3 + 20 / 80)
    mean = differences.mean()
    assert (outcome.figure.low, outcome.figure.high) == pytest.approx((mean - reach, mean + reach))
    assert outcome.verdict == UNDECIDED


def test_an_interval_of_two_folds_and_many_comparisons_has_no_finite_end():
    """t of 1 degree of freedom at 0.05/1000 is 6366, and the logarithms of the ratios are 0 and log 4."""
    values, costs = {"m": {"a": [0.9, 0.9]}, "r": {"a": [0.9, 0.9]}}, {"m": {"a": [1, 4]}, "r": {"a": [1, 1]}}
    test = {"test": "ratio", "study": "s", "arms": "m", "reference": "r", "quantity": "n_iter", "apart": True}
    (claim,) = read_claims(
        {"X": {"claim": "", "source": "", "published": "", "tests": [{**test, "at_least": 1}]}}
    )
    decision = decide(claim, {"s": study("s", values, n_iter=costs)}, {}, n_claims=1000)
    (figure,) = (outcome.figure for outcome in decision.outcomes)
    assert (figure.estimate, figure.wide) == (pytest.approx(2), (0, inf))
    assert decision.verdict == UNDECIDED


def test_on_a_published_split_the_figure_decides_without_an_interval():
    found = study("s", {"m": {"a": [0.93]}, "r": {"a": [0.9]}})
    (outcome,) = decided({**DIFFERENCE, "apart": True, "at_least": 0.02}, s=found).outcomes
    assert outcome.verdict == UNDECIDED  # its rows may be drawn at random
    found.design.protocol["outer"] = {"_target_": "sklearn.model_selection.PredefinedSplit"}
    for least, verdict in ((0.02, REPRODUCED), (0.04, NOT_REPRODUCED)):
        (outcome,) = decided({**DIFFERENCE, "apart": True, "at_least": least}, s=found).outcomes
        assert outcome.verdict == verdict
        assert (outcome.figure.estimate, outcome.figure.n) == (pytest.approx(0.03), 1)
        assert_says(outcome.figure.note, "no test")
    (outcome,) = decided({**DIFFERENCE, "at_least": 0.02}, s=found).outcomes
    assert outcome.verdict == UNDECIDED  # over datasets, one is a sample of one


def test_an_incomplete_dataset_is_left_out_and_named():
    found = of_means("s", m=[0.9, 0.92], r=[0.9, 0.91])
    rows = found.results.outer
    found = replace(
        found, outer=rows[~((rows["dataset"] == "a") & (rows["outer"] == 1) & (rows["solver"] == "m"))]
    )
    (outcome,) = decided({**DIFFERENCE, "at_least": 0}, s=found).outcomes
    assert outcome.figure.n == 1
    assert outcome.figure.note.endswith("without a")


def test_another_study_is_compared_on_the_same_splits_only():
    first, second = of_means("s", m=[0.9, 0.92]), of_means("o", m=[0.88, 0.91])
    second.design.datasets["a"]["split_hash"] = "another"
    test = {"test": "difference", "study": "s", "arms": "m", "against": "o", "at_least": 0}
    (outcome,) = decided(test, s=first, o=second).outcomes
    assert outcome.figure.what == "m − m of o, score"
    assert outcome.figure.estimate == pytest.approx(0.01)
    assert_says(decided(test, s=first).outcomes[0].why, "study o", "run")


def test_a_dataset_that_only_one_of_two_studies_has_is_missing_and_has_no_other_splits():
    first, second = of_means("s", m=[0.9, 0.92], r=[0.8, 0.9]), study("o", {"m": {"z": [0.9, 0.8]}})
    both = {**DIFFERENCE, "study": ["s", "o"], "at_least": 0}
    (outcome,) = decided(both, s=first, o=second).outcomes
    assert outcome.figure.n == 2
    assert_says(outcome.figure.note, "without z")
    found = decided({**both, "apart": True}, s=first, o=second).outcomes
    assert [outcome.figure.what[-1] for outcome in found] == ["a", "b", "z"]
    assert "splits" not in found[-1].figure.note


def measured(kinds):
    """Ratios of 2 on as many datasets; the reference ran on other hosts where a kind is given."""
    datasets = [chr(97 + i) for i in range(len(kinds))]
    values = {arm: {each: [0.9, 0.9] for each in datasets} for arm in "mr"}
    seconds = {arm: {each: [x, x] for each in datasets} for arm, x in (("m", 2.0), ("r", 1.0))}
    host = {"m": {each: ["a", "a"] for each in datasets}}
    host["r"] = {each: [kind, kind] for each, kind in zip(datasets, kinds, strict=True)}
    found = study("s", values, fit_seconds=seconds, host=host)
    cpus = {"a": "znver3", "twin": "znver3", "b": "znver4"}
    hosts = [{"host": name, "cpu": "EPYC", "arithmetic": {"numba": cpu}} for name, cpu in cpus.items()]
    found = replace(found, provenance=[{"run_id": "run", "hosts": hosts}])
    return found


def test_times_of_different_kinds_of_processors_have_no_ratio():
    test = {**RATIO, "at_least": 1.5}
    assert decided(test, s=measured(["a", "a", "twin", "a", "a"])).verdict == REPRODUCED
    (outcome,) = decided(test, s=measured(["a", "b", "a", "a", "a", "b", "a"])).outcomes
    assert (outcome.verdict, outcome.figure.n) == (REPRODUCED, 5)
    assert_says(outcome.figure.note, "different kinds of processors on b, f")
    apart = decided({**test, "apart": True}, s=measured(["a", "b"])).outcomes
    assert [(each.verdict, each.reason) for each in apart] == [(REPRODUCED, ""), (UNDECIDED, NO_DATA)]
    (outcome,) = decided(test, s=measured(["b", "b"])).outcomes
    assert_says(outcome.why, "m and r have times of different kinds of processors on every dataset")


def test_times_of_different_kinds_of_processors_have_no_slope():
    slope = {"test": "slope", "study": "s", "arms": "r", "x": "score", "y": "fit_seconds", "at_least": 0}
    (outcome,) = decided(slope, s=measured(["a", "b", "a", "a"])).outcomes
    assert_says(outcome.why, "r", "times of different kinds of processors")
    (outcome,) = decided(slope, s=measured(["a", "a", "a", "a"])).outcomes
    assert "processors" not in outcome.why


def test_accuracies_of_different_kinds_of_processors_are_compared():
    (outcome,) = decided({**DIFFERENCE, "within": 0.01}, s=measured(["b"] * 5)).outcomes
    assert (outcome.verdict, outcome.figure.n) == (REPRODUCED, 5)


def test_slopes_are_those_of_the_logarithms():
    n = {name: 10.0 ** (i + 2) for i, name in enumerate("abcd")}
    factors = dict(zip(n, (1, 1.1, 0.9, 1), strict=True))
    times = {"m": {name: [1e-3 * size**1.5 * factors[name]] for name, size in n.items()}}
    scores = {"m": {name: [1.0] for name in n}}
    found = study("s", scores, facts={name: {"n": size} for name, size in n.items()}, fit_seconds=times)
    test = {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "fit_seconds", "between": [1.3, 1.7]}
    (outcome,) = decided(test, s=found).outcomes
    line = linregress(np.log([*n.values()]), np.log([x for (x,) in times["m"].values()]))
    assert outcome.figure.estimate == pytest.approx(line.slope)
    assert outcome.figure.low == pytest.approx(line.slope - t.ppf(0.95, 2) * line.stderr)
    assert outcome.verdict == REPRODUCED
    assert decided({**test, "to": 1000}, s=found).verdict == UNDECIDED  # two points


def test_slopes_over_settings_are_each_datasets_own():
    arms = {f"m[draws={draws}]": {"draws": draws} for draws in (100, 200, 400)}
    scores = {arm: {"a": [1.0], "b": [1.0]} for arm in arms}
    times = {
        arm: {"a": [values["draws"] / 50], "b": [3.01 if "200" in arm else 3.0]}
        for arm, values in arms.items()
    }
    found = study("s", scores, sweep=arms, fit_seconds=times)
    test = {
        "test": "slope",
        "study": "s",
        "solver": "m",
        "x": "draws",
        "y": "fit_seconds",
        "between": [0.9, 1.1],
    }
    rows = decided(test, s=found).frame()
    assert rows["estimate"].tolist() == pytest.approx([1.0, 0.0], abs=1e-9)
    assert rows["verdict"].tolist() == [REPRODUCED, NOT_REPRODUCED]


@pytest.mark.parametrize("test", ["slope", "line", "curvature"])
def test_arms_of_a_second_swept_parameter_are_groups_of_their_own(test):
    arms = {
        f"m[draws={draws},eta={eta}]": {"draws": draws, "eta": eta}
        for draws in (100, 200, 300)
        for eta in (1.0, 1.5)
    }
    scores = {arm: {"a": [1.0, 1.0, 1.0]} for arm in arms}
    peak = {100: 1.0, 200: 3.0, 300: 1.0}
    times = {
        arm: {"a": [values["draws"] / 100 if values["eta"] == 1 else peak[values["draws"]]] * 3}
        for arm, values in arms.items()
    }
    found = study("s", scores, sweep=arms, fit_seconds=times)
    options = {"study": "s", "solver": "m", "x": "draws", "y": "fit_seconds", "at_least": 0}
    outcomes = decided({"test": test, **options}, s=found).outcomes
    line, bent = sorted(outcomes, key=lambda outcome: "1.5" in outcome.figure.what)
    assert "eta=1" in line.figure.what
    assert line.figure.estimate == pytest.approx(1)  # the points are on a line through the origin
    slope = linregress(np.log([100, 200, 300]), np.log([1, 3, 1])).slope
    assert bent.figure.estimate == pytest.approx({"slope": slope, "line": 3, "curvature": 3}[test], abs=1e-9)


def test_what_every_candidate_shows():
    rows = [
        {
            "dataset": name,
            "solver": "m",
            "inner": 0,
            "param_C": C,
            "param_gamma": g,
            "objective": g / C / size,
        }
        for name, size in (("small", 100), ("large", 1000))
        for C in (1.0, 4.0)
        for g in (1.0, 2.0, 4.0)
    ]
    found = of_means("s", m=[0.9])
    found = replace(found, trials=pd.DataFrame(rows))
    base = {"study": "s", "arms": "m", "quantity": "objective"}
    ratio = {"test": "candidate_ratio", **base, "above": "large", "below": "small", "between": [0.05, 0.2]}
    (outcome,) = decided(ratio, s=found).outcomes
    assert (outcome.figure.estimate, outcome.figure.low, outcome.figure.n) == (
        pytest.approx(0.1),
        pytest.approx(0.1),
        6,
    )
    steps = {"test": "candidate_steps", **base, "at_least": 0.99}
    assert decided({**steps, "along": "C", "direction": "falls"}, s=found).verdict == REPRODUCED
    assert decided({**steps, "along": "gamma", "direction": "falls"}, s=found).verdict == NOT_REPRODUCED
    assert decided({**steps, "along": "gamma", "direction": "rises"}, s=found).outcomes[0].figure.n == 8


@pytest.mark.parametrize(
    ("n", "unit", "text"),
    [
        (2, "families", "2 families"),
        (1, "families", "1 family"),
        (1, "published splits", "1 published split"),
        (1, "points × splits", "1 point × split"),
    ],
)
def test_a_sample_of_one_has_its_unit_in_the_singular(n, unit, text):
    (part,) = read_claims(
        {"X": {"claim": "", "source": "", "published": "", "tests": [{**DIFFERENCE, "within": 1}]}}
    )[0].parts
    outcome = Outcome(part, REPRODUCED, Figure("", 0.0, 0.0, 0.0, n, unit))
    (row,) = printed_rows(Decision(SimpleNamespace(name="X"), (outcome,)))
    assert row[COLUMNS.index("n")] == text


def test_curves_leave_out_candidates_whose_trainings_all_failed():
    rows = [
        {"dataset": "a", "solver": "m", "inner": 0, "param_C": C, "param_gamma": g, "objective": value}
        for g, values in ((1.0, (1.0, 2.0, nan)), (2.0, (nan, nan, nan)), (4.0, (1.0, 2.0, 3.0)))
        for C, value in zip((1.0, 4.0, 16.0), values, strict=True)
    ]
    found = of_means("s", m=[0.9])
    found = replace(found, trials=pd.DataFrame(rows))
    steps = {"test": "candidate_steps", "study": "s", "arms": "m", "quantity": "objective", "at_least": 0.99}
    test = {**steps, "along": "C", "direction": "rises"}
    (claim,) = read_claims({"X": {"claim": "", "source": "", "published": "", "tests": [test]}})
    svg = drawing(claim, {"s": found})
    assert "nan" not in svg
    curves = [each.get("points").split() for each in Xml.fromstring(svg).iter("polyline")]
    assert [len(points) for points in curves] == [2, 3]


def test_the_bound_of_unseen_violators_is_the_formula():
    # z = 1.959964: n + z² = 103.84146, z²/2 = 1.92073, share 0.0184967.
    test = {"test": "unseen_violators", "draws": 100, "confidence": 0.95, "between": [0.044, 0.045]}
    (outcome,) = decided(test).outcomes
    assert outcome.figure.estimate == pytest.approx(
        0.0184967 + 1.959964 * sqrt(0.0184967 * 0.9815033 / 103.84146), abs=1e-6
    )
    assert outcome.verdict == REPRODUCED


def test_a_claim_needs_all_its_tests_and_falls_with_one():
    found = of_means("s", m=[0.91, 0.92, 0.93, 0.94, 0.95, 0.96], r=[0.9] * 6)
    node = {"claim": "c", "source": "s", "published": "p"}
    up, down = {**DIFFERENCE, "at_least": 0.0}, {**DIFFERENCE, "at_most": 0.0}
    unknown = {**DIFFERENCE, "study": "other", "at_least": 0.0}
    for more, verdict in [((), REPRODUCED), ((unknown,), UNDECIDED), ((unknown, down), NOT_REPRODUCED)]:
        (claim,) = read_claims({"X": {**node, "tests": [up, *more]}})
        assert decide(claim, {"s": found}, {}).verdict == verdict
    (outcome,) = decided({**up, "arms": "mm"}, s=found).outcomes
    assert_says(outcome.why, "study s", "arm mm", "'m'")
    both = decided({**up, "study": ["s", "other"], "datasets": ["a", "z"]}, s=found)
    assert_says(both.outcomes[0].figure.note, "study other", "dataset z")


def test_what_is_wrong_with_a_claim_is_said_at_once():
    with pytest.raises(ConfigError) as refusal:
        read_claims(
            {
                "X": {
                    "claim": 3,
                    "sauce": "",
                    "source": "",
                    "published": "",
                    "tests": [
                        {"test": "ration"},
                        {**DIFFERENCE, "quantity": "scores", "within": 1},
                        {"test": "slope", "study": "s", "x": "n", "at_least": 1},
                        {**RATIO, "refrence": "r"},
                    ],
                },
                "Y": {"claim": "", "source": "", "published": "", "tests": []},
            }
        )
    assert_each_says(
        refusal.value.problems,
        ("claim X", "unknown", "key 'sauce'", "'source'"),
        ("claim X", "text", "3"),
        (
            "claim X",
            "test 1",
            "difference",
            "ratio",
            "slope",
            "candidate_ratio",
            "candidate_steps",
            "unseen_violators",
            "unanswered",
            "'ration'",
            "'ratio'",
        ),
        (
            "claim X",
            "test 2",
            "quantity",
            "score",
            "fit_seconds",
            "predict_seconds",
            "n_iter",
            "n_clipped",
            "n_kernel_evals",
            "n_sv",
            "sv_share",
            "total_seconds",
            "total_iter",
            "total_clipped",
            "total_kernel_evals",
            "n_candidates",
            "'scores'",
            "'score'",
        ),
        ("claim X", "test 3", "slope", "'y'"),
        ("claim X", "test 3", "slope", "either", "'arms'", "'solver'"),
        ("claim X", "test 4", "'refrence'", "'reference'"),
        (
            "claim X",
            "test 4",
            "region",
            "within=0.005",
            "at_least=1",
            "at_most=0.5",
            "between=[0.5,1]",
            "lower",
            "{}",
        ),
        ("claim Y", "tests", "list", "[{test: ratio, …}]", "[]"),
    )


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ({**DIFFERENCE, "within": -0.01}, ("lower", "{'within': -0.01}")),
        ({**DIFFERENCE, "between": [0.5, 0.1]}, ("lower", "{'between': [0.5, 0.1]}")),
        ({**DIFFERENCE, "arms": [], "within": 1}, ("arms", "name", "[]")),
        (
            {**DIFFERENCE, "datasets": [], "within": 1},
            ("datasets", "name", "[]"),
        ),
        ({**DIFFERENCE, "reference": [3], "within": 1}, ("reference", "name", "[3]")),
        ({**DIFFERENCE, "reference": "m", "within": 1}, ("difference", "'m'", "itself")),
        (
            {**DIFFERENCE, "reference": ["a", "b"], "within": 1},
            ("several references", "scores", "one reference"),
        ),
        (
            {"test": "ratio", "study": "s", "arms": "m", "against": "s", "within": 1},
            ("ratio", "'m'"),
        ),
        ({**DIFFERENCE, "apart": "no", "within": 1}, ("apart", "true", "false", "seeds", "'no'")),
        (
            {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "n_vs", "within": 1},
            ("did you mean", "'n_sv'"),
        ),
        (
            {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "n_sv", "from": "a", "within": 1},
            ("from", "number", "above 0", "'a'"),
        ),
        (
            {
                "test": "candidate_steps",
                "study": "s",
                "arms": "m",
                "quantity": "gap",
                "along": "C",
                "direction": "up",
                "at_least": 1,
            },
            ("direction", "rises", "falls", "'up'"),
        ),
        (
            {"test": "unseen_violators", "draws": -3, "confidence": 0.9, "at_most": 1},
            ("draws", "whole number", "above 0", "-3"),
        ),
        (
            {"test": "unseen_violators", "draws": 3, "confidence": 2, "at_most": 1},
            ("confidence", "number", "0", "1", "2"),
        ),
        ({**RATIO, "over": "n_iter", "at_most": 1}, ("ratio", "'over'", "arm")),
        ({**CLIPPED, "over": "total_itr"}, ("did you mean", "'total_iter'")),
        ({"test": "unanswered", "why": 3}, ("why", "text", "3")),
        ({"test": ["ratio"]}, ("test", "difference")),
    ],
)
def test_a_value_that_no_test_can_take_is_refused_in_one_sentence(test, problem):
    with pytest.raises(ConfigError) as refusal:
        decided(test)
    (found,) = refusal.value.problems
    assert found.startswith("claim X, test 1: ")
    assert_says(found, *problem)


def test_a_column_or_a_fact_that_is_not_recorded_leaves_a_claim_undecided():
    found = of_means("s", m=[0.9], r=[0.9])
    (outcome,) = decided({**RATIO, "at_most": 1}, s=found).outcomes
    assert_says(outcome.why, "study s", "column fit_seconds")
    slope = {"test": "slope", "study": "s", "arms": "m", "x": "split_hash", "y": "score", "within": 1}
    (outcome,) = decided(slope, s=found).outcomes
    assert_says(outcome.why, "split_hash")


def test_of_datasets_apart_none_is_left_out_without_a_word():
    values = {"m": {"a": [0.9, 0.91], "b": [0.9, 0.91]}, "r": {"a": [0.8, 0.81], "b": [0.99, 0.99]}}
    found, test = study("s", values), {**DIFFERENCE, "apart": True, "at_least": 0.0}
    assert decided({**test, "datasets": "a"}, s=found).verdict == REPRODUCED
    rows = found.results.outer
    found = replace(found, outer=rows.drop(rows.index[(rows["dataset"] == "b") & (rows["outer"] == 1)][0]))
    decision = decided(test, s=found)
    assert [outcome.verdict for outcome in decision.outcomes] == [REPRODUCED, UNDECIDED]
    assert decision.outcomes[1].figure.what == "m − r, score, b"
    for more in ({"datasets": ["a", "z"]}, {"study": ["s", "other"], "datasets": "a"}):
        assert decided({**test, **more}, s=found).verdict == UNDECIDED


def test_a_dataset_of_two_studies_counts_once():
    values = {"m": {"a": [0.9, 0.93, 0.8]}, "r": {"a": [0.8, 0.9, 0.82]}}
    test = {**DIFFERENCE, "apart": True, "at_least": 0.0}
    (alone,) = decided(test, s=study("s", values)).outcomes
    both = decided({**test, "study": ["s", "o"]}, s=study("s", values), o=study("o", values))
    assert both.outcomes[0].figure == alone.figure
    assert alone.figure.n == 3


def test_what_was_stopped_bounds_ratios_and_differences_and_is_no_point_of_a_slope():
    names = "abcdefgh"
    m, r = {name: [1.0, 1.0] for name in names}, {name: [2.0, 2.0] for name in names}
    found = seconds(m | {"a": [nan, 1.0]}, r)
    rows = found.results.outer
    rows.loc[rows["fit_seconds"].isna(), "status"] = "timeout"  # killed at the limit, 100 s
    figure = decided({**RATIO, "at_most": 1}, s=found).outcomes[0].figure
    assert figure.n == 8
    assert figure.note == ""
    # Lower ends: one ratio of 25.25, seven of 1/2; the upper end of the first is infinite.
    assert (figure.low, figure.high) == (pytest.approx(0.5), inf)
    difference = decided({**RATIO, "test": "difference", "at_most": 0}, s=found).outcomes[0].figure
    assert (difference.low, difference.high) == (-1.0, inf)
    sizes = {name: 10.0**i for i, name in enumerate(names)}
    times = {"m": {name: [size**2] for name, size in sizes.items()} | {"g": [70], "h": [70]}}
    found = study(
        "s",
        {"m": {n: [1.0] for n in names}},
        None,
        {n: {"n": x} for n, x in sizes.items()},
        fit_seconds=times,
    )
    found.results.outer.loc[found.results.outer["fit_seconds"] == 70, "status"] = "timeout"
    test = {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "fit_seconds", "at_most": 1.5}
    decision = decided(test, s=found)
    assert decision.verdict == NOT_REPRODUCED
    assert (decision.outcomes[0].figure.estimate, decision.outcomes[0].figure.n) == (pytest.approx(2), 6)


def test_round_off_decides_nothing():
    test = {**DIFFERENCE, "apart": True, "at_most": 0.1}
    assert decided(test, s=study("s", {"m": {"a": [0.6] * 3}, "r": {"a": [0.5] * 3}})).verdict == REPRODUCED
    twice, once = ({name: [number] for name in "abcdef"} for number in (2.0, 1.0))
    assert decided({**RATIO, "at_most": 2}, s=seconds(twice, once)).verdict == REPRODUCED


def test_a_refutation_takes_more_datasets_the_more_tests_there_are():
    worse = [0.89, 0.88, 0.87, 0.86, 0.85]
    found = of_means("s", m=worse, n=worse, r=[0.9] * 5)
    test = {**DIFFERENCE, "at_least": 0}
    assert decided(test, s=found).verdict == NOT_REPRODUCED  # 2^−5 is below 0.05
    assert decided({**test, "arms": ["m", "n"]}, s=found).verdict == UNDECIDED  # and not below 0.025


def on_terms(test, terms, **studies):
    (claim,) = read_claims({"X": {"claim": "", "source": "", "published": "", "tests": [test]}})
    return decide(claim, studies, {}, terms)


BETTER = {"m": [0.91, 0.92, 0.93, 0.94, 0.95, 0.96], "r": [0.9] * 6}


def test_a_verdict_on_other_terms_is_shown_and_does_not_count():
    test = {**DIFFERENCE, "at_least": 0}
    names = tuple("abcdef")
    same = on_terms(test, {"s": Terms(names)}, s=of_means("s", **BETTER))
    assert (same.verdict, same.reason) == (REPRODUCED, "")
    other = on_terms(test, {"s": Terms(names, protocol=("outer=3",))}, s=of_means("s", **BETTER))
    assert (other.verdict, other.reason, other.elsewhere) == (UNDECIDED, OTHER_TERMS, REPRODUCED)
    assert_says(other.outcomes[0].terms[0], "study s", "outer=3")
    for solver, verdict in (("m", UNDECIDED), ("r", UNDECIDED), ("x", REPRODUCED)):  # x is not compared
        terms = {"s": Terms(names, of_solvers={solver: ("another tol",)})}
        assert on_terms(test, terms, s=of_means("s", **BETTER)).verdict == verdict


def test_datasets_that_the_experiment_lacks_are_used_only_where_there_are_no_others():
    test = {**DIFFERENCE, "at_least": 0}
    some = on_terms(test, {"s": Terms(tuple("abcde"))}, s=of_means("s", **BETTER))
    assert (some.verdict, some.outcomes[0].figure.n) == (REPRODUCED, 5)
    none = on_terms(test, {"s": Terms(("x", "y"))}, s=of_means("s", **BETTER))
    assert (none.verdict, none.reason, none.outcomes[0].figure.n) == (UNDECIDED, OTHER_TERMS, 6)


def test_sizes_that_the_experiment_does_not_sweep_over_are_not_used_and_its_missing_sizes_are_named():
    sizes = [100, 200, 1000, 2000, 4000]
    names = [f"checkers[n={n}]" for n in sizes]
    seconds = {"m": {name: [n / 10, n / 10] for name, n in zip(names, sizes, strict=True)}}
    found = study("s", seconds, facts={name: {"n": n} for name, n in zip(names, sizes, strict=True)})
    test = {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "score", "at_least": 0.5}
    terms = {"s": Terms(("checkers",), swept={"n": (1000, 2000, 4000, 5000, 9000)})}
    (slope,) = on_terms({**test, "to": 5000}, terms, s=found).outcomes
    assert (slope.verdict, slope.figure.n) == (REPRODUCED, 3)
    assert_says(slope.figure.note, "x from 1000 to 4000", "without n=5000")
    assert "9000" not in slope.figure.note
    few = on_terms({**test, "from": 2000}, terms, s=found)
    assert (few.verdict, few.reason, few.outcomes[0].figure.n) == (UNDECIDED, NO_DATA, 2)
    (slope,) = on_terms(test, {"s": Terms(("checkers",))}, s=found).outcomes
    assert slope.figure.n == 5


def swept_times(draws, hosts):
    """Times that double from 100 draws to 200 and to 400, and are far from that line elsewhere."""
    arms = {f"m[draws={each}]": {"draws": each} for each in draws}
    times = {100: 1.0, 200: 2.0, 400: 4.0}
    scores = {arm: {"a": [1.0] * 3} for arm in arms}
    seconds = {arm: {"a": [times.get(each, 50.0)] * 3} for arm, each in zip(arms, draws, strict=True)}
    host = {arm: {"a": [each] * 3} for arm, each in zip(arms, hosts, strict=True)}
    found = study("s", scores, sweep=arms, fit_seconds=seconds, host=host)
    cpus = [{"host": name, "cpu": name, "arithmetic": {}} for name in {*hosts}]
    return replace(found, provenance=[{"run_id": "run", "hosts": cpus}])


OVER_DRAWS = {"study": "s", "solver": "m", "x": "draws", "y": "fit_seconds", "between": [0.9, 1.1]}


@pytest.mark.parametrize("test", ["slope", "line", "curvature"])
def test_arms_that_the_experiment_does_not_sweep_over_are_not_used_and_its_missing_ones_are_named(test):
    found = swept_times([100, 200, 300, 400], "aaaa")
    terms = {"s": Terms(("a",), swept={"draws": (100, 200, 400, 800, 900)})}
    (outcome,) = on_terms({"test": test, **OVER_DRAWS, "to": 800}, terms, s=found).outcomes
    assert outcome.figure.estimate == pytest.approx(1)
    assert_says(outcome.figure.note, "without draws=800")
    assert "900" not in outcome.figure.note
    outcomes = on_terms({"test": test, **OVER_DRAWS}, {"s": Terms(("a",))}, s=found).outcomes
    assert any(abs(each.figure.estimate - 1) > 0.1 for each in outcomes)


@pytest.mark.parametrize("test", ["slope", "line", "curvature"])
def test_times_of_settings_on_different_kinds_of_processors_are_not_compared(test):
    asked = {"test": test, **OVER_DRAWS}
    (outcome,) = decided(asked, s=swept_times([100, 200, 400], "aba")).outcomes
    assert_says(outcome.why, "settings of m on a", "different kinds of processors")
    (outcome,) = decided({**asked, "y": "score"}, s=swept_times([100, 200, 400], "aba")).outcomes
    assert "processors" not in outcome.why
    (outcome,) = decided(asked, s=swept_times([100, 200, 400], "aaa")).outcomes
    assert outcome.figure.estimate == pytest.approx(1)


def test_limits_of_null_are_none():
    asked = {"test": "slope", **OVER_DRAWS, "from": None, "to": None, "datasets": None}
    (outcome,) = decided(asked, s=swept_times([100, 200, 400], "aaa")).outcomes
    assert outcome.figure.estimate == pytest.approx(1)


@pytest.mark.parametrize(("test", "draws", "hosts"), [("slope", 800, "aaab"), ("line", 300, "aaab")])
def test_settings_without_a_value_on_a_dataset_have_no_say_in_its_processors(test, draws, hosts):
    found = swept_times([100, 200, 400, draws], hosts)
    found.results.states["a", f"m[draws={draws}]"].complete = False
    (outcome,) = decided({"test": test, **OVER_DRAWS}, s=found).outcomes
    assert outcome.figure.estimate == pytest.approx(1)


def swept_study(name, arms, on_line):
    """A study of dataset a: times are the first swept value for some arms, and 50 for others."""
    scores = {arm: {"a": [1.0] * 3} for arm in arms}
    seconds = {
        arm: {"a": [float(next(iter(values.values())) if on_line(values) else 50)] * 3}
        for arm, values in arms.items()
    }
    return study(name, scores, sweep=arms, fit_seconds=seconds)


@pytest.mark.parametrize("test", ["slope", "line", "curvature"])
def test_groups_of_another_swept_value_than_those_of_the_experiment_are_left_out(test):
    arms = {
        f"m[draws={draws},eta={eta}]": {"draws": draws, "eta": eta}
        for draws in (100, 200, 400)
        for eta in (1.0, 3.0)
    }
    found = swept_study("s", arms, lambda values: values["eta"] == 1)
    terms = {"s": Terms(("a",), swept={"draws": (100, 200, 400), "eta": (1.0, 2.0)})}
    (outcome,) = on_terms({"test": test, **OVER_DRAWS}, terms, s=found).outcomes
    assert "eta=1.0" in outcome.figure.what
    assert outcome.figure.estimate == pytest.approx(1)
    assert_says(outcome.figure.note, "without eta=2.0")


@pytest.mark.parametrize("values", [(100, 200, 400, "auto"), (100, 200, 400, None), (100, 200, 400, True)])
def test_a_sweep_over_numbers_and_others_leaves_out_other_numbers(values):
    arms = {f"m[draws={draws}]": {"draws": draws} for draws in (100, 200, 300, 400)}
    found = swept_study("s", arms, lambda values: values["draws"] != 300)
    terms = {"s": Terms(("a",), swept={"draws": values})}
    (outcome,) = on_terms({"test": "slope", **OVER_DRAWS}, terms, s=found).outcomes
    assert (outcome.figure.n, outcome.figure.estimate) == (3, pytest.approx(1))
    assert "without" not in outcome.figure.note  # of a value that has no place on the line


def test_a_setting_is_left_out_and_missing_by_the_same_text():
    found = swept_times([100, 200, 400], "aaa")
    terms = {"s": Terms(("a",), swept={"draws": (100, 200, 400.0)})}
    (outcome,) = on_terms({"test": "slope", **OVER_DRAWS}, terms, s=found).outcomes
    assert outcome.figure.n == 2
    assert_says(outcome.figure.note, "without draws=400.0")


def test_a_setting_that_only_another_solver_has_is_missing():
    arms = {f"m[draws={draws}]": {"draws": draws} for draws in (100, 200, 400)}
    found = swept_study("s", {**arms, "k[draws=800]": {"draws": 800}}, lambda values: True)
    terms = {"s": Terms(("a",), swept={"draws": (100, 200, 400, 800)})}
    (outcome,) = on_terms({"test": "slope", **OVER_DRAWS}, terms, s=found).outcomes
    assert_says(outcome.figure.note, "without draws=800")


def test_a_parameter_of_a_step_is_that_of_the_experiment_sweep():
    arms = {f"m[svc__draws={draws}]": {"svc__draws": draws} for draws in (100, 200, 300, 400)}
    found = swept_study("s", arms, lambda values: values["svc__draws"] != 300)
    terms = {"s": Terms(("a",), swept={"draws": (100, 200, 400, 800, 900)})}
    asked = {"test": "slope", **OVER_DRAWS, "x": "svc__draws", "to": 800}
    (outcome,) = on_terms(asked, terms, s=found).outcomes
    assert outcome.figure.estimate == pytest.approx(1)
    assert_says(outcome.figure.note, "without draws=800")
    assert "900" not in outcome.figure.note


def test_sizes_of_a_dataset_that_the_options_leave_out_are_not_missing():
    names = [f"checkers[n={n}]" for n in (100, 200)]
    found = study("s", {"m": dict.fromkeys(names, [0.95] * 2), "r": dict.fromkeys(names, [0.9] * 2)})
    terms = {"s": Terms(("checkers",), swept={"n": (100, 200, 400)})}
    for options in ({"datasets": names[:1]}, {"except": ["checkers[n=400]"]}):
        (outcome,) = on_terms({**DIFFERENCE, **options, "at_least": 0}, terms, s=found).outcomes
        assert "without" not in outcome.figure.note
        assert outcome.reason == NO_POWER
    (outcome,) = on_terms({**DIFFERENCE, "datasets": ["checkers"], "at_least": 0}, terms, s=found).outcomes
    assert_says(outcome.figure.note, "without n=400")


def test_sizes_of_a_study_without_an_experiment_are_used_beside_one_with_an_experiment():
    def sizes(name, values):
        names = [f"checkers[n={n}]" for n in values]
        return study(name, {"m": dict.fromkeys(names, [0.95] * 2), "r": dict.fromkeys(names, [0.9] * 2)})

    found = {"s": sizes("s", (100, 200)), "own": sizes("own", (800, 1600))}
    terms = {"s": Terms(("checkers",), swept={"n": (100, 200)}), "own": Terms()}
    test = {**DIFFERENCE, "study": ["s", "own"], "apart": True, "at_least": 0}
    assert len(on_terms(test, terms, **found).outcomes) == 4
    terms["own"] = Terms(("checkers",), swept={"n": (800,)})
    assert len(on_terms(test, terms, **found).outcomes) == 3


def test_a_dataset_that_a_test_names_and_the_experiment_lacks_is_named():
    found = of_means("s", **BETTER)
    for names, terms in (
        (["f"], {"s": Terms(tuple("abcde"))}),
        (["f[n=9]"], {"s": Terms(("f",), swept={"n": (1, 2)})}),
    ):
        renamed = study("s", {arm: {names[0]: [0.9, 0.9], "a": [0.9, 0.9]} for arm in "mr"})
        test = {**DIFFERENCE, "datasets": names, "at_least": 0}
        (outcome,) = on_terms(test, terms, s=renamed).outcomes
        assert_says(outcome.why, "experiment has no dataset", names[0])
    assert "experiment" not in on_terms({**DIFFERENCE, "at_least": 0}, {}, s=found).outcomes[0].figure.note


def test_datasets_of_the_experiment_that_a_study_lacks_are_named_and_leave_separate_tests_undecided():
    terms, found = {"s": Terms(tuple("abcdefyz"))}, of_means("s", **BETTER)
    test = {**DIFFERENCE, "at_least": 0}
    (typical,) = on_terms(test, terms, s=found).outcomes
    assert (typical.verdict, typical.figure.n) == (REPRODUCED, 6)
    assert_says(typical.figure.note, "without y, z")
    assert "without" not in on_terms({**test, "except": ["y", "z"]}, terms, s=found).outcomes[0].figure.note
    apart = on_terms({**test, "apart": True}, terms, s=found)
    assert (apart.verdict, apart.reason) == (UNDECIDED, NO_DATA)
    assert [each.figure.what for each in apart.outcomes[6:]] == ["m − r, score, y", "m − r, score, z"]
    worse = study("s", {"m": {"a": [0.8, 0.8]}, "r": {"a": [0.9, 0.9]}})
    assert on_terms({**test, "apart": True}, terms, s=worse).verdict == NOT_REPRODUCED


def test_a_claim_without_one_of_its_studies_or_datasets_says_so():
    found = of_means("s", **BETTER)
    both = decided({**DIFFERENCE, "study": ["s", "other"], "at_least": 0}, s=found)
    assert (both.verdict, both.reason, both.outcomes[0].found) == (UNDECIDED, NOT_RUN, REPRODUCED)
    partial = study("other", {"m": {"z": [0.9, 0.9]}})
    same = decided({**DIFFERENCE, "study": ["s", "other"], "at_least": 0}, s=found, other=partial)
    assert (same.verdict, same.reason, same.outcomes[0].found) == (UNDECIDED, NOT_RUN, REPRODUCED)
    lacks = decided({**DIFFERENCE, "datasets": ["z"], "at_least": 0}, s=found)
    assert lacks.reason == NO_DATA
    wide = decided({**DIFFERENCE, "within": 0.03}, s=found)
    assert wide.reason == NO_POWER


def test_one_dataset_refutes_a_test_of_datasets_apart_while_another_study_has_not_been_run():
    apart = {**DIFFERENCE, "study": ["s", "other"], "apart": True}
    some = {
        "s": study("s", {"m": {"a": [0.91, 0.91], "b": [0.8, 0.8]}, "r": {"a": [0.9] * 2, "b": [0.9] * 2}})
    }
    refuted = decided({**apart, "at_least": 0}, **some)
    assert (refuted.verdict, refuted.reason) == (NOT_REPRODUCED, "")
    assert [each.verdict for each in refuted.outcomes] == [REPRODUCED, NOT_REPRODUCED, UNDECIDED]
    held = decided({**apart, "at_least": -0.2}, **some)
    assert (held.verdict, held.reason) == (UNDECIDED, NOT_RUN)
    assert [each.reason for each in held.outcomes] == ["", "", NOT_RUN]
    assert_says(held.outcomes[-1].why, "study other has not been run")


def test_of_an_unfinished_study_only_complete_datasets_count():
    found = of_means("s", **BETTER)
    found.results.states["a", "m"].complete = False
    (outcome,) = decided({**DIFFERENCE, "at_least": 0}, s=found).outcomes
    assert outcome.figure.n == 5
    assert_says(outcome.figure.note, "without a")


def test_the_better_of_two_references_counts_on_each_dataset():
    times = {"m": [3.0, 3.0], "p": [4.0, 2.0], "q": [2.0, 4.0]}
    scores = {arm: {"a": [1.0], "b": [1.0]} for arm in times}
    seconds = {arm: {"a": [values[0]], "b": [values[1]]} for arm, values in times.items()}
    found = study("s", scores, fit_seconds=seconds)
    test = {**RATIO, "reference": ["p", "q"], "at_least": 0.9, "apart": True}
    frame = decided(test, s=found).frame()
    assert frame["estimate"].tolist() == pytest.approx([1.5, 1.5])  # 3 / 2 on both


def test_seeds_are_the_sample_of_independent_runs():
    values = {"m": {"a": [0.92, 0.94, 0.93, 0.97]}, "r": {"a": [0.9, 0.9, 0.9, 0.9]}}
    found = study("s", values)
    found.design.protocol["seed"], found.design.protocol["outer"] = [0, 1], 2
    (outcome,) = decided({**DIFFERENCE, "apart": "seeds", "at_least": 0}, s=found).outcomes
    reach = t.ppf(0.95, 1) * np.std([0.03, 0.05], ddof=1) / sqrt(2)
    assert (outcome.figure.n, outcome.figure.unit) == (2, "seeds")
    assert (outcome.figure.low, outcome.figure.high) == pytest.approx((0.04 - reach, 0.04 + reach))


@pytest.mark.parametrize(
    ("middle", "verdict"), [(2.0, REPRODUCED), (2.9, NOT_REPRODUCED)], ids=["line", "plateau"]
)
def test_a_line_has_its_middle_between_its_ends(middle, verdict):
    arms = {f"m[draws={draws}]": {"draws": draws} for draws in (100, 550, 1000)}
    times = dict(zip(arms, (1.0, middle, 3.0), strict=True))
    scores = {arm: {"a": [1.0, 1.0, 1.0]} for arm in arms}
    seconds = {arm: {"a": [time, 1.01 * time, 0.99 * time]} for arm, time in times.items()}
    found = study("s", scores, sweep=arms, fit_seconds=seconds)
    test = {"test": "line", "study": "s", "solver": "m", "x": "draws", "y": "fit_seconds"}
    decision = decided({**test, "between": [0.83, 1.2]}, s=found)
    assert decision.outcomes[0].figure.estimate == pytest.approx(middle / 2)
    assert decision.verdict == verdict


def test_the_largest_value_of_all_trainings_refutes_a_bound():
    found = study("s", {"m": {"a": [1.0, 1.0]}}, n_iter={"m": {"a": [7, 9]}})
    test = {"test": "largest", "study": "s", "arms": "m", "quantity": "n_iter"}
    assert decided({**test, "at_most": 9}, s=found).verdict == REPRODUCED
    assert decided({**test, "at_most": 8}, s=found).verdict == NOT_REPRODUCED


@pytest.mark.parametrize("n", [5, 9, 30])
def test_the_number_that_would_decide_does_and_one_less_does_not(n):
    figure = Figure("", 0.002, -0.004, 0.008, 4, "outer folds", spread=0.01, floor=0.0)
    distance = t.ppf(0.95, n - 1) * 0.01 / sqrt(n)
    assert needed_values(figure, (0.002 - distance - 1e-12, inf)) == n
    assert needed_values(figure, (0.002 - distance + 1e-9, inf)) == n + 1


def test_no_number_of_folds_of_the_same_rows_decides_a_small_difference():
    figure = Figure("", 0.001, -0.01, 0.012, 5, "outer folds", spread=0.01, floor=0.25)
    assert needed_values(figure, (0.0, inf)) is None
    assert needed_values(figure, (-0.02, inf)) is not None


def test_a_need_has_its_hours():
    found = study("s", {"m": {"a": [0.90, 0.93, 0.95]}, "r": {"a": [0.9, 0.9, 0.91]}})
    decision = decided({**DIFFERENCE, "apart": True, "at_least": -0.05}, s=found)
    assert needs_of(decision, {}, {"s": Hours(6.0, 1.0)}) == []
    decision = decided({**DIFFERENCE, "apart": True, "at_least": -0.015}, s=found)
    (need,) = needs_of(decision, {}, {"s": Hours(6.0, 1.0)})
    n = needed_values(decision.outcomes[0].figure, (-0.015, inf))
    assert need.hours == pytest.approx(6 * n / 3)
    (need,) = needs_of(decided({**DIFFERENCE, "study": "o", "at_least": 0}), {}, {"o": Hours(3.0, 2.0)})
    assert need.hours == 2.0


def test_the_picture_of_an_interval_without_an_end_leaves_the_region():
    """Stopped trainings bound a ratio from below, so its region with an upper end stays open."""
    (part,) = read_claims(
        {"X": {"claim": "", "source": "", "published": "", "tests": [{**DIFFERENCE, "at_most": 5}]}}
    )[0].parts
    figure = Figure("", 3.0, 2.0, inf, 8, "datasets", is_ratio=True)
    rect, path, _ = list(Xml.fromstring(picture([Outcome(part, UNDECIDED, figure, reason=NO_POWER)])))
    assert float(path.get("d").split("H")[1]) > float(rect.get("x")) + float(rect.get("width"))


def test_the_picture_has_the_interval_inside_the_region_of_a_reproduced_claim():
    found = decided({**DIFFERENCE, "within": 0.2}, s=of_means("s", **BETTER))
    assert found.verdict == REPRODUCED
    svg = Xml.fromstring(picture(found.outcomes))
    rect, path, circle = list(svg)
    left, right = float(path.get("d")[1:].split(" ")[0]), float(path.get("d").split("H")[1])
    start = float(rect.get("x"))
    assert start < left < float(circle.get("cx")) < right < start + float(rect.get("width"))
    assert picture(decided({**DIFFERENCE, "study": "o", "at_least": 0}).outcomes) == ""


@pytest.mark.parametrize(
    ("middle", "verdict"), [(2.0, REPRODUCED), (2.9, NOT_REPRODUCED)], ids=["line", "plateau"]
)
def test_the_curvature_of_a_line_is_one(middle, verdict):
    draws = (100, 325, 550, 775, 1000)
    arms = {f"m[draws={each}]": {"draws": each} for each in draws}
    # A parabola through 1, `middle` and 3, and two settings on it.
    bend = 2 - middle
    times = {arm: 2 + x + bend * (x**2 - 1) for arm, x in zip(arms, (-1, -0.5, 0, 0.5, 1), strict=True)}
    scores = {arm: {"a": [1.0, 1.0, 1.0]} for arm in arms}
    seconds = {arm: {"a": [time, 1.01 * time, 0.99 * time]} for arm, time in times.items()}
    found = study("s", scores, sweep=arms, fit_seconds=seconds)
    test = {"test": "curvature", "study": "s", "solver": "m", "x": "draws", "y": "fit_seconds"}
    decision = decided({**test, "between": [0.83, 1.2]}, s=found)
    (outcome,) = decision.outcomes
    assert outcome.figure.estimate == pytest.approx(middle / 2)
    assert decision.verdict == verdict


def test_the_mean_over_datasets_weighs_precise_ones_more():
    values = {"m": {}, "r": {}}
    generator = np.random.default_rng(2)
    for name, spread in zip("abcdef", (0.001, 0.001, 0.001, 0.03, 0.03, 0.03), strict=True):
        values["r"][name] = [0.9] * 5
        values["m"][name] = list(0.91 + (0.02 if spread > 0.01 else 0) + spread * generator.normal(size=5))
    found = study("s", values)
    (outcome,) = decided({**DIFFERENCE, "over": "mean", "at_least": 0}, s=found).outcomes
    figure = outcome.figure
    mean = {name: np.mean(values["m"][name]) - 0.9 for name in values["m"]}
    assert figure.of_each == pytest.approx(mean)
    error = [np.var(values["m"][name], ddof=1) * (1 / 5 + 0.25) for name in "abcdef"]
    expected = random_effects(np.array([*mean.values()]), np.array(error), np.full(6, 4), 0.1)
    assert (figure.estimate, figure.low, figure.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )
    assert figure.estimate < np.mean([*mean.values()])
    assert_says(figure.what, "mean")
    assert (figure.n, figure.unit, outcome.verdict) == (6, "datasets", REPRODUCED)
    ratio = {"test": "ratio", "study": "s", "arms": "m", "reference": "r", "over": "mean", "at_least": 1}
    (outcome,) = decided(ratio, s=found).outcomes
    assert outcome.figure.estimate == pytest.approx(1 + figure.estimate / 0.9, abs=2e-3)
    with raises(ConfigError, "over=mean and 'apart'"):
        decided({**DIFFERENCE, "over": "mean", "apart": True, "at_least": 0}, s=found)


def test_the_largest_standardised_excess_refutes():
    generator = np.random.default_rng(3)
    names = [f"d{i}" for i in range(12)]
    values = {"r": {name: [0.8] * 5 for name in names}}
    values["m"] = {name: list(0.8 + 0.01 * generator.normal(size=5)) for name in names}
    values["m"]["d3"] = [0.825, 0.845, 0.85, 0.84, 0.82]
    test = {**DIFFERENCE, "apart": True, "at_most": 0.01}
    # Bonferroni with four degrees of freedom each does not find d3; the moderated spread of all does.
    assert decided({**test}, s=study("s", values)).verdict == UNDECIDED
    found = decided({**test, "refute": "largest"}, s=study("s", values))
    assert found.verdict == NOT_REPRODUCED
    assert [each.part.test for each in found.outcomes if each.verdict == NOT_REPRODUCED] == ["difference"]
    figures = [outcome.figure for outcome in found.outcomes]
    variances = np.array([figure.spread**2 * (1 / 5 + 0.25) for figure in figures])
    moderated, prior = moderated_variances(variances, np.full(12, 4.0))
    quantile = t.ppf((1 - 0.05) ** (1 / 12), 4 + prior)
    assert figures[3].refuting[0] == pytest.approx(figures[3].estimate - quantile * sqrt(moderated[3]))
    with raises(ConfigError, "without apart=true"):
        decided({**DIFFERENCE, "refute": "largest", "at_least": 0}, s=study("s", values))


def test_the_level_over_all_claims_of_a_paper_is_stated():
    node = {"claim": "", "source": "Strack 2013, 1", "published": "", "tests": [{**DIFFERENCE, "at_most": 0}]}
    of = {"s": of_means("s", m=np.linspace(0.91, 0.95, 6), r=[0.9] * 6)}
    claims = read_claims(dict.fromkeys(("A", "B"), node))
    once = [decide(claim, of, {}) for claim in claims]
    assert {each.verdict for each in once} == {NOT_REPRODUCED}
    # Six datasets reach 2⁻⁶: below 0.05/2, above 0.05/4.
    together = {n: [decide(claim, of, {}, None, n).verdict for claim in claims] for n in (2, 4)}
    assert together == {2: [NOT_REPRODUCED] * 2, 4: [UNDECIDED] * 2}
    (sentence,) = paper_sentences(once, ["A"])
    assert_says(sentence, "2 tested claims of Strack 2013", "up to 0.1", "1 of 2 remain not reproduced: A")
    assert "level" not in "\n".join(claims_text(once, {}, {}))  # these two need not be all of the paper


def test_a_claim_without_an_interval_has_no_level_over_the_claims_of_its_paper():
    """Figures on one published split refute by their value: no level is divided by their number."""
    found = study("s", {"m": {"a": [0.93]}, "r": {"a": [0.9]}})
    found.design.protocol["outer"] = {"_target_": "sklearn.model_selection.PredefinedSplit"}
    node = {"claim": "", "source": "X 2014, 1", "published": "", "tests": [{**DIFFERENCE, "apart": True}]}
    node["tests"][0]["at_most"] = 0
    figures = [decide(claim, {"s": found}, {}) for claim in read_claims(dict.fromkeys(("A", "B"), node))]
    assert {(each.verdict, each.tested) for each in figures} == {(NOT_REPRODUCED, "")}
    (sentence,) = paper_sentences(figures, [])
    assert_says(sentence, "2 claims of X 2014", "no level")
    assert "0.05" not in sentence


def test_the_details_of_a_claim_count_the_tests_of_its_picture():
    """Of 13 tests one has a figure, so that the picture has one line and leaves none out."""
    tests = [{**DIFFERENCE, "at_least": 0}, *[{**DIFFERENCE, "study": "o", "at_least": 0}] * 12]
    (claim,) = read_claims({"X": {"claim": "", "source": "", "published": "", "tests": tests}})
    of = {"s": of_means("s", **BETTER)}
    decision = decide(claim, of, {})
    assert len(list(Xml.fromstring(picture(decision.outcomes)))) == 3
    assert 'aria-label="1 test"' in picture(decision.outcomes)
    assert "the first 12" not in claims_page([decision], {}, {}, {})


def test_the_end_of_a_region_is_printed_with_its_digits():
    of = of_means("s", **BETTER)
    for least, printed in ((0.0005, "≥ +0.05 points"), (0.00001, "≥ +0.001 points"), (0, "≥ +0.00 points")):
        (row,) = printed_rows(decided({**DIFFERENCE, "at_least": least}, s=of))
        assert row[COLUMNS.index("Claim asks for")] == printed


# -- levels of refutations ------------------------------------------------------------------------


def figures_of(tests, of):
    (claim,) = read_claims({"X": {"claim": "", "source": "", "published": "", "tests": tests}})
    return [outcome.figure for outcome in decide(claim, {"s": of}, {}).outcomes]


def test_the_level_of_a_slope_over_datasets_is_divided_by_the_tests():
    sizes = {name: 10.0 ** (i + 2) for i, name in enumerate("abcde")}
    times = {"m": {name: [size * (1 + 0.1 * i % 0.3)] for i, (name, size) in enumerate(sizes.items())}}
    scores = {"m": {name: [1.0] for name in sizes}}
    of = study("s", scores, facts={name: {"n": size} for name, size in sizes.items()}, fit_seconds=times)
    test = {"test": "slope", "study": "s", "arms": "m", "x": "n", "y": "fit_seconds", "at_least": 0}
    line = linregress(np.log([*sizes.values()]), np.log([x for (x,) in times["m"].values()]))
    for looks in (1, 3):
        figure = figures_of([test] * looks, of)[0]
        reach = t.ppf(1 - 0.05 / looks, 3) * line.stderr
        assert figure.refuting == pytest.approx((line.slope - reach, line.slope + reach))


def test_the_level_of_slopes_over_settings_is_divided_by_the_datasets():
    draws = (100, 200, 400, 800)
    arms = {f"m[draws={each}]": {"draws": each} for each in draws}
    values = dict(zip(arms, (1.0, 2.3, 3.7, 8.4), strict=True))
    times = {arm: {key: [value] for key in "abc"} for arm, value in values.items()}
    of = study("s", {arm: {key: [1.0] for key in "abc"} for arm in arms}, sweep=arms, fit_seconds=times)
    test = {"test": "slope", "study": "s", "solver": "m", "x": "draws", "y": "fit_seconds", "at_least": 0}
    line = linregress(np.log(draws), np.log([*values.values()]))
    for looks in (1, 2):
        found = figures_of([test] * looks, of)
        assert len(found) == 3 * looks
        reach = t.ppf(1 - 0.05 / (3 * looks), 2) * line.stderr
        assert found[0].refuting == pytest.approx((line.slope - reach, line.slope + reach))


def test_the_level_of_ratios_and_differences_over_datasets_is_divided_by_the_tests():
    values = dict(zip("abcdefgh", (2.0, 5, 10, 40, 8, 3, 20, 60), strict=True))
    of = seconds({name: [value] for name, value in values.items()}, {name: [4.0] for name in values})
    logarithms = pd.Series(np.log([value / 4 for value in values.values()]), index=list(values))
    differences = pd.Series([0.01, 0.03, -0.02, 0.07, 0.05, 0.02, 0.09, 0.04], index=list(values))
    scores = of_means("s", m=list(0.8 + differences), r=[0.8] * 8)
    for looks in (1, 3):
        figure = figures_of([{**RATIO, "at_most": 1}] * looks, of)[0]
        expected = hodges_lehmann(logarithms, 1 - 0.1 / looks)
        assert figure.refuting == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
        figure = figures_of([{**DIFFERENCE, "at_most": 1}] * looks, scores)[0]
        expected = hodges_lehmann(differences, 1 - 0.1 / looks)
        assert figure.refuting == pytest.approx((expected.low, expected.high))


def test_the_level_of_datasets_apart_is_divided_by_their_number():
    folds = [0.03, 0.01, 0.02, 0.05, 0.04]
    of = study(
        "s", {"m": {key: [0.8 + x for x in folds] for key in "abcd"}, "r": dict.fromkeys("abcd", [0.8] * 5)}
    )
    reach = t.ppf(1 - 0.05 / 4, 4) * np.std(folds, ddof=1) * sqrt(1 / 5 + 0.25)
    figure = figures_of([{**DIFFERENCE, "apart": True, "at_least": 0}], of)[0]
    assert figure.refuting == pytest.approx((0.03 - reach, 0.03 + reach))
