"""Kernel functions: between blocks of samples (NumPy, BLAS) and between one sample and many (numba).

The named kernels are those of table 2.1 of Strack (2013), with a width γ as in scikit-learn:

========== ==============================
linear     x·z
poly       (γ x·z + coef0)^degree
rbf        exp(−γ ‖x − z‖²)
sigmoid    tanh(γ x·z + coef0)
imq        1 / √(γ ‖x − z‖² + coef0)
========== ==============================

Features are float64. `for_samples` chooses from the training samples how a kernel is evaluated, and bounds
the rounding error of its values. Both `fit` and `predict` evaluate the kernel that it returns.
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


LARGEST_EXPONENT = 1e4
"""Largest γ ‖x‖² for distances by ‖x‖² + ‖z‖² − 2 x·z. Above it, this sum loses too many digits by
cancellation, and squared differences are summed."""
SMALL_EXPONENT = 100.0
"""Largest γ ‖x‖² for which moving the origin to the centre would not improve distances."""
FEW_FEATURES = 8
"""Largest number of dense features for which differences cost no more than products."""
NOT_FINITE = (
    "kernel values are not finite. Correct the kernel if it is a callable or precomputed, else scale the "
    "samples. With kernel='poly', use an integer degree if γ x·z + coef0 can be negative"
)


class Kernel(NamedTuple):
    """Kernel function with its parameters. The kind `GRAM` stands for values that the caller has computed."""

    kind: int  # one of `KINDS`
    gamma: float = 1.0  # width γ
    coef0: float = 1.0  # constant
    degree: float = 3.0  # degree of poly
    center: np.ndarray | None = None  # (d,) subtracted from dense samples, which preserves distances
    by_differences: bool = False  # whether ‖x − z‖² is computed from x − z
    error: float = 0.0  # bound on the error of a value between two training samples
    takes_sparse: bool | None = None  # whether the training samples are sparse; None: not known yet

    @property
    def has_constant_diagonal(self):
        """Whether k(x, x) is the same for every x."""
        return self.kind in RADIAL

    @property
    def is_positive(self):
        """Whether every matrix of kernel values is known to be positive semidefinite."""
        if self.kind == POLY:  # with a negative constant or a fractional degree its series has negative terms
            return self.coef0 >= 0.0 and float(self.degree).is_integer()
        return self.kind in (LINEAR, RBF, IMQ)

    def prepare(self, X):
        """Return samples in float64 with their origin at `center`, as `kernel_block` expects them.

        The result has the format of the training samples. Distances between a dense and a sparse matrix would
        have two different origins.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n, d)
            Features of the samples.

        Returns
        -------
        {ndarray, CSR} of shape (n, d), float64
            Prepared samples; `X` itself if nothing has to change.
        """
        if self.takes_sparse is not None and self.takes_sparse != sparse.issparse(X):
            X = sparse.csr_matrix(X) if self.takes_sparse else X.toarray()
        if sparse.issparse(X):
            return canonical(X.astype(np.float64, copy=False))
        X = np.asarray(X, dtype=np.float64)
        return X if self.center is None else X - self.center


def canonical(X):
    """Return a CSR matrix with ascending indices and without duplicate entries.

    Parameters
    ----------
    X : CSR
        Matrix of any structure.

    Returns
    -------
    CSR
        `X` itself if it is canonical, else a copy.
    """
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def is_table(X):
    """Return whether samples are rows of numbers. A callable kernel accepts others too.

    Parameters
    ----------
    X : object
        Samples as the user passed them.

    Returns
    -------
    bool
        True for sparse matrices and for two-dimensional arrays without text.
    """
    if sparse.issparse(X):
        return True
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return array.ndim == 2 and array.dtype.kind not in "US"


def as_array(X):
    """Return samples that are not rows of numbers as an array, which can be sliced.

    Parameters
    ----------
    X : sequence
        Samples, such as strings or lists of different lengths.

    Returns
    -------
    ndarray of shape (n, ...)
        Samples, as objects if they have different lengths.
    """
    try:
        return np.asarray(X)
    except ValueError:
        array = np.empty(len(X), dtype=object)
        for i, sample in enumerate(X):
            array[i] = sample
        return array


def values_of(function, A, B):
    """Evaluate a callable kernel between two sets of samples.

    Parameters
    ----------
    function : callable
        Kernel of the user; takes two arrays of samples and returns a matrix.
    A : array of shape (m, ...)
        Samples of the rows.
    B : array of shape (n, ...)
        Samples of the columns.

    Returns
    -------
    ndarray of shape (m, n), float64, C-contiguous
        Kernel values.

    Raises
    ------
    ValueError
        The values are not real numbers, or have another shape.
    """
    values = function(A, B)
    values = sound_csr(values).toarray() if sparse.issparse(values) else values
    require_real_numbers(values, "the kernel callable's values")
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"the kernel callable must return a matrix of shape {(A.shape[0], B.shape[0])} for "
            f"{A.shape[0]} and {B.shape[0]} samples; it returned {values.shape}. Correct the callable"
        )
    return values


def require_finite(values):
    """Raise if kernel values contain a NaN or an infinity. Finite values take one pass.

    Parameters
    ----------
    values : ndarray
        Kernel values to check, of any shape.

    Raises
    ------
    ValueError
        A value is not finite.
    """
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(flat, flat)):  # takes half the time of a sum
            return
    if not all(np.all(np.isfinite(row)) for row in values):  # the squares of finite values can overflow
        raise ValueError(NOT_FINITE)


def for_samples(kernel, X, used=None):
    """Choose how a kernel function is evaluated, from the training samples of a model.

    Parameters
    ----------
    kernel : Kernel
        Kind and parameters.
    X : {ndarray, CSR} of shape (n, d)
        Training samples.
    used : bool ndarray of shape (n,), optional
        Samples that have weight, from which the centre is computed; by default all.

    Returns
    -------
    kernel : Kernel
        Kernel with its centre, its method of evaluation and its error bound.
    X : {ndarray, CSR} of shape (n, d), float64
        Samples as `Kernel.prepare` returns them.

    Raises
    ------
    ValueError
        Kernel values of these samples would not be finite.
    """
    kernel = kernel._replace(takes_sparse=sparse.issparse(X))
    prepared = kernel.prepare(X)
    if kernel.kind in RADIAL:
        with np.errstate(over="ignore", invalid="ignore"):
            square = row_norms(prepared, squared=True).max()
            if X.shape[1] <= FEW_FEATURES and not sparse.issparse(X):
                kernel = kernel._replace(by_differences=True)
            elif not (kernel.gamma * square <= SMALL_EXPONENT or sparse.issparse(X)):
                kernel = kernel._replace(center=(prepared if used is None else prepared[used]).mean(axis=0))
                prepared = kernel.prepare(X)
                square = row_norms(prepared, squared=True).max()
            if not kernel.gamma * square <= LARGEST_EXPONENT:
                kernel = kernel._replace(by_differences=True, center=None)
                prepared = kernel.prepare(X)
    else:
        square = row_norms(prepared, squared=True).max()
    terms = int(np.diff(prepared.indptr).max()) if sparse.issparse(prepared) else prepared.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        error = _rounding_of_values(kernel, square, terms)
    if not np.isfinite(error):
        raise ValueError(NOT_FINITE)
    return kernel._replace(error=error), prepared


def _rounding_of_values(kernel, square, terms):
    """Bound the error of k(x, z).

    Parameters
    ----------
    kernel : Kernel
        Kernel with its method of evaluation.
    square : float
        Bound on ‖x‖² and ‖z‖².
    terms : int
        Number of products whose sum is ‖x‖².

    Returns
    -------
    float
        Bound on the absolute error.
    """
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
        Samples of the rows, as `Kernel.prepare` returns them.
    B : {ndarray, CSR} of shape (n, d)
        Samples of the columns, as `Kernel.prepare` returns them.
    kernel : Kernel
        Kernel, not of kind `GRAM`.

    Returns
    -------
    K : ndarray of shape (m, n), float64
        Kernel values.

    Raises
    ------
    ValueError
        A value is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = _values(A, B, kernel)
    require_finite(K)
    return K


def _values(A, B, kernel):
    """Evaluate a kernel between the rows of two blocks, without a check of the values.

    Parameters
    ----------
    A : {ndarray, CSR} of shape (m, d)
        Samples of the rows.
    B : {ndarray, CSR} of shape (n, d)
        Samples of the columns.
    kernel : Kernel
        Kernel, not of kind `GRAM`.

    Returns
    -------
    ndarray of shape (m, n), float64
        Kernel values.
    """
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
    """Return ‖a − b‖² between the rows of two blocks.

    Parameters
    ----------
    A : {ndarray, CSR} of shape (m, d)
        Samples of the rows.
    B : {ndarray, CSR} of shape (n, d)
        Samples of the columns.
    by_differences : bool
        Whether to sum squared differences; if not, ‖a‖² + ‖b‖² − 2 a·b, which is faster.

    Returns
    -------
    ndarray of shape (m, n), float64
        Squared distances.
    """
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
    """Compute ‖a − b‖² between the rows of two CSR matrices from their differences.

    Parameters
    ----------
    a_ptr, a_indices, a_data : array
        Arrays of the first matrix, with ascending indices.
    b_ptr, b_indices, b_data : array
        Arrays of the second matrix, with ascending indices.
    out : float64 array (m, n)
        Receives the squared distances.
    """
    for i in range(out.shape[0]):
        a = slice(a_ptr[i], a_ptr[i + 1])
        for j in range(out.shape[1]):
            b = slice(b_ptr[j], b_ptr[j + 1])
            out[i, j] = sparse_square_distance(a_indices[a], a_data[a], b_indices[b], b_data[b])


@inner
def sparse_square_distance(a_indices, a_data, b_indices, b_data):
    """Return ‖a − b‖² of two sparse rows with ascending indices, from their differences.

    Parameters
    ----------
    a_indices, a_data : array
        Columns and values of the first row.
    b_indices, b_data : array
        Columns and values of the second row.

    Returns
    -------
    float
        Squared distance.
    """
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
    """Return the variance of all features together, computed from differences to avoid cancellation.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Features of the samples.

    Returns
    -------
    float
        Variance of all values, zeros of sparse samples included.
    """
    if not sparse.issparse(X):
        return X.var(dtype=np.float64)
    X = canonical(X)
    size, mean = X.shape[0] * X.shape[1], X.mean(dtype=np.float64)
    return (np.square(X.data - mean).sum() + (size - X.nnz) * mean**2) / size


def kernel_diagonal(X, kernel):
    """Evaluate k(x, x) for every row of X.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d), or ndarray of shape (n, n)
        Samples as `Kernel.prepare` returns them, or the Gram matrix.
    kernel : Kernel
        Kernel of any kind.

    Returns
    -------
    ndarray of shape (n,), float64
        Values of the diagonal.
    """
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
    """Multiply the rows of K by 1/√k(x, x) in place, or by 0 where k(x, x) ≤ 0.

    Parameters
    ----------
    K : ndarray of shape (m, n)
        Kernel values of the samples `X`, changed in place.
    X : {ndarray, CSR} of shape (m, d)
        Samples as `Kernel.prepare` returns them.
    kernel : Kernel
        Kernel of the values.

    Returns
    -------
    ndarray of shape (m, n)
        `K` itself.
    """
    diagonal = kernel_diagonal(X, kernel)
    positive = diagonal > 0
    K *= np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)[:, None]
    return K


@inlined
def _term(a, z, of_distance):
    """Return the term of one feature in a product or in a squared distance.

    Parameters
    ----------
    a, z : float
        Values of the feature in two samples.
    of_distance : bool
        Whether to return (z − a)²; if not, a·z.

    Returns
    -------
    float
        Term of the sum.
    """
    difference = z - a
    return (difference if of_distance else a) * (difference if of_distance else z)


@inlined
def sum_terms(features, lo, point, of_distance, out):
    """Compute point·z, or ‖point − z‖² from differences, for consecutive columns z of `features`.

    LLVM moves the choice between the two out of the loops. Equal samples have a distance of exactly 0.

    Parameters
    ----------
    features : array (d, capacity)
        Samples as columns.
    lo : int
        First column.
    point : array (d,)
        Features of one dense sample.
    of_distance : bool
        Whether to compute squared distances; if not, products.
    out : array (n,)
        Receives the values of n columns.
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
    """Convert products (linear, poly, sigmoid) or squared distances (rbf, imq) to kernel values, in place.

    Parameters
    ----------
    kind : int
        Kind of the kernel, one of `KINDS`.
    gamma, coef0, degree : float
        Parameters of the kernel.
    out : array (n,)
        Products or squared distances, replaced by kernel values.
    """
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
    """Return exp(x) for x ≤ 0, with an error of one unit in the last place.

    Unlike the function of libm it vectorises (0.8 ns instead of 2.8 ns). It uses x = k ln 2 + r with
    |r| ≤ ln 2 / 2, a Taylor polynomial in r, and adds k to the exponent bits.

    Parameters
    ----------
    x : float
        Exponent, at most 0.

    Returns
    -------
    float
        Exponential.
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
