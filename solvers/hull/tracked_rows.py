"""Kernel rows of tracked samples: computed on demand, cached within the memory allowed, extended lazily."""

import numpy as np

from solvers.common.compile import inlined, inner, njit
from solvers.hull.state import CLOCK, CSR, DENSE, EVALUATIONS, SLOTS, TRACKED, VALUES, WORK
from solvers.kernels.functions import IMQ, RBF, finish_kernel, sparse_square_distance, sum_terms


@inner
def fill_row(hull, i, lo, hi, row):
    """Write k̃(i, p) of the tracked samples lo ≤ p < hi to ``row[lo:hi]``.

    The term δ/C is left out. A caller that knows i to be tracked adds it.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    i : int
        Index of the sample.
    lo, hi : int
        Range of the tracked samples, without `hi`.
    row : array (capacity,)
        Receives the values.
    """
    r, out, is_radial = hull.rows[i], row[lo:hi], hull.kind == RBF or hull.kind == IMQ
    if hull.storage == VALUES:
        for q in range(hi - lo):
            out[q] = hull.X[r, hull.rows[hull.sample[lo + q]]]
    elif hull.storage == CSR:
        sparse_products(hull, r, lo, is_radial, out)
    else:
        for f in range(hull.point.size):
            hull.point[f] = hull.X[r, f]
        sum_terms(hull.features, lo, hull.point, is_radial, out)
    finish_kernel(hull.kind, hull.gamma, hull.coef0, hull.degree, out)
    if hull.scale.size > 0:
        for q in range(hi - lo):
            out[q] *= hull.scale[i] * hull.scale[hull.sample[lo + q]]
    sign_values(class_of(hull.class_start, i), hull.label[lo:hi], hull.bias, hull.opposite, out)
    hull.counts[EVALUATIONS] += hi - lo
    hull.counts[WORK] += (hi - lo) * (2 + hull.point.size // 8)


@inlined
def sign_values(label, labels, bias, opposite, out):
    """Replace kernel values k by (y_i·y_j)(k + bias), which is k̃ without δ/C.

    Parameters
    ----------
    label : int
        Class of sample i.
    labels : int32 array (q,)
        Classes of the samples j.
    bias : float
        Value added to the kernel.
    opposite : float
        Value of y_i·y_j for different classes.
    out : array (q,)
        Kernel values, changed in place.
    """
    for q in range(out.size):
        out[q] = (out[q] + bias) * (1.0 if labels[q] == label else opposite)


@inlined
def sparse_products(hull, r, lo, is_radial, out):
    """Write inner products, or squared distances, between a CSR row and tracked samples.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    r : int
        Index of the row of X.
    lo : int
        Number of the first tracked sample.
    is_radial : bool
        Whether the values are squared distances.
    out : array
        Receives the values; its size is the number of tracked samples.
    """
    indptr, indices, data, point = hull.indptr, hull.indices, hull.data, hull.point
    if is_radial and hull.by_differences:
        a = slice(indptr[r], indptr[r + 1])
        for q in range(out.size):
            s = hull.rows[hull.sample[lo + q]]
            b = slice(indptr[s], indptr[s + 1])
            out[q] = sparse_square_distance(indices[a], data[a], indices[b], data[b])
        return
    square = 0.0
    for k in range(indptr[r], indptr[r + 1]):
        point[indices[k]] += data[k]
        square += data[k] * data[k]
    for q in range(out.size):
        s = hull.rows[hull.sample[lo + q]]
        product = 0.0
        for k in range(indptr[s], indptr[s + 1]):
            product += data[k] * point[indices[k]]
        out[q] = max(0.0, square + hull.square[lo + q] - 2.0 * product) if is_radial else product
    for k in range(indptr[r], indptr[r + 1]):
        point[indices[k]] = 0.0


@njit(allocates=False)
def track(hull, first, last):
    """Start tracking the samples first ≤ i < last, with weight and g zero.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, whose capacity must suffice.
    first, last : int
        Range of the samples, without `last`.
    """
    start = hull.counts[TRACKED]
    n = last - first
    hull.counts[TRACKED] = start + n
    square = hull.scratch[start : start + n]
    square_norms(hull, first, square)
    if hull.storage == CSR:
        for q in range(n):
            hull.square[start + q] = square[q]
    elif hull.storage == DENSE:
        for q in range(n):
            r = hull.rows[first + q]
            for f in range(hull.features.shape[0]):
                hull.features[f, start + q] = hull.X[r, f]
    if hull.kind == RBF or hull.kind == IMQ:
        for q in range(n):
            square[q] = 0.0
    finish_kernel(hull.kind, hull.gamma, hull.coef0, hull.degree, square)
    for q in range(n):
        i, p = first + q, start + q
        hull.sample[p] = i
        hull.position[i] = p
        hull.label[p] = class_of(hull.class_start, i)
        scale = hull.scale[i] if hull.scale.size > 0 else 1.0
        inverse_C = hull.inverse_C[i if hull.inverse_C.size > 1 else 0]
        hull.diagonal[p] = square[q] * scale * scale + hull.bias + inverse_C


@inlined
def square_norms(hull, first, out):
    """Write ‖x_i‖² of successive samples; if X holds kernel values, write k(x_i, x_i).

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    first : int
        Index of the first sample.
    out : array
        Receives the values; its size is the number of samples.
    """
    for q in range(out.size):
        r = hull.rows[first + q]
        total = 0.0
        if hull.storage == CSR:
            for k in range(hull.indptr[r], hull.indptr[r + 1]):
                total += hull.data[k] * hull.data[k]
        elif hull.storage == VALUES:
            total = np.float64(hull.X[r, r])
        else:
            for f in range(hull.X.shape[1]):
                total += np.float64(hull.X[r, f]) ** 2
        out[q] = total


@njit(allocates=False)
def class_of(class_start, i):
    """Return the class of a sample.

    Parameters
    ----------
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class.
    i : int
        Index of the sample.

    Returns
    -------
    int
        Index of the class, from 0.
    """
    t = 0
    while i >= class_start[t + 1]:
        t += 1
    return t


@inlined
def row(hull, p):
    """Return k̃(p, ·) of all tracked samples.

    At least the last two rows that were returned stay valid.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    p : int
        Number of the tracked sample.

    Returns
    -------
    array (capacity,)
        View of the cached row.
    """
    s = hull.slot[p]
    if s < 0 or hull.length[s] < hull.counts[TRACKED]:
        s = load_row(hull, np.int64(p))
    hull.counts[CLOCK] += 1
    hull.used[s] = hull.counts[CLOCK]
    capacity = hull.slot.size
    return hull.cache[s * capacity : (s + 1) * capacity]


@inner
def load_row(hull, p):
    """Compute the missing values of a row of the cache.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    p : int
        Number of the tracked sample.

    Returns
    -------
    int
        Slot of the row.
    """
    capacity, m = hull.slot.size, hull.counts[TRACKED]
    s = hull.slot[p]
    if s < 0:
        s = _free_slot(hull)
        hull.slot[p] = s
        hull.owner[s] = p
        hull.length[s] = 0
    values = hull.cache[s * capacity : (s + 1) * capacity]
    fill_row(hull, np.int64(hull.sample[p]), np.int64(hull.length[s]), m, values)
    if p >= hull.length[s]:
        values[p] = hull.diagonal[p]
    hull.length[s] = m
    return s


@inlined
def _free_slot(hull):
    """Return an unused slot, or free the one that was used least recently.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.

    Returns
    -------
    int
        Index of the slot in the cache of kernel rows.
    """
    s = hull.counts[SLOTS]
    if s < hull.owner.size:
        hull.counts[SLOTS] = s + 1
        return s
    s = 0
    for t in range(hull.used.size):
        if hull.used[t] < hull.used[s]:
            s = t
    hull.slot[hull.owner[s]] = -1
    return s
