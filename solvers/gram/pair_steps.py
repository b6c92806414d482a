"""Second-order pair steps on a dense block of the hull problem.

The block ``H`` is ``(y_i·y_j)(k(x_i, x_j) + bias)``; ``inverse_C = 1 / C_i`` is a vector. The problem is
``min ||c||² = αᵀ(H + diag(inverse_C))α`` over ``α >= 0, sum(α) = 1``; ``g = (H + diag(inverse_C))α``. Every
loop is written so that LLVM vectorises it (`solvers.common.pair_selection`).
"""

from solvers.common.compile import inner
from solvers.common.pair_selection import (
    SMALLEST_SQUARE_DISTANCE,
    argmin,
    second_order_partner,
    shift_and_argmin,
)


@inner
def pair_steps(H, diagonal, inverse_C, alpha, g, square_norm, epsilon, max_steps):
    """Take pair steps until ``g_min >= (1 - epsilon) ||c||²`` or ``max_steps`` are spent.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
    diagonal : array (m,)
        Diagonal of ``H`` plus ``inverse_C``.
    inverse_C : array (m,)
        ``1 / C_i``.
    alpha, g : arrays (m,), float64, changed in place
    square_norm : float
        ``||c||²`` at the start.
    epsilon : float
    max_steps : int

    Returns
    -------
    square_norm : float
    steps : int
    converged : bool
    """
    v = argmin(g)
    for step in range(max_steps):
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
        alpha[v] += beta
        square_norm += beta * (beta * square_distance - 2.0 * difference)
        g[u] -= beta * inverse_C[u]
        g[v] += beta * inverse_C[v]
        v = shift_and_argmin(g, H[v], H[u], beta)
    return square_norm, max_steps, g[v] >= square_norm * (1.0 - epsilon)
