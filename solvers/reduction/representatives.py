"""The representative set of a training set (DeriveRS, Nandan et al. 2014, section 4).

The samples of each class are split into blocks of neighbours, and each block is reduced to its approximate
extreme points. A sample is a convex combination Σ_t γ_ti φ_t of the points of its block, up to an error. A
point has the weight β_t = Σ_i s_i γ_ti, where s_i is the weight of sample i.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.blas import one_blas_thread
from solvers.common.resources import in_threads, n_threads, require_memory
from solvers.kernels.functions import GRAM, Kernel
from solvers.reduction.copies import first_copies
from solvers.reduction.extreme_points import BallError, NotPositiveError, extreme_points
from solvers.reduction.segregation import Distances, fls1, fls2, sls
from solvers.reduction.values import rows_of, values_between

MATRICES = 4
"""Number of matrices of V² values that a thread needs at a time."""


class Representatives(NamedTuple):
    """Representative set of n samples."""

    rows: np.ndarray  # (M,) int64: rows of the representatives, ascending
    beta: np.ndarray  # (M,): their weights β, positive
    gamma: sparse.csr_matrix  # (n, M): weights γ of each sample's combination; no entry for a weight of 0
    errors: np.ndarray  # (n,): squared distance of each sample from its combination; 0 for a weight of 0
    n_kernel_evals: int  # number of kernel values that were computed
    seconds: float  # wall time
    is_ball_only: bool = False  # whether ε is at least every squared distance of samples within a block


def derive_rs(
    X,
    y,
    kernel,
    epsilon,
    *,
    P=100_000,
    V=1_000,
    first_level="fls2",
    repair=True,
    sample_weight=None,
    n_jobs=None,
):
    """Derive the representative set of a training set.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d), float64, or ndarray of shape (n, n)
        Samples as `solvers.kernels.functions.for_samples` returns them, or the Gram matrix. A CSR matrix is
        canonical.
    y : ndarray of shape (n,)
        Class label of each sample. Each class is reduced by itself.
    kernel : solvers.kernels.functions.Kernel
        Kernel that `for_samples` returned, or one of kind `GRAM`. It is positive semidefinite.
    epsilon : float
        Largest squared distance of a sample from its combination, in the space of the kernel. If it is at
        least all squared distances, only the points of the smallest ball of each block remain.
    P : int, default=100_000
        Largest number of samples of a part, the first level.
    V : int, default=1_000
        Largest number of samples of a block, the second level, from 2 to `P`.
    first_level : {"fls2", "fls1"}, default="fls2"
        How parts are split off: by distance, or in the order of the samples.
    repair : bool, default=True
        Merge equal samples of a class first, and enforce `epsilon` for every sample. If false, the steps are
        those of the paper, whose errors may exceed `epsilon`.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples, finite and not negative. Samples of weight 0 are left out. By default all are
        1.
    n_jobs : int or None, default=None
        Number of threads that reduce blocks; None is one, −1 one for each core. The result does not depend on
        it.

    Returns
    -------
    Representatives
        Representatives, their weights, and the combination of each sample.

    Raises
    ------
    ValueError
        A parameter or a weight is not valid, the kernel is not positive semidefinite, or a ball does not
        converge.
    MemoryError
        The matrices of the blocks would not fit into memory.
    """
    started = time.perf_counter()
    weights = _checked(X, kernel, epsilon, P, V, first_level, sample_weight)
    require_memory(
        8.0 * MATRICES * n_threads(n_jobs) * min(V, X.shape[0]) ** 2,
        f"the kernel matrices of blocks of V={V:,} samples",
        "set a smaller V",
    )
    leaders = np.arange(X.shape[0])
    blocks = []
    distances = Distances(X, kernel)
    for label in np.unique(y):
        rows = np.flatnonzero((y == label) & (weights > 0.0))
        if repair:
            leaders[rows] = rows[first_copies(X, rows)]
            rows = rows[leaders[rows] == rows]
        parts = fls1(rows, P) if first_level == "fls1" else fls2(rows, P, distances)
        blocks += [block for part in parts if part.size for block in sls(part, V, distances)]

    def reduce(rows):
        return _reduced(X, kernel, rows, float(epsilon), repair)

    with one_blas_thread():
        reduced = in_threads(reduce, blocks, n_jobs)
    members = np.sort(
        np.concatenate([rows[points.points] for rows, points in zip(blocks, reduced, strict=True)])
    )
    gamma, errors = _joined(blocks, reduced, members, X.shape[0])
    if repair:
        errors = errors[leaders]
        gamma = gamma[leaders]
        if not (weights > 0.0).all():
            gamma = sparse.diags_array((weights > 0.0).astype(np.float64)).tocsr() @ gamma
            errors[weights == 0.0] = 0.0
    return Representatives(
        members,
        gamma.T @ weights,
        sparse.csr_matrix(gamma),
        errors,
        sum(rows.size**2 for rows in blocks) if kernel.kind != GRAM else 0,
        time.perf_counter() - started,
        max(map(len, blocks)) > 1 and all(points.is_ball_only for points in reduced),
    )


def _checked(X, kernel, epsilon, P, V, first_level, sample_weight):
    """Return the weights of the samples, or raise if a parameter is not valid.

    Parameters
    ----------
    X, kernel, epsilon, P, V, first_level, sample_weight
        As in `derive_rs`.

    Returns
    -------
    ndarray of shape (n,)
        Weights.
    """
    if not 0.0 < epsilon < np.inf:
        raise ValueError(f"epsilon={epsilon}: expected a finite number above 0, such as 1e-3")
    if not 2 <= V <= P:
        raise ValueError(f"V={V}, P={P}: expected 2 <= V <= P. The paper has V=1_000 and P=100_000")
    if first_level not in ("fls1", "fls2"):
        raise ValueError(f"first_level={first_level!r}: expected 'fls1' or 'fls2'")
    require_positive(kernel)
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (X.shape[0],) or not np.isfinite(weights).all() or weights.min() < 0.0:
        raise ValueError(
            f"sample_weight: expected {X.shape[0]} finite numbers of at least 0. "
            "A sample of weight 0 is left out"
        )
    return weights


def require_positive(kernel: Kernel) -> None:
    """Raise if a kernel function is known not to be positive semidefinite for all samples.

    Parameters
    ----------
    kernel : solvers.kernels.functions.Kernel
        Kernel to check. Gram matrices pass: their blocks are checked when they are reduced.

    Raises
    ------
    ValueError
        The kernel is not positive semidefinite, so that samples have no convex hull.
    """
    if kernel.kind != GRAM and not kernel.is_positive:
        raise ValueError(
            "kernel: representatives are convex combinations in the space of the kernel, which only a "
            "positive semidefinite kernel has. Use 'rbf', 'linear', 'imq', or 'poly' with an integer degree "
            "and coef0 >= 0"
        )


def _reduced(X, kernel, rows, epsilon, repair):
    """Return the approximate extreme points of a block.

    Parameters
    ----------
    X, kernel
        As in `derive_rs`.
    rows : int64 ndarray of shape (m,)
        Rows of the block.
    epsilon, repair
        As in `derive_rs`.

    Returns
    -------
    solvers.reduction.extreme_points.ExtremePoints
        Points, and the combination of every sample.
    """
    block = rows_of(X, kernel, rows)
    K = values_between(X, kernel, block, block)
    try:
        return extreme_points(K, epsilon, repair)
    except NotPositiveError:
        raise ValueError(
            f"a block of {rows.size} samples has negative squared distances, so the kernel is not positive "
            "semidefinite. Use another kernel, or correct the Gram matrix"
        ) from None
    except BallError:
        raise ValueError(
            f"the smallest ball around a block of {rows.size} samples does not converge. "
            "Scale the samples, or set a smaller V"
        ) from None


def _joined(blocks, reduced, members, n):
    """Join the combinations of all blocks.

    Parameters
    ----------
    blocks : list of int64 ndarray
        Rows of each block.
    reduced : list of solvers.reduction.extreme_points.ExtremePoints
        Points of each block.
    members : int64 ndarray of shape (M,)
        Rows of all points, ascending.
    n : int
        Number of samples.

    Returns
    -------
    gamma : CSR of shape (n, M)
        Weights of each sample's combination.
    errors : ndarray of shape (n,)
        Squared distance of each sample from its combination.
    """
    errors = np.zeros(n)
    samples, columns, values = [], [], []
    for rows, points in zip(blocks, reduced, strict=True):
        errors[rows] = points.errors
        matrix = points.combinations
        samples.append(np.repeat(rows, np.diff(matrix.indptr)))
        columns.append(np.searchsorted(members, rows[points.points])[matrix.indices])
        values.append(matrix.data)
    entries = np.concatenate(values), (np.concatenate(samples), np.concatenate(columns))
    return sparse.csr_matrix(entries, shape=(n, members.size)), errors
