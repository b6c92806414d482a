"""Blocks of one Gram matrix: what a machine's samples are among those of all classes."""

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.memory import require_memory
from solvers.multiclass import pairs_of


def groups_of(n_classes, at_once):
    """Return the classes of every machine: an int64 array of shape (n_subproblems, classes of a machine)."""
    return np.array([range(n_classes)] if at_once else pairs_of(n_classes), dtype=np.int64)


def class_sizes(class_start):
    """Return the numbers of samples of the classes; `np.diff` takes ten times as long."""
    return class_start[1:] - class_start[:-1]


def require_block_memory(class_start, groups, itemsize):
    """Return the values of the largest machine's block; refuse one that would not fit into memory."""
    largest = int(class_sizes(class_start)[groups].sum(axis=1).max())
    require_memory(
        float(itemsize) * largest**2,
        f"the block of a machine of {largest:,} samples, cut from a Gram matrix,",
        "use features in place of a precomputed kernel, or fewer samples",
    )
    return largest**2


@njit(allocates=False)
def is_sorted(rows):
    """Whether ``rows`` counts up from 0."""
    i = 0
    while i < rows.size and rows[i] == i:
        i += 1
    return i == rows.size


@njit(allocates=False)
def gather_block(K, rows, in_order, class_start, group, opposite, bias, H):
    """Fill ``H = (y_i·y_j)(K + bias)`` for the samples of the classes in ``group``.

    ``H`` is float32 or float64, whatever ``K`` is. ``y_i·y_j`` is 1 within a class and ``opposite`` between
    classes. With ``in_order`` the rows of K are sorted by class already and its segments are read in one go.
    """
    a = 0
    for p in group:
        for i in range(class_start[p], class_start[p + 1]):
            source = K[rows[i]]
            target = H[a]
            b = 0
            for q in group:
                low, high = class_start[q], class_start[q + 1]
                product = H.dtype.type(1.0 if p == q else opposite)
                shift = H.dtype.type(bias) * product
                if in_order:
                    segment = source[low:high]
                    piece = target[b : b + high - low]
                    for j in range(high - low):
                        piece[j] = product * segment[j] + shift
                else:
                    for j in range(low, high):
                        target[b + j - low] = product * source[rows[j]] + shift
                b += high - low
            a += 1


@njit(allocates=False)
def store_block(solution, class_start, group, weights):
    """Put the weights of a machine's samples, array (n_C, m), where `PathSolution.weights` has them."""
    a = 0
    for p in group:
        low, high = class_start[p], class_start[p + 1]
        row = layer(p, group, weights.shape[1])
        for j in range(weights.shape[0]):
            for i in range(low, high):
                weights[j, row, i] = solution[j, a + i - low]
        a += high - low


@inner
def layer(p, group, depth):
    """Row of `PathSolution.weights` in which class ``p`` keeps its weights for the machine of ``group``."""
    if depth == 1:
        return 0
    other = group[1] if p == group[0] else group[0]
    return other if other < p else other - 1
