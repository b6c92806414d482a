"""Paths of SMOSVC have the solutions of LIBSVM, for all data and for every source of kernel values."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from solvers import SMOSVC

CS = 4.0 ** np.arange(-2, 6)
LOADERS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}


def scaled(name):
    X, y = LOADERS[name](return_X_y=True)
    return minmax_scale(X)[:500], y[:500]


class Subproblem(NamedTuple):
    """Subproblem of a pair of classes, at the k-th C of a path."""

    k: int
    pair: int
    members: np.ndarray
    sign: np.ndarray  # 1 for the first class of the pair
    beta: np.ndarray  # signed weights of the members
    bias: float


def subproblems_of(path, y):
    solution = path._solution
    for k in range(path.Cs_.size):
        of_row = np.zeros((solution.weights.shape[1], y.size))
        of_row[:, solution.problem.rows] = solution.weights[k]
        for pair, (i, j) in enumerate(combinations(range(path.classes_.size), 2)):
            first, second = y == path.classes_[i], y == path.classes_[j]
            beta = np.where(first, of_row[j - 1], -of_row[i])
            members = first | second
            sign = np.where(first[members], 1.0, -1.0)
            yield Subproblem(k, pair, members, sign, beta[members], solution.intercepts[k, pair])


def check_subproblems(path, K, y, loss="l1", weight=None, tol=1e-3):
    """Assert that all subproblems are feasible and optimal by independent sums, and say so of themselves."""
    weight = np.ones(y.size) if weight is None else weight
    objectives = np.zeros(path.Cs_.size)
    for k, _, members, sign, beta, bias in subproblems_of(path, y):
        Q, C = K[np.ix_(members, members)].astype(np.float64), path.Cs_[k] / (1.0 / weight[members])
        if loss == "l2":
            Q, C = Q + np.diag(1.0 / C), np.full(beta.size, np.inf)
        low, high = np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0)
        assert (low <= beta).all()
        assert (beta <= high).all()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        F = Q @ beta - sign
        ends = F[beta < high].min(), F[beta > low].max()
        assert ends[1] - ends[0] <= tol
        rounding = np.where(np.isfinite(C), 1e-11 * C, 0.0)
        grows, shrinks = beta < high - rounding, beta > low + rounding
        free = grows & shrinks
        expected = -F[free].mean() if free.any() else -(F[grows].min() + F[shrinks].max()) / 2
        assert bias == pytest.approx(expected, rel=1e-7, abs=0.01 * tol)
        objectives[k] += 0.5 * beta @ Q @ beta - np.abs(beta).sum()
    np.testing.assert_allclose(path.objective_, objectives, rtol=1e-7, atol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("gamma", [4.0**-5, 4.0**-2, 1.0, 16.0])
@pytest.mark.parametrize("name", LOADERS)
def test_l1_is_libsvm_s_at_every_C(name, gamma):
    X, y = scaled(name)
    K = rbf_kernel(X, gamma=gamma)
    path = SMOSVC(kernel="precomputed", tol=1e-6).fit_path(K, y, CS)
    assert path.converged_.all()
    check_subproblems(path, K, y, tol=1e-6)
    two = path.classes_.size == 2
    peers = [SVC(C=C, kernel="precomputed", tol=1e-6, decision_function_shape="ovo").fit(K, y) for C in CS]
    expected = [peer.decision_function(K).reshape(y.size, -1) * (-1.0 if two else 1.0) for peer in peers]
    for k, pair, members, _, beta, bias in subproblems_of(path, y):
        np.testing.assert_allclose(K[:, members] @ beta + bias, expected[k][:, pair], atol=2e-3)
        assert bias == pytest.approx(peers[k].intercept_[pair] * (-1.0 if two else 1.0), abs=2e-3)
    labels = path.predict_path(K)
    for k, C in enumerate(CS):
        ours = SMOSVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
        assert path.objective_[k] == pytest.approx(ours.objective_, rel=1e-6)
        np.testing.assert_array_equal(labels[k], ours.predict(K))
        libsvm = sum(
            0.5 * a @ K[np.ix_(s, s)] @ a - np.abs(a).sum() for s, a in weights_of_pairs(peers[k], y)
        )
        assert path.objective_[k] <= libsvm + 1e-6 * abs(libsvm)


def weights_of_pairs(peer, y):
    """Return the support vectors of each pair of classes of an SVC, and their weights."""
    of_class = y[peer.support_]
    for i, j in combinations(range(peer.classes_.size), 2):
        first, second = of_class == peer.classes_[i], of_class == peer.classes_[j]
        rows = np.concatenate((peer.support_[first], peer.support_[second]))
        yield rows, np.concatenate((peer.dual_coef_[j - 1, first], peer.dual_coef_[i, second]))


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_no_violation_is_above_the_tolerance(loss, tol):
    X, y = scaled("breast_cancer")
    for gamma in (4.0**-4, 1.0):
        K = rbf_kernel(X, gamma=gamma)
        path = SMOSVC(kernel="precomputed", loss=loss, tol=tol).fit_path(K, y, CS)
        check_subproblems(path, K, y, loss, tol=tol)
        assert path.converged_.all()
        assert path.duality_gap_.max() <= tol


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_a_path_equals_fits(loss):
    X, y = scaled("wine")
    path = SMOSVC(gamma=0.5, loss=loss, tol=1e-5).fit_path(X, y, CS)
    warm = SMOSVC(gamma=0.5, loss=loss, tol=1e-5, warm_start=True)
    for k, C in enumerate(CS):
        cold = SMOSVC(C=C, gamma=0.5, loss=loss, tol=1e-5).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        for model in (cold, warm):
            assert model.converged_
            assert path.objective_[k] == pytest.approx(model.objective_, rel=2e-5)
            np.testing.assert_array_equal(path.predict_path(X)[k], model.predict(X))
    assert path.fit_status_.tolist() == [0] * 8
    assert path.stopping_ == ["certified: violation and gap <= 1e-05"] * 8
    assert (path.fit_seconds_ > 0).all()


def test_a_warm_start_takes_fewer_steps_also_down_the_path():
    X, y = scaled("breast_cancer")
    warm = SMOSVC(gamma=1.0, warm_start=True)
    for C in (16.0, 20.0, 18.0, 1.0):
        warm.set_params(C=C).fit(X, y)
        cold = SMOSVC(C=C, gamma=1.0).fit(X, y)
        assert warm.converged_
        assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)
        if C in (20.0, 18.0):
            assert warm.n_iter_.sum() < 0.6 * cold.n_iter_.sum()


def nasty(name):
    """Return unusual kernel matrices and labels."""
    rng = np.random.default_rng(7)
    X, y = rng.random((60, 2)), np.arange(60) % 2
    if name == "every sample with both labels":
        X[1::2] = X[::2]
    elif name == "one sample of a class":
        y = (np.arange(60) == 17).astype(int)
    elif name == "one sample of every class":
        X, y = X[:3], np.arange(3)
    elif name == "two samples":
        X, y = X[:2], np.arange(2)
    elif name == "all samples equal":
        X[:] = 0.5
    elif name == "constant kernel":
        return np.ones((60, 60)), y
    elif name == "no kernel":
        return np.zeros((60, 60)), y
    elif name == "orthogonal samples":
        return np.eye(60), y
    elif name == "large values":
        X = np.round(64.0 * (X - 0.5))  # exact in float32
        return 256.0 * X @ X.T, y
    elif name == "small values":
        return 1e-9 * rbf_kernel(X), y
    elif name == "samples many times":
        X = X[rng.integers(0, 6, 60)]
    elif name == "low rank":
        return X @ X.T, y
    elif name == "classes of different size":
        y = (np.arange(60) % 10 == 0).astype(int)
    return rbf_kernel(X, gamma=8.0), y


NASTY = [
    *("every sample with both labels", "one sample of a class", "one sample of every class", "two samples"),
    *("all samples equal", "constant kernel", "no kernel", "orthogonal samples", "large values"),
    *("small values", "samples many times", "low rank", "classes of different size"),
]


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("name", NASTY)
def test_nasty_sets_are_solved(name, loss):
    K, y = nasty(name)
    Cs = 10.0 ** np.arange(-6, 4)
    for dtype in (np.float64, np.float32):
        values = K.astype(dtype)
        path = SMOSVC(kernel="precomputed", loss=loss, max_iter=200_000).fit_path(values, y, Cs)
        check_subproblems(path, values, y, loss)
        for k, C in enumerate(Cs):
            peer = SMOSVC(C=C, kernel="precomputed", loss=loss, tol=1e-4, max_iter=200_000).fit(values, y)
            assert path.objective_[k] <= peer.objective_ + 1e-3 * abs(peer.objective_) + 1e-12


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("class_weight", [{0: 0.01, 1: 100.0}, {0: 3.0, 1: 1.0}, "balanced"])
def test_class_weights_bound_each_class(class_weight, loss):
    X, y = scaled("breast_cancer")
    K = rbf_kernel(X, gamma=0.5)
    Cs = [1e-4, 0.25, 1.0, 64.0, 1e6]
    model = SMOSVC(kernel="precomputed", loss=loss, class_weight=class_weight, tol=1e-4)
    path = model.fit_path(K, y, Cs)
    assert path.converged_.all()
    for k, C in enumerate(Cs):
        alone = model.set_params(C=C).fit(K, y)
        assert path.objective_[k] == pytest.approx(alone.objective_, rel=1e-4)
        if C >= 1.0:  # for smaller C, all decision values are close to zero
            np.testing.assert_array_equal(path.predict_path(K)[k], alone.predict(K))
    check_subproblems(path, K, y, loss, alone.class_weight_[y], tol=1e-4)


def test_numbers_depend_on_nothing_but_the_data():
    X, y = scaled("digits")
    K = rbf_kernel(X, gamma=0.1).astype(np.float32)
    K.flags.writeable = False
    order = np.argsort(y, kind="stable")
    model = SMOSVC(kernel="precomputed", gram_error=2.0**-22)
    mixed = model.fit_path(K, y, CS)
    SMOSVC(gamma=3.0).fit_path(X, y, [1.0, 50.0])
    again = model.fit_path(K, y, CS)
    ordered = model.fit_path(K[np.ix_(order, order)], y[order], CS)
    for path in (again, ordered):
        for name in ("objective_", "duality_gap_", "n_iter_", "sv_share_", "converged_"):
            np.testing.assert_array_equal(getattr(mixed, name), getattr(path, name))
        np.testing.assert_array_equal(mixed._solution.intercepts, path._solution.intercepts)
    np.testing.assert_array_equal(mixed.predict_path(K), ordered.predict_path(K[:, order]))


def test_what_is_certified_of_a_rounded_matrix_holds_for_the_kernel():
    X, y = scaled("breast_cancer")
    for gamma in (4.0**-4, 1.0):
        K = rbf_kernel(X, gamma=gamma)
        rounded = SMOSVC(kernel="precomputed", gram_error=2.0**-24)
        path = rounded.fit_path(K.astype(np.float32), y, CS)
        assert path.converged_[:3].all()
        for k, _, _, sign, beta, bias in subproblems_of(path, y):
            F = K @ beta - sign
            slack = np.maximum(0.0, -sign * (F + bias))
            primal = 0.5 * beta @ K @ beta + CS[k] * slack.sum()
            gap = (primal - np.abs(beta).sum() + 0.5 * beta @ K @ beta) / primal
            assert gap <= path.duality_gap_[k]
            if path.converged_[k]:
                low, high = np.minimum(0.0, sign * CS[k]), np.maximum(0.0, sign * CS[k])
                assert F[beta > low].max() - F[beta < high].min() <= 1e-3


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_a_constant_that_is_subtracted_from_the_kernel_changes_no_solution(loss):
    X, y = scaled("wine")
    K = rbf_kernel(X, gamma=0.25)
    known = {"loss": loss, "kernel": "precomputed", "tol": 1e-8}
    plain, shifted = SMOSVC(**known), SMOSVC(gram_shift=1.0, **known)
    whole, less = plain.fit_path(K, y, CS), shifted.fit_path(K - 1.0, y, CS)
    assert less.converged_.all()
    np.testing.assert_allclose(less.objective_, whole.objective_, rtol=1e-7)
    np.testing.assert_array_equal(less.predict_path(K - 1.0), whole.predict_path(K))
    one, other = plain.fit(K, y), shifted.fit(K - 1.0, y)
    np.testing.assert_allclose(other.decision_function(K - 1.0), one.decision_function(K), atol=1e-5)


def test_values_of_k_minus_1_certify_in_float32_what_values_of_k_do_not():
    X, y = scaled("breast_cancer")
    C, gamma, unit = [1024.0], 4.0**-5, 2.0**-24
    exact = rbf_kernel(X, gamma=gamma)
    whole = SMOSVC(kernel="precomputed", gram_error=unit).fit_path(exact.astype(np.float32), y, C)
    less = np.expm1(-gamma * euclidean_distances(X, squared=True)).astype(np.float32)
    error = unit * np.abs(less).max()
    path = SMOSVC(kernel="precomputed", gram_shift=1.0, gram_error=error).fit_path(less, y, C)
    assert path.converged_.all()
    assert not whole.converged_.any()
    check_subproblems(path, exact, y)


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_fits_by_values_of_k_minus_1_are_certified_for_the_kernel(loss):
    """The values are summed in float64. Sums in float32 would exceed the error bound."""
    X, y = scaled("breast_cancer")
    distances, certified = euclidean_distances(X, squared=True), 0
    for gamma in (4.0**-10, 4.0**-6, 4.0**-2):
        exact, less = np.exp(-gamma * distances), np.expm1(-gamma * distances).astype(np.float32)
        known = {"gram_error": 2.0**-24 * np.abs(less).max(), "gram_shift": 1.0, "loss": loss}
        for C in (64.0, 4096.0):
            model = SMOSVC(C=C, kernel="precomputed", max_iter=20_000, **known).fit(less, y)
            if not model.converged_:
                continue
            certified += 1
            beta = np.zeros(y.size)
            beta[model.support_] = model.dual_coef_[0]
            sign, high = np.where(y == model.classes_[1], 1.0, -1.0), C if loss == "l1" else np.inf
            F = exact @ beta - sign + (beta / C if loss == "l2" else 0.0)
            grows, shrinks = beta < np.where(sign > 0, high, 0.0), beta > np.where(sign > 0, 0.0, -high)
            assert F[shrinks].max() - F[grows].min() <= model.tol
    assert certified > 2


def test_a_shift_larger_than_the_kernel_leaves_no_false_certificate():
    X, y = scaled("breast_cancer")
    K = rbf_kernel(X, gamma=0.5)
    for shift in (1e8, 1e10):
        path = SMOSVC(kernel="precomputed", gram_shift=shift).fit_path(K - shift, y, [10.0, 1000.0])
        for subproblem in subproblems_of(path, y):
            F = ((K - shift) + shift) @ subproblem.beta - subproblem.sign
            low, high = np.minimum(0.0, subproblem.sign), np.maximum(0.0, subproblem.sign)
            C = path.Cs_[subproblem.k]
            violation = F[subproblem.beta > C * low].max() - F[subproblem.beta < C * high].min()
            assert not path.converged_[subproblem.k] or violation <= 1e-3


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("rows_that_fit", [140, 60], ids=["a_block_each", "no_block"])
def test_without_room_for_a_gram_matrix(rows_that_fit, as_sparse):
    X, y = scaled("wine")
    Cs = [0.25, 4.0, 64.0]
    gram = SMOSVC(gamma=0.05, tol=1e-4).fit_path(X, y, Cs)
    labels = gram.predict_path(X)
    if as_sparse:
        X = sparse.csr_matrix(X)
    small = SMOSVC(gamma=0.05, tol=1e-4, cache_size=8e-6 * rows_that_fit**2).fit_path(X, y, Cs)
    assert small.converged_.all()
    np.testing.assert_allclose(small.objective_, gram.objective_, rtol=1e-4)
    np.testing.assert_array_equal(small.predict_path(X), labels)


@pytest.mark.parametrize("max_iter", [1, 10, 1000])
def test_the_limit_of_the_iterations_holds_for_each_C(max_iter):
    X, y = scaled("iris")
    K = rbf_kernel(X, gamma=1.0)
    path = SMOSVC(kernel="precomputed", max_iter=max_iter).fit_path(K, y, CS)
    assert path.n_iter_.max() <= max(3, max_iter)
    if max_iter < 1000:
        assert path.fit_status_[-1] == 1
        assert not path.converged_[-1]
        assert path.stopping_[-1].startswith("max_iter (gap ")
    for _, _, _, sign, beta, _ in subproblems_of(path, y):
        assert (sign * beta >= 0.0).all()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()


def test_penalties_that_differ_by_22_orders_leave_both_classes_the_same_sum_of_weights():
    """No step repairs a start whose sums differ; without this rule the steps did not end."""
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
    model = SMOSVC(kernel="rbf", gamma=1.0, loss="l2", class_weight={0: 1e11, 1: 0.7e-11}, max_iter=1000)
    path = model.fit_path(X, y, [1.0, 10.0])
    assert path.converged_.all()
    for subproblem in subproblems_of(path, y):
        total = np.abs(subproblem.beta).sum()
        assert total > 0.0
        assert abs(subproblem.beta.sum()) <= 1e-15 * total


def test_no_weight_is_above_its_bound_by_a_rounding():
    y = np.repeat([0, 1], [25, 28])
    for C in np.random.default_rng(0).uniform(0.1, 1.0, 50):
        path = SMOSVC(kernel="precomputed").fit_path(np.ones((53, 53)), y, [C])
        assert path._solution.weights.max() <= C


def test_free_weights_are_counted_often_enough_where_all_are_free_at_the_start():
    """Otherwise Newton's method would run late, after 15,787 steps, because its cost grows with them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = np.sign(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300))
    path = SMOSVC(kernel="precomputed", loss="l2").fit_path((100.0 * X @ X.T + 1.0) ** 3, y, CS)
    assert path.converged_.all()
    assert path.n_iter_.sum() < 12_000


def test_an_indefinite_kernel_ends_in_order():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    K, y = A + A.T, np.arange(40) % 2
    path = SMOSVC(kernel="precomputed", max_iter=20_000).fit_path(K, y, CS)
    check = SMOSVC(kernel="precomputed", loss="l2", max_iter=20_000).fit_path(K, y, CS)
    assert np.isfinite(path.objective_).all()
    assert check.fit_status_[-1] == 3
    assert not check.converged_[-1]
    assert np.isin(path.predict_path(K), [0, 1]).all()
