"""Choice of the samples of a step on a block by the rules imdm and gmdm, from float32 copies of its data.

The loops of `solvers.common.pair_selection` choose by float64 values, eight in an AVX-512 register. Here
sixteen float32 values fit (`solvers.common.float32_keys`). The copies hold g − ‖c‖² in units of the largest
diagonal value. Near the solution, this difference is small for the support vectors, so float32 resolves it.
A choice is approximate, to about one part in a thousand. Steps and stopping rules use the exact
values, and a search that finds no partner is repeated on them.
"""

import numpy as np

from solvers.common.compile import inlined, inner
from solvers.common.float32_keys import NEVER, index_of, key_of
from solvers.common.pair_selection import GMDM_BY_FOURTH_ROOT, GMDM_BY_ROOT, IMDM
from solvers.common.reductions import larger_of, smaller_of

MIN_SHARE = np.float32(1e-7)
"""Smallest squared distance in the comparison of partners, as a share of the largest diagonal value."""


@inner
def copy_of_point(g, alpha, diagonal, square_norm, unit, copies):
    """Write the float32 copies of a hull point.

    Parameters
    ----------
    g, alpha, diagonal : arrays (m,)
        Inner products with the point c, weights, and diagonal values of k̃.
    square_norm : float
        Squared norm ‖c‖² of the current point c.
    unit : float
        Inverse of the largest diagonal value.
    copies : float32 array (4, m)
        Receives ``(g - ‖c‖²) unit``, `NEVER` or 0, the weights, and the diagonal in the same unit.
    """
    level, absent, weight, near_diagonal = copies[0], copies[1], copies[2], copies[3]
    for t in range(g.size):
        level[t] = (g[t] - square_norm) * unit
        absent[t] = np.float32(0.0) if alpha[t] > 0.0 else NEVER
        weight[t] = alpha[t]
        near_diagonal[t] = diagonal[t] * unit


@inlined
def gain_by(rule, exponent, ahead, square_distance, weight):
    """Return the gain of a step from u to v by a rule of `solvers.common.pair_selection.gain_of`.

    Parameters
    ----------
    rule : int
        IMDM, or a rule of gmdm.
    exponent : float32
        Half the exponent k of gmdm, between 0 and 1/2.
    ahead, square_distance, weight : float32
        ``g_u - g_v``, the squared distance of the samples, and the weight of u.

    Returns
    -------
    float32
        Decrease of ‖c‖² for IMDM; for gmdm, a number that orders the partners in the same way.
    """
    if rule == IMDM:
        beta = smaller_of(ahead / square_distance, weight)
        return beta * (ahead + ahead - beta * square_distance)
    if rule == GMDM_BY_ROOT:
        return ahead / np.sqrt(square_distance)
    if rule == GMDM_BY_FOURTH_ROOT:
        return ahead / np.sqrt(np.sqrt(square_distance))
    return ahead / square_distance**exponent


@inlined
def best_near_partner(rule, exponent, copies, row, unit, v, bits):
    """Return the index u of about the largest gain, or −1.

    Parameters
    ----------
    rule : int
        Rule as in `gain_by`, a constant of the caller.
    exponent : float
        Exponent k of gmdm, between 0 and 1.
    copies : float32 array (4, m)
        Copies of `copy_of_point`.
    row : array (m,)
        Kernel values between v and all samples.
    unit : float
        Inverse of the largest diagonal value.
    v : int
        Index of the sample that receives weight.
    bits : int64
        Bits of a key that contain the index.

    Returns
    -------
    int64
        Index of the partner; −1 if no gain is positive in float32.
    """
    level, absent, weight, diagonal = copies[0], copies[1], copies[2], copies[3]
    nothing, half, scale = np.float32(0.0), np.float32(0.5 * exponent), np.float32(2.0 * unit)
    level_v, diagonal_v = level[v], diagonal[v]
    best = nothing
    for t in range(level.size):
        ahead = larger_of(level[t] - absent[t] - level_v, nothing)
        square_distance = larger_of(diagonal_v + diagonal[t] - scale * np.float32(row[t]), MIN_SHARE)
        best = larger_of(best, key_of(gain_by(rule, half, ahead, square_distance, weight[t]), t, bits))
    u = index_of(best, bits)
    return u if best > key_of(nothing, bits, bits) and u < level.size else np.int64(-1)


@inner
def near_partner(rule, exponent, copies, row, unit, v, bits):
    """Return the index u of about the largest gain, or −1.

    Parameters
    ----------
    rule : {IMDM, GMDM}
        Rule for the partner.
    exponent, copies, row, unit, v, bits
        As in `best_near_partner`.

    Returns
    -------
    int64
        Index of the partner; −1 if no gain is positive in float32.
    """
    if rule == IMDM:
        return best_near_partner(IMDM, exponent, copies, row, unit, v, bits)
    if exponent == 1.0:  # LLVM vectorises a root, but not a power
        return best_near_partner(GMDM_BY_ROOT, exponent, copies, row, unit, v, bits)
    if exponent == 0.5:
        return best_near_partner(GMDM_BY_FOURTH_ROOT, exponent, copies, row, unit, v, bits)
    return best_near_partner(rule, exponent, copies, row, unit, v, bits)
