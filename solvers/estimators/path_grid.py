"""Paths of C on several Gram matrices of the same samples.

A grid sorts samples, checks parameters, allocates arrays and computes totals once for all its matrices. One
call of it trains on many small matrices.
"""

import time
from itertools import groupby

import numpy as np

from solvers.estimators.training_input import (
    check_ascending,
    check_labels,
    detached,
    path_problem,
    require_no_time_limit,
)
from solvers.gram.outcomes import Outcomes, new_outcomes, rows_used, totals_of
from solvers.gram.subproblems import block_dtype
from solvers.kernels.functions import require_finite
from solvers.path.driver import shares_of, solution_of, solve_grams
from solvers.path.result import FittedTrainings, blocks_of, labels_of, max_block_values


class PathGrid:
    """Trainings on several Gram matrices, which are passed to `fit` in one or more calls.

    Each call of `fit` trains on the matrices that it receives. `predict` uses the models of the last call.

    Parameters
    ----------
    estimators : sequence of KernelSVC
        One estimator for each matrix, of one class.
    y : array-like of shape (n_samples,)
        Class label of each sample.
    Cs : array-like of shape (n_C,)
        Values of C, ascending, at least two.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples, as in `fit`.
    """

    def __init__(self, estimators, y, Cs, sample_weight=None):
        self._models = [detached(estimator) for estimator in estimators]
        if len({type(model) for model in self._models}) != 1:
            names = sorted({type(model).__name__ for model in self._models})
            raise ValueError(f"path_grid needs estimators of one class; got {', '.join(names) or 'none'}")
        for model in self._models:
            model._validate_params()
            require_no_time_limit(model)
            if model.kernel != "precomputed":
                raise ValueError(f"path_grid needs kernel='precomputed'; got {model.kernel!r}")
        Cs = check_ascending(Cs)
        if Cs.size < 2:
            raise ValueError(f"path_grid needs at least two C; got {Cs.tolist()}")
        y = check_labels(y)
        self._problem, self._n_samples = path_problem(self._models[0], y, Cs, sample_weight), y.size
        self._allocate(len(self._models))
        self._solutions, self._n_newest = [], 0

    def _allocate(self, n_matrices):
        """Allocate the arrays for all matrices.

        Parameters
        ----------
        n_matrices : int
            Number of Gram matrices, one for each kernel.
        """
        problem = self._problem
        n_C, n = problem.Cs.size, problem.rows.size
        self._groups = problem.groups
        shape = len(self._groups), n_C, problem.n_labels
        self._weights = np.zeros((n_matrices, n_C, problem.n_layers, n))
        self._outcomes = new_outcomes(*shape, n_matrices=n_matrices)
        self._workspace, self._type_in_workspace = None, None

    def fit(self, Ks: np.ndarray, check_finite: bool = True) -> None:
        """Train for every C on the next matrices.

        Parameters
        ----------
        Ks : ndarray of shape (n_matrices, n_samples, n_samples), float32 or float64
            Gram matrices. The method does not keep a reference to them.
        check_finite : bool, default=True
            Whether to search the matrices for values that are not finite. If there are some and it is False,
            a training may never end.

        Raises
        ------
        ValueError
            The matrices have another shape or type, are not finite, or are more than the remaining
            estimators.
        """
        started, first = time.perf_counter(), len(self._solutions)
        Ks = self._check_matrices(Ks)
        if check_finite:
            require_finite(Ks)
        batch = slice(first, first + len(Ks))
        models = self._models[batch]
        errors = [self._kernel_error(model, K) for model, K in zip(models, Ks, strict=True)]
        solvers = [model._path_solver() for model in models]
        for dtype, group in groupby(range(len(Ks)), key=lambda k: block_dtype(Ks, errors[k])):
            members = list(group)
            part = slice(members[0], members[-1] + 1)
            self._solve(Ks[part], errors[part], solvers[part], first + members[0], dtype)
        solutions = self._solutions_of(batch, solvers, started)
        for model, solution in zip(models, solutions, strict=True):
            model._check_path(solution)
        self._solutions += solutions
        self._n_newest = len(solutions)

    def _check_matrices(self, Ks):
        """Return matrices as an array, or raise if their shape, type or number is wrong.

        Parameters
        ----------
        Ks : array-like
            Gram matrices as the user passed them.

        Returns
        -------
        ndarray of shape (n_matrices, n_samples, n_samples)
            Gram matrices.
        """
        Ks, n, n_left = np.asarray(Ks), self._n_samples, len(self._models) - len(self._solutions)
        if Ks.dtype not in (np.float64, np.float32) or Ks.ndim != 3 or Ks.shape[1:] != (n, n) or not len(Ks):
            raise ValueError(
                f"fit needs float Gram matrices, of shape (n_matrices, {n}, {n}); got {Ks.shape}, {Ks.dtype}"
            )
        if len(Ks) > n_left:
            raise ValueError(
                f"fit takes one matrix for each estimator; got {len(Ks)} where {n_left} are left. "
                "Pass no more matrices than that"
            )
        return Ks

    def _kernel_error(self, model, K):
        """Check a Gram matrix, and return the bound on the error of its values.

        Parameters
        ----------
        model : KernelSVC
            Estimator of the matrix.
        K : ndarray of shape (n_samples, n_samples)
            Gram matrix.

        Returns
        -------
        float
            Bound on the absolute error.
        """
        kernel, K = model._resolve_kernel(K)
        model._check_diagonal(K, kernel, self._problem.rows, 1.0 / self._problem.inverse_weights)
        model._normalisation(K, kernel)  # raises if the matrix would have to be scaled
        return kernel.error

    def _solve(self, Ks, errors, solvers, first, dtype):
        """Train on matrices whose blocks have the same type.

        Parameters
        ----------
        Ks : ndarray of shape (n_matrices, n_samples, n_samples)
            Gram matrices of the same samples, one for each kernel, such as each γ.
        errors : list of float
            Bounds on the errors of their values.
        solvers : list of BlockSolver
            One solver for each matrix.
        first : int
            Index of the first matrix in the grid.
        dtype : dtype
            Type of the blocks.
        """
        problem, batch = self._problem, slice(first, first + len(Ks))
        if dtype != self._type_in_workspace:
            self._workspace, self._type_in_workspace = None, dtype
        left = np.full((len(Ks), problem.Cs.size), problem.max_iter)
        outcomes = Outcomes(*(values[batch].reshape(-1, *values.shape[2:]) for values in self._outcomes))
        self._workspace = solve_grams(
            Ks,
            errors,
            problem,
            self._groups,
            left=left,
            solvers=solvers,
            weights=self._weights[batch],
            outcomes=outcomes,
            workspace=self._workspace,
        )

    def _solutions_of(self, batch, solvers, started):
        """Return the solutions of some matrices.

        Parameters
        ----------
        batch : slice
            Indices of the matrices in the grid.
        solvers : list of BlockSolver
            One solver for each matrix.
        started : float
            Value of `time.perf_counter` at which their training started.

        Returns
        -------
        list of PathSolution
            One solution for each matrix.
        """
        weights, outcomes = self._weights[batch], Outcomes(*(values[batch] for values in self._outcomes))
        n_C, depth, n = weights.shape[1:]
        used = rows_used(weights.reshape(-1, depth, n)).reshape(-1, n_C, n)
        seconds = shares_of(time.perf_counter() - started, outcomes.costs)
        return [
            solution_of(self._problem, weights[k], used[k], outcomes.of_subproblem(k), solver, seconds[k])
            for k, solver in enumerate(solvers)
        ]

    def predict(self, Ks: np.ndarray) -> np.ndarray:
        """Predict labels with the models that the last `fit` trained.

        Parameters
        ----------
        Ks : ndarray of shape (n_matrices, n_test, n_samples)
            Kernel values between the test samples and all training samples, for each matrix of the last
            `fit`.

        Returns
        -------
        labels : ndarray of shape (n_matrices, n_C, n_test)
            Predicted label of each sample for each Gram matrix and each C.

        Raises
        ------
        ValueError
            There was no `fit`, or the values have another shape or are not finite.
        """
        Ks, n = np.asarray(Ks), self._n_samples
        if not self._solutions:
            raise ValueError("predict needs trained models. Call fit first")
        if Ks.ndim != 3 or len(Ks) != self._n_newest or not Ks.shape[1] or Ks.shape[2] != n:
            raise ValueError(
                f"predict needs kernel values of shape ({self._n_newest}, n_test, {n}); got {Ks.shape}"
            )
        require_finite(Ks)
        newest = self._solutions[-self._n_newest :]
        weights = self._weights[len(self._solutions) - self._n_newest : len(self._solutions)]
        intercepts = np.stack([solution.intercepts for solution in newest])
        max_values = max_block_values(self._models[0])
        blocks = blocks_of(Ks.shape[1], newest[0].weights, self._problem.classes.size, max_values)
        labels = [labels_of(self._problem, weights, intercepts, Ks[:, rows]) for rows in blocks]
        return labels[0] if len(labels) == 1 else np.concatenate(labels, axis=2)

    def fitted(self) -> "FittedGrid":
        """Return the results of all trainings.

        Returns
        -------
        FittedGrid
            Results by matrix, and then by C.

        Raises
        ------
        ValueError
            Some estimators have not been trained.
        """
        if len(self._solutions) < len(self._models):
            n_done, n_models = len(self._solutions), len(self._models)
            raise ValueError(f"fitted needs a fit for each estimator; {n_done} of {n_models} were done")
        return FittedGrid(self._models[0], self._problem, self._joined_outcomes(), self._solutions)

    def _joined_outcomes(self):
        """Return the outcomes of all trainings, with the memory order of the outcomes of a path.

        Returns
        -------
        Outcomes
            Arrays of shape (n_trainings, n_subproblems).
        """

        def joined(values):
            shape = (values.shape[1], -1, *values.shape[3:])
            return values.swapaxes(0, 1).reshape(shape).swapaxes(0, 1)

        return Outcomes(*map(joined, self._outcomes))


class FittedGrid(FittedTrainings):
    """Results of the trainings on several Gram matrices.

    Parameters
    ----------
    model : KernelSVC
        First estimator.
    problem : PathProblem
        Problem that all matrices share.
    outcomes : Outcomes
        Arrays of shape (n_trainings, n_subproblems).
    solutions : list of PathSolution
        One solution for each matrix.

    Attributes
    ----------
    classes_, n_iter_, n_kernel_evals_, n_support_, sv_share_, converged_, objective_, duality_gap_
        Results as in `solvers.path.result.FittedPath`, with a value for each matrix and C: first by matrix,
        then by C.
    fit_status_, stopping_, n_clipped_, n_full_updates_, method_, fit_seconds_
        Results in the same order.
    """

    def __init__(self, model, problem, outcomes, solutions):
        used = np.concatenate([solution.used for solution in solutions])
        by_draws = model._stops_by_draws(problem.rows.size)
        totals = totals_of(outcomes, used, by_draws)
        stopping = model._path_texts(outcomes, totals, by_draws)
        seconds = np.concatenate([solution.seconds for solution in solutions])
        super().__init__(solutions[0], outcomes, totals, stopping, seconds)
