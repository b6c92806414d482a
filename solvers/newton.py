"""The modified L2 SVM to a certified gap, by whichever exact method suits the problem."""

import time
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from solvers.base import KernelSVC, Solution, check_choice, check_count, check_number
from solvers.block_path import method_names
from solvers.fitted_path import FittedPath
from solvers.hull import CONVERGED
from solvers.kernels import GRAM, kernel_block
from solvers.limits import NO_LIMIT
from solvers.newton_gram import fit_path
from solvers.newton_machine import FEATURE_ROWS, solve_machine
from solvers.newton_path import path_by_machines
from solvers.path_input import check_ascending, check_path_input, detached, sort_trusted_labels
from solvers.stopping import ENDED, left_over, stopping_of

# With at most this many features the kernel's rank is small enough to do without a Gram matrix.
FEW_FEATURES = 4


@dataclass
class NewtonSolution(Solution):
    """A trained machine and what only `NewtonSVC` tells about it."""

    methods: int = 0
    weights: np.ndarray | None = None  # (n,) to start from


class NewtonSVC(KernelSVC):
    """Modified L2 SVM, solved exactly.

    Minimises ``||c||²`` over the hull of the training samples (Strack 2013, 2.114), as `MNSVC` does, until
    its relative error is certified to be at most `tol`. Per machine the cheapest exact method is taken:
    Newton's method in a low-rank feature space (pivoted Cholesky; Fine & Scheinberg 2001), second-order pair
    steps on the Gram block (Fan, Chen & Lin 2005), or Newton's method on the support block (Chapelle 2007).

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the squared slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable, default="rbf"
        See `solvers.kernels`. A callable gets two arrays of samples and returns their kernel matrix. A
        precomputed float32 Gram matrix is used as it is, with sums in float64.
    gamma : {"scale", "auto"} or float, default="scale"
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the poly, sigmoid and imq kernels.
    tol : float, default=1e-3
        Bound on ``1 - (max(g_min, 0) / ||c||²)²`` over all samples, hence on the relative error of the
        objective.
    bias : {"theoretic", "none"}, default="theoretic"
        Bias Σ α_i y_i (2.98), or a machine without one. (At the exact solution the average bias is the
        theoretic one.)
    multiclass : {"pairwise", "all_at_once"}, default="pairwise"
        A machine for every pair of classes, or one for all (5.4).
    compact : bool, default=False
        Where a machine was solved in an r-dimensional feature space, publish it on its r pivots (`dual_coef_`
        may then be negative) instead of on all of its support vectors.
    gram_error : float, default=0.0
        Bound on the error of a value of a precomputed kernel matrix, for which the certificate allows. 0: the
        matrix is the kernel, and float32 values are taken as exact.
    cache_size : float, default=1000
        Megabytes that the Gram block of a machine may take. A larger machine is solved on a growing working
        set, or on kernel rows where that does not fit either.
    max_iter : int, default=-1
        Limit of the pair steps and Newton rounds of a whole `fit`; −1 for none.
    max_seconds : float, optional
        Limit of the wall time of `fit`.
    warm_start : bool, default=False
        Start a `fit` on the same samples and labels from the weights of the last one.
    probability : bool, default=False
        Provide `predict_proba`, at the cost of five more trainings (Platt 1999).

    Attributes
    ----------
    method_ : str
        The methods that were used, such as ``"pair_steps+support_newton"``.

    See `solvers.base.KernelSVC` for the others.
    """

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol=1e-3,
        bias="theoretic",
        multiclass="pairwise",
        compact=False,
        gram_error=0.0,
        cache_size=1000,
        max_iter=-1,
        max_seconds=None,
        warm_start=False,
        probability=False,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.bias = bias
        self.multiclass = multiclass
        self.compact = compact
        self.gram_error = gram_error
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.probability = probability

    def _validate_params(self):
        super()._validate_params()
        check_number("tol", self.tol, "a number between 0 and 1", lambda v: 0 < v < 1)
        check_choice("bias", self.bias, ("theoretic", "none"))
        check_choice("multiclass", self.multiclass, ("pairwise", "all_at_once"))
        check_number("cache_size", self.cache_size, "a number of megabytes > 0", lambda v: v > 0)
        if self.max_iter != -1:
            check_count("max_iter", self.max_iter)

    def _publish(self, X, samples, machines):
        super()._publish(X, samples, machines)
        self.method_ = method_names(reduce(or_, (solution.methods for solution in machines.solutions)))

    def _solve(self, problem):
        start = None if problem.start is None else problem.start.weights
        solved = solve_machine(
            problem,
            float(self.C),
            np.array([float(self.C)]),
            tol=float(self.tol),
            max_iter=problem.max_iter,
            memory=1e6 * self.cache_size,
            start=start,
        )
        weights = solved.weights[0]
        if self.compact and len(solved.coefficients):
            support = np.sort(solved.pivots)
            alpha = solved.coefficients[0][np.argsort(solved.pivots)]
        else:
            support = np.flatnonzero(weights)
            alpha = weights[support]
        return NewtonSolution(
            support=support,
            alpha=alpha,
            bias=self._biases(problem, support, alpha),
            objective=float(solved.norm2s[0]),
            gap=float(solved.gaps[0]),
            n_iter=int(solved.iterations[0]),
            n_kernel_evals=solved.evaluations,
            status=int(solved.statuses[0]),
            converged=bool(solved.statuses[0] == CONVERGED),
            stopping=self._text(solved.statuses[0], solved.gaps[0]),
            methods=int(solved.methods[0]),
            weights=weights,
        )

    def _text(self, status, gap):
        return f"certified: gap <= {self.tol:g}" if status == CONVERGED else left_over(ENDED[status], gap)

    def _path_text(self, solution, j):
        """Return `stopping_` for the path's j-th C."""
        gaps, statuses = solution.gaps[j], solution.outcomes[j]
        return stopping_of(solution.converged[j], gaps, lambda k: self._text(statuses[k], gaps[k]))

    def _biases(self, problem, support, alpha):
        """Return Σ α_i (y_t·y_i) for the first class of a pair, or for all classes."""
        n_classes = problem.class_start.size - 1
        label = np.searchsorted(problem.class_start, support, side="right") - 1
        own = np.bincount(label, alpha, n_classes) * problem.bias
        biases = own - (own.sum() - own) / (n_classes - 1)
        return biases[:1] if n_classes == 2 else biases

    def prefers_gram(self, n_samples, n_features):
        """Whether `fit_path` gains from a Gram matrix that the caller shares between calls.

        Low-dimensional data is solved faster from its features: its kernels have small rank, and only a few
        of their columns are ever evaluated.
        """
        return n_features > FEW_FEATURES or n_samples < FEATURE_ROWS

    def fit_path(self, X, y, Cs):
        """Train for every C of an ascending path, each from the solution before it.

        The same machines as `fit` with ``warm_start=True`` and one C after the other gives, to within `tol`,
        in a fraction of the time. The estimator itself is left as it is. `max_iter` bounds the training for
        each C; `max_seconds` must be None; `probability` is not heeded.

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
        solvers.fitted_path.FittedPath
        """
        started = time.perf_counter()
        model = detached(self)
        model._validate_params()
        Cs = check_ascending(Cs)
        X, y = check_path_input(model, X, y)
        classes, rows, class_start = sort_trusted_labels(y)
        model._require_cache(rows.size)
        kernel, source = model._resolve_kernel(X)
        bias = 0.0 if model.bias == "none" else 1.0
        at_once = model.multiclass == "all_at_once" and classes.size > 2
        training_set = (classes, rows, class_start, Cs)
        memory = 1e6 * model.cache_size
        limits = {
            "tol": float(model.tol),
            "max_iter": NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        }
        fits = 8.0 * rows.size**2 <= memory
        if kernel.kind == GRAM or (fits and model.prefers_gram(*X.shape)):
            K = source if kernel.kind == GRAM else kernel_block(source, source, kernel)
            solution = fit_path(
                K, *training_set, at_once=at_once, bias=bias, kernel_error=kernel.error, **limits
            )
        else:
            solution = path_by_machines(source, kernel, *training_set, at_once, bias, **limits, memory=memory)
        solution.seconds *= (time.perf_counter() - started) / solution.seconds.sum()
        stopping = [model._path_text(solution, j) for j in range(Cs.size)]
        vectors = X if kernel.kind == GRAM else source
        return FittedPath(self, solution, solution.outcomes.max(axis=1), stopping, kernel, vectors)
