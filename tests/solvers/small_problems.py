"""Random training sets, limits that make small ones large, and the optimality of a path in float64."""

from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist

from solvers.kernels.functions import RBF, Kernel
from solvers.problem import Problem

CS = 4.0 ** np.arange(-2, 6)
# Cache in MB, too small for a Gram matrix of the samples below, and large enough for most blocks.
CACHE = 2.5
# Memory for arrays of one number a sample and similar ones, in bytes.
SLACK = 1_500_000


def overlapping(n=600, d=12, n_classes=2, seed=0):
    """Return samples in [0, 1], of which some have zeros and some occur twice with different labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.6)
    X[n // 2 : n // 2 + 20] = X[:20]
    score = X[:, 0] + X[:, 1] - X[:, 2] + 0.25 * rng.standard_normal(n)
    y = np.searchsorted(np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]), score)
    return X, y


def problem_of(X, kind=RBF, C=1.0, gamma=1.0):
    n, start = X.shape[0], np.array([0, X.shape[0] // 2, X.shape[0]])
    kernel, rows = Kernel(kind, gamma), np.arange(n, dtype=np.int32)
    return Problem(X, rows, start, np.array([C]), kernel, 0.0, np.empty(0), 0, np.inf)


def checkers(n, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return X, np.floor(4 * X).sum(axis=1) % 2


def violation_and_objective(solution, X, y, gamma, k, weight=None, loss="l1"):
    """Return the largest violation of any pair, and the sum of the dual objectives, in plain float64."""
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    worst, objective, classes = 0.0, 0.0, solution.problem.classes
    of_row = np.zeros((solution.weights.shape[1], y.size))
    of_row[:, solution.problem.rows] = solution.weights[k]
    for i, j in combinations(range(classes.size), 2):
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        sign = np.where(y[rows] == classes[i], 1.0, -1.0)
        beta = np.where(sign > 0, of_row[j - 1, rows], -of_row[i, rows])
        C = solution.problem.Cs[k] * (1.0 if weight is None else weight[rows])
        limit = C if loss == "l1" else np.inf
        low, high = np.where(sign > 0, 0.0, -limit), np.where(sign > 0, limit, 0.0)
        assert (low <= beta).all()
        assert (beta <= high).all()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        F = K[np.ix_(rows, rows)] @ beta - sign + (0.0 if loss == "l1" else beta / C)
        worst = max(worst, F[beta > low].max() - F[beta < high].min())
        objective += 0.5 * beta @ (F - sign)
    return worst, objective
