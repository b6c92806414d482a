"""The cost of trainings before any has run: weights from finished studies, and sums over a study."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.typical_costs import (
    by_profile,
    covered,
    error_parts,
    finished_studies,
    fit,
    fits,
    left_out,
    of_known_classes,
    read_study,
    summary,
)
from orchestrator.engine.cost_model import CostModel, Shape, base_seconds
from orchestrator.engine.planning import (
    Observed,
    PlanLine,
    correction,
    coverage,
    expected_seconds,
    interval,
    observed_pairs,
)
from orchestrator.engine.typical_costs import (
    FILE,
    TERMS,
    Errors,
    Sizes,
    TypicalCost,
    c_and_gamma,
    prior_seconds,
    terms,
    typical_costs,
    typical_errors,
)
from orchestrator.search.expected import expected_trainings
from orchestrator.search.fold_search import planned_trials
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration
from orchestrator.study.study import Arm, Candidate, Protocol, SearchSpec
from orchestrator.study.trials import REFIT

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
SHAPE = Shape(n=500, d=20, classes=3)


def arm(name, target, solver="", space=None):
    return Arm(name, target, {}, space or {}, solver=solver or name)


def declaration(study):
    return current_declaration(Store(PUBLISHED / study).provenance())


def identity_of(study, pair):
    return declaration(study).pairs[pair].identity


GRID = identity_of("small", ("wine", "mnsvm"))  # 8 × 8 candidates, 5 × 5 splits


# -- typical costs -------------------------------------------------------------------------------


def test_an_arm_is_expected_to_cost_what_its_solver_does_or_else_its_class():
    first, _ = json.loads(FILE.read_text())["throughput"]
    known = first["solvers"]
    arms = [
        arm("smo_l1", "solvers.SMOSVC"),
        arm("spheresvm_590[draws=10]", "solvers.SphereSVC", "spheresvm_590"),
        arm("mine", "solvers.NewtonSVC"),
        arm("forest", "sklearn.ensemble.RandomForestClassifier"),
        arm("newton", "sklearn.ensemble.RandomForestClassifier"),
    ]
    found = typical_costs(arms, Protocol(profile="throughput"))
    assert {name: cost.weights.tolist() for name, cost in found.items()} == {
        "smo_l1": known["smo_l1 (solvers.SMOSVC)"],
        "spheresvm_590[draws=10]": known["spheresvm_590 (solvers.SphereSVC)"],
        "mine": known["solvers.NewtonSVC"],
    }


def test_the_space_of_an_arm_is_a_list_a_range_or_a_fixed_value():
    space = {"C": (1, 4, 16), "gamma": {"low": 0.01, "high": 1, "log": True}}
    one = arm("newton", "solvers.NewtonSVC", space=space)
    fixed = Arm("mnsvm", "solvers.MNSVC", {"C": 8.0, "gamma": "scale"}, {}, solver="mnsvm")
    found = typical_costs([one, fixed], Protocol())
    C, gamma = found["newton"].C, found["newton"].gamma
    assert set(C) == {1, 4, 16}
    assert (gamma.min(), gamma.max()) == pytest.approx((0.01, 1))
    assert found["mnsvm"].C.tolist() == [8.0]
    assert np.isnan(found["mnsvm"].gamma).all()


def test_seconds_of_a_dataset_of_the_published_studies_need_its_sizes():
    weights = np.zeros(len(TERMS))
    known = {"iris": {"d": 4, "classes": 3, "weights": [math.log(2), 0, 0, 0, 0, 0]}}
    cost = TypicalCost(weights, known)
    one = np.array([4.0]), np.array([0.25])
    sizes = Sizes(100, 4, 3)
    assert cost.seconds("iris", sizes, *one) == pytest.approx(2 * prior_seconds(sizes))
    assert cost.seconds("iris[noise=1]", sizes, *one) == pytest.approx(2 * prior_seconds(sizes))
    other = Sizes(100, 5, 3)
    assert cost.seconds("iris", other, *one) == pytest.approx(prior_seconds(other))


def test_seconds_by_size_grow_with_samples_features_and_classes():
    sizes = [(100, 4, 2), (100, 4, 3), (1000, 4, 3), (1000, 400, 3), (100_000, 400, 3)]
    seconds = [prior_seconds(Sizes(*each)) for each in sizes]
    assert seconds == sorted(seconds)
    unknown = [base_seconds(n, classes) for n, _, classes in sizes]
    assert unknown == sorted(unknown)


def generated_cells(truth, random, n_datasets=40):
    """Cells of two solvers, whose seconds follow the terms up to a little noise."""
    rows = []
    grid = [(C, gamma) for C in 2.0 ** np.arange(-4, 11, 2) for gamma in 2.0 ** np.arange(-10, 5, 2)]
    for number in range(n_datasets):
        n, d, classes = int(random.integers(50, 5000)), int(random.integers(2, 60)), 2 + number % 3
        for key, weights in truth.items():
            C, gamma = np.array(grid).T
            log = (
                math.log(prior_seconds(Sizes(n, d, classes)))
                + terms(Sizes(n, d, classes), C, gamma) @ weights
            )
            seconds = np.exp(log + 0.01 * random.normal(size=len(grid)))
            rows += [
                (
                    f"study{number % 4}",
                    f"data{number}",
                    key,
                    key,
                    "module.Class",
                    False,
                    *point,
                    d,
                    classes,
                    n,
                    s,
                    5,
                )
                for point, s in zip(grid, seconds, strict=True)
            ]
    names = [
        "study",
        "dataset",
        "arm",
        "key",
        "target",
        "refit",
        "C",
        "gamma",
        "d",
        "classes",
        "n",
        "seconds",
        "number",
    ]
    return pd.DataFrame(rows, columns=names)


def test_weights_are_recovered_from_generated_trials():
    random = np.random.default_rng(0)
    truth = {
        "first": np.array([0.5, 0.0, 0.2, 0.1, 0.8, -0.3, 0.4, 0.2, -0.5]),
        "second": np.array([-0.5, 0.0, -0.2, 0.0, 0.2, 0.3, 0.0, 0.5, 0.3]),
    }
    found = fit(generated_cells(truth, random))
    for key, weights in truth.items():
        assert found["solvers"][key] == pytest.approx(weights, abs=0.06)
    middle = [(truth["first"][index] + truth["second"][index]) / 2 for index in (0, 4, 8)]
    assert [found["solvers"]["module.Class"][index] for index in (0, 4, 8)] == pytest.approx(middle, abs=0.1)


def test_studies_are_predicted_from_one_another():
    studies = [read_study(PUBLISHED / name) for name in ("bias_free", "complexity")]
    weights, table = left_out(studies, studies)
    ratios = summary({"ratio": table})["ratio"]
    assert set(ratios.index) == {"bias_free", "complexity"}
    assert ratios.between(0.5, 2.0).all()
    measured = sum(study.trials["seconds"].sum() for study in studies)
    assert table["total"].sum() == pytest.approx(measured)
    assert all(0 < part < 2 for part in error_parts(table, studies, weights))


@pytest.fixture(scope="module")
def leave_one_out():
    """Published studies, those of known classes, weights from the others and what these predict."""
    studies = finished_studies(sorted(PUBLISHED.iterdir()))
    known = of_known_classes(studies)
    return studies, known, *left_out(known, studies)


@pytest.mark.full
def test_the_stored_costs_are_those_of_the_published_studies(leave_one_out):
    studies, known, weights, table = leave_one_out
    errors = error_parts(table, known, weights)._asdict()
    assert json.loads(FILE.read_text()) == by_profile(fits(studies)) | {"errors": errors}
    assert covered(table).mean() >= 0.8


@pytest.mark.full
@pytest.mark.xfail(reason="30 of 75 are within 1.5, 47 within 2: processors of one name differ by 1.5 to 4")
def test_five_of_six_published_studies_take_what_the_others_predict_within_a_factor_of_one_and_a_half(
    leave_one_out,
):
    ratios = summary({"ratio": leave_one_out[-1]})["ratio"]
    assert ratios.between(1 / 1.5, 1.5).mean() >= 5 / 6, ratios.to_dict()
    assert ratios.between(0.5, 2.0).all(), ratios.to_dict()


# -- sums over a study ---------------------------------------------------------------------------

WEIGHTS = np.array([0.3, 0.1, 0.0, 0.1, 0.9, -0.4, 0.3, 0.2, -0.5])


def test_the_plan_of_a_grid_is_the_sum_over_its_trainings():
    cost = TypicalCost(WEIGHTS)
    expected = expected_trainings(GRID, SearchSpec("grid"))
    assert expected.total == planned_trials(GRID, SearchSpec("grid"))
    costs = CostModel({"wine": SHAPE}, {"mnsvm": cost})
    inner = refits = 0.0
    for outer in range(5):
        paths = GRID.paths_of_splits(outer, range(5), expected.candidates)
        inner += sum(costs.base_seconds(path) for path in paths)
        refits += sum(costs.base_seconds(path) for path in GRID.paths(outer, REFIT, expected.candidates)) / 64
    assert expected_seconds(cost, "wine", SHAPE, expected).sum() == pytest.approx(inner + refits)


def test_the_cost_of_a_path_is_the_sum_of_its_trainings_and_grows_with_its_weights():
    costs = CostModel({"wine": SHAPE}, {"mnsvm": TypicalCost(WEIGHTS)})
    candidates = [Candidate.of({"C": 4.0**power, "gamma": 0.25}) for power in range(4)]
    (path,) = GRID.paths(0, 0, candidates)
    each = [costs.base_seconds(path.only([index])) for index in range(4)]
    assert each == sorted(each)
    assert costs.base_seconds(path) == pytest.approx(sum(each))
    C, gamma = c_and_gamma(path.candidates, {})
    assert each == pytest.approx(TypicalCost(WEIGHTS).seconds("wine", SHAPE.sizes(False), C, gamma))


def test_what_is_expected_holds_until_something_is_observed():
    costs = CostModel({"d": SHAPE}, {"svc": TypicalCost(WEIGHTS)})
    before = costs.training_seconds("d", "svc", False)
    assert costs.factor("d", "svc") == costs.factor("d", "other") == 1.0
    costs.update("d", "svc", 1.0, 7.0)
    assert costs.factor("d", "svc") == costs.typical("svc") == 7.0
    assert costs.training_seconds("d", "svc", False) == pytest.approx(7 * before)


@pytest.mark.parametrize("search", [SearchSpec("pattern"), SearchSpec("race")])
def test_a_search_that_visits_a_part_is_expected_to_need_fewer_trainings(search):
    grid, expected = expected_trainings(GRID, SearchSpec("grid")), expected_trainings(GRID, search)
    assert 0.2 * grid.total < expected.total < grid.total
    assert expected.inner.max() <= 25
    assert expected.refits.sum() == pytest.approx(5)


def test_a_custom_search_is_expected_to_use_its_budget_which_is_all_lists_without_one():
    everything = expected_trainings(GRID, SearchSpec("grid")).total
    assert expected_trainings(GRID, SearchSpec("mine.Search")).total == everything
    assert expected_trainings(GRID, SearchSpec("mine.Search", {"budget": 3})).total == 5 * (5 * 3 + 1)


def visits():
    """Expected ÷ real number of trainings of the published pattern searches, by dataset and arm."""
    found = declaration("pattern_search_complete")
    trials = read_study(PUBLISHED / "pattern_search_complete").trials
    visited = trials.groupby(["dataset", "solver"], observed=True).size()
    return {
        names: expected_trainings(pair.identity, found.search).total / visited[names]
        for names, pair in found.pairs.items()
    }


def test_pattern_searches_visit_about_as_many_points_as_expected():
    tied = {("iris", f"mnsvm_gsvm[resolution={n}]") for n in (40, 80)}
    ratios = [ratio for names, ratio in visits().items() if names not in tied]
    assert len(ratios) == 14
    assert max(ratios) < 1.5
    assert min(ratios) > 1 / 1.5


@pytest.mark.xfail(reason="0.65 and 0.58 on the grids of iris of 40² and 80² points, many of which tie")
def test_pattern_searches_visit_about_as_many_points_as_expected_where_many_tie():
    assert min(visits().values()) > 1 / 1.5


def test_a_study_at_selected_parameters_has_one_refit_per_outer_split():
    found = declaration("pair_choice")
    identity = found.pairs["satimage", "mnsvm_gsvm[pair=mdm]"].identity
    expected = expected_trainings(identity, found.search)
    assert [candidate.as_dict() for candidate in expected.candidates] == [{"C": 4, "gamma": 4}]
    assert (expected.inner.tolist(), expected.refits.tolist()) == ([0.0], [20.0])


# -- what a begun study teaches ------------------------------------------------------------------

ERRORS = Errors(study=0.4, pair=0.6, candidate=0.6)


def test_a_correction_trusts_many_candidates_more_than_one():
    seen = Observed(2.0, 1.0, 10, frozenset())
    few, many = (correction(seen, share, ERRORS) for share in (0.1, 1.0))
    nothing = correction(None, 0.0, ERRORS)
    assert nothing.factor == 1.0
    assert 1.0 < few.factor < many.factor < 2.0
    assert many.factor == pytest.approx(2.0, rel=0.02)
    assert many.error < few.error < nothing.error


def test_the_coverage_is_the_share_of_the_expected_cost():
    cost = TypicalCost(WEIGHTS)
    expected = expected_trainings(GRID, SearchSpec("grid"))
    seconds = expected_seconds(cost, "wine", SHAPE, expected)
    C, gamma = c_and_gamma(expected.candidates, {})

    def share(indices):
        points = frozenset((float(f"{C[i]:.6g}"), float(f"{gamma[i]:.6g}")) for i in indices)
        seen = Observed(1.0, 1.0, len(indices), points)
        return coverage(seen, cost, expected, seconds)

    assert share(list(range(64))) == pytest.approx(1.0)
    assert share([3, 40]) == pytest.approx(seconds[[3, 40]].sum() / seconds.sum())
    assert coverage(None, cost, expected, seconds) == 0.0
    assert coverage(Observed(1.0, 1.0, 5, frozenset()), None, expected, seconds) == 5 / expected.total


def test_stored_trainings_are_compared_with_what_their_candidates_are_expected_to_take():
    cost = TypicalCost(WEIGHTS)
    C, gamma = np.array([1.0, 64.0, 64.0]), np.array([0.25, 0.25, 1.0])
    inner = [0, 1, -1]
    seconds = [
        3 * cost.seconds("d", SHAPE.sizes(split < 0), C[[i]], gamma[[i]])[0] for i, split in enumerate(inner)
    ]
    trials = pd.DataFrame(
        {"dataset": "d", "solver": "svc", "inner": inner, "param_C": C, "param_gamma": gamma}
    ).assign(fit_seconds=seconds, predict_seconds=0.0)
    found = observed_pairs(trials, {"d": SHAPE}, {"svc": cost})["d", "svc"]
    assert found.seconds / found.base == pytest.approx(3.0)
    assert found.number == 3
    assert found.points == {(1.0, 0.25), (64.0, 0.25), (64.0, 1.0)}
    assert observed_pairs(trials.iloc[:0], {"d": SHAPE}, {"svc": cost}) == {}


def line(seconds, stored=0, error=0.6):
    return PlanLine("d", "svc", 10, stored, 0, seconds, 5.0, error)


def test_the_interval_holds_the_sum_and_shrinks_with_what_is_known():
    def width(lines):
        low, high = interval(lines)
        total = sum(each.seconds_left for each in lines)
        assert low < total < high
        assert low * high == pytest.approx(total**2)
        return high / low

    one, many = width([line(8.0)]), width([line(1.0)] * 8)
    assert many < one
    assert many > math.exp(2 * 1.28 * typical_errors().study)  # the common part stays
    assert width([line(1.0, stored=5, error=0.1)] * 8) < many
    assert interval([line(0.0)]) == (0.0, 0.0)
