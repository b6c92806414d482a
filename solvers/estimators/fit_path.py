"""`fit_path` of the estimators, and `path_grid`, which trains the paths of several Gram matrices.

A grid sorts samples, checks parameters, allocates arrays and computes totals once for all its matrices. One
call of it trains on many small matrices.
"""

import time
from collections.abc import Sequence
from copy import deepcopy
from itertools import groupby
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from solvers.common.resources import NO_LIMIT
from solvers.common.status import STOPPING_TEXTS, text_among, uncertified_text
from solvers.estimators.parameters import Samples
from solvers.estimators.trained import trained_together
from solvers.gram.outcomes import Outcomes, new_outcomes, rows_used, totals_of
from solvers.gram.subproblems import block_dtype
from solvers.kernels.functions import GRAM, kernel_block, require_finite
from solvers.multiclass import require_labels_of_one_type, sort_by_class, strategy_of, without
from solvers.path.driver import (
    normalised,
    path_by_subproblems,
    path_from_gram,
    shares_of,
    solution_of,
    solve_grams,
    solve_once,
)
from solvers.path.result import (
    FittedPath,
    FittedTrainings,
    PathProblem,
    blocks_of,
    labels_of,
    max_block_values,
)
from solvers.path.tiles import MAX_SAMPLES, has_many_small_pairs, path_by_tiles


def detached(estimator):
    """Return a copy of an estimator that may change while a path is trained.

    Parameters are shared, except a random generator, which training would advance.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator, which stays unchanged.

    Returns
    -------
    KernelSVC
        Copy.
    """
    model = estimator._copy()
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state = deepcopy(model.random_state)
    return model


def check_path_input(estimator, X, y, check_finite):
    """Validate samples and labels as `fit` does. A precomputed Gram matrix takes at most one pass.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator that trains on the samples.
    X : {array-like, CSR}
        Samples or Gram matrix as the user passed them.
    y : array-like of shape (n_samples,)
        Class label of each sample.
    check_finite : bool
        Whether to search a precomputed matrix for values that are not finite.

    Returns
    -------
    X : {ndarray, CSR}
        Validated samples or Gram matrix.
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    """
    require_no_time_limit(estimator)
    if estimator.kernel != "precomputed" or sparse.issparse(X):
        return estimator._check_training_samples(X, y)
    X, y = np.asarray(X), check_labels(y)
    if X.dtype not in (np.float64, np.float32) or X.shape != (y.size, y.size):
        raise ValueError(
            f"fit_path with kernel='precomputed' needs a float Gram matrix of shape {(y.size, y.size)}, "
            f"samples × samples; got shape {X.shape}, {X.dtype}. Pass a float32 or float64 array"
        )
    if check_finite:
        require_finite(X)
    return X, y


def require_no_time_limit(estimator):
    """Raise if an estimator has a time limit, which the trainings of a path would not observe.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator to check.

    Raises
    ------
    ValueError
        `max_seconds` is not None.
    """
    if estimator.max_seconds is not None:
        raise ValueError(
            f"fit_path takes no max_seconds; got max_seconds={estimator.max_seconds}. "
            "Set it to None, or call fit for one C after the other"
        )


def check_labels(y):
    """Return labels as a non-empty one-dimensional array, or raise.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class label of each sample.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels.

    Raises
    ------
    ValueError
        The labels have another shape, or types without a common order.
    """
    require_labels_of_one_type(y)
    y = np.asarray(y)
    if y.ndim != 1 or not y.size:
        raise ValueError(f"fit_path needs labels of shape (n_samples,), at least one; got {y.shape}")
    return y


def check_ascending(Cs):
    """Return the values of C as an ascending array, or raise.

    Parameters
    ----------
    Cs : array-like of shape (n_C,)
        Values of C.

    Returns
    -------
    ndarray of shape (n_C,), float64
        Values of C.

    Raises
    ------
    ValueError
        The values are not ascending finite positive numbers.
    """
    Cs = np.asarray(Cs)
    values = Cs.tolist() if Cs.ndim == 1 and Cs.dtype.kind in "iuf" else []
    if not (values and values[0] > 0 and all(map(lt, values, values[1:])) and values[-1] < np.inf):
        raise ValueError(f"Cs must be ascending finite numbers > 0; got {Cs.tolist()}")
    return np.ascontiguousarray(Cs, dtype=np.float64)


def path_problem(model, y, Cs, sample_weight):
    """Sort samples by class, and return the problem of a path.

    Parameters
    ----------
    model : KernelSVC
        Estimator with its parameters, which receives `class_weight_`.
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    sample_weight : array-like of shape (n_samples,) or None
        Factors of C, one for each sample. None means 1.

    Returns
    -------
    PathProblem
        Data that all subproblems share. Samples without a positive weight are left out.
    """
    classes, rows, class_start = sort_by_class(y)
    model._require_cache(rows.size)
    model.class_weight_ = model._weights_of_classes(classes, y)
    weights = model._weights_of_samples(sample_weight, rows, class_start)
    if weights is None:
        weights = np.ones(rows.size)
    else:
        if not (weights > 0.0).all():
            rows, class_start = without(rows, class_start, weights <= 0.0, classes)
        weights = weights[rows]
        model._check_weights(weights, np.append(Cs, 1.0), sample_weight)  # 1: blocks contain 1/weight
    return PathProblem(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        inverse_weights=1.0 / weights,
        multiclass=strategy_of(model.multiclass, classes.size),
        bias=0.0 if model.bias == "none" else 1.0,
        max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        breaks_ties=bool(model.break_ties),  # True for "auto"
    )


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
            model._check_parameters()
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


class PathMixin:
    """Mixin that adds `fit_path` and `path_grid` to a `KernelSVC`.

    The class has a method `_path_solver` that returns a `solvers.path.driver.BlockSolver`. That solver also
    trains the subproblems of `fit`, unless the class overrides `_solve`.
    """

    C: Any
    bias: Any
    classes_: Any
    max_iter: Any
    multiclass: Any
    n_jobs: Any
    warm_start: Any
    _path_solver: Any
    tol: Any
    max_seconds: Any

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
        model._check_parameters()
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

    def _trains_together(self: Any, samples):
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

    def _train_together(self: Any, samples, started):
        """Train all pairs together, as a path of one C.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.

        Returns
        -------
        Trained
            Results.
        """
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
        solvers.estimators.fit_path.PathGrid
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
