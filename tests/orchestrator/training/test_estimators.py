"""What is asked of an estimator class before it is trained, however the class takes it."""

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from orchestrator.study.study import Arm
from orchestrator.training.estimators import build, describe, other_kind, takes_shared_gram
from tests.orchestrator.classifiers import Constant


class FailsWhenMadeAgain(Constant):
    """A constructor that works once."""

    made = 0

    def __init__(self, kernel="rbf", gamma=1.0):
        type(self).made += 1
        if self.made > 1:
            raise RuntimeError("once is enough")
        self.kernel, self.gamma = kernel, gamma


class KeepsNoKernel(Constant):
    """A constructor that does not keep its parameters."""

    def __init__(self, kernel="rbf", gamma=1.0):
        pass


@pytest.mark.parametrize("kind", [FailsWhenMadeAgain, KeepsNoKernel])
def test_a_class_that_cannot_be_asked_is_a_classifier_without_a_shared_gram(kind):
    arm = Arm("arm", f"{__name__}.{kind.__name__}", {}, {"gamma": (0.5,)})
    assert other_kind(arm.target, {}) == ""
    assert not takes_shared_gram(arm, 100, 4)


class Open(ClassifierMixin, BaseEstimator):
    """Takes any parameter, as the classifiers of XGBoost and CatBoost do."""

    def __init__(self, depth=1, **others):
        self.depth, self.others = depth, others

    def get_params(self, deep=True):
        return {"depth": self.depth, **self.others}

    def set_params(self, **params):
        self.others |= params
        return self

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X


def test_a_class_that_takes_any_parameter_takes_those_of_its_space_and_no_others():
    target = f"{__name__}.Open"
    found = describe(target, {"speed": 2}, {"C": [1, 2]}, {"rate": [1, 2]})
    assert found.problems == ()
    assert found.names == {"depth", "speed", "rate"}
    assert build(target, {"depth": 3, "rate": 2}).get_params() == {"depth": 3, "rate": 2}


def test_so_does_one_within_another_estimator():
    target, params = "sklearn.pipeline.make_pipeline", {"_args_": [{"_target_": f"{__name__}.Open"}]}
    space = {"open__rate": [1, 2], "memory__rate": [1]}
    found = describe(target, params, {}, space)
    assert found.names >= {"open__depth", "open__rate"}
    assert "memory__rate" not in found.names
    assert build(target, {**params, "open__rate": 2}).named_steps["open"].others == {"rate": 2}


def test_a_classifier_that_has_predict_only_after_its_fit_is_one():
    estimators = [["svc", {"_target_": "sklearn.svm.SVC"}]]
    found = describe("sklearn.ensemble.StackingClassifier", {"estimators": estimators}, {})
    assert found.problems == ()
    assert "svc__C" in found.names
