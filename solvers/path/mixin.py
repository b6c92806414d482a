"""`fit_path` of the estimators that have one."""

import time
from typing import Any

import numpy as np

from solvers.common.limits import NO_LIMIT
from solvers.common.status import text_among
from solvers.kernels.functions import GRAM, kernel_block
from solvers.multiclass import sort_by_class, without
from solvers.path.driver import normalised, path_by_machines, path_from_gram
from solvers.path.fitted import FittedPath
from solvers.path.input import check_ascending, check_path_input, detached
from solvers.path.result import PathProblem
from solvers.path.totals import totals_of


class PathMixin:
    """Give a `KernelSVC` the method `fit_path`.

    The class has a method `_path_solver` that returns a `solvers.path.driver.BlockSolver`.
    """

    _path_solver: Any
    _machine_text: Any

    def fit_path(self, X, y, Cs):
        """Train for every C of an ascending path, each from the solution before it.

        The same algorithm as `fit` with ``warm_start=True`` and one C after the other, which ends by the same
        rule, in a fraction of the time: kernel values are read from one Gram matrix, or one of
        each machine, wherever that fits into `cache_size`. The estimator itself is left as it is. `max_iter`
        bounds the training for each C; `max_seconds` must be None; `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            A precomputed Gram matrix is read fastest when it is C-contiguous float32 and its rows are sorted
            by class.
        y : array-like of shape (n_samples,)
        Cs : array-like of shape (n_C,)
            Ascending.

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
        X, y = check_path_input(model, X, y)
        classes, rows, class_start = sort_by_class(y)
        model._require_cache(rows.size)
        kernel, source = model._resolve_kernel(X)
        weights = model._weights_of_classes(classes, y)
        if model.class_weight is not None and not (weights > 0.0).all():  # refuses them
            without(rows, class_start, np.isin(y, classes[weights <= 0.0]), classes)
        model._check_diagonal(source, kernel, rows, weights)
        scale = model._normalisation(source, kernel)
        problem = PathProblem(
            Cs=Cs,
            classes=classes,
            rows=rows,
            class_start=class_start,
            inverse_weights=1.0 / weights,
            at_once=model.multiclass == "all_at_once" and classes.size > 2,
            bias=0.0 if model.bias == "none" else 1.0,
            max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        )
        solver = model._path_solver()
        fits = 8.0 * rows.size**2 <= 1e6 * model.cache_size
        if kernel.kind == GRAM or (fits and model.prefers_gram(*X.shape)):
            K = source if kernel.kind == GRAM else kernel_block(source, source, kernel)
            K, error = normalised(K, kernel.error, scale)
            solution = path_from_gram(K, error, problem, solver)
        else:
            solution = path_by_machines(source, kernel, scale, problem, solver)
        model._check_path(solution)
        if scale.size:
            solution.weights *= scale[rows]
        solution.seconds *= (time.perf_counter() - started) / solution.seconds.sum()
        by_draws = model._stops_by_draws(rows.size)
        totals = totals_of(solution.outcomes, solution.used, by_draws)
        stopping = model._path_texts(solution.outcomes, totals, by_draws)
        samples = X if kernel.kind == GRAM else source
        return FittedPath(self, solution, totals, stopping, kernel, samples, scale.size > 0)

    def prefers_gram(self, n_samples, n_features):
        """Whether `fit_path` gains from a Gram matrix that the caller shares between calls."""
        return True

    def _stops_by_draws(self, n_samples):
        """Whether a search may end without a look at every sample."""
        return False

    def _check_path(self, solution):
        """Refuse a path that is not finite."""

    def _path_texts(self, outcomes, totals, by_draws):
        """Return `stopping_` for every C of a path."""
        n_machines = outcomes.gaps.shape[1]
        texts = []
        for j, (k, n_missed) in enumerate(zip(totals.worst.tolist(), totals.n_missed.tolist(), strict=True)):
            text = self._machine_text(
                outcomes.statuses[j, k], outcomes.converged[j, k], outcomes.gaps[j, k], by_draws
            )
            texts.append(text_among(text, n_missed, n_machines))
        return texts
