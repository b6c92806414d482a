"""The paths of one training set on several Gram matrices, such as those of several γ.

Each is trained as by `fit_path`; samples are sorted, parameters checked, arrays allocated and results summed
up once for all, and small matrices are trained on many at a time.
"""

import time
from itertools import groupby

import numpy as np

from solvers.common.certificate import block_dtype
from solvers.estimators.path_input import (
    check_ascending,
    check_labels,
    detached,
    path_problem,
    require_no_time_limit,
)
from solvers.gram.gather import groups_of
from solvers.gram.outcomes import Outcomes, new_outcomes
from solvers.kernels.functions import require_finite
from solvers.path.driver import shares_of, solution_of, solve_grams
from solvers.path.fitted import FittedTrainings, blocks_of, values_of_predictions
from solvers.path.result import labels_of
from solvers.path.totals import rows_used, totals_of


class PathGrid:
    """Train on some Gram matrices at a time by `fit`, and predict after each time by `predict`.

    Parameters
    ----------
    estimators, y, Cs
        See `solvers.estimators.fit_path.PathMixin.path_grid`.
    """

    def __init__(self, estimators, y, Cs):
        self._models = [detached(estimator) for estimator in estimators]
        if len({type(model) for model in self._models}) != 1:
            names = sorted({type(model).__name__ for model in self._models})
            raise ValueError(f"path_grid needs estimators of one class; got {', '.join(names) or 'none'}")
        for model in self._models:
            model._check_parameters()
            require_no_time_limit(model)
            if model.kernel != "precomputed":
                raise ValueError(f"path_grid needs kernel='precomputed'; got {model.kernel!r}")
        Cs = check_ascending(Cs)
        if Cs.size < 2:
            raise ValueError(f"path_grid needs at least two C; got {Cs.tolist()}")
        self._problem, self._class_weights = path_problem(self._models[0], check_labels(y), Cs)
        self._allocate(len(self._models))
        self._solutions, self._n_newest = [], 0

    def _allocate(self, n_matrices):
        problem = self._problem
        n_C, n_classes, n = problem.Cs.size, problem.classes.size, problem.rows.size
        self._groups = groups_of(n_classes, problem.at_once)
        shape = len(self._groups), n_C, self._groups.shape[1]
        self._weights = np.zeros((n_matrices, n_C, 1 if problem.at_once else n_classes - 1, n))
        self._outcomes = new_outcomes(*shape, n_matrices=n_matrices)
        self._workspace, self._type_in_workspace = None, None

    def fit(self, Ks, check_finite=True):
        """Train for every C on the next matrices.

        Parameters
        ----------
        Ks : ndarray of shape (n_matrices, n_samples, n_samples), float32 or float64
            Read until the call returns.
        check_finite : bool, default=True
            As of `fit_path`.
        """
        started, first = time.perf_counter(), len(self._solutions)
        Ks = self._check_matrices(Ks)
        if check_finite:
            require_finite(Ks)
        own = slice(first, first + len(Ks))
        models = self._models[own]
        errors = [self._kernel_error(model, K) for model, K in zip(models, Ks, strict=True)]
        solvers = [model._path_solver() for model in models]
        for dtype, group in groupby(range(len(Ks)), key=lambda k: block_dtype(Ks, errors[k])):
            members = list(group)
            part = slice(members[0], members[-1] + 1)
            self._solve(Ks[part], errors[part], solvers[part], first + members[0], dtype)
        solutions = self._solutions_of(own, solvers, started)
        for model, solution in zip(models, solutions, strict=True):
            model._check_path(solution)
        self._solutions += solutions
        self._n_newest = len(solutions)

    def _check_matrices(self, Ks):
        Ks, n, n_left = np.asarray(Ks), self._problem.rows.size, len(self._models) - len(self._solutions)
        if Ks.dtype not in (np.float64, np.float32) or Ks.ndim != 3 or Ks.shape[1:] != (n, n) or not len(Ks):
            raise ValueError(
                f"fit needs float Gram matrices, of shape (n_matrices, {n}, {n}); got {Ks.shape}, {Ks.dtype}"
            )
        if len(Ks) > n_left:
            raise ValueError(f"there is one matrix for each estimator; got {len(Ks)} where {n_left} are left")
        return Ks

    def _kernel_error(self, model, K):
        kernel, K = model._resolve_kernel(K)
        model._check_diagonal(K, kernel, self._problem.rows, self._class_weights)
        model._normalisation(K, kernel)  # refuses a matrix that would have to be scaled
        return kernel.error

    def _solve(self, Ks, errors, solvers, first, dtype):
        """Train on matrices whose blocks have the same type, of which the first is the grid's `first`."""
        problem, own = self._problem, slice(first, first + len(Ks))
        if dtype != self._type_in_workspace:
            self._workspace, self._type_in_workspace = None, dtype
        left = np.full((len(Ks), problem.Cs.size), problem.max_iter)
        outcomes = Outcomes(*(values[own].reshape(-1, *values.shape[2:]) for values in self._outcomes))
        self._workspace = solve_grams(
            Ks, errors, problem, self._groups, left, solvers, self._weights[own], outcomes, self._workspace
        )

    def _solutions_of(self, own, solvers, started):
        """Return the solutions of some matrices whose training started at a `time.perf_counter`."""
        weights, outcomes = self._weights[own], Outcomes(*(values[own] for values in self._outcomes))
        n_C, depth, n = weights.shape[1:]
        used = rows_used(weights.reshape(-1, depth, n)).reshape(-1, n_C, n)
        seconds = shares_of(time.perf_counter() - started, outcomes.costs)
        return [
            solution_of(self._problem, weights[k], used[k], outcomes.of_subproblem(k), solver, seconds[k])
            for k, solver in enumerate(solvers)
        ]

    def predict(self, Ks):
        """Predict labels by the machines that the last `fit` has trained.

        Parameters
        ----------
        Ks : ndarray of shape (n_matrices, n_test, n_samples)

        Returns
        -------
        labels : ndarray of shape (n_matrices, n_C, n_test)
        """
        Ks, n = np.asarray(Ks), self._problem.rows.size
        if not self._solutions:
            raise ValueError("predict needs machines; call fit before")
        if Ks.ndim != 3 or len(Ks) != self._n_newest or not Ks.shape[1] or Ks.shape[2] != n:
            raise ValueError(
                f"predict needs kernel values of shape ({self._n_newest}, n_test, {n}); got {Ks.shape}"
            )
        require_finite(Ks)
        newest = self._solutions[-self._n_newest :]
        weights = self._weights[len(self._solutions) - self._n_newest : len(self._solutions)]
        intercepts = np.stack([solution.intercepts for solution in newest])
        room = values_of_predictions(self._models[0])
        blocks = blocks_of(Ks.shape[1], newest[0].weights, self._problem.classes.size, room)
        labels = [labels_of(self._problem, weights, intercepts, Ks[:, rows]) for rows in blocks]
        return labels[0] if len(labels) == 1 else np.concatenate(labels, axis=2)

    def fitted(self):
        """Return what is known of all trainings, once there has been one `fit` for each estimator."""
        if len(self._solutions) < len(self._models):
            done, all_ = len(self._solutions), len(self._models)
            raise ValueError(f"fitted needs a fit for each estimator; {done} of {all_} were done")
        return FittedGrid(self._models[0], self._problem, self._joined_outcomes(), self._solutions)

    def _joined_outcomes(self):
        """Return arrays of shape (trainings, machines), of the order in memory that those of a path have."""

        def joined(values):
            shape = (values.shape[1], -1, *values.shape[3:])
            return values.swapaxes(0, 1).reshape(shape).swapaxes(0, 1)

        return Outcomes(*map(joined, self._outcomes))


class FittedGrid(FittedTrainings):
    """What is known of the trainings on several Gram matrices.

    Attributes
    ----------
    classes_, n_iter_, n_kernel_evals_, n_support_, sv_share_, converged_, objective_, duality_gap_,
    fit_status_, stopping_, n_clipped_, method_, fit_seconds_
        As of `solvers.path.fitted.FittedPath`, by matrix and then by C.
    """

    def __init__(self, model, problem, outcomes, solutions):
        used = np.concatenate([solution.used for solution in solutions])
        by_draws = model._stops_by_draws(problem.rows.size)
        totals = totals_of(outcomes, used, by_draws)
        stopping = model._path_texts(outcomes, totals, by_draws)
        seconds = np.concatenate([solution.seconds for solution in solutions])
        super().__init__(solutions[0], outcomes, totals, stopping, seconds)
