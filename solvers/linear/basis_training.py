"""Cutting planes for the Gaussian kernel on a basis, with a bound for the optimum over all w."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.kernels.functions import kernel_block
from solvers.linear.cutting_plane import HingeProblem, train
from solvers.linear.kernel_basis import BasisFeatures
from solvers.linear.pre_images import PreImages

ALWAYS_AFFORDABLE = 1e7
"""Number of kernel values that the bound over all w may always take."""
VALUES_AT_A_TIME = 1 << 20
"""Largest number of kernel values that are computed at a time (8 MB)."""


class Basis(NamedTuple):
    """Choice of the basis vectors."""

    n_vectors: int  # largest number
    from_pre_images: bool  # whether vectors are pre-images; if not, random samples
    bias: bool  # whether there is a constant feature


class TrainedOnBasis(NamedTuple):
    """Result of a training."""

    outcome: NamedTuple  # `cutting_plane.Outcome` over the span of the basis
    vectors: np.ndarray | sparse.csr_matrix  # (k, d): basis
    coefficients: np.ndarray  # (k,): coefficients of the kernel functions
    constant: float  # constant of the decisions
    gap: float  # certified gap over all w; NaN where it takes too many kernel values
    n_distinct: int  # number of distinct samples, if they are the basis; else 0


def train_on_basis(samples, target, basis, line_search, limits, generator):
    """Choose a basis and train on it.

    Parameters
    ----------
    samples : tuple of ({ndarray, CSR} of shape (n, d), Kernel)
        Samples as `Kernel.prepare` returns them, and the Gaussian kernel.
    target : tuple of (ndarray of shape (n,), ndarray of shape (n,), float)
        Labels −1.0 and 1.0, weights of the samples with the sum 1, and C of the objective.
    basis : Basis
        Choice of the basis.
    line_search : bool
        As in `train`.
    limits : Limits
        Tolerance and budget.
    generator : numpy.random.Generator
        Source of random samples.

    Returns
    -------
    TrainedOnBasis
        Best point met, as coefficients of the basis vectors, with its bounds.
    """
    X, kernel = samples
    distinct = distinct_rows(X)
    is_complete = basis.n_vectors >= distinct.size
    features = BasisFeatures(X, kernel, min(basis.n_vectors, distinct.size), basis.bias)
    problem = HingeProblem(features, *target)
    grow = None
    if is_complete:
        features.extend(X[distinct])
    elif basis.from_pre_images:
        grow = PreImages(features, problem.labels, problem.shares, generator).grow
    else:
        features.extend(X[np.sort(generator.choice(distinct, basis.n_vectors, replace=False))])
    outcome = train(problem, limits, line_search, grow, keeps_members=True)
    coefficients = features.coefficients(outcome.w[features.bias :])
    constant = float(outcome.w[0]) if basis.bias else 0.0
    gap = gap_over_all(problem, outcome)
    return TrainedOnBasis(
        outcome, features.vectors(), coefficients, constant, gap, distinct.size if is_complete else 0
    )


def distinct_rows(X):
    """Return the first row of each group of equal rows.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples; those of a CSR matrix have sorted indices.

    Returns
    -------
    int ndarray
        Row numbers, ascending.
    """
    first: dict[object, int] = {}
    if sparse.issparse(X):
        for i in range(X.shape[0]):
            part = slice(X.indptr[i], X.indptr[i + 1])
            first.setdefault((X.indices[part].tobytes(), X.data[part].tobytes()), i)
    else:
        for i, row in enumerate(X + 0.0):  # -0.0 becomes 0.0
            first.setdefault(row.tobytes(), i)
    return np.fromiter(first.values(), np.int64, len(first))


def gap_over_all(problem, outcome):
    """Return the certified gap over all w, by the weights of the samples that the cuts amount to.

    The weights a_i = p_i Σ α_c over the cuts c with sample i are feasible for the dual problem of the kernel:
    0 ≤ a_i ≤ C p_i. Its value there bounds the minimum of F1 over all w from below.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem, whose features are `BasisFeatures`.
    outcome : Outcome
        Result of the training, with the weights of the samples.

    Returns
    -------
    float
        Gap as a share of the objective. NaN if it takes more kernel values than the products of the training,
        and more than `ALWAYS_AFFORDABLE`.
    """
    features, weights = problem.features, outcome.dual_weights
    rows = np.flatnonzero(weights)
    of_training = float(features.size) * weights.size * outcome.n_iter
    if 0.5 * rows.size**2 > max(ALWAYS_AFFORDABLE, of_training):
        return float("nan")
    V, signed = features.X[rows], weights[rows] * problem.labels[rows]
    square = features.bias * signed.sum() ** 2
    step = max(1, VALUES_AT_A_TIME // max(1, rows.size))
    for start in range(0, rows.size, step):
        end = min(start + step, rows.size)
        products = kernel_block(V[start:end], V[start:], features.kernel) * signed[start:]
        own, others = products[:, : end - start].sum(axis=1), products[:, end - start :].sum(axis=1)
        square += signed[start:end] @ (own + 2.0 * others)
    total = weights.sum()
    error = 0.5 * (features.kernel.error + (rows.size + 16) * UNIT_ROUNDOFF) * total**2
    error += rows.size * UNIT_ROUNDOFF * total
    bound = max(total - 0.5 * square - error, 0.0)
    error = problem.C * 2.0 * features.rounding(outcome.w) + features.norm_rounding(outcome.w)
    error += (weights.size + features.dimension) * UNIT_ROUNDOFF * outcome.primal
    return float((outcome.primal - bound + error) / outcome.primal)
