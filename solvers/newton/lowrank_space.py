"""The low-rank feature space of one dense block: grown as C asks for it, with the last Newton point in it."""

from typing import NamedTuple

import numpy as np

from solvers.common.compile import inner, njit
from solvers.gram.block import largest_value
from solvers.gram.cholesky import extend_from_block
from solvers.newton.lowrank import FeatureSpace, newton_rounds_lowrank

LOWRANK_ROUNDS = 60
# The residual that certifies a gap `tol` is about this share of it times ||c||².
TARGET_SHARE = 0.1
# Up to √m pivots are always worth their price; up to this many times √m if they promise a certificate.
RANK_LIMIT = 3


class LowRankSpace(NamedTuple):
    """Memory for a `FeatureSpace` of up to r_max dimensions, of which `rank` are in use."""

    Z: np.ndarray  # (r_max, m)
    residual: np.ndarray
    f: np.ndarray
    w: np.ndarray  # (r_max,)
    scatter: np.ndarray  # (r_max²,)
    counted: np.ndarray
    pivots: np.ndarray  # (r_max,)
    rank: np.ndarray  # (1,)
    left: np.ndarray  # (2,) largest residual at about √m / 2 pivots, and now


@inner
def lowrank_cost(rank, s):
    """Cost of one low-rank Newton round, in the unit of `solvers.gram.block.step_cost`."""
    return 3e3 + rank * rank * (s / 15.0 + rank / 60.0)


@njit
def promising(half_left, left, target):
    """Whether a residual that fell from ``half_left`` to ``left`` in r/2 columns may reach a target in 3r."""
    return left * (left / half_left) ** 4 <= target


@inner(allocates=True)
def lowrank_space(H, m):
    """Space of rank 0 for the first m rows of a block."""
    r_max = RANK_LIMIT * np.int64(np.sqrt(m))
    residual, left = np.empty(m), np.empty(2)
    for i in range(m):
        residual[i] = H[i, i]
    left[0] = left[1] = largest_value(residual)
    return LowRankSpace(
        np.empty((r_max, m)),
        residual,
        np.zeros(m),
        np.zeros(r_max),
        np.empty(r_max * r_max),
        np.zeros(m, np.bool_),
        np.empty(r_max, np.int64),
        np.zeros(1, np.int64),
        left,
    )


@inner(allocates=True)
def grow(space, H, target):
    """Append pivots: about √m, and more only if they promise to bring the residual down to ``target``."""
    Z, pivots, residual, left = space.Z, space.pivots, space.residual, space.left
    usual = np.int64(np.sqrt(residual.size))
    before = space.rank[0]
    rank = before
    if rank == 0:
        rank, left[0] = extend_from_block(H, Z, rank, pivots, residual, target, usual // 2)
        rank, left[1] = extend_from_block(H, Z, rank, pivots, residual, target, usual)
    if left[1] > target and promising(left[0], left[1], target):
        rank, left[1] = extend_from_block(H, Z, rank, pivots, residual, target, Z.shape[0])
    if rank > before:
        space.scatter[: rank * rank] = 0.0
        space.counted[:] = False
        space.rank[0] = rank
    return rank - before


@inner(allocates=True)
def lowrank_point(space, H, inverse_weight, C, min_square_norm, tol, max_rounds, max_cost, alpha, g):
    """Fill ``alpha`` and its low-rank ``g`` with the solution in the space, grown for this C.

    Parameters
    ----------
    space : LowRankSpace
    H : array (m, m)
    inverse_weight : array (m,)
    C : float
    least_square_norm : float
        Lower bound of ``||c||²``.
    tol : float
    max_rounds : int
    max_cost : float
        Of the rounds.
    alpha, g : arrays (m,)

    Returns
    -------
    rounds : int
    square_norm, gap : float
        The gap holds for ``H``, but for rounding.
    cost : float
    """
    m = alpha.size
    appended = grow(space, H, TARGET_SHARE * tol * min_square_norm)
    rank = space.rank[0]
    allowed = min(LOWRANK_ROUNDS, max_rounds)
    if allowed * lowrank_cost(rank, m) > max_cost:
        allowed = np.int64(max(0.0, max_cost) / lowrank_cost(rank, m))
    scatter = space.scatter[: rank * rank].reshape((rank, rank))
    used = FeatureSpace(space.Z[:rank], space.residual, space.f, space.w[:rank], scatter, space.counted)
    rounds, square_norm, gap, _ = newton_rounds_lowrank(
        used, inverse_weight, C, alpha, g, tol, 0.0, 0.0, allowed
    )
    cost = 0.2 * m * appended * (2 * rank - appended) + rounds * lowrank_cost(rank, m)
    return rounds, square_norm, gap, cost
