"""The everyday classifiers of `conf/solver` train, and beat the most frequent class."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from orchestrator.cli.list import _SOLVERS
from orchestrator.config.compose import CONF_FOLDER, load_settings
from orchestrator.config.descriptions import missing_packages
from orchestrator.study.study import Candidate, axis_values
from orchestrator.training.estimators import make_estimator


def installed(name):
    return not missing_packages(CONF_FOLDER / "solver" / f"{name}.yaml")


NAMES = [name for names in _SOLVERS.values() for name in names]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [name for name in NAMES if installed(name)])
def test_the_first_and_the_last_candidate_can_be_trained(name):
    study = load_settings(["study=x", "datasets=[iris]", f"solvers=[{name}]"]).study
    (arm,) = study.arms
    X, codes = load_iris(return_X_y=True)
    X, y = minmax_scale(X), np.array(["setosa", "versicolor", "virginica"])[codes]
    for index in (0, -1):
        params = [(param, axis_values(values)[index]) for param, values in arm.space.items()]
        fitted = make_estimator(arm, study.protocol, Candidate(tuple(params)), seed=0).fit(X[::2], y[::2])
        predicted = fitted.predict(X[1::2])
        assert predicted.shape == (75,)
        assert set(predicted) <= set(y)
        share = np.mean(predicted == y[1::2])
        assert share == pytest.approx(1 / 3) if name == "baseline" else share > 0.5


def test_only_boosters_may_be_missing():
    assert {name for name in NAMES if not installed(name)} <= {"xgboost", "lightgbm", "catboost"}
