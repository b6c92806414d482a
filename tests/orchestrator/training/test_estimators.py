"""What is asked of an estimator class before it is trained, however the class takes it."""

import pytest

from orchestrator.study.study import Arm
from orchestrator.training.estimators import describe, other_kind, takes_shared_gram
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


def test_a_classifier_that_has_predict_only_after_its_fit_is_one():
    estimators = [["svc", {"_target_": "sklearn.svm.SVC"}]]
    found = describe("sklearn.ensemble.StackingClassifier", {"estimators": estimators}, {})
    assert found.problems == ()
    assert "svc__C" in found.names
