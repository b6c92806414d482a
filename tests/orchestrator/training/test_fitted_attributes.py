import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from orchestrator.training.fitted_attributes import (
    fitted_columns,
    fitted_path_columns,
    support_vector_share,
)
from solvers import MNSVC, SMOSVC, NewtonSVC


def share_by_hand(X, y, **params):
    """Train one machine a pair of classes, and count."""
    labels = np.unique(y)
    shares = []
    for i, a in enumerate(labels):
        for b in labels[i + 1 :]:
            pair = np.isin(y, [a, b])
            shares.append(SVC(**params).fit(X[pair], y[pair]).n_support_.sum() / pair.sum())
    return np.mean(shares)


def ten_classes():
    return make_classification(
        400, n_features=8, n_informative=8, n_redundant=0, n_classes=10, random_state=0
    )


def two_unequal_classes():
    X, y = load_wine(return_X_y=True)
    return X[y != 1], np.array(["rare", "x", "usual"])[y[y != 1]]


@pytest.mark.parametrize("data", [load_iris, load_wine, ten_classes, two_unequal_classes])
@pytest.mark.parametrize("C", [0.1, 10])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_share_of_support_vectors_is_the_mean_over_pair_machines(data, C, sparse):
    X, y = data(return_X_y=True) if data in (load_iris, load_wine) else data()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    params = {"C": C, "gamma": 0.2, "tol": 1e-8}
    fitted = SVC(**params).fit(scipy.sparse.csr_matrix(X) if sparse else X, y)
    assert support_vector_share(fitted, y) == pytest.approx(share_by_hand(X, y, **params), rel=1e-12)


@pytest.mark.parametrize("strategy", ["pairwise", "one_vs_rest"])
def test_a_training_and_a_path_of_one_training_have_the_same_share_of_support_vectors(strategy):
    X, y = load_iris(return_X_y=True)
    estimator = SMOSVC(gamma=0.5, multiclass=strategy)
    share = fitted_columns(estimator.fit(X, y), y)["sv_share"]
    assert [share] == pytest.approx(fitted_path_columns(estimator.fit_path(X, y, [1.0]), 1)["sv_share"])


def test_our_own_machines_are_counted_as_they_count_themselves():
    X, y = load_iris(return_X_y=True)
    fitted = MNSVC(C=4.0, gamma=0.5, random_state=0).fit(X, y)
    columns = fitted_columns(fitted, y)
    assert columns["n_sv"] == fitted.n_support_.sum()
    assert 0 < columns["sv_share"] < 1
    assert columns["n_iter"] == fitted.n_iter_.sum() > 0
    assert columns["n_iter"] > columns["n_clipped"] == fitted.n_clipped_.sum() > 0
    assert columns["n_kernel_evals"] == fitted.n_kernel_evals_ > 0
    assert columns["converged"] is True
    path = fitted.fit_path(X, y, [1.0, 4.0])
    assert fitted_path_columns(path, 2)["n_clipped"] == path.n_clipped_.tolist()
    newton = NewtonSVC(C=4.0, gamma=0.5).fit_path(X, y, [4.0])
    assert "n_clipped" not in fitted_path_columns(newton, 1)


def test_another_layout_of_dual_coefficients_gives_vectors_per_row():
    X, y = load_iris(return_X_y=True)
    fitted = SVC().fit(X, y)
    n_sv = fitted.n_support_.sum()

    class AllAtOnce:
        n_support_ = fitted.n_support_
        dual_coef_ = np.ones((3, n_sv))

    class Total:
        n_support_ = n_sv

    for estimator in (AllAtOnce, Total):
        assert support_vector_share(estimator, y) == n_sv / len(y)


def test_an_estimator_that_publishes_nothing_has_no_columns():
    X, y = load_iris(return_X_y=True)
    assert fitted_columns(KNeighborsClassifier().fit(X, y), y) == {}


def test_only_what_is_there_becomes_a_column():
    X, y = load_iris(return_X_y=True)
    svc, linear = SVC().fit(X, y), LinearSVC().fit(X, y)
    assert fitted_columns(svc, y).keys() == {"n_iter", "n_sv", "sv_share", "model_values", "fit_status"}
    assert fitted_columns(svc, y)["n_iter"] == svc.n_iter_.sum()
    assert fitted_columns(linear, y) == {"n_iter": linear.n_iter_, "model_values": 3 * (4 + 1)}


def test_a_path_fitted_in_one_call_publishes_a_value_for_each_training():
    class Fitted:
        n_iter_ = np.array([3, 5])
        objective_ = np.array([0.5, np.nan])
        converged_ = np.array([True, False])

    columns = fitted_path_columns(Fitted, 2)
    assert (columns["n_iter"], columns["converged"]) == ([3, 5], [True, False])
    assert np.isnan(columns["objective"][1])
    types = {name: {*map(type, values)} for name, values in columns.items()}
    assert types == {"n_iter": {int}, "objective": {float}, "converged": {bool}}


def test_of_a_path_what_is_no_count_and_no_gap_is_missing():
    class Fitted:
        n_iter_ = np.array([3, -5])
        n_kernel_evals_ = np.array([2**63, 1], dtype=np.uint64)
        duality_gap_ = np.array([np.nan, -1.0])
        converged_ = np.array([1, 0])
        fit_status_ = np.array([0, 1])

    columns = fitted_path_columns(Fitted, 2)
    assert np.isnan(columns.pop("gap")[0])
    first, second = columns.pop("message")
    assert all(name in second for name in ("n_iter_", "-5", "duality_gap_", "-1.0", "converged_"))
    assert "n_kernel_evals_" in first
    assert "n_iter_" not in first
    assert columns == {
        "n_iter": [3, None],
        "n_kernel_evals": [None, 1],
        "converged": [None, None],
        "fit_status": ["0", "1"],
    }


class Odd:
    """Publishes what is no count, no truth and no gap."""

    n_iter_ = np.array([2**62] * 3, dtype=np.int64)
    n_kernel_evals_ = True
    n_support_ = np.array([-1, -2])
    converged_ = "no"
    duality_gap_ = -np.inf


def test_what_is_no_count_no_truth_and_no_gap_is_missing():
    columns = fitted_columns(Odd(), np.array([0, 1]))
    assert columns.keys() == {"message"}
    published = ("n_iter_", "n_kernel_evals_", "n_support_", "converged_", "duality_gap_")
    assert all(name in columns["message"] for name in published)
