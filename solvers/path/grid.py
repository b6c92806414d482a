"""The paths of one training set on several Gram matrices, such as those of several γ.

Each is trained as by `fit_path`; samples are sorted, parameters checked, arrays allocated and results summed
up once for all.
"""

import time

import numpy as np

from solvers.common.certificate import block_dtype
from solvers.common.seeds import machine_seeds
from solvers.gram.cut import groups_of
from solvers.gram.outcomes import Outcomes, new_outcomes
from solvers.path.driver import solution_of, solve_gram
from solvers.path.fitted import FittedTrainings, blocks_of, room_for_predictions
from solvers.path.input import check_ascending, check_path_input, detached, path_problem
from solvers.path.totals import rows_used, totals_of


class PathGrid:
    """Train on one Gram matrix after the other by `fit`, and predict after each by `predict`.

    Parameters
    ----------
    estimators, y, Cs
        See `solvers.path.mixin.PathMixin.path_grid`.
    """

    def __init__(self, estimators, y, Cs):
        self._models = [detached(estimator) for estimator in estimators]
        if len({type(model) for model in self._models}) != 1:
            names = sorted({type(model).__name__ for model in self._models})
            raise ValueError(f"path_grid needs estimators of one class; got {', '.join(names) or 'none'}")
        for model in self._models:
            model._check_parameters()
            if model.kernel != "precomputed":
                raise ValueError(f"path_grid needs kernel='precomputed'; got {model.kernel!r}")
        Cs = check_ascending(Cs)
        if Cs.size < 2:
            raise ValueError(f"path_grid needs at least two C; got {Cs.tolist()}")
        self._y = np.asarray(y)
        self._problem, self._class_weights = path_problem(self._models[0], self._y, Cs)
        self._allocate(len(self._models))
        self._solutions = []

    def _allocate(self, n_matrices):
        problem = self._problem
        n_C, n_classes = problem.Cs.size, problem.classes.size
        self._groups = groups_of(n_classes, problem.at_once)
        shape = len(self._groups), n_C, self._groups.shape[1]
        self._weights = np.zeros(
            (n_matrices, n_C, 1 if problem.at_once else n_classes - 1, problem.rows.size)
        )
        self._outcomes = new_outcomes(*shape, n_matrices=n_matrices)
        self._room, self._type_in_room = None, None

    def fit(self, K):
        """Train for every C on the next matrix.

        Parameters
        ----------
        K : ndarray of shape (n_samples, n_samples), float32 or float64
            Read until the call returns.
        """
        started, k, problem = time.perf_counter(), len(self._solutions), self._problem
        if k == len(self._models):
            raise ValueError(f"there is one matrix for each estimator; all {k} have been trained on")
        model = self._models[k]
        K, _ = check_path_input(model, K, self._y)
        kernel, K = model._resolve_kernel(K)
        model._check_diagonal(K, kernel, problem.rows, self._class_weights)
        model._normalisation(K, kernel)  # refuses a matrix that would have to be scaled
        dtype = block_dtype(K, kernel.error)
        if dtype != self._type_in_room:
            self._room, self._type_in_room = None, dtype
        solver, left = model._path_solver(), np.full(problem.Cs.size, problem.max_iter)
        seeds = machine_seeds(solver.seed, len(self._groups))
        weights, outcomes = self._weights[k], Outcomes(*(values[k] for values in self._outcomes))
        self._room = solve_gram(
            K, kernel.error, problem, self._groups, left, seeds, solver, weights, outcomes, self._room
        )
        solution = solution_of(problem, weights, rows_used(weights), outcomes, solver, started)
        model._check_path(solution)
        self._solutions.append(solution)

    def predict(self, K):
        """Predict labels by the machines that were trained last.

        Parameters
        ----------
        K : ndarray of shape (n_test, n_samples)

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        K, n = np.asarray(K), self._problem.rows.size
        if not self._solutions:
            raise ValueError("predict needs machines; call fit before")
        if K.ndim != 2 or not len(K) or K.shape[1] != n:
            raise ValueError(f"predict needs kernel values of shape (n_test, {n}); got {K.shape}")
        solution, n_classes = self._solutions[-1], self._problem.classes.size
        room = room_for_predictions(self._models[0])
        blocks = [K[rows] for rows in blocks_of(len(K), solution.weights, n_classes, room)]
        return np.concatenate([solution.predict_path(block) for block in blocks], axis=1)

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
