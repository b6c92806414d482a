"""`fit_path` of the estimators, and `path_grid`, which trains the paths of several Gram matrices.

A grid sorts samples, checks parameters, allocates arrays and sums up results once for all its matrices. It
trains on many small matrices at a time.
"""

import time
from copy import deepcopy
from itertools import groupby
from operator import lt
from typing import Any

import numpy as np
from scipy import sparse

from solvers.common.penalties import require_penalties
from solvers.common.resources import NO_LIMIT
from solvers.common.status import text_among
from solvers.gram.outcomes import Outcomes, new_outcomes, rows_used, totals_of
from solvers.gram.subproblems import block_dtype, groups_of
from solvers.kernels.functions import GRAM, kernel_block, require_finite
from solvers.multiclass import require_labels_of_one_type, sort_by_class, without
from solvers.path.driver import (
    normalised,
    path_by_subproblems,
    path_from_gram,
    shares_of,
    solution_of,
    solve_grams,
)
from solvers.path.result import (
    FittedPath,
    FittedTrainings,
    PathProblem,
    blocks_of,
    labels_of,
    max_block_values,
)


def detached(estimator):
    """Return a copy that may be changed while a path is trained: the estimator stays as it is.

    Parameters are shared, but for a random generator, which would advance.
    """
    model = estimator._copy()
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state = deepcopy(model.random_state)
    return model


def check_path_input(estimator, X, y, check_finite):
    """Validate samples as `fit` does, but a precomputed Gram matrix in no more than one pass."""
    require_no_time_limit(estimator)
    if estimator.kernel != "precomputed" or sparse.issparse(X):
        return estimator._check_training_samples(X, y)
    X, y = np.asarray(X), check_labels(y)
    if X.dtype not in (np.float64, np.float32) or X.shape != (y.size, y.size):
        raise ValueError(
            f"fit_path with kernel='precomputed' needs a float Gram matrix of shape {(y.size, y.size)}, "
            f"samples × samples; got shape {X.shape}, {X.dtype}"
        )
    if check_finite:
        require_finite(X)
    return X, y


def require_no_time_limit(estimator):
    """Refuse an estimator with a limit that trainings of paths do not keep."""
    if estimator.max_seconds is not None:
        raise ValueError(
            f"fit_path takes no max_seconds, which is {estimator.max_seconds}: "
            "set it to None, or use fit for one C after the other"
        )


def check_labels(y):
    """Return labels as an array; refuse what is none of samples."""
    require_labels_of_one_type(y)
    y = np.asarray(y)
    if y.ndim != 1 or not y.size:
        raise ValueError(f"fit_path needs labels of shape (n_samples,), at least one; got {y.shape}")
    return y


def check_ascending(Cs):
    """Return Cs as an array; refuse what is not an ascending path."""
    Cs = np.asarray(Cs)
    values = Cs.tolist() if Cs.ndim == 1 and Cs.dtype.kind in "iuf" else []
    if not (values and values[0] > 0 and all(map(lt, values, values[1:])) and values[-1] < np.inf):
        raise ValueError(f"Cs must be ascending finite numbers > 0; got {Cs.tolist()}")
    return np.ascontiguousarray(Cs, dtype=np.float64)


def path_problem(model, y, Cs):
    """Sort samples by class, and return what the machines have in common and the weights of the classes."""
    classes, rows, class_start = sort_by_class(y)
    model._require_cache(rows.size)
    weights = model._weights_of_classes(classes, y)
    if model.class_weight is not None and not (weights > 0.0).all():  # refuses them
        without(rows, class_start, np.isin(y, classes[weights <= 0.0]), classes)
    problem = PathProblem(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        inverse_weights=1.0 / weights,
        at_once=model.multiclass == "all_at_once" and classes.size > 2,
        bias=0.0 if model.bias == "none" else 1.0,
        max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        breaks_ties=bool(model.break_ties),  # "auto" does
    )
    if model.class_weight is not None:
        require_penalties(np.append(Cs, 1.0), weights, ["class_weight"])  # 1: blocks hold 1/weight
    return problem, weights


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
            Ks,
            errors,
            problem,
            self._groups,
            left=left,
            solvers=solvers,
            weights=self._weights[own],
            outcomes=outcomes,
            workspace=self._workspace,
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
        room = max_block_values(self._models[0])
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
        As of `solvers.path.result.FittedPath`, by matrix and then by C.
    """

    def __init__(self, model, problem, outcomes, solutions):
        used = np.concatenate([solution.used for solution in solutions])
        by_draws = model._stops_by_draws(problem.rows.size)
        totals = totals_of(outcomes, used, by_draws)
        stopping = model._path_texts(outcomes, totals, by_draws)
        seconds = np.concatenate([solution.seconds for solution in solutions])
        super().__init__(solutions[0], outcomes, totals, stopping, seconds)


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
        solvers.path.result.FittedPath

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
        solvers.estimators.fit_path.PathGrid
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
