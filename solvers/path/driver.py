"""One path for all estimators: every subproblem of a training set for every C, by any block solver.

With one Gram matrix the path is one numba call (`gram.subproblems`). Otherwise the subproblems are trained
one by one: each from its own Gram matrix, or by another method of its solver.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal, Protocol, Self

import numpy as np

from solvers.common.resources import require_memory, share_of
from solvers.gram.outcomes import Outcomes, new_outcomes, rows_used
from solvers.gram.subproblems import (
    block_dtype,
    errors_in_blocks,
    new_workspace,
    solve_subproblems,
    store_block,
    writeable,
)
from solvers.kernels.functions import GRAM, kernel_block
from solvers.multiclass import label_start_of, subproblem_seeds
from solvers.path.result import PathProblem, PathSolution
from solvers.problem import Problem, Solution

COPIES_OF_WEIGHTS = 2
"""Number of arrays of weights in memory at a time: one of all samples, and one of the support vectors."""
BYTES_OF_PAIR = 250
"""Memory for the results of one pair of classes at one C, with the copies from which totals are computed."""


class BlockSolver(Protocol):
    """Interface of the solvers that train the subproblems of a path.

    Attributes
    ----------
    seed : int
        Seed from which those of the subproblems are derived.
    memory : float
        Largest size of the Gram matrix of a subproblem, in bytes.
    solve : callable or None
        Function that trains a `Problem` whose matrix would be larger, for one C. Only `train` calls it.
    has_methods, has_clipped : bool
        Whether the solver fills `Outcomes.methods`; `Outcomes.clipped` and `Outcomes.full_updates`.
    has_labels : bool
        Whether blocks contain ``y_i·y_j k(x_i, x_j)``; if not, kernel values without labels.
    order : {"C", "F"}
        Memory order of `Outcomes` for subproblems that are trained one by one. The rounding of their sums
        depends on it.
    """

    seed: int
    memory: float = np.inf
    solve: Callable | None = None
    has_methods: bool = False
    has_clipped: bool = False
    has_labels: bool = True
    order: Literal["C", "F"] = "C"

    def rules(self, solvers: Sequence[Self], Ks, problem: PathProblem, groups, seeds, value_errors) -> Any:
        """Return the named tuple that selects an implementation of `solvers.gram.subproblems.solve_path`.

        Parameters
        ----------
        solvers : sequence of BlockSolver
            One solver for each Gram matrix. They differ in their seeds and in the shift of the kernel values.
        Ks : ndarray of shape (n_matrices, n, n)
            Gram matrices of the same samples, one for each kernel, such as each γ.
        problem : PathProblem
            Problem that all matrices share.
        groups : int64 ndarray of shape (n_subproblems, classes of a subproblem)
            Class indices of each subproblem.
        seeds : uint64 ndarray of shape (n_matrices · n_subproblems,)
            Seeds of the subproblems of all matrices.
        value_errors : ndarray of shape (n_matrices · n_subproblems,)
            Bounds on the errors of the values of their blocks.

        Returns
        -------
        NamedTuple
            Parameters of the solver, of the type for which `solve_path` is implemented.
        """

    def threads(self) -> AbstractContextManager:
        """Return the context in which numba solves the blocks.

        Returns
        -------
        AbstractContextManager
            By default a context that changes nothing.
        """
        return nullcontext()

    def train(self, problem: Problem, path: PathProblem, limits, seed, outcome: Outcomes) -> tuple:
        """Train a subproblem from features for every C, and fill its row of the outcomes.

        The default uses the Gram matrix of the subproblem or, if it would be too large, one training for each
        C.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.
        path : PathProblem
            Path with the values of C.
        limits : int64 ndarray of shape (n_C,)
            Limits of the iterations for each C.
        seed : uint64 ndarray of shape (1,)
            Seed of the subproblem.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights : ndarray of shape (n_C, m)
            Weights of margin 1, of either sign. Support vectors are the samples whose weight is not 0.
        model : ndarray of shape (n_C, m)
            Weights of either sign that give the same decisions.
        """
        if 8.0 * problem.rows.size**2 > self.memory:
            weights = solve_for_each_C(self.solve, problem, path.Cs, limits, outcome)
        else:
            weights = solve_subproblem_gram(self, problem, path, limits, seed, outcome)
        return weights, weights

    def subproblem_gram(self, problem: Problem):
        """Return the Gram matrix of a subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.

        Returns
        -------
        K : ndarray of shape (m, m), C-contiguous
            Kernel values.
        error : float
            Bound on the error of a value.
        """
        if problem.kernel.kind == GRAM:
            return np.ascontiguousarray(problem.X[np.ix_(problem.rows, problem.rows)]), problem.kernel.error
        # With a single copy, BLAS would compute a symmetric product, which rounds differently.
        K = kernel_block(problem.X[problem.rows], problem.X[problem.rows], problem.kernel)
        return K, problem.kernel.error

    def intercepts(self, weights, outcomes: Outcomes, problem: PathProblem):
        """Return `PathSolution.intercepts`.

        Parameters
        ----------
        weights : ndarray of shape (n_C, n_layers, n)
            Weights as in `PathSolution.weights`.
        outcomes : Outcomes
            Results of all subproblems.
        problem : PathProblem
            Sorted samples, weights and values of C that the path trains on.

        Returns
        -------
        ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
            Intercepts, positive for the first class of a subproblem.
        """


def path_from_gram(K, kernel_error, problem, solver):
    """Train every subproblem for every C from one Gram matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n), float32 or float64
        Gram matrix, without bias and 1/C.
    kernel_error : float
        Bound on the error of an entry of `K`. If it is positive, blocks of a float32 matrix are float32 as
        well.
    problem : PathProblem
        Sorted samples, weights and values of C that the path trains on.
    solver : BlockSolver
        Solver that trains each block of kernel values.

    Returns
    -------
    PathSolution
        Trained subproblems.
    """
    started = time.perf_counter()
    groups, weights, outcomes, left = allocate_path(problem)
    solve_grams(
        K[None],
        [kernel_error],
        problem,
        groups,
        left=left[None],
        solvers=[solver],
        weights=weights[None],
        outcomes=outcomes,
    )
    seconds = shares_of(time.perf_counter() - started, outcomes.costs)
    return solution_of(problem, weights, rows_used(weights), outcomes, solver, seconds)


def normalised(K, kernel_error, scale):
    """Scale kernel values to k(x, x) = 1, in place.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    kernel_error : float
        Bound on the error of a value.
    scale : ndarray of shape (n,), or (0,)
        1/√k(x, x); if empty, the values stay unchanged.

    Returns
    -------
    K : ndarray of shape (n, n)
        The same array.
    kernel_error : float
        Bound on the error of a scaled value.
    """
    if scale.size == 0:
        return K, kernel_error
    K *= scale[:, None]
    K *= scale
    return K, error_of_scaled(kernel_error, scale)


def error_of_scaled(kernel_error, scale):
    """Bound the error of a kernel value that is scaled to k(x, x) = 1.

    Parameters
    ----------
    kernel_error : float
        Bound on the error of a value.
    scale : ndarray of shape (n,), or (0,)
        1/√k(x, x); if empty, the values stay unchanged.

    Returns
    -------
    float
        Bound on the error of a scaled value.
    """
    # The error of the value, and twice that of half the root of the diagonal.
    return 3.0 * kernel_error * scale.max() ** 2 if scale.size else kernel_error


def path_by_subproblems(X, kernel, scale, problem, solver):
    """Train the subproblems one by one from the features of their samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
        Training samples, as `Kernel.prepare` returns them.
    kernel : solvers.kernels.functions.Kernel
        Kernel function with its parameters, as chosen for the training samples.
    scale : ndarray of shape (n_samples,), or (0,)
        1/√k(x, x) if the kernel is to be normalised, else empty.
    problem : PathProblem
        Sorted samples, weights and values of C that the path trains on.
    solver : BlockSolver
        Algorithm that trains each subproblem on its block.

    Returns
    -------
    PathSolution
        Trained subproblems.
    """
    started = time.perf_counter()
    groups, weights, outcomes, left = allocate_path(problem, solver.order)
    seeds = subproblem_seeds(solver.seed, len(groups))
    class_start = problem.class_start
    shared: dict[str, Any] = {}
    used = np.zeros((problem.Cs.size, problem.rows.size), dtype=bool)
    for k, group in enumerate(groups):
        samples = np.concatenate([np.arange(class_start[p], class_start[p + 1]) for p in group])
        rows = problem.rows[samples]
        subproblem = Problem(
            X=X,
            rows=rows,
            class_start=label_start_of(class_start, group, problem.multiclass),
            C=1.0 / problem.inverse_weights[samples],
            kernel=kernel,
            bias=problem.bias,
            scale=scale if scale.size == 0 else scale[rows],
            seed=int(seeds[k]),
            deadline=np.inf,
            shared=shared,
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
    Ks, kernel_errors, problem, groups, *, left, solvers, weights, outcomes, workspace=None, seeds=None
):
    """Solve every subproblem of several Gram matrices for every C, in one numba call.

    Parameters
    ----------
    Ks : ndarray of shape (n_matrices, n, n), float32 or float64
        Gram matrices of the same samples, one for each kernel, such as each γ.
    kernel_errors : sequence of float
        Bound on the error of a value of each matrix. All matrices have the same `block_dtype`.
    problem : PathProblem
        Problem that all matrices share.
    groups : int64 ndarray of shape (n_subproblems, classes of a subproblem)
        Class indices of each subproblem.
    left : int64 ndarray of shape (n_matrices, n_C)
        Remaining iterations, changed in place.
    solvers : sequence of BlockSolver
        One solver for each matrix, all of one class.
    weights : ndarray of shape (n_matrices, n_C, n_layers, n)
        Receives the weights, in the layout of `PathSolution.weights`.
    outcomes : Outcomes
        Receives the other results of the subproblems of all matrices.
    workspace : solvers.gram.subproblems.Workspace, optional
        Workspace that an earlier call on the same problem returned, with the same `block_dtype`.
    seeds : uint64 ndarray of shape (n_subproblems,), optional
        Seeds for a single matrix; by default they are derived from those of the solvers.

    Returns
    -------
    Workspace
        Workspace for the next call.
    """
    class_start, bias, n_subproblems = problem.class_start, problem.bias, len(groups)
    opposite = -1.0 / (problem.n_labels - 1) if solvers[0].has_labels else 1.0
    dtype = block_dtype(Ks, kernel_errors[0])
    if workspace is None:
        workspace = new_workspace(class_start, groups, problem.n_labels, problem.Cs.size, dtype)
    if seeds is None:
        seeds = np.concatenate([subproblem_seeds(solver.seed, n_subproblems) for solver in solvers])
    value_errors = np.repeat(errors_in_blocks(Ks, kernel_errors, opposite, bias, dtype), n_subproblems)
    with solvers[0].threads():
        # The type of the rules selects the body of `solve_path` that numba calls for each block:
        # `NewtonRules` in newton/block_path.py, `SmoRules` in smo/block_path.py, `MinimalNormRules` in
        # hull/block_descent.py (`minimal_norm_path`, which serves the next two as well), `ViolatorRules` in
        # hull/block_ball.py, `CoreSetRules` in hull/block_core_set.py.
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


def solve_subproblem_gram(solver, problem, path, limits, seed, outcome):
    """Train a subproblem from its own Gram matrix.

    Parameters
    ----------
    solver : BlockSolver
        Solver that trains the block of kernel values.
    problem : Problem
        Subproblem with its features.
    path : PathProblem
        Path with the values of C.
    limits : int64 ndarray of shape (n_C,)
        Limits of the iterations for each C.
    seed : uint64 ndarray of shape (1,)
        Seed of the subproblem.
    outcome : Outcomes
        Arrays of one row, which receive the results.

    Returns
    -------
    ndarray of shape (n_C, m)
        Weights α of each sample, one row for each C.
    """
    m = problem.rows.size
    weights = np.zeros((path.Cs.size, 1, m))
    K, error = solver.subproblem_gram(problem)
    K, error = normalised(K, error, problem.scale)
    groups = np.arange(problem.class_start.size - 1)[None, :]
    subproblem_path = path._replace(
        multiclass="all_at_once" if path.at_once else "pairwise",
        rows=np.arange(m, dtype=np.int32),
        class_start=problem.class_start,
        inverse_weights=1.0 / problem.C,
    )
    solve_grams(
        K[None],
        [error],
        subproblem_path,
        groups,
        left=limits[None],
        solvers=[solver],
        weights=weights[None],
        outcomes=outcome,
        seeds=seed,
    )
    return weights[:, 0]


def solve_once(solver, problem, text):
    """Train a subproblem for its own penalties by the block solver of a path.

    A block solver reads no clock, so the deadline has no effect. It starts cold.

    Parameters
    ----------
    solver : BlockSolver
        Algorithm that trains a subproblem on its block.
    problem : Problem
        Subproblem to train.
    text : callable
        Function of status, converged, gap and `by_draws` that returns the text for `stopping_`.

    Returns
    -------
    Solution
        Trained subproblem.
    """
    n_labels, m = problem.class_start.size - 1, problem.rows.size
    problem = replace(problem, C=np.ascontiguousarray(np.broadcast_to(problem.C, (m,))))
    path = PathProblem(
        Cs=np.ones(1),
        classes=np.arange(n_labels),
        rows=problem.rows,
        class_start=problem.class_start,
        inverse_weights=1.0 / problem.C,
        multiclass="pairwise" if n_labels == 2 else "all_at_once",
        bias=problem.bias,
        max_iter=problem.max_iter,
    )
    _, _, outcomes, limits = allocate_path(path, solver.order)
    seed = np.array([problem.seed], dtype=np.uint64)
    _, model = solver.train(problem, path, limits, seed, outcomes)
    support, outcome = np.flatnonzero(model[0]), outcomes.of_subproblem(0)
    status, gap, converged = int(outcome.statuses[0]), float(outcome.gaps[0]), bool(outcome.converged[0])
    return Solution(
        support=support,
        alpha=model[0, support],
        bias=solver.intercepts(model[:, None], outcomes, path)[0],
        objective=float(outcome.objectives[0]),
        gap=gap,
        n_iter=int(outcome.iterations[0]),
        n_kernel_evals=int(outcome.evaluations[0]),
        status=status,
        converged=converged,
        stopping=text(status, converged, gap, False),
        by_draws=False,
        n_clipped=int(outcome.clipped[0]),
        n_full_updates=int(outcome.full_updates[0]),
    )


def solve_for_each_C(solve, problem, Cs, limits, outcome):
    """Train a subproblem for one C after the other, each from the solution before it.

    Parameters
    ----------
    solve : callable
        Function that trains a `Problem` and returns a `Solution`.
    problem : Problem
        Subproblem, with penalties for C = 1; its `start` is changed.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    limits : int64 ndarray of shape (n_C,)
        Limits of the iterations for each C.
    outcome : Outcomes
        Arrays of one row, which receive the results.

    Returns
    -------
    ndarray of shape (n_C, m)
        Weights α of each sample, one row for each C.
    """
    weights = np.zeros((Cs.size, problem.rows.size))
    for j in range(Cs.size):
        solved = solve(replace(problem, C=Cs[j] * problem.C, max_iter=int(limits[j])))
        problem.start = solved
        weights[j, solved.support] = solved.alpha
        outcome.objectives[0, j], outcome.gaps[0, j] = solved.objective, solved.gap
        outcome.iterations[0, j], outcome.statuses[0, j] = solved.n_iter, solved.status
        outcome.clipped[0, j], outcome.full_updates[0, j] = solved.n_clipped, solved.n_full_updates
        outcome.converged[0, j], outcome.costs[0, j] = solved.converged, solved.n_iter
        outcome.supports[0, j], outcome.evaluations[0, j] = solved.support.size, solved.n_kernel_evals
        outcome.biases[0, j, : solved.bias.size] = solved.bias
    return weights


def allocate_path(problem, order="C"):
    """Allocate the arrays of a path.

    Parameters
    ----------
    problem : PathProblem
        Sorted samples, weights and values of C that the path trains on.
    order : {"C", "F"}, default="C"
        Memory order of the outcomes.

    Returns
    -------
    groups : int64 ndarray
        Class indices of each subproblem.
    weights : ndarray
        Zeros, in the layout of `PathSolution.weights`.
    outcomes : Outcomes
        Arrays of zeros.
    left : int64 ndarray of shape (n_C,)
        Remaining iterations.
    """
    require_path_memory(problem)
    n_C, groups = problem.Cs.size, problem.groups
    weights = np.zeros((n_C, problem.n_layers, problem.rows.size))
    outcomes = new_outcomes(len(groups), n_C, problem.n_labels, order)
    return groups, weights, outcomes, np.full(n_C, problem.max_iter)


def require_path_memory(problem):
    """Raise if the results of a path would not fit into memory.

    Parameters
    ----------
    problem : PathProblem
        Samples by class, weights and values of C of the path.

    Raises
    ------
    MemoryError
        The results are larger than the memory available.
    """
    n_classes, n, n_C = problem.classes.size, problem.rows.size, problem.Cs.size
    pairs = n_classes * (n_classes - 1) // 2 if problem.multiclass == "pairwise" else 0
    require_memory(
        n_C * (COPIES_OF_WEIGHTS * 8.0 * problem.n_layers * n + BYTES_OF_PAIR * pairs),
        f"the model of {n_C} C, {n_classes:,} classes and {n:,} samples",
        "train for fewer C at a time, on fewer samples, or on groups of classes",
    )


def shares_of(seconds, costs):
    """Share out the wall time of a path among its trainings by their counted work.

    Parameters
    ----------
    seconds : float
        Wall time, in seconds.
    costs : ndarray of shape (..., n_subproblems, n_C)
        Counted work of each subproblem, in any unit.

    Returns
    -------
    ndarray of shape (..., n_C)
        Seconds of each training.
    """
    work = 1.0 + costs.sum(axis=-2)  # costs are 0 for a start that is already optimal
    return seconds * work / work.sum()


def solution_of(problem, weights, used, outcomes, solver, seconds):
    """Return the `PathSolution` of trained subproblems.

    Parameters
    ----------
    problem : PathProblem
        Sorted samples, weights and values of C that the path trains on.
    weights : ndarray
        Weights in the layout of `PathSolution.weights`.
    used : bool ndarray of shape (n_C, n)
        Rows that any subproblem uses.
    outcomes : Outcomes
        Arrays of shape (n_subproblems, n_C), as the block solvers fill them.
    solver : BlockSolver
        Algorithm that has trained the subproblems.
    seconds : ndarray of shape (n_C,)
        Wall time of each training.

    Returns
    -------
    PathSolution
        Solution with transposed outcomes.
    """
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
