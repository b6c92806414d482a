"""Random training sets, and limits that make small ones large."""

import numpy as np

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
