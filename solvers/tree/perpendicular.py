"""Planes perpendicular to a direction: u_a = e_a − ŵ_a ŵ for every feature a, of length 1.

All products are X − (X ŵ) ŵᵀ, divided by the length of u_a. One pass finds the extremes of each label, and a
second one what each plane cuts.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.compile import njit

SMALLEST_SQUARE = 1e-10
"""Smallest squared length of e_a − ŵ_a ŵ before its division."""
VALUES_AT_A_TIME = 1 << 22
"""Number of values of a sparse matrix that are made dense at a time."""
MAX_SPARSE_FEATURES = 100_000
"""Largest number of features of a sparse matrix for which perpendicular planes are searched."""


class Plane(NamedTuple):
    """Best perpendicular plane of a label."""

    direction: np.ndarray  # (d,): unit normal that points away from the samples that are cut
    cut: float  # weight of the samples that are cut
    gap: float  # distance between the other labels and the cut sample next to them
    feature: int  # index a


def best_perpendicular(X, w, scores, codes, n_labels, weights, rounding):
    """Return for each label the plane perpendicular to a direction that cuts most of its samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    w : ndarray of shape (d,)
        Unit vector ŵ.
    scores : ndarray of shape (n,)
        Products of the samples with ŵ.
    codes : int64 ndarray of shape (n,)
        Labels from 0; at least two of them occur.
    n_labels : int
        Number of labels.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    rounding : float
        Bound on the rounding error of a product with a unit vector.

    Returns
    -------
    list of Plane or None
        Plane of each label; None if no plane cuts a sample of it. Equal cuts are ordered by gap, then by
        feature.
    """
    d = w.size
    width = d if not sparse.issparse(X) else max(1, VALUES_AT_A_TIME // max(1, X.shape[0]))
    columns = X.tocsc() if sparse.issparse(X) and width < d else X
    best: list[tuple | None] = [None] * n_labels
    for first in range(0, d, width):
        part = slice(first, min(first + width, d))
        block = columns[:, part]
        block = block.toarray() if sparse.issparse(block) else block
        shape = (2, n_labels, block.shape[1])
        cuts, gaps = np.zeros(shape), np.zeros(shape)
        length = np.sqrt(np.maximum(1.0 - w[part] ** 2, 0.0))
        usable = length**2 > SMALLEST_SQUARE
        inverse = np.where(usable, 1.0 / np.where(usable, length, 1.0), 0.0)
        _cut_by_all(block, w[part], inverse, scores, codes, weights, 8.0 * rounding, cuts, gaps)
        for t in range(n_labels):
            for side in range(2):
                a = int(np.lexsort((-gaps[side, t], -cuts[side, t]))[0])
                found = (cuts[side, t, a], gaps[side, t, a], first + a, side)
                before = best[t]
                if found[0] > 0.0 and (before is None or found[:2] > before[:2]):
                    best[t] = found
    return [_plane_of(w, found) for found in best]


def _plane_of(w, found):
    """Return a plane with its normal.

    Parameters
    ----------
    w : ndarray of shape (d,)
        Unit vector ŵ.
    found : tuple or None
        Cut, gap, feature and side: 0 if the samples with the lowest products are cut.

    Returns
    -------
    Plane or None
        Plane.
    """
    if found is None:
        return None
    cut, gap, a, side = found
    u = -w[a] * w
    u[a] += 1.0
    u /= np.linalg.norm(u)
    return Plane(-u if side else u, float(cut), float(gap), int(a))


@njit
def _cut_by_all(block, w, inverse, scores, codes, weights, distance, cuts, gaps):
    """Find what all perpendicular planes cut.

    Parameters
    ----------
    block : array (n, k)
        Features of the samples.
    w : array (k,)
        Components of ŵ.
    inverse : array (k,)
        1/length of e_a − ŵ_a ŵ; 0 to leave the feature out.
    scores : array (n,)
        Products with ŵ.
    codes : int64 array (n,)
        Labels.
    weights : array (n,)
        Weights of the samples.
    distance : float
        Smallest distance of a cut sample from the other labels.
    cuts, gaps : arrays (2, n_labels, k)
        Receive the weight that is cut and the gap: on the side of the low products, then of the high ones.
    """
    n, k = block.shape
    n_labels = cuts.shape[1]
    low, high = np.full((n_labels, k), np.inf), np.full((n_labels, k), -np.inf)
    for i in range(n):
        row, c = block[i], codes[i]
        for a in range(k):
            value = (row[a] - scores[i] * w[a]) * inverse[a]
            low[c, a] = min(low[c, a], value)
            high[c, a] = max(high[c, a], value)
    below, above = np.full((n_labels, k), np.inf), np.full((n_labels, k), -np.inf)  # extremes of the others
    for c in range(n_labels):
        for other in range(n_labels):
            if other != c:
                for a in range(k):
                    below[c, a] = min(below[c, a], low[other, a])
                    above[c, a] = max(above[c, a], high[other, a])
    nearest_below, nearest_above = np.full((n_labels, k), -np.inf), np.full((n_labels, k), np.inf)
    for i in range(n):
        row, c = block[i], codes[i]
        for a in range(k):
            value = (row[a] - scores[i] * w[a]) * inverse[a]
            if value < below[c, a] - distance:
                cuts[0, c, a] += weights[i]
                nearest_below[c, a] = max(nearest_below[c, a], value)
            if value > above[c, a] + distance:
                cuts[1, c, a] += weights[i]
                nearest_above[c, a] = min(nearest_above[c, a], value)
    for c in range(n_labels):
        for a in range(k):
            if cuts[0, c, a] > 0.0:
                gaps[0, c, a] = below[c, a] - nearest_below[c, a]
            if cuts[1, c, a] > 0.0:
                gaps[1, c, a] = nearest_above[c, a] - above[c, a]
