"""An artificial block solver whose weights have both signs, and the same models computed directly.

A model is the least-squares support vector machine on two thirds of the samples of each subproblem:
(H + D) β = 1, with weight 0 for every third sample. `main` compares the readers of weights with direct
computations. It runs in a process with a separate cache of compiled code.
"""

from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from solvers.common.compile import implement
from solvers.common.status import CONVERGED
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.parameters import Multiclass, Positive, with_parameters
from solvers.gram.subproblems import solve_path
from solvers.multiclass import groups_of, pairs_of, strategy_of, votes
from solvers.path.driver import BlockSolver
from solvers.path.result import intercepts

CS = [0.5, 4.0, 100.0]
GAMMA = 0.5


class SignedRules(NamedTuple):
    """Parameters of the artificial solver."""

    value_errors: np.ndarray


@implement(solve_path, SignedRules)
def signed_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Solve the equations for every C."""
    kept = np.array([i for i in range(H.shape[0]) if i % 3 != 0])
    for k in range(Cs.size):
        A = np.empty((kept.size, kept.size))
        for a in range(kept.size):
            for b in range(kept.size):
                A[a, b] = H[kept[a], kept[b]]
            A[a, a] += inverse_weight[kept[a]] / Cs[k]
        beta = np.linalg.solve(A, np.ones(kept.size))
        weights[k] = 0.0
        for a in range(kept.size):
            weights[k, kept[a]] = beta[a]
        outcomes.statuses[subproblem, k], outcomes.converged[subproblem, k] = CONVERGED, True


class SignedSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by elimination."""

    seed = 0

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        return SignedRules(value_errors)

    def intercepts(self, weights, outcomes, problem):
        return intercepts(weights, problem.class_start, problem.bias, problem.multiclass)


@with_parameters
class SignedSVC(PathMixin, KernelSVC):
    """Least-squares support vector machine on two thirds of the samples of each subproblem.

    Parameters
    ----------
    tol : float
        Not used.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Strategy.
    """

    tol: Positive = 1e-3
    multiclass: Multiclass = "pairwise"
    class_weight: ClassWeight = None

    def _path_solver(self):
        return SignedSolver()


class Direct:
    """The models of all C by NumPy: coefficients and constants of each subproblem, for all rows."""

    def __init__(self, X, y, weight, multiclass):
        self.y, classes = y, np.unique(y)
        self.strategy, n_classes = strategy_of(multiclass, classes.size), classes.size
        groups, K = groups_of(n_classes, self.strategy), rbf_kernel(X, gamma=GAMMA)
        n_decisions = n_classes if self.strategy == "all_at_once" else len(groups)
        self.coefficients = np.zeros((len(CS), n_decisions, y.size))
        self.used = np.zeros((len(CS), y.size), dtype=bool)
        self.shares = np.zeros(len(CS))
        self.is_negative = False
        for s, group in enumerate(groups):
            rows = np.concatenate([np.flatnonzero(y == t) for t in group])
            code = np.repeat(np.arange(len(group)), [np.count_nonzero(y == t) for t in group])
            code = np.minimum(code, 1) if self.strategy == "one_vs_rest" else code
            labels = np.where(np.eye(code.max() + 1) == 1.0, 1.0, -1.0 / code.max())
            H = labels[code][:, code] * (K[np.ix_(rows, rows)] + 1.0)
            kept = np.arange(rows.size) % 3 != 0
            for k, C in enumerate(CS):
                A = (H + np.diag(1.0 / (C * weight[rows])))[np.ix_(kept, kept)]
                beta = np.zeros(rows.size)
                beta[kept] = np.linalg.solve(A, np.ones(kept.sum()))
                self.is_negative |= beta.min() < 0.0 < beta.max()
                self.used[k, rows[kept]] = True
                self.shares[k] += kept.mean() / len(groups)
                if self.strategy == "all_at_once":
                    self.coefficients[k][:, rows] = labels[:, code] * beta
                else:
                    self.coefficients[k, s, rows] = np.where(code == 0, beta, -beta)
        self.constants = self.coefficients.sum(axis=2)

    def decisions(self, k, K):
        """Return the decisions for the k-th C, positive for the first class of a subproblem."""
        return K @ self.coefficients[k].T + self.constants[k]

    def labels(self, k, K):
        """Return the predicted labels for the k-th C."""
        decisions = self.decisions(k, K)
        if self.strategy == "pairwise":
            return votes(decisions, np.unique(self.y).size).argmax(axis=1)
        return decisions.argmax(axis=1)

    def dual_coef(self, k, support):
        """Return `dual_coef_` for the k-th C."""
        n_classes, of_rows = np.unique(self.y).size, self.coefficients[k][:, support]
        if self.strategy != "pairwise":
            return of_rows
        dual_coef = np.zeros((n_classes - 1, support.size))
        for s, (i, j) in enumerate(pairs_of(n_classes)):
            for a, row in enumerate(support):
                if self.y[row] in (i, j):
                    dual_coef[j - 1 if self.y[row] == i else i, a] = of_rows[s, a]
        return -dual_coef if n_classes == 2 else dual_coef


def check_path(path, direct, X, X_test):
    """Compare a path with the direct computation."""
    K = rbf_kernel(X_test, X, gamma=GAMMA)
    assert_array_equal(path.n_support_, direct.used.sum(axis=1))
    assert_allclose(path.sv_share_, direct.shares)
    labels = path.predict_path(K if path._vectors is None else X_test)
    for k in range(len(CS)):
        assert_array_equal(labels[k], direct.labels(k, K))


def check_used_rows(solution, direct):
    """Compare a path that has only the used rows with the direct computation."""
    reduced, kept = solution.on_used_rows()
    assert_array_equal(np.sort(kept), np.flatnonzero(direct.used.any(axis=0)))
    K = rbf_kernel(np.random.default_rng(1).random((40, 4)), np.zeros((direct.y.size, 4)) + 0.1)
    assert_array_equal(reduced.predict_path(K[:, kept]), [direct.labels(k, K) for k in range(len(CS))])


def check_fit(model, direct, k, X, X_test, weight):
    """Compare a fit with the direct computation."""
    fitted, K = model._copy().set_params(C=CS[k]).fit(X, direct.y, weight), rbf_kernel(X_test, X, gamma=GAMMA)
    assert_array_equal(np.sort(fitted.support_), np.flatnonzero(direct.used[k]))
    assert_array_equal(fitted.n_support_, np.bincount(direct.y[direct.used[k]]))
    assert_allclose(fitted.dual_coef_, direct.dual_coef(k, fitted.support_), atol=1e-8)
    assert_array_equal(fitted.predict(X_test), direct.labels(k, K))
    decisions, expected = fitted.decision_function(X_test), direct.decisions(k, K)
    if fitted.classes_.size == 2:
        assert_allclose(decisions, -expected[:, 0], atol=1e-8)
    elif direct.strategy != "pairwise":
        assert_allclose(decisions, expected, atol=1e-8)
    else:
        pairs = fitted.set_params(decision_function_shape="ovo").decision_function(X_test)
        assert_allclose(pairs, expected, atol=1e-8)


def main():
    """Compare paths and fits with direct computations, for every strategy and source of kernel values."""
    rng = np.random.default_rng(0)
    X_all, y_all = load_iris(return_X_y=True)
    for n_classes in (3, 2):
        X, y = X_all[y_all < n_classes], y_all[y_all < n_classes]
        X, X_test = X + 0.3 * rng.standard_normal(X.shape), X + 0.5 * rng.standard_normal(X.shape)
        weight = rng.uniform(0.5, 2.0, y.size)
        for multiclass in ("pairwise", "one_vs_rest", "all_at_once"):
            direct, model = Direct(X, y, weight, multiclass), SignedSVC(gamma=GAMMA, multiclass=multiclass)
            assert direct.is_negative
            for cache_size in (200, 0.01):
                path = model._copy().set_params(cache_size=cache_size).fit_path(X, y, CS, weight)
                check_path(path, direct, X, X_test)
            of_gram, K = model._copy().set_params(kernel="precomputed"), rbf_kernel(X, gamma=GAMMA)
            path = of_gram.fit_path(K, y, CS, weight)
            check_path(path, direct, X, X_test)
            check_used_rows(path._solution, direct)
            grid = of_gram.path_grid([of_gram], y, CS, weight)
            grid.fit(K[None])
            assert_array_equal(grid.fitted().n_support_, direct.used.sum(axis=1))
            for k in range(len(CS)):
                check_fit(model, direct, k, X, X_test, weight)


if __name__ == "__main__":
    main()
