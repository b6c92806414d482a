"""Choice of the samples of a step (smallest value, best partner), in loops that LLVM vectorises.

A float minimum with its index does not vectorise under IEEE rules; the minimum of integers does. So each
float64 is mapped to an integer that sorts in the same order, and the index replaces its lowest bits. One
integer minimum then yields value and index together. Twenty bits hold the index of up to 2^20 samples, which
leaves a relative resolution of 2^-32. Larger sets use as many bits as their index needs. Steps and stopping
rules use the exact values.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from solvers.common.compile import inlined, njit

MIN_INDEX_BITS = np.int64((1 << 20) - 1)
LARGEST = np.int64(0x7FFFFFFFFFFFFFFF)
TINY = np.finfo(np.float64).tiny
SMALLEST_SQUARE_DISTANCE = 1e-12
"""Lower limit of squared distances, which keeps steps finite on indefinite kernels and rounded matrices."""

MDM, IMDM, GMDM, SECOND_ORDER, GMDM_BY_ROOT, GMDM_BY_FOURTH_ROOT = range(6)
"""Rules that choose the partner u of v, see `gain_of`."""
PAIRS = {"mdm": MDM, "imdm": IMDM, "gmdm": GMDM}


@intrinsic
def float_bits(typing_context, x):
    """Reinterpret the bits of a float64 as an int64.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    x : float64
        Number to convert.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns an int64.
    """

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def float_of_bits(typing_context, bits):
    """Reinterpret the bits of an int64 as a float64.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    bits : int64
        Bits of a float64, as `float_bits` returns them.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns a float64.
    """

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@inlined
def ordered_bits(x):
    """Return an integer that sorts like a float: for negative numbers the order of the bits is reversed.

    Parameters
    ----------
    x : float64
        Number to convert.

    Returns
    -------
    int64
        Integer in the same order.
    """
    bits = float_bits(x)
    return bits ^ ((bits >> 63) & LARGEST)


@inlined
def index_bits(n):
    """Return the mask of the bits of a key that hold the index. The value has the other bits.

    Parameters
    ----------
    n : int
        Number of values; indices are below it.

    Returns
    -------
    int64
        Mask of at least 20 bits.
    """
    bits = MIN_INDEX_BITS
    while bits < n - 1:
        bits = 2 * bits + 1
    return bits


@inlined
def ordered_key(x, i, value_bits):
    """Return an integer that sorts like a float and contains an index.

    Parameters
    ----------
    x : float64
        Number to convert.
    i : int64
        Index that the key carries.
    value_bits : int64
        Mask of the bits of the value; the index has the others.

    Returns
    -------
    int64
        Key of the value.
    """
    return (ordered_bits(x) & value_bits) | i


@njit(allocates=False)
def argmin(g):
    """Return the index of the smallest value, to the resolution of the keys.

    Parameters
    ----------
    g : array (n,)
        Numbers to compare.

    Returns
    -------
    int64
        Index of the smallest value.
    """
    bits = index_bits(g.size)
    best = LARGEST
    for i in range(g.size):
        best = min(best, ordered_key(g[i], np.int64(i), ~bits))
    return best & bits


@njit(allocates=False)
def shift_and_argmin_of_support(g, alpha, h_v, h_u, beta):
    """Add ``beta (h_v - h_u)`` to g in place, and find the support vector with the smallest g.

    Parameters
    ----------
    g : array (n,)
        Inner products with the point c, changed in place.
    alpha : array (n,)
        Weights; support vectors have positive ones.
    h_v, h_u : array (n,)
        Kernel rows of the two samples of the step.
    beta : float
        Weight that moves from u to v.

    Returns
    -------
    int64
        Index of the support vector, which the next tuning step uses.
    """
    bits = index_bits(g.size)
    lowest = LARGEST
    for i in range(g.size):
        x = g[i] + beta * (np.float64(h_v[i]) - np.float64(h_u[i]))
        g[i] = x
        key = ordered_key(x, np.int64(i), ~bits)
        lowest = min(lowest, key if alpha[i] > 0.0 else LARGEST)
    return min(lowest & bits, np.int64(g.size - 1))  # with NaN weights no key is below `LARGEST`


@njit(allocates=False)
def shift_and_ends_of_support(g, alpha, h_v, h_u, beta):
    """Add ``beta (h_v - h_u)`` to g in place, and find the support vectors with the smallest and largest g.

    Parameters
    ----------
    g : array (n,)
        Inner products with the point c, changed in place.
    alpha : array (n,)
        Weights; support vectors have positive ones.
    h_v, h_u : array (n,)
        Kernel rows of the two samples of the step.
    beta : float
        Weight that moves from u to v.

    Returns
    -------
    lowest, highest : int64
        Indices of the two support vectors.
    """
    bits = index_bits(g.size)
    lowest = LARGEST
    highest = LARGEST
    for i in range(g.size):
        x = g[i] + beta * (np.float64(h_v[i]) - np.float64(h_u[i]))
        g[i] = x
        key = ordered_key(x, np.int64(i), ~bits)
        lowest = min(lowest, key if alpha[i] > 0.0 else LARGEST)
        key = ordered_key(-x, np.int64(i), ~bits)
        highest = min(highest, key if alpha[i] > 0.0 else LARGEST)
    last = np.int64(g.size - 1)  # with NaN weights no key is below `LARGEST`
    return min(lowest & bits, last), min(highest & bits, last)


@njit(allocates=False)
def lowest_and_highest(F, can_grow, can_shrink):
    """Return the indices of the smallest F that can grow and of the largest F that can shrink.

    Parameters
    ----------
    F : array (n,)
        Gradient of the dual problem.
    can_grow, can_shrink : bool array (n,)
        Whether a weight is below its upper bound, and above its lower bound.

    Returns
    -------
    lowest, highest : int64
        Indices of the two weights; −1 if no weight can grow, or shrink.
    """
    bits = index_bits(F.size)
    best = LARGEST
    worst = LARGEST
    for i in range(F.size):
        key = ordered_key(F[i], np.int64(i), ~bits)
        best = min(best, key if can_grow[i] else LARGEST)
        key = ordered_key(-F[i], np.int64(i), ~bits)
        worst = min(worst, key if can_shrink[i] else LARGEST)
    lowest = best & bits if best < LARGEST else np.int64(-1)
    highest = worst & bits if worst < LARGEST else np.int64(-1)
    return lowest, highest


@inlined
def gain_of(rule, exponent, ahead, square_distance, weight):
    """Return the gain of a step from u to v by a rule.

    The rules are: mdm, the slope of the step (Strack 2013, 4.4); imdm, the decrease of ‖c‖² that the weight
    of u allows (5.33, with the clipping of 4.9); gmdm, (g_u − g_v) / D_uv^(k/2) (5.35); second order, the
    decrease that an unlimited weight would allow (Fan, Chen & Lin 2005).

    Parameters
    ----------
    rule : int
        One of `PAIRS`, or another constant of that group in this file.
    exponent : float
        Exponent k of gmdm, between 0 and 1.
    ahead : float
        ``g_u - g_v``, at least 0.
    square_distance : float
        ‖x̃_u − x̃_v‖², positive.
    weight : float
        Weight of u, at least 0.

    Returns
    -------
    float
        Gain, in a unit that depends on the rule.
    """
    if rule == IMDM:
        beta = min(ahead / square_distance, weight)
        return beta * (2.0 * ahead - beta * square_distance)
    if rule == MDM:
        return ahead
    if rule == SECOND_ORDER:
        return ahead * ahead / square_distance
    if rule == GMDM_BY_ROOT:
        return ahead / np.sqrt(square_distance)
    if rule == GMDM_BY_FOURTH_ROOT:
        return ahead / np.sqrt(np.sqrt(square_distance))
    return ahead / square_distance ** (0.5 * exponent)


@inlined
def best_partner_by(rule, exponent, smallest, g, weight, row, diagonal, v):
    """Return the partner of v with the largest gain, in a loop without a branch.

    Parameters
    ----------
    rule : int
        Rule as in `gain_of`; a constant of the caller, so that LLVM drops the other rules.
    exponent : float
        Exponent k of gmdm, between 0 and 1.
    smallest : float
        Lower limit of the squared distances.
    g, weight : array (m,)
        Inner products with the point c, and weights.
    row : array (m,)
        Kernel values between v and all samples.
    diagonal : array (m,)
        Diagonal values k̃(i, i) of all samples.
    v : int
        Index of the sample that receives weight.

    Returns
    -------
    int64
        Index of the partner; −1 if no step has a gain.
    """
    g_v, diagonal_v = g[v], diagonal[v]
    bits = index_bits(g.size)
    best = np.int64(0)
    for i in range(g.size):
        square_distance = max(diagonal_v + diagonal[i] - 2.0 * row[i], smallest)
        weight_i = np.float64(weight[i])
        gain = gain_of(rule, exponent, max(g[i] - g_v, 0.0), square_distance, weight_i)
        gain = gain if weight_i > 0.0 else 0.0
        best = max(best, (float_bits(gain) & ~bits) | np.int64(i))
    return best & bits if best > bits else np.int64(-1)


@njit(allocates=False)
def best_partner(rule, exponent, g, weight, row, diagonal, v):
    """Return the index u with ``weight_u > 0``, ``g_u > g_v`` and the largest gain, or −1.

    Parameters
    ----------
    rule : int
        One of `PAIRS`.
    exponent : float
        Exponent k of gmdm, between 0 and 1.
    g, weight : array (m,)
        Inner products with the point c, and weights.
    row : array (m,)
        Kernel values between v and all samples.
    diagonal : array (m,)
        Diagonal values k̃(i, i) of all samples.
    v : int
        Index of the sample that receives weight.

    Returns
    -------
    int64
        Index of the partner; −1 if no step has a gain.
    """
    if rule == IMDM:
        return best_partner_by(IMDM, exponent, TINY, g, weight, row, diagonal, v)
    if rule == MDM:
        return best_partner_by(MDM, exponent, TINY, g, weight, row, diagonal, v)
    if exponent == 1.0:  # LLVM vectorises a root, but not a power
        return best_partner_by(GMDM_BY_ROOT, exponent, TINY, g, weight, row, diagonal, v)
    if exponent == 0.5:
        return best_partner_by(GMDM_BY_FOURTH_ROOT, exponent, TINY, g, weight, row, diagonal, v)
    return best_partner_by(GMDM, exponent, TINY, g, weight, row, diagonal, v)


@njit(allocates=False)
def second_order_partner(g, weight, row, diagonal, v):
    """Return the index u with ``weight_u > 0``, ``g_u > g_v`` and the largest ``(g_u - g_v)² / D_uv``, or −1.

    Parameters
    ----------
    g, weight : array (m,)
        Inner products with the point c, and weights.
    row : array (m,)
        Kernel values between v and all samples.
    diagonal : array (m,)
        Diagonal values k̃(i, i) of all samples.
    v : int
        Index of the sample that receives weight.

    Returns
    -------
    int64
        Index of the partner; −1 if no step has a gain.
    """
    return best_partner_by(SECOND_ORDER, 0.0, SMALLEST_SQUARE_DISTANCE, g, weight, row, diagonal, v)


@inlined
def choose_partner(rule, exponent, v, row_v, g, alpha, diagonal, support, n_support, scratch):
    """Return the support vector u with g_u > g_v and the largest gain by a rule, or −1 if there is none.

    Three loops without branches compute the gains, find the largest, and find its index.

    Parameters
    ----------
    rule : int
        Rule as in `gain_of`.
    exponent : float
        Exponent k of gmdm, between 0 and 1.
    v : int
        Index of the sample that receives weight.
    row_v : ndarray
        Kernel row k̃(v, ·) of the tracked samples.
    g, alpha, diagonal : ndarray
        Inner products with the point c, weights, and k̃(i, i) of the tracked samples.
    support : ndarray of uint32
        Tracked samples with positive weight: the first `n_support` entries.
    n_support : int
        Number of support vectors.
    scratch : ndarray
        Workspace of at least `n_support` numbers.

    Returns
    -------
    int64
        Index of the partner; −1 if no step has a gain.
    """
    g_v, diagonal_v = g[v], diagonal[v]
    for k in range(n_support):
        p = support[k]
        square_distance = max(diagonal_v + diagonal[p] - 2.0 * row_v[p], TINY)
        scratch[k] = gain_of(rule, exponent, max(g[p] - g_v, 0.0), square_distance, alpha[p])
    best = np.int64(0)
    for k in range(n_support):
        best = max(best, float_bits(scratch[k]))
    if best == 0:
        return -1
    return np.int64(support[_first(scratch, n_support, best)])


@inlined
def lowest_support(g, support, n_support, scratch):
    """Return the support vector with the smallest g, the violator of a tuning step.

    Parameters
    ----------
    g : ndarray
        Inner products with the point c.
    support : ndarray of uint32
        Samples with positive weight: the first `n_support` entries.
    n_support : int
        Number of support vectors.
    scratch : ndarray
        Workspace of at least `n_support` numbers.

    Returns
    -------
    int64
        Index of the sample.
    """
    best = LARGEST
    for k in range(n_support):
        scratch[k] = g[support[k]]
        best = min(best, ordered_bits(scratch[k]))
    return np.int64(support[_first(scratch, n_support, ordered_bits(float_of_bits(best)))])


@inlined
def _first(values, n, bits):
    """Return the first index of a value with given bits. It is 0 if there are no values.

    Parameters
    ----------
    values : ndarray
        Values to search.
    n : int
        Number of values to search.
    bits : int64
        Bits of the value, which is one of the first `n`.

    Returns
    -------
    int
        Index of the value.
    """
    k = 0
    while n > 0 and float_bits(values[k]) != bits:
        k += 1
    return k
