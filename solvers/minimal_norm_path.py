"""All machines of `MNSVC` for an ascending path of C.

From one Gram matrix this is one numba call: every machine's block is cut out of it once and solved for every
C (`solvers.minimal_norm_block`). Without one, the machines are solved one by one: from a Gram matrix of their
own or, where that would be too large, by a training for each C.
"""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.base import Problem
from solvers.block_path import step_cost
from solvers.certificate import block_dtype, error_in_block
from solvers.hull import writeable
from solvers.kernels import kernel_block
from solvers.limits import NO_LIMIT, share_of
from solvers.minimal_norm_block import Outcomes, Rules, minimal_norm_path, new_outcomes
from solvers.path_blocks import cut_block, groups_of, is_sorted, require_block_memory, store_block
from solvers.path_result import PathSolution
from solvers.seeds import machine_seeds
from solvers.stopping import default_tolerance


@njit(nogil=True, cache=True, error_model="numpy")
def solve_gram(
    K,
    rows,
    class_start,
    groups,
    opposite,
    bias,
    Cs,
    epsilons,
    value_error,
    rules,
    left,
    seeds,
    blocks,
    weights,
    outcomes,
):
    """Solve every machine for every C.

    Parameters
    ----------
    K, rows, class_start, groups, opposite, bias, Cs
        As in `solvers.newton_gram.solve_path`.
    epsilons : array (n_machines, n_C)
    value_error : float
        Bound on the error of an entry of a block.
    rules : solvers.minimal_norm_block.Rules
    left : int64 array (n_C,)
        Steps that the machines may take together for each C: each an equal share of what is left.
    seeds : uint64 array (n_machines,)
    blocks : array, float32 or float64
        Memory for the largest block.
    weights : array (n_C, n_classes - 1 or 1, n)
        Receives the weights of margin 1, in the layout of `PathSolution.weights`.
    outcomes : solvers.minimal_norm_block.Outcomes
        Receives all else.
    """
    n_C, n_members = Cs.size, groups.shape[1]
    in_order = is_sorted(rows)
    solutions = np.empty(n_C * class_start[-1])
    state = np.empty(1, np.uint64)
    starts = np.zeros(n_members + 1, np.int64)
    for k in range(groups.shape[0]):
        group = groups[k]
        starts[1:] = np.cumsum(class_start[group + 1] - class_start[group])
        m = starts[-1]
        H = blocks[: m * m].reshape((m, m))
        solution = solutions[: n_C * m].reshape((n_C, m))
        cut_block(K, rows, in_order, class_start, group, opposite, bias, H)
        state[0] = seeds[k]
        limits = share_of(left, groups.shape[0] - k)
        minimal_norm_path(
            H,
            starts,
            Cs,
            epsilons[k],
            bias,
            value_error,
            rules,
            limits,
            state,
            solution,
            outcomes.norm2s[k],
            outcomes.gaps[k],
            outcomes.steps[k],
            outcomes.statuses[k],
            outcomes.converged[k],
            outcomes.biases[k],
        )
        left -= np.minimum(left, outcomes.steps[k])
        store_block(solution, class_start, group, weights)
        outcomes.evaluations[k] = m * m
        for j in range(n_C):
            outcomes.supports[k, j] = np.sum(solution[j] > 0.0)


class Course(NamedTuple):
    """What the machines of a path have in common."""

    Cs: np.ndarray  # (n_C,), ascending
    at_once: bool  # one machine for all classes, with labels on a simplex, instead of one for every pair
    bias: float  # added to the kernel: 1, or 0
    tol: str | float  # ε of the stopping rule, or "auto"
    rules: Rules
    seed: int
    max_iter: int = NO_LIMIT  # for each C


def path_from_gram(K, classes, rows, class_start, course, kernel_error=0.0):
    """Train every machine of a training set for every C.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64
        Gram matrix, without bias and ridge.
    classes : ndarray of shape (n_classes,)
    rows : ndarray of shape (n,)
        Row numbers sorted by class. A `K` that is sorted by class already is read twice as fast.
    class_start : ndarray of shape (n_classes + 1,)
    course : Course
    kernel_error : float
        Bound on the error of an entry of `K`. Blocks of a float32 matrix that has one are float32 as well.

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    groups, weights, outcomes = _allocate(class_start, course)
    left = np.full(course.Cs.size, course.max_iter)
    seeds = machine_seeds(course.seed, len(groups))
    _solve_gram(K, kernel_error, rows, class_start, groups, course, left, seeds, weights, outcomes)
    return _solution(classes, rows, class_start, groups, course, weights, outcomes, started)


def path_by_machines(X, kernel, classes, rows, class_start, course, memory, solve):
    """Train the machines one by one from the features of their samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
    kernel : solvers.kernels.Kernel
    classes, rows, class_start, course
        As in `path_from_gram`.
    memory : float
        Bytes that the Gram matrix of a machine may take.
    solve : callable
        Trains a larger `Problem` for one C.

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    groups, weights, outcomes = _allocate(class_start, course)
    left = np.full(course.Cs.size, course.max_iter)
    seeds = machine_seeds(course.seed, len(groups))
    for k, group in enumerate(groups):
        members = np.concatenate([rows[class_start[p] : class_start[p + 1]] for p in group])
        starts = np.concatenate(([0], np.cumsum(np.diff(class_start)[group])))
        limits = share_of(left, len(groups) - k)
        outcome = Outcomes(*(values[k : k + 1] for values in outcomes))
        solution = np.zeros((course.Cs.size, 1, members.size))
        if 8.0 * members.size**2 <= memory:
            K = kernel_block(X[members], X[members], kernel)
            everyone = np.arange(group.size)[None, :]
            in_order = np.arange(members.size, dtype=np.int32)
            seed = seeds[k : k + 1]
            _solve_gram(K, kernel.error, in_order, starts, everyone, course, limits, seed, solution, outcome)
        else:
            problem = Problem(
                X=X,
                rows=members,
                class_start=starts,
                C=course.Cs[:1],
                kernel=kernel,
                bias=course.bias,
                scale=np.empty(0),
                seed=int(seeds[k]),
                deadline=np.inf,
            )
            _solve_for_each_C(problem, course.Cs, limits, solve, solution[:, 0], outcome)
        left -= np.minimum(left, outcomes.steps[k])
        store_block(solution[:, 0], class_start, group, weights)
    return _solution(classes, rows, class_start, groups, course, weights, outcomes, started)


def _allocate(class_start, course):
    n_classes = class_start.size - 1
    groups = groups_of(n_classes, course.at_once)
    weights = np.zeros((course.Cs.size, 1 if course.at_once else n_classes - 1, class_start[-1]))
    return groups, weights, new_outcomes(len(groups), course.Cs.size, groups.shape[1])


def _solve_gram(K, kernel_error, rows, class_start, groups, course, left, seeds, weights, outcomes):
    opposite, dtype = -1.0 / (groups.shape[1] - 1), block_dtype(K, kernel_error)
    require_block_memory(class_start, groups, np.dtype(dtype).itemsize)
    first = rows[class_start[groups[:, 0]]]
    k_ii = K[first, first].astype(np.float64)[:, None]
    epsilons = np.full((len(groups), course.Cs.size), 0.0 if course.tol == "auto" else course.tol)
    if course.tol == "auto":
        square_radius = k_ii + course.bias + 1.0 / course.Cs
        epsilons[:] = default_tolerance(course.rules.stopping, square_radius, course.Cs)
    solve_gram(
        writeable(np.ascontiguousarray(K)),
        rows,
        class_start,
        groups,
        opposite,
        course.bias,
        course.Cs,
        epsilons,
        error_in_block(K, kernel_error, opposite, course.bias, dtype),
        course.rules,
        left,
        seeds,
        np.empty(np.diff(class_start)[groups].sum(axis=1).max() ** 2, dtype),
        weights,
        outcomes,
    )


def _solve_for_each_C(problem, Cs, limits, solve, weights, outcome):
    for j in range(Cs.size):
        solved = solve(replace(problem, C=Cs[j : j + 1], max_iter=int(limits[j])))
        problem.start = solved
        weights[j, solved.support] = solved.alpha
        outcome.norm2s[0, j], outcome.gaps[0, j] = solved.objective, solved.gap
        outcome.steps[0, j], outcome.statuses[0, j] = solved.n_iter, solved.status
        outcome.converged[0, j] = solved.converged
        outcome.supports[0, j], outcome.evaluations[0, j] = solved.support.size, solved.n_kernel_evals
        outcome.biases[0, j, : solved.bias.size] = solved.bias


def _solution(classes, rows, class_start, groups, course, weights, outcomes, started):
    sizes = np.diff(class_start)[groups].sum(axis=1)
    work = ((1.0 + outcomes.steps) * step_cost(sizes)[:, None]).sum(axis=0)
    return PathSolution(
        Cs=course.Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        weights=weights,
        intercepts=outcomes.biases[0] if course.at_once else outcomes.biases[:, :, 0].T,
        at_once=course.at_once,
        norm2s=outcomes.norm2s.T,
        gaps=outcomes.gaps.T,
        converged=outcomes.converged.T,
        iterations=outcomes.steps.T,
        outcomes=outcomes.statuses.T,
        supports=outcomes.supports.T,
        n_support=np.count_nonzero(weights.any(axis=1), axis=1),
        evaluations=outcomes.evaluations.sum(axis=0),
        seconds=(time.perf_counter() - started) * work / work.sum(),
    )
