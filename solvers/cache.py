"""Kernel rows of tracked samples: computed when first asked for, kept while there is room, extended lazily."""

import numpy as np
from numba import njit

from solvers.hull import CLOCK, CSR, EVALUATIONS, SLOTS, TRACKED, VALUES, WORK
from solvers.kernels import IMQ, RBF, add_products, add_square_distances, finish_kernel


@njit(nogil=True, cache=True)
def fill_row(hull, i, lo, hi, out):
    """Write k̃(i, p) for the tracked samples lo ≤ p < hi to out[lo:hi].

    The term δ/C is left out: a caller that knows i to be tracked adds it.
    """
    r = hull.rows[i]
    if hull.storage == VALUES:
        for p in range(lo, hi):
            out[p] = hull.X[r, hull.rows[hull.sample[p]]]
    elif hull.storage == CSR:
        _fill_sparse(hull, r, lo, hi, out)
    else:
        for f in range(hull.point.size):
            hull.point[f] = hull.X[r, f]
        if hull.kind == RBF or hull.kind == IMQ:
            add_square_distances(hull.features, hull.point, lo, hi, out)
        else:
            add_products(hull.features, hull.point, lo, hi, out)
    finish_kernel(hull.kind, hull.gamma, hull.coef0, hull.degree, lo, hi, out)
    if hull.scale.size > 0:
        for p in range(lo, hi):
            out[p] *= hull.scale[i] * hull.scale[hull.sample[p]]
    label, bias, opposite = class_of(hull.class_start, i), hull.bias, hull.opposite
    for p in range(lo, hi):
        out[p] = (out[p] + bias) * (1.0 if hull.label[p] == label else opposite)
    hull.counts[EVALUATIONS] += hi - lo
    hull.counts[WORK] += (hi - lo) * (2 + hull.point.size // 8)


@njit(nogil=True, cache=True)
def _fill_sparse(hull, r, lo, hi, out):
    """Write products or squared distances between row r of the CSR matrix and tracked samples to out[lo:hi]."""
    indptr, indices, data, point = hull.indptr, hull.indices, hull.data, hull.point
    square = 0.0
    for k in range(indptr[r], indptr[r + 1]):
        point[indices[k]] += data[k]
        square += data[k] * data[k]
    is_radial = hull.kind == RBF or hull.kind == IMQ
    for p in range(lo, hi):
        s = hull.rows[hull.sample[p]]
        product = 0.0
        for k in range(indptr[s], indptr[s + 1]):
            product += data[k] * point[indices[k]]
        out[p] = max(0.0, square + hull.square[p] - 2.0 * product) if is_radial else product
    for k in range(indptr[r], indptr[r + 1]):
        point[indices[k]] = 0.0


@njit(nogil=True, cache=True)
def self_kernel(hull, i):
    """k̃(i, i)."""
    r = hull.rows[i]
    square = square_norm(hull, r)
    if hull.storage == VALUES:
        value = np.float64(hull.X[r, r])
    else:
        hull.scratch[0] = 0.0 if hull.kind == RBF or hull.kind == IMQ else square
        finish_kernel(hull.kind, hull.gamma, hull.coef0, hull.degree, 0, 1, hull.scratch)
        value = hull.scratch[0]
    if hull.scale.size > 0:
        value *= hull.scale[i] * hull.scale[i]
    return value + hull.bias + inverse_penalty(hull.inverse_C, i)


@njit(nogil=True, cache=True)
def square_norm(hull, r):
    """‖x‖² of row r of X (0 where X holds kernel values)."""
    total = 0.0
    if hull.storage == CSR:
        for k in range(hull.indptr[r], hull.indptr[r + 1]):
            total += hull.data[k] * hull.data[k]
    elif hull.storage != VALUES:
        for f in range(hull.X.shape[1]):
            total += np.float64(hull.X[r, f]) ** 2
    return total


@njit(nogil=True, cache=True)
def inverse_penalty(inverse_C, i):
    """1 / C_i; one number may stand for all."""
    return inverse_C[i] if inverse_C.size > 1 else inverse_C[0]


@njit(nogil=True, cache=True)
def class_of(class_start, i):
    """Class of sample i."""
    t = 0
    while i >= class_start[t + 1]:
        t += 1
    return t


@njit(nogil=True, cache=True)
def track(hull, i, g):
    """Start tracking sample i, with its g; there must be room. Return its number."""
    p = hull.counts[TRACKED]
    hull.counts[TRACKED] = p + 1
    hull.sample[p] = i
    hull.position[i] = p
    hull.label[p] = class_of(hull.class_start, i)
    hull.diagonal[p] = self_kernel(hull, i)
    hull.alpha[p] = 0.0
    hull.g[p] = g
    hull.slot[p] = -1
    hull.place[p] = -1
    if hull.storage == CSR:
        hull.square[p] = square_norm(hull, hull.rows[i])
    elif hull.storage != VALUES:
        for f in range(hull.features.shape[0]):
            hull.features[f, p] = hull.X[hull.rows[i], f]
    return p


@njit(inline="always")
def row(hull, p):
    """k̃(p, ·) for all tracked samples. At least the last two rows asked for stay valid."""
    s = hull.slot[p]
    if s < 0 or hull.length[s] < hull.counts[TRACKED]:
        s = load_row(hull, p)
    hull.counts[CLOCK] += 1
    hull.used[s] = hull.counts[CLOCK]
    capacity = hull.slot.size
    return hull.cache[s * capacity : (s + 1) * capacity]


@njit(nogil=True, cache=True)
def load_row(hull, p):
    """Bring the row of p up to date in the cache; return its slot."""
    capacity, m = hull.slot.size, hull.counts[TRACKED]
    s = hull.slot[p]
    if s < 0:
        s = _free_slot(hull)
        hull.slot[p] = s
        hull.owner[s] = p
        hull.length[s] = 0
    values = hull.cache[s * capacity : (s + 1) * capacity]
    fill_row(hull, hull.sample[p], hull.length[s], m, values)
    if p >= hull.length[s]:
        values[p] = hull.diagonal[p]
    hull.length[s] = m
    return s


@njit(nogil=True, cache=True)
def _free_slot(hull):
    """Take an unused slot, else the one that was asked for least recently."""
    s = hull.counts[SLOTS]
    if s < hull.owner.size:
        hull.counts[SLOTS] = s + 1
        return s
    s = np.argmin(hull.used)
    hull.slot[hull.owner[s]] = -1
    return s
