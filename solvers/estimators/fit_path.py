"""`fit_path` of the estimators that have one."""

import time
from typing import Any

import numpy as np

from solvers.common.status import text_among
from solvers.estimators.path_grid import PathGrid
from solvers.estimators.path_input import check_ascending, check_path_input, detached, path_problem
from solvers.kernels.functions import GRAM, kernel_block
from solvers.path.driver import normalised, path_by_subproblems, path_from_gram
from solvers.path.fitted import FittedPath
from solvers.path.totals import totals_of


class PathMixin:
    """Give a `KernelSVC` the method `fit_path`.

    The class has a method `_path_solver` that returns a `solvers.path.driver.BlockSolver`.
    """

    _path_solver: Any
    _subproblem_text: Any

    def fit_path(self, X, y, Cs, check_finite=True):
        """Train for every C of an ascending path, each from the solution before it.

        The same algorithm as `fit` with ``warm_start=True`` and one C after the other, which ends by the same
        rule, in a fraction of the time: kernel values are read from one Gram matrix, or one of
        each machine, where that fits into `cache_size` and is not slower than to choose samples; a table in
        the manual says which machines are trained how. The estimator itself is left as it is. `max_iter`
        bounds the training for each C; `max_seconds` must be None; `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            A precomputed Gram matrix is read fastest when it is C-contiguous float32 and its rows are sorted
            by class.
        y : array-like of shape (n_samples,)
        Cs : array-like of shape (n_C,)
            Ascending.
        check_finite : bool, default=True
            Whether a precomputed matrix is searched for values that are not finite. Where it is known to
            have none, False saves a pass over it; where it has some, a training may then never end.

        Returns
        -------
        solvers.path.fitted.FittedPath

        Raises
        ------
        ValueError
            A parameter, a sample, a label or Cs is not valid, or kernel values are not finite.
        MemoryError
            What the training needs would not fit into memory.
        """
        started = time.perf_counter()
        model = detached(self)
        model._check_parameters()
        Cs = check_ascending(Cs)
        X, y = check_path_input(model, X, y, check_finite)
        problem, weights = path_problem(model, y, Cs)
        rows = problem.rows
        kernel, source = model._resolve_kernel(X)
        model._check_diagonal(source, kernel, rows, weights)
        scale = model._normalisation(source, kernel)
        solver = model._path_solver()
        fits = 8.0 * rows.size**2 <= 1e6 * model.cache_size
        if kernel.kind == GRAM or (fits and model._takes_one_gram(problem, kernel, source)):
            K = source if kernel.kind == GRAM else kernel_block(source, source, kernel)
            K, error = normalised(K, kernel.error, scale)
            solution = path_from_gram(K, error, problem, solver)
        else:
            solution = path_by_subproblems(source, kernel, scale, problem, solver)
        model._check_path(solution)
        if scale.size:
            solution.weights *= scale[rows]
        solution.seconds *= (time.perf_counter() - started) / solution.seconds.sum()
        by_draws = model._stops_by_draws(rows.size)
        totals = totals_of(solution.outcomes, solution.used, by_draws)
        stopping = model._path_texts(solution.outcomes, totals, by_draws)
        samples = X if kernel.kind == GRAM else source
        return FittedPath(self, solution, totals, stopping, kernel, samples, scale.size > 0)

    @staticmethod
    def path_grid(estimators, y, Cs):
        """Prepare to train for every C on several Gram matrices of the same samples.

        What `fit_path` does on each, bit for bit, with what it costs in Python paid once: on small sets that
        is most of it.

        Parameters
        ----------
        estimators : sequence of KernelSVC
            One for each matrix, of one class, with kernel="precomputed". All but `random_state`,
            `gram_error`, `gram_shift` and `gamma`, which has no effect, is read of the first.
        y : array-like of shape (n_samples,)
        Cs : array-like of shape (n_C,)
            Ascending, at least two.

        Returns
        -------
        solvers.estimators.path_grid.PathGrid
        """
        return PathGrid(estimators, y, Cs)

    def prefers_gram(self, n_samples, n_features):
        """Whether `fit_path` gains from a Gram matrix that the caller shares between calls."""
        return True

    def _takes_one_gram(self, problem, kernel, X):
        """Whether `fit_path` computes one Gram matrix of all samples where that fits."""
        return self.prefers_gram(*X.shape)

    def _stops_by_draws(self, n_samples):
        """Whether a search may end without a look at every sample."""
        return False

    def _check_path(self, solution):
        """Refuse a path that is not finite."""

    def _path_texts(self, outcomes, totals, by_draws):
        """Return `stopping_` for every C of a path."""
        n_C, n_subproblems = outcomes.gaps.shape
        known = (outcomes.statuses, outcomes.converged, outcomes.gaps)
        of_worst = (values[np.arange(n_C), totals.worst].tolist() for values in known)
        return [
            text_among(self._subproblem_text(*certificate, by_draws), n_missed, n_subproblems)
            for *certificate, n_missed in zip(*of_worst, totals.n_missed.tolist(), strict=True)
        ]
