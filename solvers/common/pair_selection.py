"""Which sample a step takes: the smallest of many values, or the best partner, in loops that LLVM vectorises.

A float minimum with its index does not vectorise under IEEE rules; the minimum of integers does. So a float64
is mapped to an integer that sorts alike, its lowest bits are overwritten by the index, and one integer
minimum yields value and index together. Twenty bits hold the index of up to 2^20 samples, so that the choice
is made at a relative resolution of 2^-32; beyond, the index takes as many bits as it needs. Steps and
stopping rules use the exact values.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from solvers.common.compile import inlined, njit

MIN_INDEX_BITS = np.int64((1 << 20) - 1)
LARGEST = np.int64(0x7FFFFFFFFFFFFFFF)
TINY = np.finfo(np.float64).tiny
# Keeps a step finite on an indefinite kernel (sigmoid) or a rounded Gram; a positive definite one never sees
# it.
SMALLEST_SQUARE_DISTANCE = 1e-12

# What the partner u of v is chosen by.
MDM, IMDM, GMDM, SECOND_ORDER, GMDM_BY_ROOT, GMDM_BY_FOURTH_ROOT = range(6)
PAIRS = {"mdm": MDM, "imdm": IMDM, "gmdm": GMDM}


@intrinsic
def float_bits(typing_context, x):
    """Reinterpret the bits of a float64 as an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def float_of_bits(typing_context, bits):
    """Reinterpret the bits of an int64 as a float64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@inlined
def ordered_bits(x):
    """Integer that sorts like ``x``: the bits of negative numbers compare the other way round."""
    bits = float_bits(x)
    return bits ^ ((bits >> 63) & LARGEST)


@inlined
def index_bits(n):
    """Bits of a key that hold an index below ``n``; the value has the others, ``~index_bits(n)``."""
    bits = MIN_INDEX_BITS
    while bits < n - 1:
        bits = 2 * bits + 1
    return bits


@inlined
def ordered_key(x, i, value_bits):
    """Integer that sorts like ``x`` and carries ``i`` in the bits that ``value_bits`` leaves."""
    return (ordered_bits(x) & value_bits) | i


@njit(allocates=False)
def argmin(g):
    """Index of the smallest entry of ``g`` (to the resolution of the keys)."""
    bits = index_bits(g.size)
    best = LARGEST
    for i in range(g.size):
        best = min(best, ordered_key(g[i], np.int64(i), ~bits))
    return best & bits


@njit(allocates=False)
def shift_and_argmin_of_support(g, alpha, h_v, h_u, beta):
    """``g += beta (h_v - h_u)``; return the support vector with the smallest g: the next to be tuned."""
    bits = index_bits(g.size)
    lowest = LARGEST
    for i in range(g.size):
        x = g[i] + beta * (np.float64(h_v[i]) - np.float64(h_u[i]))
        g[i] = x
        key = ordered_key(x, np.int64(i), ~bits)
        lowest = min(lowest, key if alpha[i] > 0.0 else LARGEST)
    return min(lowest & bits, np.int64(g.size - 1))  # weights that are NaN leave none to find


@njit(allocates=False)
def shift_and_ends_of_support(g, alpha, h_v, h_u, beta):
    """``g += beta (h_v - h_u)``; return the support vectors with the smallest and with the largest g."""
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
    last = np.int64(g.size - 1)  # weights that are NaN leave none to find
    return min(lowest & bits, last), min(highest & bits, last)


@njit(allocates=False)
def lowest_and_highest(F, can_grow, can_shrink):
    """Index of the smallest F of the weights that can grow, and of the largest of those that can shrink.

    An index is -1 where no weight can.
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
    """Return what a step from u to v is worth by a rule, for ``ahead = g_u - g_v >= 0`` and u's weight.

    mdm: the step's slope (Strack 2013, 4.4); imdm: the decrease of ‖c‖² that it can reach with its weight at
    hand (5.33, with the clipping of 4.9); gmdm: (g_u − g_v) / D_uv^(k/2) (5.35); second order: the decrease
    that it would reach with any weight (Fan, Chen & Lin 2005).
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
    """`best_partner` for a rule that is a constant of the caller: a loop without a branch."""
    g_v, diagonal_v = g[v], diagonal[v]
    bits = index_bits(g.size)
    best = np.int64(0)
    for i in range(g.size):
        square_distance = max(diagonal_v + diagonal[i] - 2.0 * row[i], smallest)
        own = np.float64(weight[i])
        gain = gain_of(rule, exponent, max(g[i] - g_v, 0.0), square_distance, own)
        gain = gain if own > 0.0 else 0.0
        best = max(best, (float_bits(gain) & ~bits) | np.int64(i))
    return best & bits if best > bits else np.int64(-1)


@njit(allocates=False)
def best_partner(rule, exponent, g, weight, row, diagonal, v):
    """Index u with ``weight_u > 0``, ``g_u > g_v`` and the largest gain by a rule of `PAIRS`, or -1.

    Parameters
    ----------
    rule : int
    exponent : float
        Of gmdm.
    g, weight, diagonal : arrays (m,)
    row : array (m,)
        Kernel between v and all.
    v : int
    """
    if rule == IMDM:
        return best_partner_by(IMDM, exponent, TINY, g, weight, row, diagonal, v)
    if rule == MDM:
        return best_partner_by(MDM, exponent, TINY, g, weight, row, diagonal, v)
    if exponent == 1.0:  # a root vectorises, a power does not
        return best_partner_by(GMDM_BY_ROOT, exponent, TINY, g, weight, row, diagonal, v)
    if exponent == 0.5:
        return best_partner_by(GMDM_BY_FOURTH_ROOT, exponent, TINY, g, weight, row, diagonal, v)
    return best_partner_by(GMDM, exponent, TINY, g, weight, row, diagonal, v)


@njit(allocates=False)
def second_order_partner(g, weight, row, diagonal, v):
    """Index u with ``weight_u > 0``, ``g_u > g_v`` and the largest ``(g_u - g_v)² / D_uv``, or -1."""
    return best_partner_by(SECOND_ORDER, 0.0, SMALLEST_SQUARE_DISTANCE, g, weight, row, diagonal, v)


@inlined
def choose_partner(rule, exponent, v, row_v, g, alpha, diagonal, support, n_support, scratch):
    """Return the support vector u with g_u > g_v and the largest gain by a rule, or −1 if there is none.

    Three loops, none of which has a branch: work out the gains, reduce them, find whose it was.

    Parameters
    ----------
    row_v : ndarray
        k̃(v, ·) for the tracked samples, as are `g`, `alpha` and `diagonal` = k̃(i, i).
    support : ndarray of uint32
        Tracked samples with positive weight, the first `n_support` of it.
    scratch : ndarray
        Memory for at least `n_support` numbers.
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
    """Return the support vector with the smallest g: the violator of a tuning step."""
    best = LARGEST
    for k in range(n_support):
        scratch[k] = g[support[k]]
        best = min(best, ordered_bits(scratch[k]))
    return np.int64(support[_first(scratch, n_support, ordered_bits(float_of_bits(best)))])


@inlined
def _first(values, n, bits):
    """Return the first place of a value with these bits among the first n; 0 where NaN has left none."""
    k = 0
    while n > 0 and float_bits(values[k]) != bits:
        k += 1
    return k
