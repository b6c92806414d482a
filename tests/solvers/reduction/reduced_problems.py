"""Random training sets for the reduction, and the identities that a representative set satisfies."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

from solvers.kernels.functions import IMQ, LINEAR, POLY, RBF, Kernel, for_samples, kernel_block

KINDS = (RBF, IMQ, LINEAR, POLY)


class Random(NamedTuple):
    """Training set of two classes with its kernel."""

    X: np.ndarray
    y: np.ndarray  # labels -1 and 1
    weight: np.ndarray
    kernel: Kernel
    K: np.ndarray  # all kernel values


def random_problem(seed, largest=160, kinds=KINDS):
    """Return a training set with copies, weights (in half of them some are 0) and d from 1 to 50."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, largest)), int(rng.integers(1, 51))
    X = rng.normal(size=(n, d)) * rng.choice([0.3, 1.0])
    if rng.random() < 0.5:
        X = np.round(X)
    copies = rng.integers(0, n, n // 5)
    X[rng.integers(0, n, n // 5)] = X[copies]
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[:4] = 1.0, -1.0, 1.0, -1.0
    weight = np.ones(n) if seed % 2 else rng.choice([0.0, 0.5, 1.0, 3.0], n)
    weight[:4] = 1.0
    kind = kinds[seed % len(kinds)]
    kernel, X = for_samples(Kernel(kind, float(rng.choice([0.1, 1.0])) / d, 1.0, 2.0), X)
    return Random(X, y, weight, kernel, kernel_block(X, X, kernel))


def squared_errors(K, gamma, rows):
    """Return ‖φ_i − Σ γ_ti φ_t‖² of every sample."""
    G = gamma.toarray()
    inner = np.einsum("ij,jk,ik->i", G, K[np.ix_(rows, rows)], G)
    return inner - 2.0 * (G * K[:, rows]).sum(axis=1) + np.diagonal(K)


def primal(square_norm, margins, C):
    return 0.5 * square_norm + C @ np.maximum(0.0, 1.0 - margins)


def optimum(K, y, C):
    """Return the optimal dual objective of the hinge loss with a free bias, and the signed weights."""
    kept = C > 0.0
    K, y, C = K[np.ix_(kept, kept)], y[kept], C[kept]
    model = SVC(kernel="precomputed", C=1.0, tol=1e-8, cache_size=500).fit(K, y, sample_weight=C)
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    signed = np.zeros(kept.size)
    signed[kept] = beta
    return np.abs(beta).sum() - 0.5 * beta @ K @ beta, signed


def broken_identities(problem, found, epsilon, C=1.0, seed=0):
    """Return the names of the identities and inequalities that a representative set violates."""
    K, y, s, rows = problem.K, problem.y, problem.weight, found.rows
    G, beta, rng, names = found.gamma.toarray(), found.beta, np.random.default_rng(seed), []
    is_used = s > 0.0
    scale = np.abs(np.diagonal(K)).max()

    def expect(name, holds):
        if not holds:
            names.append(name)

    for label in (-1.0, 1.0):
        total = s[y == label].sum()
        expect("sum of beta", abs(beta[y[rows] == label].sum() - total) <= 1e-9 * total)
    expect("simplex", G.min() >= 0.0 and np.abs(G[is_used].sum(axis=1) - 1.0).max() <= 1e-12)
    expect("own class", not (G * (y[:, None] != y[rows])).any())
    expect("beta is the image of s", np.allclose(G.T @ s, beta, rtol=1e-10, atol=0.0))
    p = np.where(is_used, squared_errors(K, found.gamma, rows), 0.0)
    expect("epsilon", p.max() <= epsilon * (1.0 + 1e-6) + 1e-12 * scale)
    expect("errors", np.abs(p - found.errors).max() <= 1e-10 * scale)

    Cs, Cbeta = C * s, C * beta
    K_rows = K[np.ix_(rows, rows)]
    U = G @ K_rows @ G.T
    for _ in range(20):  # theorems 1 and 2 at random (w, b)
        a, b = rng.normal(size=y.size) * rng.exponential(2.0) / y.size, rng.normal()
        f, square_norm = K @ a, a @ K @ a
        of_u = G @ f[rows]
        F1, F2 = primal(square_norm, y * (f + b), Cs), primal(square_norm, y[rows] * (f[rows] + b), Cbeta)
        F3 = primal(square_norm, y * (of_u + b), Cs)
        slack = 1e-10 * (F1 + F2 + F3)
        expect("theorem 1", F2 + slack >= F3)
        along = y * (f - of_u)
        lower, upper = Cs @ np.maximum(0.0, along), Cs @ np.maximum(0.0, -along)
        expect("theorem 2", -lower - slack <= F1 - F3 <= upper + slack)
        # (20) and F2 ≥ L3: random feasible weights of the intermediate problem
        breve = rng.random(y.size) * Cs
        sums = [breve[y == label].sum() for label in (-1.0, 1.0)]
        breve *= np.where(y < 0.0, min(sums) / sums[0], min(sums) / sums[1])
        image = G.T @ breve
        expect("image is feasible", (image <= Cbeta * (1.0 + 1e-9)).all())
        L3 = breve.sum() - 0.5 * (y * breve) @ U @ (y * breve)
        L2 = image.sum() - 0.5 * (y[rows] * image) @ K_rows @ (y[rows] * image)
        expect("L2(h) = L3", abs(L2 - L3) <= 1e-9 * (breve.sum() + abs(L3)))
        expect("F2 ≥ L3", L3 - slack <= F2)
    U = U[np.ix_(is_used, is_used)]
    n, trace = np.count_nonzero(is_used), np.trace(K[np.ix_(is_used, is_used)] - U)
    products = ((G * K[:, rows]).sum(axis=1)[is_used] - np.diagonal(U)).sum()  # Σ u·τ
    expect("rank", np.linalg.matrix_rank(U, tol=1e-9 * n * scale) <= rows.size)
    expect("trace", trace <= n * p.max() + 2.0 * products + 1e-9 * n * scale)
    if problem.kernel.kind == RBF:
        expect("trace of rbf", trace <= n * (p.max() + 2.0 * np.sqrt(p.max())) + 1e-9 * n)
    return sorted(set(names))


def random_sample(problem, share, seed):
    """Return a random sample as a representative set whose weights are N/M, the test of the tests."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(problem.y.size) < share)
    rows = np.union1d(rows, [0, 1])
    same = (problem.y[:, None] == problem.y[rows]) * 1.0
    gamma = sparse.csr_matrix(same / same.sum(axis=1, keepdims=True))
    beta = np.full(rows.size, problem.y.size / rows.size)
    return rows, beta, gamma
