"""Random subproblems of two classes, with their kernel matrices in NumPy."""

import numpy as np

from solvers.kernels.functions import LINEAR, RBF, Kernel
from solvers.problem import Problem


def random_problem(seed, n_max=30, C=None, kind=None):
    """Return a subproblem, its kernel matrix and its labels; some have equal samples."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, n_max + 1)), int(rng.integers(1, 6))
    first = int(rng.integers(1, n))
    X = rng.normal(size=(n, d))
    X[:first] += rng.choice([0.0, 0.5, 3.0])
    if seed % 4 == 0:
        X[-1] = X[0]
    kind = (RBF if seed % 3 else LINEAR) if kind is None else kind
    C = 10.0 ** rng.uniform(-2, 3) if C is None else C
    penalties = C * rng.uniform(0.3, 2.0, n) if seed % 2 else np.array([C])
    gamma = 10.0 ** rng.uniform(-1.5, 0.5)
    problem = Problem(
        *(X, np.arange(n, dtype=np.int32), np.array([0, first, n]), penalties, Kernel(kind, gamma)),
        *(0.0, np.empty(0), seed, np.inf),
    )
    K = X @ X.T if kind == LINEAR else np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
    return problem, K, np.where(np.arange(n) < first, 1.0, -1.0)


def signed_weights(solution, y):
    """Return the signed weights of all samples."""
    weights = np.zeros(y.size)
    weights[solution.support] = solution.alpha
    return weights * y
