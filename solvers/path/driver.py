"""One path for all estimators: every subproblem of a training set for every C, by any block solver.

From one Gram matrix this is one numba call (`gram.subproblems`). Without one, the subproblems are trained one
by one: each from a Gram matrix of itself, or by whatever other means its solver has.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal, Protocol, Self

import numpy as np

from solvers.common.resources import share_of
from solvers.gram.outcomes import Outcomes, new_outcomes, rows_used
from solvers.gram.subproblems import (
    block_dtype,
    errors_in_blocks,
    groups_of,
    new_workspace,
    solve_subproblems,
    store_block,
    writeable,
)
from solvers.kernels.functions import kernel_block
from solvers.multiclass import subproblem_seeds
from solvers.path.result import PathProblem, PathSolution
from solvers.problem import Problem


class BlockSolver(Protocol):
    """What trains the machines of a path.

    Attributes
    ----------
    seed : int
        Of the random states of the machines.
    memory : float
        Bytes that the Gram matrix of a machine may take.
    solve : callable or None
        Trains a `Problem` that would take more, for one C; only `train` calls it.
    has_methods, has_clipped : bool
        Whether `Outcomes.methods` and `Outcomes.clipped` say anything.
    has_labels : bool
        Whether blocks hold ``y_i·y_j k(x_i, x_j)``; if not, the kernel itself.
    order : {"C", "F"}
        Of the arrays of `Outcomes` where machines are trained one by one: sums over them round by it.
    """

    seed: int
    memory: float = np.inf
    solve: Callable | None = None
    has_methods: bool = False
    has_clipped: bool = False
    has_labels: bool = True
    order: Literal["C", "F"] = "C"

    def rules(self, solvers: Sequence[Self], Ks, problem: PathProblem, groups, seeds, value_errors) -> Any:
        """Return the named tuple for which `solvers.gram.subproblems.solve_path` is implemented.

        Parameters
        ----------
        solvers : sequence of BlockSolver
            One for each Gram matrix. They differ in their seeds and in what was subtracted from the kernel.
        Ks : ndarray of shape (n_matrices, n, n)
        problem : PathProblem
        groups : int64 ndarray of shape (n_subproblems, classes of a machine)
        seeds, value_errors : ndarrays of shape (n_matrices · n_subproblems,)
        """

    def threads(self) -> AbstractContextManager:
        """Return the context in which numba solves the blocks; by default one that changes nothing."""
        return nullcontext()

    def train(self, problem: Problem, path: PathProblem, limits, seed, outcome: Outcomes) -> tuple:
        """Train a machine from features, for every C; fill its one row of `outcome`.

        By default from a Gram matrix of its own or, where that would be too large, by a training for each C.

        Returns
        -------
        weights : ndarray of shape (n_C, m)
            Of margin 1, at least 0.
        model : ndarray of shape (n_C, m)
            Weights that give the same decisions, of any sign.
        """
        if 8.0 * problem.rows.size**2 > self.memory:
            weights = solve_for_each_C(self.solve, problem, path.Cs, limits, outcome)
        else:
            weights = solve_own_gram(self, problem, path, limits, seed, outcome)
        return weights, weights

    def own_gram(self, problem: Problem):
        """Return the Gram matrix of a machine, C-contiguous, and a bound on the error of its entries."""
        # Two copies: of one, BLAS would compute a symmetric product, which rounds otherwise.
        K = kernel_block(problem.X[problem.rows], problem.X[problem.rows], problem.kernel)
        return K, problem.kernel.error

    def intercepts(self, weights, outcomes: Outcomes, problem: PathProblem):
        """Return `PathSolution.intercepts`."""


def path_from_gram(K, kernel_error, problem, solver):
    """Train every machine for every C.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64
        Gram matrix, without bias and 1/C.
    kernel_error : float
        Bound on the error of an entry of `K`. Blocks of a float32 matrix that has one are float32 as well.
    problem : PathProblem
    solver : BlockSolver

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    groups, weights, outcomes, left = _allocate(problem)
    solve_grams(K[None], [kernel_error], problem, groups, left[None], [solver], weights[None], outcomes)
    seconds = shares_of(time.perf_counter() - started, outcomes.costs)
    return solution_of(problem, weights, rows_used(weights), outcomes, solver, seconds)


def normalised(K, kernel_error, scale):
    """Scale kernel values to k(x, x) = 1, in place; return them and the bound on their error.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    kernel_error : float
    scale : ndarray of shape (n,), or (0,)
        1/√k(x, x); empty: the values stay as they are.
    """
    if scale.size == 0:
        return K, kernel_error
    K *= scale[:, None]
    K *= scale
    return K, 3.0 * kernel_error * scale.max() ** 2  # of the value and, twice, of half the diagonal's roots


def path_by_subproblems(X, kernel, scale, problem, solver):
    """Train the machines one by one from the features of their samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
    kernel : solvers.kernels.functions.Kernel
    scale : ndarray of shape (n_samples,), or (0,)
        As in `solvers.problem.Problem`.
    problem : PathProblem
    solver : BlockSolver

    Returns
    -------
    PathSolution
    """
    started = time.perf_counter()
    groups, weights, outcomes, left = _allocate(problem, solver.order)
    seeds = subproblem_seeds(solver.seed, len(groups))
    class_start = problem.class_start
    used = np.zeros((problem.Cs.size, problem.rows.size), dtype=bool)
    for k, group in enumerate(groups):
        samples = np.concatenate([np.arange(class_start[p], class_start[p + 1]) for p in group])
        rows = problem.rows[samples]
        subproblem = Problem(
            X=X,
            rows=rows,
            class_start=np.concatenate(([0], np.cumsum(np.diff(class_start)[group]))),
            C=np.repeat(1.0 / problem.inverse_weights[group], np.diff(class_start)[group]),
            kernel=kernel,
            bias=problem.bias,
            scale=scale if scale.size == 0 else scale[rows],
            seed=int(seeds[k]),
            deadline=np.inf,
        )
        limits = share_of(left, len(groups) - k)
        outcome = Outcomes(*(values[k : k + 1] for values in outcomes))
        solution, model = solver.train(subproblem, problem, limits, seeds[k : k + 1], outcome)
        left -= np.minimum(left, outcomes.iterations[k])
        used[:, samples] |= solution != 0.0
        store_block(model, class_start, group, weights)
    seconds = shares_of(time.perf_counter() - started, outcomes.costs)
    return solution_of(problem, weights, used, outcomes, solver, seconds)


def solve_grams(
    Ks, kernel_errors, problem, groups, left, solvers, weights, outcomes, workspace=None, seeds=None
):
    """Call `solve_subproblems`; `left`, `weights` and `outcomes` are changed in place.

    Parameters
    ----------
    Ks : ndarray of shape (n_matrices, n, n), float32 or float64
    kernel_errors : sequence of float
        For each matrix; all with the same `block_dtype`.
    problem : PathProblem
    groups : int64 ndarray of shape (n_subproblems, classes of a machine)
    left, weights, outcomes
        As of `solve_subproblems`.
    solvers : sequence of BlockSolver
        One for each matrix, all of one kind.
    workspace : solvers.gram.subproblems.Room, optional
        That an earlier call on the same problem has returned, with the same `block_dtype`.
    seeds : uint64 ndarray of shape (n_subproblems,), optional
        Of the only matrix; else they follow from those of the solvers.

    Returns
    -------
    Room
    """
    class_start, bias, n_subproblems = problem.class_start, problem.bias, len(groups)
    opposite = -1.0 / (groups.shape[1] - 1) if solvers[0].has_labels else 1.0
    dtype = block_dtype(Ks, kernel_errors[0])
    if workspace is None:
        workspace = new_workspace(class_start, groups, problem.Cs.size, dtype)
    if seeds is None:
        seeds = np.concatenate([subproblem_seeds(solver.seed, n_subproblems) for solver in solvers])
    value_errors = np.repeat(errors_in_blocks(Ks, kernel_errors, opposite, bias, dtype), n_subproblems)
    with solvers[0].threads():
        solve_subproblems(
            solvers[0].rules(solvers, Ks, problem, groups, seeds, value_errors),
            writeable(np.ascontiguousarray(Ks)),
            problem.rows,
            class_start,
            problem.inverse_weights,
            groups,
            opposite,
            bias,
            problem.Cs,
            left,
            workspace,
            weights,
            outcomes,
        )
    return workspace


def solve_own_gram(solver, problem, path, limits, seed, outcome):
    """Train a machine from a Gram matrix of its own; return its weights, of shape (n_C, m)."""
    m = problem.rows.size
    weights = np.zeros((path.Cs.size, 1, m))
    K, error = solver.own_gram(problem)
    K, error = normalised(K, error, problem.scale)
    groups = np.arange(problem.class_start.size - 1)[None, :]
    alone = path._replace(
        rows=np.arange(m, dtype=np.int32),
        class_start=problem.class_start,
        inverse_weights=1.0 / problem.C[problem.class_start[:-1]],
    )
    solve_grams(K[None], [error], alone, groups, limits[None], [solver], weights[None], outcome, seeds=seed)
    return weights[:, 0]


def solve_for_each_C(solve, problem, Cs, limits, outcome):
    """Train a machine for one C after the other, each from the solution before it; return its weights."""
    weights = np.zeros((Cs.size, problem.rows.size))
    for j in range(Cs.size):
        solved = solve(replace(problem, C=Cs[j] * problem.C, max_iter=int(limits[j])))
        problem.start = solved
        weights[j, solved.support] = solved.alpha
        outcome.objectives[0, j], outcome.gaps[0, j] = solved.objective, solved.gap
        outcome.iterations[0, j], outcome.statuses[0, j] = solved.n_iter, solved.status
        outcome.clipped[0, j] = solved.n_clipped
        outcome.converged[0, j], outcome.costs[0, j] = solved.converged, solved.n_iter
        outcome.supports[0, j], outcome.evaluations[0, j] = solved.support.size, solved.n_kernel_evals
        outcome.biases[0, j, : solved.bias.size] = solved.bias
    return weights


def _allocate(problem, order="C"):
    n_C, n_classes = problem.Cs.size, problem.classes.size
    groups = groups_of(n_classes, problem.at_once)
    weights = np.zeros((n_C, 1 if problem.at_once else n_classes - 1, problem.rows.size))
    outcomes = new_outcomes(len(groups), n_C, groups.shape[1], order)
    return groups, weights, outcomes, np.full(n_C, problem.max_iter)


def shares_of(seconds, costs):
    """Share out seconds among trainings by their counted work.

    Parameters
    ----------
    seconds : float
    costs : ndarray of shape (..., n_subproblems, n_C)

    Returns
    -------
    ndarray of shape (..., n_C)
    """
    work = 1.0 + costs.sum(axis=-2)  # a start that is optimal already costs nothing
    return seconds * work / work.sum()


def solution_of(problem, weights, used, outcomes, solver, seconds):
    """Return the solution that arrays hold; `outcomes` as the block solvers fill them."""
    return PathSolution(
        problem=problem,
        weights=weights,
        intercepts=solver.intercepts(weights, outcomes, problem),
        outcomes=Outcomes(*(values.T for values in outcomes)),
        has_methods=solver.has_methods,
        has_clipped=solver.has_clipped,
        used=used,
        seconds=seconds,
    )
