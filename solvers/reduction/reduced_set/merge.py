"""New vectors by merging the nearest pair of a class, one pair after the other (Nguyen and Ho 2005).

Vectors x_i and x_j become z = h x_i + (1 − h) x_j. With C = k(x_i, x_j), the best coefficient of z for
subproblem p is a_ip C^((1−h)²) + a_jp C^(h²), and h maximises the weighted sum of its squares. Vectors of
different classes are never merged. At the end the best coefficients replace the merged ones.
"""

from itertools import pairwise

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.resources import require_memory
from solvers.reduction.reduced_set.expansion import refitted, sums_at_vectors, weights_of

N_POINTS = 9
"""Number of intervals in which the largest coefficient is sought before the golden section."""
N_SECTIONS = 25
"""Number of golden sections, which leave 10⁻⁵ of an interval."""


def merge(expansion, n_vectors):
    """Return the reduced set of merged vectors.

    Parameters
    ----------
    expansion : Expansion
        Sums of the Gaussian kernel on N vectors.
    n_vectors : int
        Number of vectors. At least one of each class remains.

    Returns
    -------
    Reduced
        Sums on the merged vectors, class by class.

    Raises
    ------
    MemoryError
        The distances would not fit into memory.
    """
    order = np.argsort(expansion.labels, kind="stable")
    labels = expansion.labels[order]
    sizes = np.unique(labels, return_counts=True)[1]
    largest = int(sizes.max())
    what = f"the distances among {largest:,} support vectors of a class, for method='merge',"
    require_memory(8.0 * float((sizes.astype(np.float64) ** 2).sum()), what, "set method='greedy'")
    sums = sums_at_vectors(expansion, expansion.coefficients)
    scale = np.sqrt(weights_of((expansion.coefficients * sums).sum(axis=0)))
    vectors = np.ascontiguousarray(expansion.vectors[order])
    coefficients = np.ascontiguousarray(expansion.coefficients[order] * scale)
    start = np.concatenate(([0], np.cumsum(sizes)))
    class_of, first = np.repeat(np.arange(sizes.size), sizes), np.repeat(start[:-1], sizes)
    distances = np.concatenate([_square_distances(vectors[a:b]).ravel() for a, b in pairwise(start.tolist())])
    offset = np.concatenate(([0], np.cumsum(sizes.astype(np.int64) ** 2)))[class_of]
    kept = np.ones(expansion.size, dtype=np.bool_)
    places = (first.astype(np.int64), start[class_of + 1].astype(np.int64), offset.astype(np.int64))
    n_left = max(int(n_vectors), sizes.size)
    _merge_pairs(vectors, coefficients, distances, *places, kept, expansion.kernel.gamma, n_left)
    return refitted(expansion, vectors[kept], labels[kept])


def _square_distances(X):
    """Return the squared distances among vectors, infinite between a vector and itself.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Vectors of a class.

    Returns
    -------
    ndarray of shape (n, n)
        Squared distances.
    """
    squares = (X**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * (X @ X.T), 0.0)
    np.fill_diagonal(distances, np.inf)
    return distances


@njit
def _merge_pairs(vectors, coefficients, distances, first, end, offset, kept, gamma, n_left):
    """Merge the nearest pairs until a number of vectors is left.

    Parameters
    ----------
    vectors : float64 array (N, d)
        Vectors, class by class; changed in place.
    coefficients : float64 array (N, P)
        Coefficients, times √ω_p; changed in place.
    distances : float64 array
        Squared distances within each class, one matrix after the other; changed in place.
    first, end, offset : int64 array (N,)
        For each vector: the boundaries of its class, and the start of the matrix of its class.
    kept : bool array (N,)
        Vectors that are left; changed in place.
    gamma : float
        Width of the kernel.
    n_left : int
        Number of vectors that are left, at least the number of classes.
    """
    n = kept.size
    nearest = np.empty(n, np.int64)
    for i in range(n):
        nearest[i] = _nearest(distances, first, end, offset, i)
    for _ in range(n - n_left):
        i, least = -1, np.inf
        for k in range(n):
            if kept[k] and nearest[k] >= 0:
                distance = distances[_index(first, end, offset, k, nearest[k])]
                if distance < least:
                    least, i = distance, k
        if i < 0:
            return
        j = nearest[i]
        _merge_pair(vectors[i], vectors[j], coefficients[i], coefficients[j], np.exp(-gamma * least))
        kept[j] = False
        for k in range(first[i], end[i]):
            distance = np.inf
            if kept[k] and k != i:
                distance = 0.0
                for f in range(vectors.shape[1]):
                    distance += (vectors[i, f] - vectors[k, f]) ** 2
            distances[_index(first, end, offset, i, k)] = distance
            distances[_index(first, end, offset, k, i)] = distance
            distances[_index(first, end, offset, j, k)] = np.inf
            distances[_index(first, end, offset, k, j)] = np.inf
        for k in range(first[i], end[i]):
            if not kept[k]:
                continue
            if k == i or nearest[k] == i or nearest[k] == j:
                nearest[k] = _nearest(distances, first, end, offset, k)
            elif (
                distances[_index(first, end, offset, k, i)]
                < distances[_index(first, end, offset, k, nearest[k])]
            ):
                nearest[k] = i


@inner
def _index(first, end, offset, i, j):
    """Return the index of a distance of two vectors of a class.

    Parameters
    ----------
    first, end, offset : int64 array (N,)
        As in `_merge_pairs`.
    i, j : int
        Vectors.

    Returns
    -------
    int
        Index.
    """
    return offset[i] + (i - first[i]) * (end[i] - first[i]) + (j - first[i])


@inner
def _nearest(distances, first, end, offset, i):
    """Return the nearest vector of the same class.

    Parameters
    ----------
    distances, first, end, offset
        As in `_merge_pairs`.
    i : int
        Vector.

    Returns
    -------
    int
        Nearest vector, the first of equal ones; −1 if there is no other.
    """
    found, least = -1, np.inf
    for j in range(first[i], end[i]):
        distance = distances[_index(first, end, offset, i, j)]
        if distance < least:
            found, least = j, distance
    return found


@inner
def _height(a, b, C, h):
    """Return the sum of the squared coefficients of a merged vector.

    Parameters
    ----------
    a, b : float64 array (P,)
        Coefficients of the two vectors.
    C : float
        Kernel value of the two vectors.
    h : float
        Share of the first one.

    Returns
    -------
    float
        Sum of squares.
    """
    of_first, of_second, total = C ** ((1.0 - h) ** 2), C ** (h * h), 0.0
    for p in range(a.size):
        value = a[p] * of_first + b[p] * of_second
        total += value * value
    return total


@inner
def _best_share(a, b, C):
    """Return the share h with the largest coefficients.

    Parameters
    ----------
    a, b : float64 array (P,)
        Coefficients of the two vectors.
    C : float
        Kernel value of the two vectors.

    Returns
    -------
    float
        Share of the first vector, between 0 and 1.
    """
    best, most = 0, -1.0
    for k in range(N_POINTS + 1):
        height = _height(a, b, C, k / N_POINTS)
        if height > most:
            best, most = k, height
    low, high = max(best - 1, 0) / N_POINTS, min(best + 1, N_POINTS) / N_POINTS
    golden = 0.6180339887498949
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = _height(a, b, C, left), _height(a, b, C, right)
    for _ in range(N_SECTIONS):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _height(a, b, C, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _height(a, b, C, right)
    h = 0.5 * (low + high)
    return h if _height(a, b, C, h) > most else best / N_POINTS


@inner
def _merge_pair(x, z, a, b, C):
    """Replace the first of two vectors by their merged vector.

    Parameters
    ----------
    x, z : float64 array (d,)
        Vectors; the first is changed in place.
    a, b : float64 array (P,)
        Their coefficients; those of the first are changed in place.
    C : float
        Kernel value of the two vectors.
    """
    h = _best_share(a, b, C)
    of_first, of_second = C ** ((1.0 - h) ** 2), C ** (h * h)
    for p in range(a.size):
        a[p] = a[p] * of_first + b[p] * of_second
    for f in range(x.size):
        x[f] = h * x[f] + (1.0 - h) * z[f]
