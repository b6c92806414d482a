"""`fit_path` for estimators whose subproblems are trained by `_solve`, one value after the other."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.estimators.common_parameters import CommonParameters
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.training_input import check_ascending, check_path_input, detached, path_problem
from solvers.gram.outcomes import totals_of
from solvers.kernels.functions import GRAM, Kernel
from solvers.kernels.subproblem_kernel import SubproblemKernel
from solvers.path.driver import BlockSolver, path_by_subproblems, solve_for_each_C
from solvers.path.result import FittedPath


def with_own_gram(problem, memory):
    """Return a subproblem that reads its kernel values from a matrix of its samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem.
    memory : float
        Largest size of the matrix, in bytes.

    Returns
    -------
    solvers.problem.Problem
        The subproblem itself, if it reads a matrix already, or if the matrix would be too large.
    """
    n = problem.rows.size
    if problem.kernel.kind == GRAM or 8.0 * n * n > memory:
        return problem
    K, error = SubproblemKernel(problem).gram(), problem.kernel.error
    return replace(problem, X=K, rows=np.arange(n, dtype=np.int32), kernel=Kernel(GRAM, error=error))


@dataclass
class OneByOneSolver(BlockSolver):
    """Solver of a path (`solvers.path.driver.BlockSolver`) that trains one value after the other."""

    prepare: (
        Callable  # function of a `Problem` that returns one with shared values, and a function to train it
    )
    seed: int = 0

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Raise, because this solver trains no blocks of a Gram matrix.

        Parameters
        ----------
        solvers, Ks, problem, groups, seeds, value_errors : object
            As in `solvers.path.driver.BlockSolver`, not used.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("this solver trains single subproblems. Call train")

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem for every value, and fill its row of the outcomes.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.
        path : PathProblem
            Path with the values.
        limits : int64 ndarray of shape (n_C,)
            Limits of the iterations for each value.
        seed : uint64 ndarray of shape (1,)
            Seed of the subproblem, which `problem` contains as well.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights, model : ndarray of shape (n_C, m)
            Weights of either sign, twice the same array.
        """
        shared, solve = self.prepare(problem)
        weights = solve_for_each_C(solve, shared, path.Cs, limits, outcome)
        return weights, weights

    def intercepts(self, weights, outcomes, problem):
        """Return the intercepts that the solutions contain.

        Parameters
        ----------
        weights : ndarray
            Weights in the layout of `PathSolution.weights`, not used.
        outcomes : Outcomes
            Results of all subproblems.
        problem : PathProblem
            Problem of the path, not used.

        Returns
        -------
        ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
            Intercepts, positive for the first class of a subproblem.
        """
        return outcomes.biases[:, :, 0].T


class OneByOneMixin(CommonParameters):
    """Mixin that adds `fit_path` to a `KernelSVC` with `_solve` and without a block solver."""

    _subproblem_text = PathMixin._subproblem_text
    _path_texts = PathMixin._path_texts

    def fit_path(self, X, y, Cs, sample_weight=None, *, check_finite=True):
        """Train for every C of an ascending path, each from the solution before it.

        All trainings of a subproblem read one matrix of its kernel values, if that fits into `cache_size`.
        The estimator stays unchanged. `max_iter` limits the training for each C. `max_seconds` must be None.
        `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        Cs : array-like of shape (n_C,)
            Values of C, ascending.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, as in `fit`.
        check_finite : bool, default=True
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        solvers.path.result.FittedPath
            Trained models, one for every C.

        Raises
        ------
        ValueError
            A parameter, a sample, a label or Cs is not valid, or kernel values are not finite.
        MemoryError
            The training would not fit into memory.
        """
        return self._fit_path(X, y, check_ascending(Cs), sample_weight, check_finite)

    def _fit_path(self, X, y, values, sample_weight, check_finite):
        """Train for every value of the parameter of a path.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        values : ndarray of shape (n_values,)
            Values of C, or of another parameter whose solver is `_path_solver`.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.
        check_finite : bool
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        solvers.path.result.FittedPath
            Trained models, one for every value.
        """
        started = time.perf_counter()
        model = detached(self)
        model._validate_params()
        X, labels = check_path_input(model, X, y, check_finite)
        problem = path_problem(model, labels, values, sample_weight)
        rows, used = problem.rows, None
        if rows.size < labels.size:
            used = np.zeros(labels.size, dtype=bool)
            used[rows] = True
        kernel, source = model._resolve_kernel(X, used)
        model._check_diagonal(source, kernel, rows, 1.0 / problem.inverse_weights)
        scale = model._normalisation(source, kernel)
        solution = path_by_subproblems(source, kernel, scale, problem, model._path_solver())
        if is_scaled := scale.size > 0:
            solution.weights *= scale[rows]
        samples, by_draws = X if kernel.kind == GRAM else source, model._stops_by_draws(rows.size)
        totals = totals_of(solution.outcomes, solution.used, by_draws)
        texts = model._path_texts(solution.outcomes, totals, by_draws)
        # The time of the kernel and of the checks is shared among the values of the path.
        solution.seconds *= (time.perf_counter() - started) / solution.seconds.sum()
        return FittedPath(self, solution, totals, texts, kernel, samples, is_scaled)

    def prefers_gram(self, n_samples: int, n_features: int) -> bool:
        """Return whether `fit_path` gains from a Gram matrix that the caller shares between calls.

        Parameters
        ----------
        n_samples : int
            Number of training samples.
        n_features : int
            Number of columns of the feature matrix.

        Returns
        -------
        bool
            Always False: a shared float32 matrix would limit what these trainings can certify.
        """
        return False

    def _path_solver(self):
        """Return the solver of a path.

        Returns
        -------
        OneByOneSolver
            Solver with the parameters of this estimator.
        """
        return OneByOneSolver(self._prepared, self._seed())

    def _prepared(self, problem):
        """Return a subproblem with the values that all trainings of a path share.

        Parameters
        ----------
        problem : Problem
            Subproblem, whose penalties are those of C = 1.

        Returns
        -------
        problem : Problem
            Subproblem to train.
        solve : callable
            Function of a `Problem` that returns its `Solution`.
        """
        return with_own_gram(problem, 1e6 * self.cache_size), self._solve

    def _stops_by_draws(self, n_samples):
        """Return whether a training may end without a certificate for every sample.

        Parameters
        ----------
        n_samples : int
            Number of training samples.

        Returns
        -------
        bool
            False for estimators that draw nothing.
        """
        return False

    def _seed(self):
        """Return the seed of the draws of a fit.

        Returns
        -------
        int
            Always 0: estimators that draw override it.
        """
        return 0
