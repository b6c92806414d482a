"""Second-order pair steps on a dense block of the hull problem.

The block ``H`` is ``(y_i·y_j)(k(x_i, x_j) + bias)``; ``inverse_C = 1 / C_i`` is a vector. The problem is
``min ||c||² = αᵀ(H + diag(inverse_C))α`` over ``α >= 0, sum(α) = 1``; ``g = (H + diag(inverse_C))α``.
This is the case of `smo.block_steps` without upper bounds. As there, samples are chosen by float32 copies in
units of the violation at the start. Steps and the stopping rule use the exact values.
"""

import numpy as np

from solvers.common.compile import inner
from solvers.common.float32_keys import NEVER, bits_for, index_of, move
from solvers.common.pair_selection import SMALLEST_SQUARE_DISTANCE, argmin, second_order_partner
from solvers.smo.block_steps import partner

# Number of float32 vectors of memory that the steps need.
N_SHORT_VECTORS = 4


@inner
def pair_steps(H, diagonal, inverse_C, alpha, g, square_norm, epsilon, max_steps, short_vectors):
    """Take pair steps until ``g_min >= (1 - epsilon) ||c||²`` or until ``max_steps`` steps are taken.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    diagonal : array (m,)
        Diagonal of ``H`` plus ``inverse_C``.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha, g : arrays (m,), float64, changed in place
        Weights of the hull point, and inner products with it.
    square_norm : float
        ``||c||²`` at the start.
    epsilon : float
        Target violation, as a share of ``||c||²``.
    max_steps : int
        Number of steps after which the loop stops.
    short_vectors : float32 array (N_SHORT_VECTORS, m)
        Scratch memory, overwritten.

    Returns
    -------
    square_norm : float
        ``||c||²`` at the end.
    steps : int
        Number of steps that were taken.
    converged : bool
        Whether the target violation is reached.
    """
    v = argmin(g)
    if g[v] >= square_norm * (1.0 - epsilon):
        return square_norm, 0, True
    m, bits = g.size, bits_for(g.size)
    level, fixed = short_vectors[0], short_vectors[1]
    blocked, near_diagonal = short_vectors[2], short_vectors[3]
    base, unit = square_norm, 1.0 / (square_norm - g[v])
    largest = np.float32(0.0)
    for t in range(m):
        level[t] = (g[t] - base) * unit
        fixed[t] = 0.0 if alpha[t] > 0.0 else NEVER
        blocked[t] = 0.0  # there is no upper bound
        near_diagonal[t] = diagonal[t]
        largest = max(largest, near_diagonal[t])
    for step in range(max_steps):
        u = partner(H[v], level, fixed, near_diagonal, v, largest, bits)
        if u < 0 or u >= m or not g[u] > g[v] or g[v] >= square_norm * (1.0 - epsilon):
            v = argmin(g)
            if g[v] >= square_norm * (1.0 - epsilon):
                return square_norm, step, True
            u = second_order_partner(g, alpha, H[v], diagonal, v)
            if u < 0:
                return square_norm, step, False
        square_distance = max(diagonal[u] + diagonal[v] - 2.0 * H[v, u], SMALLEST_SQUARE_DISTANCE)
        difference = g[u] - g[v]
        beta = alpha[u]
        if difference < beta * square_distance:
            beta = difference / square_distance
            alpha[u] -= beta
        else:
            alpha[u] = 0.0
            fixed[u] = NEVER
        alpha[v] += beta
        fixed[v] = 0.0
        square_norm += beta * (beta * square_distance - 2.0 * difference)
        g[u] -= beta * inverse_C[u]
        g[v] += beta * inverse_C[v]
        v = index_of(move(g, H[v], H[u], beta, level, blocked, base, unit, bits), bits)
        if v >= m:
            v = argmin(g)
    return square_norm, max_steps, g[argmin(g)] >= square_norm * (1.0 - epsilon)
