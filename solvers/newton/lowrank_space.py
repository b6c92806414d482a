"""The low-rank feature space of one dense block, which grows as C needs it, with the last Newton point."""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from solvers.common.compile import apart, inner, njit
from solvers.gram.block import largest_value
from solvers.gram.cholesky import extend_from_block
from solvers.newton.lowrank import FeatureSpace, newton_rounds_lowrank

# Largest number of Newton rounds at one rank.
LOWRANK_ROUNDS = 60
# Residual that certifies a gap `tol`, as a share of `tol` times ||c||².
TARGET_SHARE = 0.1
# Largest rank as a multiple of √m. Pivots beyond √m are computed only if a certificate is likely.
RANK_LIMIT = 3


class LowRankSpace(NamedTuple):
    """Memory for a `FeatureSpace` of up to r_max dimensions; `rank` of them are in use."""

    Z: np.ndarray  # (r_max, m); this field and the next five are those of `FeatureSpace`
    residual: np.ndarray  # (m,)
    f: np.ndarray  # (m,)
    w: np.ndarray  # (r_max,)
    scatter: np.ndarray  # (r_max²,)
    counted: np.ndarray  # (m,) bool
    pivots: np.ndarray  # (r_max,) indices of the pivots
    rank: np.ndarray  # (1,) number of pivots
    left: np.ndarray  # (2,) largest residual at about √m / 2 pivots, and at the current rank


@inner
def lowrank_cost(rank, s):
    """Return the cost of one low-rank Newton round, in the unit of `solvers.gram.block.step_cost`.

    Parameters
    ----------
    rank : int
        Rank of the feature space.
    s : int
        Number of active rows.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 3e3 + rank * rank * (s / 15.0 + rank / 60.0)


@njit
def promising(half_left, left, target):
    """Return whether a residual may reach a target at three times the rank.

    Parameters
    ----------
    half_left : float
        Largest residual at half of the present rank.
    left : float
        Largest residual at the present rank.
    target : float
        Largest residual that the factor may leave.

    Returns
    -------
    bool
        True if the residual will reach the target, provided that it continues to fall at the same rate.
    """
    return left * (left / half_left) ** 4 <= target


@inner(allocates=True)
def lowrank_space(H, m):
    """Return a space of rank 0 for the first m rows of a block.

    Parameters
    ----------
    H : array (n, n), float32 or float64
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    m : int
        Number of rows.

    Returns
    -------
    LowRankSpace
        Workspace in which a factor is built by adding columns.
    """
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
    """Append about √m pivots, and more only if the residual is likely to reach the target.

    Parameters
    ----------
    space : LowRankSpace
        Memory with the pivots so far; new pivots are appended in place.
    H : array (m, m), float32 or float64
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    target : float
        Largest residual that the factor may leave.

    Returns
    -------
    int
        Number of pivots that were appended.
    """
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


@apart(int64, float64, float64, float64, allocates=True)
def lowrank_point(space, H, inverse_weight, C, min_square_norm, tol, max_rounds, max_cost, alpha, g):
    """Compute the solution in the space, after growing the space for this C.

    Parameters
    ----------
    space : LowRankSpace
        Memory with the pivots so far; new pivots are appended in place.
    H : array (m, m)
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_weight : array (m,)
        Factor of each sample that gives 1/C of the sample when it is divided by C.
    C : float
        Penalty of the errors, positive.
    min_square_norm : float
        Lower bound of ``||c||²``.
    tol : float
        Bound on the gap.
    max_rounds : int
        Largest number of Newton rounds.
    max_cost : float
        Approximate limit of the cost of the rounds.
    alpha, g : arrays (m,)
        Receive the weights of the solution, and its low-rank inner products.

    Returns
    -------
    rounds : int
        Number of Newton rounds.
    square_norm : float
        ``||c||²`` of the low-rank problem.
    gap : float
        Gap for ``H``, apart from rounding.
    cost : float
        Cost of the work, in the unit of `solvers.gram.block.step_cost`.
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
