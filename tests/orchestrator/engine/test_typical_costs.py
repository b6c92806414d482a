"""What `plan` expects of trainings before any has run, against what finished studies took."""

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.typical_costs import costs, factors, predicted
from orchestrator.engine.cost_model import CostModel, Shape, base_seconds
from orchestrator.engine.typical_costs import FILE, typical_factors
from orchestrator.study.study import Arm, Protocol

PUBLISHED = Path(__file__).parents[3] / "results" / "published"


def arm(name, target, solver=""):
    return Arm(name, target, {}, {}, solver=solver or name)


def test_an_arm_is_expected_to_cost_what_its_solver_does_or_else_its_class():
    known = json.loads(FILE.read_text())["throughput"]
    arms = [
        arm("smo_l1", "solvers.SMOSVC"),
        arm("spheresvm_590[draws=10]", "solvers.SphereSVC", "spheresvm_590"),
        arm("mine", "solvers.NewtonSVC"),
        arm("forest", "sklearn.ensemble.RandomForestClassifier"),
        arm("newton", "sklearn.ensemble.RandomForestClassifier"),
    ]
    assert typical_factors(arms, Protocol(profile="throughput")) == {
        "smo_l1": known["smo_l1 (solvers.SMOSVC)"],
        "spheresvm_590[draws=10]": known["spheresvm_590 (solvers.SphereSVC)"],
        "mine": known["solvers.NewtonSVC"],
    }


def test_what_is_expected_holds_until_something_is_observed():
    costs = CostModel({"d": Shape(n=100, d=4, classes=2)}, {"svc": 3.0})
    assert costs.factor("d", "svc") == 3.0
    assert costs.factor("d", "other") == 1.0
    costs.update("d", "svc", 1.0, 7.0)
    assert costs.factor("d", "svc") == costs.typical("svc") == 7.0


def test_seconds_by_size_grow_with_samples_and_classes():
    assert base_seconds(100, 2) < base_seconds(100, 3) < base_seconds(1000, 3) < base_seconds(100_000, 3)


@pytest.fixture(scope="module")
def published():
    folders = [path for path in sorted(PUBLISHED.iterdir()) if (path / "trials").is_dir()]
    return pd.concat([costs(folder) for folder in folders])


@pytest.mark.full
def test_the_factors_are_those_of_the_published_studies(published):
    assert json.loads(FILE.read_text()) == factors(published)


@pytest.mark.full
def test_published_studies_took_what_a_plan_would_have_said_within_a_factor_of_two(published):
    table = predicted(published, json.loads(FILE.read_text()))
    sums = table.groupby("study")[["predicted", "total"]].sum()
    ratio = sums["predicted"] / sums["total"]
    # Checkers alone take three times as long as other data, a pattern search goes where C is large, and MNSVC
    # takes 46 times as long at η near 2 as at 1.
    others = ratio.drop(["minimal_norm", "toolkit_pattern", "overrelaxation"])
    assert others.between(0.5, 2.0).all(), ratio.to_dict()
