"""H1SVC and SVMTreeClassifier are scikit-learn classifiers, and refuse what they cannot do in a sentence."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import H1SVC, SVMTreeClassifier

HARD = "no class weight makes a plane err on samples that it can separate"


def expected_failures(model):
    return {"check_class_weight_classifiers": HARD} if isinstance(model, SVMTreeClassifier) else {}


@parametrize_with_checks(
    [
        H1SVC(),
        SVMTreeClassifier(),
        SVMTreeClassifier(multiclass="list", greedy=True),
        SVMTreeClassifier(multiclass="one_vs_rest", tail="rbf", gamma=0.1, tail_share=0.3),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
