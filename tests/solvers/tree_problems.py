"""Random problems of two classes for planes without errors on one of them."""

import numpy as np

PROBLEMS = 300
"""Number of problems in full size."""


def random_problem(seed):
    """Samples of two classes: 1–60 features, up to 500 rows, classes of 50 : 1 to 1 : 50, some rows twice."""
    generator = np.random.default_rng(seed)
    d, n = int(generator.integers(1, 61)), int(generator.integers(4, 501))
    ratio = 50.0 ** generator.uniform(-1, 1)
    is_soft = generator.random(n) < 1.0 / (1.0 + ratio)
    is_soft[:4] = True, True, False, False
    X = generator.normal(size=(n, d)) + np.where(is_soft, -1.0, 1.0)[:, None] * generator.choice(
        [0.0, 0.3, 2]
    )
    if seed % 3 == 0:
        X = np.round(X)
    if seed % 4 == 0:
        twice = generator.integers(n, size=n // 3)
        X, is_soft = np.concatenate([X, X[twice]]), np.concatenate([is_soft, is_soft[twice]])
    return X, is_soft


def cosine(a, b):
    """Cosine of the angle between two vectors."""
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
