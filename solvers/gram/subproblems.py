"""The blocks of the subproblems of a path: gathered from one Gram matrix or several, and solved for every C.

Model selection spends its time here, so that it is one numba call: the block of every subproblem is gathered
from the Gram matrix once and solved for every C, each from the solution before it.
"""

import math
from typing import NamedTuple

import numpy as np

from solvers.common.compile import implement_by_types, inner, njit
from solvers.common.resources import require_memory, share_of
from solvers.multiclass import pairs_of


def solve_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Solve the block of a machine for every C; numba picks the solver by the type of its rules.

    Parameters
    ----------
    rules : NamedTuple
        Of the solver.
    subproblem : int
        Its number among those of all Gram matrices.
    H : array (m, m), float32 or float64, C-contiguous
        ``(y_i·y_j)(k(x_i, x_j) + bias)``; without ``y_i·y_j`` for solvers whose weights have labels. It
        may be the caller's own matrix, and is only read.
    class_start : int64 array (classes of the machine + 1,)
    inverse_weight : array (m,)
        1/C of a sample is this over C.
    bias : {0.0, 1.0}
    Cs : array (n_C,)
    limits : int64 array (n_C,)
        Of the iterations for each C.
    weights : array (n_C, m)
        Receives the weights of margin 1, ``α / ||c||²``.
    outcomes : solvers.gram.outcomes.Outcomes
        Row `subproblem` receives all else, but for supports and evaluations.
    """
    raise NotImplementedError


class Workspace(NamedTuple):
    """Memory for the machines, one after the other; the largest has m samples."""

    block: np.ndarray  # (m²,) float32 or float64
    solution: np.ndarray  # (n_C · m,)
    starts: np.ndarray  # (classes of a machine + 1,) int64
    limits: np.ndarray  # (n_C,) int64
    inverse_weight: np.ndarray  # (m,)


def new_workspace(class_start, groups, n_C, dtype):
    """Return room for machines of some classes, with blocks of a type."""
    n_values = require_block_memory(class_start, groups, np.dtype(dtype).itemsize)
    m = math.isqrt(n_values)
    return Workspace(
        np.empty(n_values, dtype),
        np.empty(n_C * m),
        np.empty(groups.shape[1] + 1, np.int64),
        np.empty(n_C, np.int64),
        np.empty(m),
    )


def gather_and_solve(
    rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
):
    """Cut the block of a machine into ``H`` and solve it; numba picks how by the types of the matrices.

    Where all of ``K`` is the block, it is not copied.

    Parameters
    ----------
    rules, machine, inverse_weight, Cs, limits, weights, outcomes
        As of `solve_path`.
    K, H : arrays
        As of `solvers.gram.subproblems.gather_block`.
    gathered : tuple
        What that takes between the two.
    starts : int64 array (classes of the machine + 1,)
        Where in ``H`` the samples of each class start.
    """
    raise NotImplementedError


@implement_by_types(gather_and_solve)
def _of_types(rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes):
    def always_gather(
        rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
    ):
        rows, in_order, class_start, group, opposite, bias = gathered
        gather_block(K, rows, in_order, class_start, group, opposite, bias, H)
        solve_path(rules, subproblem, H, starts, inverse_weight, bias, Cs, limits, weights, outcomes)

    def gather_if_larger(
        rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
    ):
        rows, in_order, class_start, group, opposite, bias = gathered
        block = H
        if H.size == K.size and in_order and opposite == 1.0 and bias == 0.0:
            block = K
        else:
            gather_block(K, rows, in_order, class_start, group, opposite, bias, H)
        solve_path(rules, subproblem, block, starts, inverse_weight, bias, Cs, limits, weights, outcomes)

    return gather_if_larger if K.dtype == H.dtype else always_gather


@njit(allocates=False)
def solve_subproblems(
    rules,
    Ks,
    rows,
    class_start,
    inverse_weights,
    groups,
    opposite,
    bias,
    Cs,
    left,
    workspace,
    weights,
    outcomes,
):
    """Solve every machine of every Gram matrix for every C.

    Parameters
    ----------
    rules : NamedTuple
        Of the solver.
    Ks : array (n_matrices, n, n), float32 or float64, C-contiguous
    rows : int32 array (n,)
        Rows of a matrix sorted by class.
    class_start : int64 array (n_classes + 1,)
    inverse_weights : array (n_classes,)
        1/C of the samples of a class is this over C.
    groups : int64 array (n_subproblems, classes of a machine)
    opposite, bias : float
        y_i·y_j of different classes, or 1; what is added to the kernel.
    Cs : array (n_C,)
    left : int64 array (n_matrices, n_C)
        Iterations that the machines may take together for each C: each an equal share of what is left.
    workspace : Room
    weights : array (n_matrices, n_C, n_classes - 1 or 1, n)
        Receives the weights of margin 1, in the layout of `PathSolution.weights`.
    outcomes : solvers.gram.outcomes.Outcomes
        Of the machines of all matrices; receives all else.
    """
    n_C, n_subproblems, in_order = Cs.size, groups.shape[0], is_sorted(rows)
    starts, limits = workspace.starts, workspace.limits
    for subproblem in range(Ks.shape[0] * n_subproblems):
        matrix, k = subproblem // n_subproblems, subproblem % n_subproblems
        K, group, m = Ks[matrix], groups[k], np.int64(0)
        for t in range(group.size):
            starts[t] = m
            for _ in range(class_start[group[t]], class_start[group[t] + 1]):
                workspace.inverse_weight[m] = inverse_weights[group[t]]
                m += 1
        starts[group.size] = m
        H = workspace.block[: m * m].reshape((m, m))
        solution = workspace.solution[: n_C * m].reshape((n_C, m))
        for j in range(n_C):
            limits[j] = share_of(left[matrix, j], n_subproblems - k)
        gathered, inverse_weight = (
            (rows, in_order, class_start, group, opposite, bias),
            workspace.inverse_weight[:m],
        )
        gather_and_solve(
            rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, solution, outcomes
        )
        store_block(solution, class_start, group, weights[matrix])
        for j in range(n_C):
            left[matrix, j] -= min(left[matrix, j], outcomes.iterations[subproblem, j])
            outcomes.evaluations[subproblem, j] = m * m
            n_support = 0
            for i in range(m):
                n_support += solution[j, i] > 0.0
            outcomes.supports[subproblem, j] = n_support


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


def errors_in_blocks(Ks, kernel_errors, opposite, bias, dtype):
    """Bound the errors of the values (y_i·y_j)(k + bias) of blocks that are stored in `dtype`, by matrix."""
    kernel_errors = np.asarray(kernel_errors, dtype=np.float64)
    if dtype == np.float64:
        return kernel_errors
    largest = (np.abs(np.diagonal(Ks, axis1=1, axis2=2)).max(axis=1) + bias).astype(np.float32)
    half_a_unit = 0.5 * np.spacing(np.nextafter(largest, np.float32(0.0))).astype(np.float64)
    roundings = 1.0 if abs(opposite) == 1.0 else 4.0  # of the sum; of the products and their factor
    return kernel_errors + roundings * half_a_unit


def block_dtype(K, kernel_error):
    """Type of a block of `K`: float64, unless K is float32 and no closer to the kernel than that."""
    return np.float32 if K.dtype == np.float32 and kernel_error > 0.0 else np.float64


def writeable(array):
    """View a read-only array (a memory map, say) as writeable.

    Numba would compile everything once more for it. Nothing in this package writes to it.
    """
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, array))


class _Memory:
    """Owner of borrowed memory, as NumPy's array interface wants it."""

    def __init__(self, interface, owner):
        self.__array_interface__ = interface
        self.owner = owner
