"""Kernel functions: between blocks of samples (NumPy, BLAS) and between one sample and many (numba).

The named kernels are those of table 2.1 of Strack (2013), with a width γ as scikit-learn has it:

========== ==============================
linear     x·z
poly       (γ x·z + coef0)^degree
rbf        exp(−γ ‖x − z‖²)
sigmoid    tanh(γ x·z + coef0)
imq        1 / √(γ ‖x − z‖² + coef0)
========== ==============================

Features are float64. `for_samples` decides once, from the training samples, how a kernel is evaluated, and
bounds the rounding of its values; `fit` and `predict` both evaluate the kernel that it returns.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.compile import inlined, inner, njit
from solvers.common.input_checks import require_real_numbers, sound_csr
from solvers.common.pair_selection import float_of_bits

LINEAR, POLY, RBF, SIGMOID, IMQ, GRAM = range(6)
RADIAL = (RBF, IMQ)
KINDS = {"linear": LINEAR, "poly": POLY, "rbf": RBF, "sigmoid": SIGMOID, "imq": IMQ, "precomputed": GRAM}


# ‖x‖² + ‖z‖² − 2 x·z cancels: with γ ‖x‖² above this, distances are summed from differences, which is slower.
LARGEST_EXPONENT = 1e4
# Below this, a centre would gain nothing.
SMALL_EXPONENT = 100.0
# With so few dense features, differences cost no more.
FEW_FEATURES = 8
NOT_FINITE = (
    "kernel values are not finite: mend the kernel if it is your own, else scale the samples, "
    "or take a whole degree for kernel='poly' where γ x·z + coef0 can be negative"
)


class Kernel(NamedTuple):
    """A kernel function with its parameters. `GRAM` reads values that the caller has computed."""

    kind: int
    gamma: float = 1.0
    coef0: float = 1.0
    degree: float = 3.0
    center: np.ndarray | None = None  # (d,) that is subtracted from dense samples: distances stay the same
    by_differences: bool = False  # whether ‖x − z‖² is computed from x − z
    error: float = 0.0  # bound on the error of a value between two training samples
    takes_sparse: bool | None = None  # the format of the training samples; None: not decided yet

    @property
    def has_constant_diagonal(self):
        """Whether k(x, x) is the same for every x."""
        return self.kind in RADIAL

    @property
    def is_positive(self):
        """Whether every matrix of its values is known to be positive semidefinite."""
        if self.kind == POLY:  # a negative constant or a fraction gives its series negative terms
            return self.coef0 >= 0.0 and float(self.degree).is_integer()
        return self.kind in (LINEAR, RBF, IMQ)

    def place(self, X):
        """Return samples in float64 and with their origin at `center`, as `kernel_block` takes them.

        They get the format of the training samples: distances between two formats would be from two origins.
        """
        if self.takes_sparse is not None and self.takes_sparse != sparse.issparse(X):
            X = sparse.csr_matrix(X) if self.takes_sparse else X.toarray()
        if sparse.issparse(X):
            return canonical(X.astype(np.float64, copy=False))
        X = np.asarray(X, dtype=np.float64)
        return X if self.center is None else X - self.center


def canonical(X):
    """Return a CSR matrix with ascending indices and without duplicate entries; X itself if it has none."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def is_table(X):
    """Whether samples are rows of numbers; a callable kernel takes others too."""
    if sparse.issparse(X):
        return True
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return array.ndim == 2 and array.dtype.kind not in "US"


def as_array(X):
    """Return samples that are no table of numbers as an array, which can be cut into parts."""
    try:
        return np.asarray(X)
    except ValueError:
        array = np.empty(len(X), dtype=object)
        for i, sample in enumerate(X):
            array[i] = sample
        return array


def values_of(function, A, B):
    """Evaluate a callable kernel between two sets of samples: C-contiguous, float64."""
    values = function(A, B)
    values = sound_csr(values).toarray() if sparse.issparse(values) else values
    require_real_numbers(values, "the kernel callable's values")
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"the kernel callable must return a matrix of shape {(A.shape[0], B.shape[0])} here; "
            f"it returned {values.shape}"
        )
    return values


def require_finite(values):
    """Refuse kernel values with a NaN or an infinity among them; one pass where there is none."""
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(flat, flat)):  # half the time of the sum
            return
    if not all(np.all(np.isfinite(row)) for row in values):  # a sum of finite squares can overflow
        raise ValueError(NOT_FINITE)


def for_samples(kernel, X, used=None):
    """Decide how a kernel function is evaluated, from the samples that a machine is trained on.

    Parameters
    ----------
    kernel : Kernel
        Kind and parameters.
    X : {ndarray, CSR} of shape (n, d)
    used : bool ndarray of shape (n,), optional
        Those that have weight; all by default.

    Returns
    -------
    kernel : Kernel
    X : {ndarray, CSR} of shape (n, d), float64
        The samples as the kernel takes them.
    """
    kernel = kernel._replace(takes_sparse=sparse.issparse(X))
    placed = kernel.place(X)
    if kernel.kind in RADIAL:
        with np.errstate(over="ignore", invalid="ignore"):
            square = row_norms(placed, squared=True).max()
            if X.shape[1] <= FEW_FEATURES and not sparse.issparse(X):
                kernel = kernel._replace(by_differences=True)
            elif not (kernel.gamma * square <= SMALL_EXPONENT or sparse.issparse(X)):
                kernel = kernel._replace(center=(placed if used is None else placed[used]).mean(axis=0))
                placed = kernel.place(X)
                square = row_norms(placed, squared=True).max()
            if not kernel.gamma * square <= LARGEST_EXPONENT:
                kernel = kernel._replace(by_differences=True, center=None)
                placed = kernel.place(X)
    else:
        square = row_norms(placed, squared=True).max()
    terms = int(np.diff(placed.indptr).max()) if sparse.issparse(placed) else placed.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        error = _rounding_of_values(kernel, square, terms)
    if not np.isfinite(error):
        raise ValueError(NOT_FINITE)
    return kernel._replace(error=error), placed


def _rounding_of_values(kernel, square, terms):
    """Bound the error of k(x, z) where ‖x‖², ‖z‖² ≤ `square` and both are sums of `terms` products."""
    kind, gamma, u = kernel.kind, kernel.gamma, UNIT_ROUNDOFF
    if kind == LINEAR:
        return (terms + 2) * u * square
    if kind in RADIAL:
        largest, slope = 1.0, gamma
        if kind == IMQ:
            largest, slope = kernel.coef0**-0.5, 0.5 * gamma * kernel.coef0**-1.5
        if kernel.by_differences:
            return (0.5 * terms + 4) * u * largest
        return min(slope * 4 * (terms + 6) * u * square + 8 * u * largest, largest)
    base = gamma * square + abs(kernel.coef0)
    if kind == SIGMOID:
        return min((terms + 4) * u * base + 4 * u, 2.0)
    return (kernel.degree * (terms + 6) + 4) * u * base**kernel.degree


def kernel_block(A, B, kernel):
    """Evaluate a kernel between the rows of two blocks.

    Parameters
    ----------
    A : {ndarray, CSR} of shape (m, d)
    B : {ndarray, CSR} of shape (n, d)
        Samples as `Kernel.place` returns them.
    kernel : Kernel

    Returns
    -------
    K : ndarray of shape (m, n), float64

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = _values(A, B, kernel)
    require_finite(K)
    return K


def _values(A, B, kernel):
    if kernel.kind in RADIAL:
        K = _square_distance_block(A, B, kernel.by_differences)
        if kernel.kind == RBF:
            K *= -kernel.gamma
            return np.exp(K, out=K)
        K *= kernel.gamma
        K += kernel.coef0
        return np.reciprocal(np.sqrt(K, out=K), out=K)
    K = safe_sparse_dot(A, B.T, dense_output=True)
    if kernel.kind == LINEAR:
        return K
    K *= kernel.gamma
    K += kernel.coef0
    return np.tanh(K, out=K) if kernel.kind == SIGMOID else np.power(K, kernel.degree, out=K)


def _square_distance_block(A, B, by_differences):
    """Return ‖a − b‖² between the rows of two blocks: ndarray of shape (m, n), float64."""
    if not by_differences:
        K = safe_sparse_dot(A, B.T, dense_output=True)
        K *= -2.0
        K += row_norms(A, squared=True)[:, None]
        K += row_norms(B, squared=True)
        return np.maximum(K, 0.0, out=K)
    if not sparse.issparse(A):
        return cdist(A, B, "sqeuclidean")
    K = np.empty((A.shape[0], B.shape[0]))
    _sparse_square_distances(A.indptr, A.indices, A.data, B.indptr, B.indices, B.data, K)
    return K


@njit(allocates=False)
def _sparse_square_distances(a_ptr, a_indices, a_data, b_ptr, b_indices, b_data, out):
    for i in range(out.shape[0]):
        a = slice(a_ptr[i], a_ptr[i + 1])
        for j in range(out.shape[1]):
            b = slice(b_ptr[j], b_ptr[j + 1])
            out[i, j] = sparse_square_distance(a_indices[a], a_data[a], b_indices[b], b_data[b])


@inner
def sparse_square_distance(a_indices, a_data, b_indices, b_data):
    """Return ‖a − b‖² of two sparse rows with ascending indices, from their differences."""
    total = 0.0
    p, q = 0, 0
    while p < a_indices.size or q < b_indices.size:
        if q == b_indices.size or (p < a_indices.size and a_indices[p] < b_indices[q]):
            difference = a_data[p]
            p += 1
        elif p == a_indices.size or b_indices[q] < a_indices[p]:
            difference = b_data[q]
            q += 1
        else:
            difference = a_data[p] - b_data[q]
            p += 1
            q += 1
        total += difference * difference
    return total


def variance_of(X):
    """Return the variance of all features together, from differences to their mean: those cancel nothing."""
    if not sparse.issparse(X):
        return X.var(dtype=np.float64)
    X = canonical(X)
    size, mean = X.shape[0] * X.shape[1], X.mean(dtype=np.float64)
    return (np.square(X.data - mean).sum() + (size - X.nnz) * mean**2) / size


def kernel_diagonal(X, kernel):
    """Evaluate k(x, x) for every row of X: ndarray of shape (n,), float64."""
    if kernel.kind == GRAM:
        return np.array(np.diagonal(X), dtype=np.float64)
    if kernel.kind in RADIAL:
        return np.full(X.shape[0], 1.0 if kernel.kind == RBF else 1.0 / np.sqrt(kernel.coef0))
    square = np.asarray(row_norms(X, squared=True), dtype=np.float64)
    if kernel.kind == LINEAR:
        return square
    square *= kernel.gamma
    square += kernel.coef0
    if kernel.kind == SIGMOID:
        return np.tanh(square)
    with np.errstate(over="ignore", invalid="ignore"):
        square **= kernel.degree
    require_finite(square)
    return square


def normalise_rows(K, X, kernel):
    """Multiply the rows of K, kernel values of the samples X, by 1/√k(x, x), or by 0 where k(x, x) ≤ 0."""
    diagonal = kernel_diagonal(X, kernel)
    positive = diagonal > 0
    K *= np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)[:, None]
    return K


@inlined
def _term(a, z, of_distance):
    difference = z - a
    return (difference if of_distance else a) * (difference if of_distance else z)


@inlined
def sum_terms(features, lo, point, of_distance, out):
    """Write point·z, or ‖point − z‖² by differences, to `out` for columns z of `features` from `lo` on.

    `features` has shape (d, capacity); LLVM takes the choice out of the loops. Equal samples are at distance
    0 exactly.
    """
    out[:] = 0.0
    d, n = features.shape[0], out.size
    for f in range(0, d - 3, 4):
        a, b, c, e = point[f], point[f + 1], point[f + 2], point[f + 3]
        A, B = features[f][lo : lo + n], features[f + 1][lo : lo + n]
        C, E = features[f + 2][lo : lo + n], features[f + 3][lo : lo + n]
        for q in range(n):
            first = _term(a, A[q], of_distance) + _term(b, B[q], of_distance)
            out[q] += first + (_term(c, C[q], of_distance) + _term(e, E[q], of_distance))
    for f in range(d - d % 4, d):
        a, A = point[f], features[f][lo : lo + n]
        for q in range(n):
            out[q] += _term(a, A[q], of_distance)


@njit(allocates=False)
def finish_kernel(kind, gamma, coef0, degree, out):
    """Turn products (linear, poly, sigmoid) or squared distances (rbf, imq) into kernel values, in place."""
    if kind == RBF:
        for q in range(out.size):
            out[q] = exp_of_negative(-gamma * out[q])
    elif kind == IMQ:
        for q in range(out.size):
            out[q] = 1.0 / np.sqrt(gamma * out[q] + coef0)
    elif kind == POLY:
        for q in range(out.size):
            out[q] = (gamma * out[q] + coef0) ** degree
    elif kind == SIGMOID:
        for q in range(out.size):
            out[q] = np.tanh(gamma * out[q] + coef0)


@inner
def exp_of_negative(x):
    """exp(x) for x ≤ 0, to one unit in the last place; unlike libm's it vectorises (0.8 against 2.8 ns).

    x = k ln 2 + r with |r| ≤ ln 2 / 2, a Taylor polynomial in r, and k put into the exponent bits.
    """
    x = max(x, -708.0)
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * float_of_bits((np.int64(k) + 1023) << 52)
