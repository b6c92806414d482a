"""`fit_path` of the estimators: training for every C of an ascending path."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.common.resources import NO_LIMIT
from solvers.common.status import STOPPING_TEXTS, text_among, uncertified_text
from solvers.estimators.common_parameters import CommonParameters
from solvers.estimators.parameters import Samples
from solvers.estimators.path_grid import PathGrid
from solvers.estimators.trained import trained_together
from solvers.estimators.training_input import check_ascending, check_path_input, detached, path_problem
from solvers.gram.outcomes import totals_of
from solvers.kernels.functions import GRAM, kernel_block
from solvers.path.driver import normalised, path_by_subproblems, path_from_gram, solve_once
from solvers.path.result import FittedPath, PathProblem
from solvers.path.tiles import MAX_SAMPLES, has_many_small_pairs, path_by_tiles


class PathMixin(CommonParameters):
    """Mixin that adds `fit_path` and `path_grid` to a `KernelSVC`.

    The class has a method `_path_solver` that returns a `solvers.path.driver.BlockSolver`. That solver also
    trains the subproblems of `fit`, unless the class overrides `_solve`.
    """

    def _solve(self, problem):
        """Train one subproblem by the block solver.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        Solution
            Trained subproblem.
        """
        if self.max_seconds is not None:
            raise ValueError(
                f"{type(self).__name__} takes no max_seconds, because its block solver reads no clock; got "
                f"max_seconds={self.max_seconds}. Set it to None, or set max_iter"
            )
        return solve_once(self._path_solver(), problem, self._subproblem_text)

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the tolerance is certified.
        gap : float
            Certified relative duality gap of the subproblem.
        by_draws : bool
            Whether the search may have missed a sample.

        Returns
        -------
        str
            The certified bound, or the reason why the training ended.
        """
        if converged:
            return f"certified: gap <= {self.tol:g}"
        return uncertified_text(STOPPING_TEXTS[status], gap)

    def fit_path(
        self,
        X: Samples,
        y: ArrayLike,
        Cs: Sequence[float] | np.ndarray,
        sample_weight: ArrayLike | None = None,
        *,
        check_finite: bool = True,
    ) -> FittedPath:
        """Train for every C of an ascending path, each from the solution before it.

        The algorithm and the stopping rule are those of `fit` with ``warm_start=True`` for one C after the
        other. A path takes a fraction of the time. It reads kernel values from one Gram matrix, or from one
        for each subproblem, if they fit into `cache_size` and this is not slower than choosing samples. A
        table in the manual says how each kind of subproblem is trained. The estimator stays unchanged.
        `max_iter` limits the training for each C. `max_seconds` must be None. `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix. A Gram matrix is read fastest if it is C-contiguous
            float32 and its rows are sorted by class.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        Cs : array-like of shape (n_C,)
            Values of C, ascending.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i]. A sample with a weight of 0
            or less is left out.
        check_finite : bool, default=True
            Whether to search a precomputed matrix for values that are not finite. False saves a pass over a
            matrix that is known to have none. If there are some and it is False, a training may never end.

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
        started = time.perf_counter()
        model = detached(self)
        model._validate_params()
        Cs = check_ascending(Cs)
        X, labels = check_path_input(model, X, y, check_finite)
        problem = path_problem(model, labels, Cs, sample_weight)
        rows, used = problem.rows, None
        if rows.size < labels.size:
            used = np.zeros(labels.size, dtype=bool)
            used[rows] = True
        kernel, source = model._resolve_kernel(X, used)
        model._check_diagonal(source, kernel, rows, 1.0 / problem.inverse_weights)
        scale = model._normalisation(source, kernel)
        solver = model._path_solver()
        fits = 8.0 * labels.size**2 <= 1e6 * model.cache_size
        if kernel.kind == GRAM or (fits and model._takes_one_gram(problem, kernel, source)):
            K = source if kernel.kind == GRAM else kernel_block(source, source, kernel)
            K, error = normalised(K, kernel.error, scale)
            solution = path_from_gram(K, error, problem, solver)
        elif problem.multiclass == "pairwise" and has_many_small_pairs(problem.class_start):
            solution = path_by_tiles(source, kernel, scale, problem, solver)
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

    def _trains_together(self, samples):
        """Return whether `_train_together` trains all subproblems.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.

        Returns
        -------
        bool
            True for many small pairs and finite penalties, without a warm start.
        """
        return (
            self.multiclass == "pairwise"
            and not self.warm_start
            and np.isfinite(self.C)
            and has_many_small_pairs(samples.class_start)
        )

    def _train_together(self, samples, started):
        """Train all pairs together, as a path of one C, if `_trains_together`.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.

        Returns
        -------
        Trained or None
            Results; None if the pairs are to be trained one by one.
        """
        if not self._trains_together(samples):
            return None
        weights = np.broadcast_to(samples.C / self.C, samples.X.shape[:1])[samples.rows]
        problem = PathProblem(
            Cs=np.array([float(self.C)]),
            classes=self.classes_,
            rows=samples.rows,
            class_start=samples.class_start,
            inverse_weights=1.0 / weights,
            multiclass="pairwise",
            bias=0.0 if self.bias == "none" else 1.0,
            max_iter=NO_LIMIT if self.max_iter == -1 else int(self.max_iter),
        )
        deadline = np.inf if self.max_seconds is None else started + self.max_seconds
        solver = self._path_solver()
        n_jobs = self.n_jobs if self.max_iter == -1 and deadline == np.inf else None
        solution = path_by_tiles(samples.X, samples.kernel, samples.scale, problem, solver, deadline, n_jobs)
        self._check_path(solution)
        by_draws = self._stops_by_draws(MAX_SAMPLES)
        totals = totals_of(solution.outcomes, solution.used, by_draws)
        (stopping,) = self._path_texts(solution.outcomes, totals, by_draws)
        return trained_together(samples, solution, totals, stopping)

    @staticmethod
    def path_grid(
        estimators: Sequence[Any],
        y: ArrayLike,
        Cs: Sequence[float] | np.ndarray,
        sample_weight: ArrayLike | None = None,
    ) -> PathGrid:
        """Prepare to train for every C on several Gram matrices of the same samples.

        The results equal those of `fit_path` on each matrix, bit for bit. The overhead of Python, which
        dominates on small sets, arises once.

        Parameters
        ----------
        estimators : sequence of KernelSVC
            One estimator for each matrix, of one class, with kernel="precomputed". Each has its own
            `random_state`, `gram_error` and `gram_shift`. The other parameters are those of the first.
            `gamma` has no effect.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        Cs : array-like of shape (n_C,)
            Values of C, ascending, at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, as in `fit_path`.

        Returns
        -------
        solvers.estimators.path_grid.PathGrid
            Grid, whose method `fit` trains.
        """
        return PathGrid(estimators, y, Cs, sample_weight)

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
            Whether to pass a Gram matrix.
        """
        return True

    def _takes_one_gram(self, problem, kernel, X):
        """Return whether `fit_path` computes one Gram matrix of all samples, if it fits into the cache.

        Parameters
        ----------
        problem : PathProblem
            Sorted samples, weights and values of C that the path trains on.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.

        Returns
        -------
        bool
            False if each subproblem is trained from its features.
        """
        return self.prefers_gram(*X.shape)

    def _stops_by_draws(self, n_samples):
        """Return whether a search may end without a check of every sample.

        Parameters
        ----------
        n_samples : int
            Number of training samples.

        Returns
        -------
        bool
            False for estimators that draw no samples.
        """
        return False

    def _check_path(self, solution):
        """Raise if a path is not finite.

        Parameters
        ----------
        solution : PathSolution
            Result of training for all values of C.
        """

    def _path_texts(self, outcomes, totals, by_draws):
        """Return the texts for `stopping_` of every C of a path.

        Parameters
        ----------
        outcomes : Outcomes
            Arrays of shape (n_C, n_subproblems).
        totals : Totals
            Totals over the subproblems.
        by_draws : bool
            Whether a search may have missed a sample.

        Returns
        -------
        list of str
            One text for each C.
        """
        n_C, n_subproblems = outcomes.gaps.shape
        known = (outcomes.statuses, outcomes.converged, outcomes.gaps)
        of_worst = (values[np.arange(n_C), totals.worst].tolist() for values in known)
        return [
            text_among(self._subproblem_text(status, converged, gap, by_draws), n_missed, n_subproblems)
            for status, converged, gap, n_missed in zip(*of_worst, totals.n_missed.tolist(), strict=True)
        ]
