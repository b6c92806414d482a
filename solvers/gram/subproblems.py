"""Blocks of the subproblems of a path: gathered from one or several Gram matrices, and solved for every C.

Model selection spends its time here, so all of it is one numba call. The block of every subproblem is
gathered from the Gram matrix once, and solved for every C in turn, each time from the last solution.
"""

import math
from typing import NamedTuple

import numpy as np

from solvers.common.compile import implement_by_types, inner, njit
from solvers.common.resources import require_memory, share_of


def solve_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Solve the block of a subproblem for every C.

    Numba chooses the implementation by the type of `rules`, and this body is never run:

    - `MinimalNormRules`: `minimal_norm_path` in `solvers/hull/block_descent.py`,
    - `ViolatorRules` and `CoreSetRules`: the same function, registered in `solvers/hull/block_ball.py` and
      `solvers/hull/block_core_set.py`,
    - `NewtonRules`: `newton_path` in `solvers/newton/block_path.py`,
    - `SmoRules`: `smo_path` in `solvers/smo/block_path.py`.

    Parameters
    ----------
    rules : NamedTuple
        Rules of the solver; the type selects the implementation.
    subproblem : int
        Index of the subproblem among those of all Gram matrices.
    H : array (m, m), float32 or float64, C-contiguous
        Block ``(y_i·y_j)(k(x_i, x_j) + bias)``; without ``y_i·y_j`` for solvers with signed weights. The
        block is only read, because it may be the caller's matrix.
    class_start : int64 array (labels of the subproblem + 1,)
        Index of the first sample of each label, then m. One against the rest: the rest has one label.
    inverse_weight : array (m,)
        Factor of each sample that gives 1/C of the sample when it is divided by C.
    bias : {0.0, 1.0}
        Value added to the kernel; 0 for a subproblem without bias.
    Cs : array (n_C,)
        Values of C, ascending.
    limits : int64 array (n_C,)
        Largest number of iterations for each C.
    weights : array (n_C, m)
        Receives the weights of margin 1, such as ``α / ||c||²``. The coefficient of a sample is its weight
        times its label; a solver may find weights of either sign.
    outcomes : solvers.gram.outcomes.Outcomes
        Row `subproblem` receives all other results, except supports and evaluations.
    """
    raise NotImplementedError


class Workspace(NamedTuple):
    """Scratch memory that all subproblems use in turn. The largest subproblem has m samples."""

    block: np.ndarray  # (m²,) float32 or float64: kernel values
    solution: np.ndarray  # (n_C · m,): weights
    starts: np.ndarray  # (labels of a subproblem + 1,) int64: index of the first sample of each label
    limits: np.ndarray  # (n_C,) int64: largest numbers of iterations
    inverse_weight: np.ndarray  # (m,): factors that give 1/C of a sample when they are divided by C


def new_workspace(class_start, groups, n_labels, n_C, dtype):
    """Allocate memory for subproblems.

    Parameters
    ----------
    class_start : int64 array (n_classes + 1,)
        Index of the first sample of each class.
    groups : int64 array (n_subproblems, classes of a subproblem)
        Indices of the classes that each subproblem separates.
    n_labels : int
        Number of different labels in a subproblem; see `solvers.multiclass.n_labels_of`.
    n_C : int
        Number of values of C.
    dtype : dtype
        Type of the blocks, float32 or float64.

    Returns
    -------
    Workspace
        Memory for the largest subproblem.
    """
    n_values = require_block_memory(class_start, groups, np.dtype(dtype).itemsize)
    m = math.isqrt(n_values)
    return Workspace(
        np.empty(n_values, dtype),
        np.empty(n_C * m),
        np.empty(n_labels + 1, np.int64),
        np.empty(n_C, np.int64),
        np.empty(m),
    )


def gather_and_solve(
    rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
):
    """Gather the block of a subproblem into ``H`` and solve it.

    Numba chooses the implementation by the types of ``K`` and ``H``, and this body is never run.
    `_of_types` below, in this file, makes the choice: `gather_if_larger` if the types are equal, and
    `always_gather` otherwise. The first does not copy ``K`` if all of it is the block.

    Parameters
    ----------
    rules, subproblem
        As in `solve_path`.
    K : array (n, n), float32 or float64, C-contiguous
        Gram matrix.
    gathered : tuple
        Arguments of `gather_block` between ``K`` and ``H``.
    H : array (m, m), float32 or float64, C-contiguous
        Memory for the block.
    starts : int64 array (labels of the subproblem + 1,)
        Index in ``H`` of the first sample of each label.
    inverse_weight, Cs, limits, weights, outcomes
        As in `solve_path`.
    """
    raise NotImplementedError


@implement_by_types(gather_and_solve)
def _of_types(rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes):
    """Return the implementation of `gather_and_solve` for the types of the arguments.

    Parameters
    ----------
    rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes : numba types
        Types of the arguments of `gather_and_solve`.

    Returns
    -------
    callable
        The implementation.
    """

    def always_gather(
        rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
    ):
        rows, in_order, class_start, group, opposite, bias = gathered
        gather_block(K, rows, in_order, class_start, group, starts.size - 1, opposite, bias, H)
        solve_path(rules, subproblem, H, starts, inverse_weight, bias, Cs, limits, weights, outcomes)

    def gather_if_larger(
        rules, subproblem, K, gathered, H, starts, inverse_weight, Cs, limits, weights, outcomes
    ):
        rows, in_order, class_start, group, opposite, bias = gathered
        block = H
        # With all classes, the group is ascending if the first class comes first.
        if H.size == K.size and in_order and group[0] == 0 and opposite == 1.0 and bias == 0.0:
            block = K
        else:
            gather_block(K, rows, in_order, class_start, group, starts.size - 1, opposite, bias, H)
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
    """Solve every subproblem of every Gram matrix for every C.

    Parameters
    ----------
    rules : NamedTuple
        Rules of the solver; see `solve_path`.
    Ks : array (n_matrices, n, n), float32 or float64, C-contiguous
        Gram matrices of the same samples, one for each kernel, such as each γ.
    rows : int32 array (n,)
        Rows of a matrix, sorted by class.
    class_start : int64 array (n_classes + 1,)
        Index in `rows` of the first sample of each class.
    inverse_weights : array (n,)
        Factor of each sample, in the order of `rows`, that gives 1/C of the sample when it is divided by C.
    groups : int64 array (n_subproblems, classes of a subproblem)
        Indices of the classes that each subproblem separates.
    opposite : float
        Value of y_i·y_j for different labels; 1 for solvers whose blocks have no labels.
    bias : float
        Value added to the kernel.
    Cs : array (n_C,)
        Values of C, ascending.
    left : int64 array (n_matrices, n_C)
        Iterations that all subproblems together may take for each C, reduced in place. Each subproblem gets
        an equal share of the remaining iterations.
    workspace : Workspace
        Memory of `new_workspace`.
    weights : array (n_matrices, n_C, n_layers, n)
        Receives the weights of margin 1, in the layout of `PathSolution.weights`.
    outcomes : solvers.gram.outcomes.Outcomes
        Outcomes of the subproblems of all matrices; receives all other results.
    """
    n_C, n_subproblems, in_order = Cs.size, groups.shape[0], is_sorted(rows)
    starts, limits = workspace.starts, workspace.limits
    for subproblem in range(Ks.shape[0] * n_subproblems):
        matrix, k = subproblem // n_subproblems, subproblem % n_subproblems
        K, group, m = Ks[matrix], groups[k], np.int64(0)
        for t in range(group.size):
            if t < starts.size - 1:
                starts[t] = m
            for i in range(class_start[group[t]], class_start[group[t] + 1]):
                workspace.inverse_weight[m] = inverse_weights[i]
                m += 1
        starts[-1] = m
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
                n_support += solution[j, i] != 0.0
            outcomes.supports[subproblem, j] = n_support


def class_sizes(class_start):
    """Return the numbers of samples of the classes; `np.diff` takes ten times as long.

    Parameters
    ----------
    class_start : int64 ndarray of shape (n_classes + 1,)
        Index of the first sample of each class.

    Returns
    -------
    int64 ndarray of shape (n_classes,)
        Numbers of samples.
    """
    return class_start[1:] - class_start[:-1]


def require_block_memory(class_start, groups, itemsize):
    """Return the number of values of the largest block, or raise if the block does not fit into memory.

    Parameters
    ----------
    class_start : int64 ndarray of shape (n_classes + 1,)
        Index of the first sample of each class.
    groups : int64 ndarray of shape (n_subproblems, classes of a subproblem)
        Indices of the classes that each subproblem separates.
    itemsize : int
        Size of a value in bytes.

    Returns
    -------
    int
        Number of values.

    Raises
    ------
    MemoryError
        If the block is larger than the memory available.
    """
    largest = int(class_sizes(class_start)[groups].sum(axis=1).max())
    require_memory(
        float(itemsize) * largest**2,
        f"the block of a subproblem of {largest:,} samples, gathered from a Gram matrix,",
        "use features in place of a precomputed kernel, or fewer samples",
    )
    return largest**2


@njit(allocates=False)
def is_sorted(rows):
    """Return whether ``rows`` counts up from 0.

    Parameters
    ----------
    rows : int array (n,)
        Indices to check.

    Returns
    -------
    bool
        True if ``rows[i] == i`` for all i.
    """
    i = 0
    while i < rows.size and rows[i] == i:
        i += 1
    return i == rows.size


@njit(allocates=False)
def gather_block(K, rows, in_order, class_start, group, n_labels, opposite, bias, H):
    """Fill ``H = (y_i·y_j)(K + bias)`` for the samples of some classes.

    Parameters
    ----------
    K : array (n, n), float32 or float64
        Gram matrix.
    rows : int array (n,)
        Rows of K, sorted by class.
    in_order : bool
        Whether `rows` counts up from 0. The segments of K are then read without a look-up of rows.
    class_start : int64 array (n_classes + 1,)
        Index in `rows` of the first sample of each class.
    group : int64 array (classes of the subproblem,)
        Indices of the classes that the subproblem separates.
    n_labels : int
        Number of labels. The last label is that of all remaining classes of the group.
    opposite : float
        Value of y_i·y_j for different labels; for equal labels it is 1.
    bias : float
        Value added to the kernel.
    H : array (m, m), float32 or float64
        Receives the block; its type may differ from that of K.
    """
    a, last = 0, n_labels - 1
    for s in range(group.size):
        for i in range(class_start[group[s]], class_start[group[s] + 1]):
            source = K[rows[i]]
            target = H[a]
            b = 0
            for t in range(group.size):
                low, high = class_start[group[t]], class_start[group[t] + 1]
                product = H.dtype.type(1.0 if min(s, last) == min(t, last) else opposite)
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
    """Copy the weights of a subproblem to the layout of `PathSolution.weights`.

    Parameters
    ----------
    solution : array (n_C, m)
        Weights of the samples of the subproblem.
    class_start : int64 array (n_classes + 1,)
        Index of the first sample of each class.
    group : int64 array (classes of the subproblem,)
        Indices of the classes that the subproblem separates.
    weights : array (n_C, n_layers, n)
        Receives the weights.
    """
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
    """Return the row of `PathSolution.weights` for one class of a subproblem.

    Parameters
    ----------
    p : int
        Index of the class, from 0.
    group : int64 array (classes of the subproblem,)
        Indices of the classes that the subproblem separates.
    depth : int
        Number of rows.

    Returns
    -------
    int
        Index of the row: that of the other class for a pair, and of the first class against the rest.
    """
    if depth == 1:
        return 0
    if group.size > 2:
        return group[0]
    other = group[1] if p == group[0] else group[0]
    return other if other < p else other - 1


def errors_in_blocks(Ks, kernel_errors, opposite, bias, dtype):
    """Bound the errors of the values (y_i·y_j)(k + bias) of blocks, for each Gram matrix.

    Parameters
    ----------
    Ks : ndarray of shape (n_matrices, n, n)
        Gram matrices of the same samples, one for each kernel, such as each γ.
    kernel_errors : array-like of shape (n_matrices,)
        Bounds on the errors of their values.
    opposite : float
        Value of y_i·y_j for different labels.
    bias : float
        Value added to the kernel.
    dtype : dtype
        Type of the blocks.

    Returns
    -------
    ndarray of shape (n_matrices,)
        Bounds on the errors of the values of the blocks.
    """
    kernel_errors = np.asarray(kernel_errors, dtype=np.float64)
    if dtype == np.float64:
        return kernel_errors
    largest = (np.abs(np.diagonal(Ks, axis1=1, axis2=2)).max(axis=1) + bias).astype(np.float32)
    half_a_unit = 0.5 * np.spacing(np.nextafter(largest, np.float32(0.0))).astype(np.float64)
    roundings = 1.0 if abs(opposite) == 1.0 else 4.0  # one for the sum, three for the factor and products
    return kernel_errors + roundings * half_a_unit


def block_dtype(K, kernel_error):
    """Return the type of a block of `K`.

    Parameters
    ----------
    K : ndarray
        Gram matrix.
    kernel_error : float
        Bound on the error of its values; 0 if `K` is the exact kernel.

    Returns
    -------
    type
        float32 if K is a float32 matrix with errors, else float64.
    """
    return np.float32 if K.dtype == np.float32 and kernel_error > 0.0 else np.float64


def writeable(array):
    """Return a writeable view of an array, which may be read-only, as a memory map is.

    Numba would compile everything a second time for a read-only array. This package never writes to such a
    view.

    Parameters
    ----------
    array : ndarray
        Array of any shape and type.

    Returns
    -------
    ndarray
        The array, or a view of it.
    """
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, array))


class _Memory:
    """Owner of borrowed memory, in the form that NumPy's array interface needs.

    Parameters
    ----------
    interface : dict
        Array interface of NumPy, which describes address, shape and type of the memory.
    owner : ndarray
        Array whose memory is borrowed.
    """

    def __init__(self, interface, owner):
        self.__array_interface__ = interface
        self.owner = owner
