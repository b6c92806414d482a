"""All machines of `NewtonSVC` for an ascending path of C, from one Gram matrix.

This is what a model selection spends its time on, so it is one numba call: every machine's block is cut out
of the Gram matrix once and solved for every C, each from the solution before it (`solvers.block_path`).
"""

import time

import numpy as np
from numba import njit

from solvers.blas import one_blas_thread
from solvers.block_path import block_path
from solvers.certificate import block_dtype, error_in_block
from solvers.hull import writeable
from solvers.limits import NO_LIMIT, share_of
from solvers.path_blocks import (
    cut_block,
    groups_of,
    is_sorted,
    layer,
    require_block_memory,
    store_block,
)
from solvers.path_result import PathSolution, intercepts


@njit(nogil=True, cache=True, error_model="numpy")
def solve_path(
    K,
    rows,
    class_start,
    groups,
    opposite,
    bias,
    unit_ridge,
    Cs,
    tol,
    value_error,
    left,
    starts,
    blocks,
    weights,
):
    """Solve every machine for every C.

    Parameters
    ----------
    K : array (n, n), float32 or float64, C-contiguous
    rows : int32 array (n,)
        Rows of ``K`` sorted by class.
    class_start : int64 array (n_classes + 1,)
    groups : int64 array (n_machines, classes of a machine)
    opposite, bias : float
    unit_ridge : array (n,)
        ``1 / sample_weight`` in sorted order.
    Cs : array (n_C,)
    tol : float
    value_error : float
        Bound on the error of an entry of a block.
    left : int64 array (n_C,)
        Steps and rounds that the machines may take together for each C: each an equal share of what is left.
    starts : array (n_classes - 1 or 1, n)
        Weights to start from, in the layout of `PathSolution.weights`; zeros for none.
    blocks : array, float32 or float64
        Memory for the largest block.
    weights : array (n_C, n_classes - 1 or 1, n)
        Receives the solutions.

    Returns
    -------
    norm2s, gaps, costs : arrays (n_C, n_machines)
    steps, rounds, methods, statuses, supports : int arrays (n_C, n_machines)
    """
    n_C, n_machines = Cs.size, groups.shape[0]
    norm2s = np.empty((n_machines, n_C))
    gaps = np.empty((n_machines, n_C))
    costs = np.empty((n_machines, n_C))
    steps = np.empty((n_machines, n_C), np.int64)
    rounds = np.empty((n_machines, n_C), np.int64)
    methods = np.empty((n_machines, n_C), np.int64)
    statuses = np.empty((n_machines, n_C), np.int64)
    supports = np.empty((n_machines, n_C), np.int64)
    in_order = is_sorted(rows)
    solutions = np.empty(n_C * class_start[-1])
    for k in range(n_machines):
        group = groups[k]
        m = np.sum(class_start[group + 1] - class_start[group])
        H = blocks[: m * m].reshape((m, m))
        solution = solutions[: n_C * m].reshape((n_C, m))
        cut_block(K, rows, in_order, class_start, group, opposite, bias, H)
        ridge = np.empty(m)
        alpha = np.empty(m)
        a = 0
        for p in group:
            low, high = class_start[p], class_start[p + 1]
            ridge[a : a + high - low] = unit_ridge[low:high]
            alpha[a : a + high - low] = starts[layer(p, group, starts.shape[0]), low:high]
            a += high - low
        block_path(
            H,
            ridge,
            Cs,
            tol,
            value_error,
            share_of(left, n_machines - k),
            np.inf,
            not np.any(alpha > 0.0),
            alpha,
            solution,
            norm2s[k],
            gaps[k],
            steps[k],
            rounds[k],
            costs[k],
            methods[k],
            statuses[k],
        )
        left -= np.minimum(left, steps[k] + rounds[k])
        store_block(solution, class_start, group, weights)
        for j in range(n_C):
            supports[k, j] = np.sum(solution[j] > 0.0)
    return norm2s.T, gaps.T, costs.T, steps.T, rounds.T, methods.T, statuses.T, supports.T


def fit_path(
    K,
    classes,
    rows,
    class_start,
    Cs,
    *,
    at_once,
    bias,
    tol,
    kernel_error=0.0,
    unit_ridge=None,
    max_iter=NO_LIMIT,
    starts=None,
):
    """Train every machine of a training set for every C.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64
        Gram matrix, without bias and ridge.
    classes : ndarray of shape (n_classes,)
    rows : ndarray of shape (n,)
        Row numbers sorted by class. A `K` that is sorted by class already is read twice as fast.
    class_start : ndarray of shape (n_classes + 1,)
    Cs : array-like of shape (n_C,)
        Ascending, so that each solution is a good start for the next.
    at_once : bool
        One machine for all classes, with labels on a simplex, instead of one for every pair.
    bias : {0.0, 1.0}
        Added to the kernel.
    tol : float
        Bound on the certified gap of every machine.
    kernel_error : float
        Bound on the error of an entry of `K`. Blocks of a float32 matrix that has one are float32 as well.
    unit_ridge : ndarray of shape (n,), optional
        ``1 / sample_weight`` of every row of `rows`.
    max_iter : int
        Limit on pair steps and Newton rounds, of all machines together, for each C.
    starts : ndarray, optional
        ``weights[-1]`` of an earlier solution on the same rows.

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    Cs = np.ascontiguousarray(Cs, dtype=np.float64)
    n_classes, n = classes.size, rows.size
    sizes = np.diff(class_start)
    depth = 1 if at_once else n_classes - 1
    groups = groups_of(n_classes, at_once)
    opposite = -1.0 / (n_classes - 1) if at_once else -1.0
    dtype = np.dtype(block_dtype(K, kernel_error))
    require_block_memory(class_start, groups, dtype.itemsize)
    weights = np.zeros((Cs.size, depth, n))
    with one_blas_thread():
        norm2s, gaps, costs, steps, rounds, methods, statuses, supports = solve_path(
            writeable(np.ascontiguousarray(K)),
            rows,
            class_start,
            groups,
            opposite,
            bias,
            np.ones(n) if unit_ridge is None else unit_ridge,
            Cs,
            tol,
            error_in_block(K, kernel_error, opposite, bias, dtype),
            np.full(Cs.size, max_iter),
            np.zeros((depth, n)) if starts is None else starts,
            np.empty(sizes[groups].sum(axis=1).max() ** 2, dtype),
            weights,
        )
    work = 1.0 + costs.sum(axis=1)  # a start that is optimal already costs nothing
    return PathSolution(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        weights=weights,
        intercepts=intercepts(weights, class_start, bias, at_once),
        at_once=at_once,
        norm2s=norm2s,
        gaps=gaps,
        converged=gaps <= tol,
        iterations=steps + rounds,
        outcomes=statuses,
        methods=methods,
        supports=supports,
        n_support=np.count_nonzero(weights.any(axis=1), axis=1),
        evaluations=np.full(Cs.size, (sizes[groups].sum(axis=1) ** 2).sum()),
        seconds=(time.perf_counter() - started) * work / work.sum(),
    )
