"""Gaussian kernel between many samples, computed tile by tile and used at once, without a full matrix.

A tile holds `WIDTH` samples as columns, stored feature by feature. A row is combined with a tile by its
non-zero features only, so the cost of a value depends on the number of non-zeros of its row. Samples are
scaled by √(2γ), so that the kernel is ``exp(x·z - ½‖x‖² - ½‖z‖²)``.

All values that a certificate uses are float64. Blocks on which steps are taken can be computed in float32, in
half the time: `in_float32` converts the samples.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from scipy import sparse
from sklearn.utils.extmath import row_norms

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.compile import implement_by_types, inlined, njit
from solvers.common.fused import multiply_add
from solvers.common.pair_selection import float_bits, float_of_bits
from solvers.common.vectors import use_widest_vectors
from solvers.kernels.functions import LARGEST_EXPONENT, RBF

WIDTH = 128
"""Number of samples of a tile."""
ROUNDING = 1.5 * 2.0**52
"""Number whose addition rounds a float64 to an integer."""
EXP_ERROR = 1e-14
"""Bound on the relative error of `_exp`."""
ROUNDING_32 = np.float32(1.5 * 2.0**23)
"""Number whose addition rounds a float32 to an integer."""
MAX_HALF_IN_FLOAT32 = 32.0
"""Largest ½‖x‖² of scaled samples at which float32 is used. The error of a kernel value is then at most about
10⁻⁵."""
ROWS_AT_A_TIME = 512
"""Number of rows that stay in the cache while one tile after the other is combined with them."""


class Samples(NamedTuple):
    """Samples as rows without their zeros, scaled by √(2γ)."""

    starts: np.ndarray  # (n + 1,) int64: boundaries of the rows among the non-zeros
    features: np.ndarray  # uint32: columns of the non-zeros
    values: np.ndarray  # values of the non-zeros
    halves: np.ndarray  # (n,): ½‖x‖²


class Tiles(NamedTuple):
    """Samples as columns, scaled by √(2γ)."""

    n: int  # number of samples
    values: np.ndarray  # (n_tiles, n_features, WIDTH), zero after the last sample
    halves: np.ndarray  # (n_tiles, WIDTH): ½‖z‖²


def scaled_samples(X, gamma):
    """Convert samples to the form of `Samples`.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, n_features), float64
        Features of the samples.
    gamma : float
        Width γ of the kernel, positive.

    Returns
    -------
    Samples
        Scaled samples.
    """
    if sparse.issparse(X):
        starts, features, values = X.indptr.astype(np.int64), X.indices.astype(np.uint32), X.data
    else:
        starts, features, values = _nonzeros_of(X)
    values = np.sqrt(2.0 * gamma) * values
    return Samples(starts, features, values, _half_squares(starts, values))


def in_float32(samples, shift):
    """Return samples with float32 values, if their kernel values are then precise enough for steps.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    shift : float
        Number that is subtracted from the kernel values. With 1, the kernel is close to 1.

    Returns
    -------
    Samples
        The samples in float32; the samples themselves if rounding would be too large.
    """
    # Exponents of samples without features do not cancel.
    largest = samples.halves[np.diff(samples.starts) > 0].max(initial=0.0)
    if largest > MAX_HALF_IN_FLOAT32 or (shift > 0.0 and largest > 1.0):
        return samples
    return samples._replace(
        values=samples.values.astype(np.float32), halves=samples.halves.astype(np.float32)
    )


@njit
def _nonzeros_of(X):
    """Return the non-zeros of each row.

    Parameters
    ----------
    X : float64 array (n, n_features)
        Features of the samples.

    Returns
    -------
    starts, features, values : array
        Boundaries of the rows among the non-zeros, their columns, and their values.
    """
    starts = np.zeros(X.shape[0] + 1, np.int64)
    for i in range(X.shape[0]):
        n = 0
        for f in range(X.shape[1]):
            n += X[i, f] != 0.0
        starts[i + 1] = starts[i] + n
    features, values = np.empty(starts[-1], np.uint32), np.empty(starts[-1])
    for i in range(X.shape[0]):
        k = starts[i]
        for f in range(X.shape[1]):
            if X[i, f] != 0.0:
                features[k], values[k] = f, X[i, f]
                k += 1
    return starts, features, values


@njit
def _half_squares(starts, values):
    """Return ½‖x‖² of every row.

    Parameters
    ----------
    starts : int64 array (n + 1,)
        Boundaries of the rows among the non-zeros.
    values : array
        Non-zeros.

    Returns
    -------
    array (n,)
        Half the squared norms.
    """
    halves = np.empty(starts.size - 1)
    for i in range(halves.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * values[k]
        halves[i] = 0.5 * total
    return halves


def error_of_values(samples):
    """Bound the error of a kernel value, as `solvers.kernels.functions` does for sums of products.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).

    Returns
    -------
    float
        Bound on the absolute error.
    """
    terms = int(np.diff(samples.starts).max(initial=0))
    return 8.0 * (terms + 6) * UNIT_ROUNDOFF * samples.halves.max() + EXP_ERROR


def is_tiled(kernel, X):
    """Return whether tiles can be used: for Gaussian kernels whose sums of products do not cancel too much.

    Parameters
    ----------
    kernel : solvers.kernels.functions.Kernel
        Kernel of any kind.
    X : {ndarray, CSR} of shape (n, n_features), float64
        Features of the samples.

    Returns
    -------
    bool
        Whether `tiles_of` gives accurate kernel values.
    """
    return kernel.kind == RBF and kernel.gamma * row_norms(X, squared=True).max() <= LARGEST_EXPONENT


def tiles_of(samples, chosen, n_features):
    """Return tiles of some samples.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    chosen : int64 ndarray
        Indices of the samples to put into tiles.
    n_features : int
        Number of columns of the feature matrix.

    Returns
    -------
    Tiles
        Tiles, in the order of `chosen`.
    """
    n_tiles = -(-chosen.size // WIDTH)
    dtype = samples.values.dtype
    tiles = Tiles(
        chosen.size, np.zeros((n_tiles, n_features, WIDTH), dtype), np.zeros((n_tiles, WIDTH), dtype)
    )
    _fill_tiles(samples, chosen, tiles)
    return tiles


@njit(allocates=False)
def _fill_tiles(samples, chosen, tiles):
    """Copy samples into tiles of zeros.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    chosen : int64 array
        Indices of the samples.
    tiles : Tiles
        Receives the samples.
    """
    for c in range(chosen.size):
        tile, lane, i = c // WIDTH, c % WIDTH, chosen[c]
        tiles.halves[tile, lane] = samples.halves[i]
        for k in range(samples.starts[i], samples.starts[i + 1]):
            tiles.values[tile, samples.features[k], lane] = samples.values[k]


@inlined
def _exp(x):
    """Return exp(x) for x ≤ 0, with a relative error of at most `EXP_ERROR`. Rounding may make x positive.

    It uses x = k ln 2 + r with |r| ≤ ln 2 / 2, and a Taylor polynomial in r. Adding 1.5 · 2⁵² rounds to an
    integer k and leaves k + 1023 in the lowest bits, which are then shifted to the exponent.

    Parameters
    ----------
    x : float
        Exponent, at most 0 except for rounding.

    Returns
    -------
    float
        Exponential.
    """
    x = max(x, -708.0)
    shifted = multiply_add(x, 1.4426950408889634, ROUNDING + 1023.0)
    k = shifted - (ROUNDING + 1023.0)
    r = multiply_add(k, -1.90821492927058770002e-10, multiply_add(k, -6.93147180369123816490e-01, x))
    p = 1.0 / 39916800.0
    p = multiply_add(p, r, 1.0 / 3628800.0)
    p = multiply_add(p, r, 1.0 / 362880.0)
    p = multiply_add(p, r, 1.0 / 40320.0)
    p = multiply_add(p, r, 1.0 / 5040.0)
    p = multiply_add(p, r, 1.0 / 720.0)
    p = multiply_add(p, r, 1.0 / 120.0)
    p = multiply_add(p, r, 1.0 / 24.0)
    p = multiply_add(p, r, 1.0 / 6.0)
    p = multiply_add(p, r, 0.5)
    p = multiply_add(p, r, 1.0)
    p = multiply_add(p, r, 1.0)
    return p * float_of_bits(float_bits(shifted) << 52)


@intrinsic
def _power_of_two(typing_context, shifted):
    """Return 2ᵏ for the integer k + 127 in the lowest bits of a float32.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    shifted : float32
        Number with k + 127 in its lowest bits.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns a float32.
    """

    def codegen(context, builder, signature, args):
        word = ir.IntType(32)
        exponent = builder.shl(builder.bitcast(args[0], word), ir.Constant(word, 23))
        return builder.bitcast(exponent, ir.FloatType())

    return types.float32(types.float32), codegen


@inlined
def _exp_less(x, shift):
    """Return exp(x) - shift in float32, for x ≤ 0.

    It computes exp(r) - 1 by a Taylor polynomial, with r as in `_exp`. The result is therefore precise if x
    is close to 0 and the shift is 1.

    Parameters
    ----------
    x : float32
        Exponent, at most 0.
    shift : float32
        Number to subtract.

    Returns
    -------
    float32
        The difference.
    """
    x = max(x, np.float32(-87.0))
    shifted = multiply_add(x, np.float32(1.4426950408889634), ROUNDING_32 + np.float32(127.0))
    k = shifted - (ROUNDING_32 + np.float32(127.0))
    r = multiply_add(k, np.float32(2.12194440e-4), multiply_add(k, np.float32(-0.693359375), x))
    p = np.float32(1.0 / 5040.0)
    p = multiply_add(p, r, np.float32(1.0 / 720.0))
    p = multiply_add(p, r, np.float32(1.0 / 120.0))
    p = multiply_add(p, r, np.float32(1.0 / 24.0))
    p = multiply_add(p, r, np.float32(1.0 / 6.0))
    p = multiply_add(p, r, np.float32(0.5))
    p = multiply_add(p, r, np.float32(1.0))
    power = _power_of_two(shifted)
    return multiply_add(power, p * r, power - shift)


@inlined
def _exponents_of_tile(samples, i, columns, halves, out):
    """Compute the exponents of the kernel between one sample and the columns of a tile.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    i : int
        Index of the sample.
    columns : array (n_features, WIDTH)
        Samples of the tile.
    halves : array (WIDTH,)
        ½‖z‖² of the columns.
    out : array (WIDTH,)
        Receives the exponents, in the type of the samples.
    """
    half = samples.halves[i]
    for q in range(WIDTH):
        out[q] = -half - halves[q]
    first, last = samples.starts[i], samples.starts[i + 1]
    whole = last - (last - first) % 4
    for k in range(first, whole, 4):
        a, b = samples.values[k], samples.values[k + 1]
        c, d = samples.values[k + 2], samples.values[k + 3]
        A, B = columns[samples.features[k]], columns[samples.features[k + 1]]
        C, D = columns[samples.features[k + 2]], columns[samples.features[k + 3]]
        for q in range(WIDTH):
            first_two = multiply_add(a, A[q], multiply_add(b, B[q], out[q]))
            out[q] = multiply_add(c, C[q], multiply_add(d, D[q], first_two))
    for k in range(whole, last):
        a, A = samples.values[k], columns[samples.features[k]]
        for q in range(WIDTH):
            out[q] = multiply_add(a, A[q], out[q])


def write_kernel(exponents, shift, out):
    """Write ``exp(exponents) - shift``.

    Numba chooses the implementation by the type of the exponents, and this body is never run: `_of_type`
    below makes the choice.

    Parameters
    ----------
    exponents : float32 or float64 array (WIDTH,)
        Logarithms of the kernel values of a row of a tile.
    shift : float64
        Number to subtract.
    out : float32 or float64 array (n,), with n ≤ WIDTH
        Receives the first n values.
    """
    raise NotImplementedError


@implement_by_types(write_kernel)
def _of_type(exponents, shift, out):
    """Return the implementation of `write_kernel` for a type of the exponents.

    Parameters
    ----------
    exponents, shift, out : numba types
        Types of the arguments.

    Returns
    -------
    callable
        The implementation.
    """

    def in_float64(exponents, shift, out):
        for q in range(out.size):
            out[q] = _exp(exponents[q]) - shift

    def in_float32(exponents, shift, out):
        less = np.float32(shift)
        for q in range(out.size):
            out[q] = _exp_less(exponents[q], less)

    return in_float64 if exponents.dtype == types.float64 else in_float32


@njit
def add_products(samples, chosen, weights, tiles, out):
    """Add ``Σ_k weights[k] k(chosen[k], ·)`` to `out`, for the columns of all tiles, in float64.

    Portions of `ROWS_AT_A_TIME` rows are summed on their own before they are added. A value therefore has at
    most that many rounding errors for each portion.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    chosen : int64 array (n,)
        Indices of the samples of the rows.
    weights : array (n,)
        Weights of the rows.
    tiles : Tiles
        Samples of the columns.
    out : array (tiles.n,)
        Sums, changed in place.
    """
    use_widest_vectors()
    row, total = np.empty(WIDTH), np.empty(WIDTH)
    for start in range(0, chosen.size, ROWS_AT_A_TIME):
        end = min(start + ROWS_AT_A_TIME, chosen.size)
        for tile in range(tiles.values.shape[0]):
            columns, halves = tiles.values[tile], tiles.halves[tile]
            for q in range(WIDTH):
                total[q] = 0.0
            for k in range(start, end):
                _exponents_of_tile(samples, chosen[k], columns, halves, row)
                weight = weights[k]
                for q in range(WIDTH):
                    total[q] = multiply_add(weight, _exp(row[q]), total[q])
            first = tile * WIDTH
            for q in range(min(WIDTH, tiles.n - first)):
                out[first + q] += total[q]


@njit
def fill_block(samples, chosen, targets, tiles, start, shift, block):
    """Set ``block[targets[k], start + c] = k(chosen[k], c) - shift`` for the columns c of all tiles.

    Parameters
    ----------
    samples : Samples
        Samples as rows without their zeros, scaled by √(2γ).
    chosen, targets : int64 array (n,)
        Indices of the samples of the rows, and rows of the block that receive them.
    tiles : Tiles
        Samples of the columns.
    start : int
        First column of the block.
    shift : float
        Number to subtract from every value.
    block : float32 or float64 array, C-contiguous
        Receives the values.
    """
    use_widest_vectors()
    row = np.empty(WIDTH, samples.values.dtype)
    for first_row in range(0, chosen.size, ROWS_AT_A_TIME):
        last_row = min(first_row + ROWS_AT_A_TIME, chosen.size)
        for tile in range(tiles.values.shape[0]):
            columns, halves = tiles.values[tile], tiles.halves[tile]
            first = tile * WIDTH
            width = min(WIDTH, tiles.n - first)
            for k in range(first_row, last_row):
                _exponents_of_tile(samples, chosen[k], columns, halves, row)
                write_kernel(row, shift, block[targets[k], start + first : start + first + width])
