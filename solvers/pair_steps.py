"""Second-order pair steps on a dense block of the hull problem.

The block ``H`` is ``y_i y_j (k(x_i, x_j) + bias)`` without the ridge; the ridge ``1 / C_i`` is a vector.
The problem is ``min ||c||² = aᵀ(H + diag(ridge))a`` over ``a >= 0, sum(a) = 1``; ``g = (H + diag(ridge))a``.

Every loop is written so that LLVM vectorises it. A float minimum with its index does not vectorise under IEEE
rules; the minimum of integers does. So a float64 is mapped to an integer that sorts alike, its lowest bits
are overwritten by the index, and one integer minimum yields value and index together. Twenty bits hold the
index of up to 2^20 samples, so that the choice is made at a relative resolution of 2^-32; beyond, the index
takes as many bits as it needs. The step and the stopping rule use the exact values.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LEAST_INDEX_BITS = np.int64((1 << 20) - 1)
LARGEST = np.int64(0x7FFFFFFFFFFFFFFF)
# Keeps a step finite on an indefinite kernel (sigmoid) or a rounded Gram; a positive definite one never sees
# it.
SMALLEST_DISTANCE2 = 1e-12


@intrinsic
def float_bits(typingctx, x):
    """Reinterpret the bits of a float64 as an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def index_bits(n):
    """Bits of a key that hold an index below ``n``; the value has the others, ``~index_bits(n)``."""
    bits = LEAST_INDEX_BITS
    while bits < n - 1:
        bits = 2 * bits + 1
    return bits


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def ordered_key(x, i, value_bits):
    """Integer that sorts like ``x`` and carries ``i`` in the bits that ``value_bits`` leaves."""
    bits = float_bits(x)
    bits ^= (bits >> 63) & LARGEST
    return (bits & value_bits) | i


@njit(nogil=True, cache=True, error_model="numpy")
def argmin(g):
    """Index of the smallest entry of ``g`` (to the resolution of the keys)."""
    bits = index_bits(g.size)
    best = LARGEST
    for i in range(g.size):
        best = min(best, ordered_key(g[i], np.int64(i), ~bits))
    return best & bits


@njit(nogil=True, cache=True, error_model="numpy")
def second_order_partner(g, alpha, h_v, diag, g_v, diag_v):
    """Index u with ``alpha_u > 0``, ``g_u > g_v`` and the largest ``(g_u - g_v)² / D_uv``, or -1."""
    bits = index_bits(g.size)
    best = np.int64(0)
    for i in range(g.size):
        difference = g[i] - g_v
        distance2 = diag[i] + diag_v - 2.0 * h_v[i]
        distance2 = distance2 if distance2 > SMALLEST_DISTANCE2 else SMALLEST_DISTANCE2
        score = difference * difference / distance2
        score = score if difference > 0.0 else 0.0
        score = score if alpha[i] > 0.0 else 0.0
        best = max(best, (float_bits(score) & ~bits) | np.int64(i))
    return best & bits if best > bits else np.int64(-1)


@njit(nogil=True, cache=True, error_model="numpy")
def shift_and_argmin(g, h_v, h_u, beta):
    """``g += beta (h_v - h_u)``; return the index of the new smallest entry."""
    bits = index_bits(g.size)
    best = LARGEST
    for i in range(g.size):
        x = g[i] + beta * (np.float64(h_v[i]) - np.float64(h_u[i]))
        g[i] = x
        best = min(best, ordered_key(x, np.int64(i), ~bits))
    return best & bits


@njit(nogil=True, cache=True, error_model="numpy")
def pair_steps(H, diag, ridge, alpha, g, norm2, eps, max_steps):
    """Take pair steps until ``g_min >= (1 - eps) ||c||²`` or ``max_steps`` are spent.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
    diag : array (m,)
        Diagonal of ``H`` plus ``ridge``.
    ridge : array (m,)
        ``1 / C_i``.
    alpha, g : arrays (m,), float64, changed in place
    norm2 : float
        ``||c||²`` at the start.
    eps : float
    max_steps : int

    Returns
    -------
    norm2 : float
    steps : int
    converged : bool
    """
    v = argmin(g)
    for step in range(max_steps):
        if g[v] >= norm2 * (1.0 - eps):
            return norm2, step, True
        u = second_order_partner(g, alpha, H[v], diag, g[v], diag[v])
        if u < 0:
            return norm2, step, False
        distance2 = max(diag[u] + diag[v] - 2.0 * H[v, u], SMALLEST_DISTANCE2)
        difference = g[u] - g[v]
        beta = alpha[u]
        if difference < beta * distance2:
            beta = difference / distance2
            alpha[u] -= beta
        else:
            alpha[u] = 0.0
        alpha[v] += beta
        norm2 += beta * (beta * distance2 - 2.0 * difference)
        g[u] -= beta * ridge[u]
        g[v] += beta * ridge[v]
        v = shift_and_argmin(g, H[v], H[u], beta)
    return norm2, max_steps, g[v] >= norm2 * (1.0 - eps)
