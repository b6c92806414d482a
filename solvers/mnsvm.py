"""Minimal Norm SVM (Strack 2013, chapter 4): the point of the hull that is closest to the origin."""

import time

import numpy as np
from numba import njit

from solvers.cache import row
from solvers.draws import find_violator
from solvers.fitted_path import FittedPath
from solvers.geometric import GeometricSVC
from solvers.hull import (
    CONVERGED,
    EPSILON,
    GO_ON,
    ITERATIONS,
    LIMIT,
    SQUARE_NORM,
    STALLED,
    SUPPORT,
    TRACK_ALL,
    TRACKED,
    WORK,
    interruption,
)
from solvers.kernels import GRAM, NOT_FINITE, kernel_block, kernel_diagonal
from solvers.limits import NO_LIMIT
from solvers.minimal_norm_block import Rules
from solvers.minimal_norm_path import Course, path_by_machines, path_from_gram
from solvers.pairs import PAIRS, choose_partner, lowest_support
from solvers.path_input import check_ascending, check_path_input, detached, sort_trusted_labels
from solvers.seeds import random_seed
from solvers.stopping import RULES, fit_status_of, heaviest, rule_text, stopping_of, violation_threshold
from solvers.weights import move_weight

TINY = np.finfo(np.float64).tiny


@njit(nogil=True, cache=True, error_model="numpy")
def minimal_norm_point(
    hull, epsilon, rule, draws, subset, fair, exhaustive, pair, exponent, eta, max_iter, budget
):
    """Algorithm 4, with the draws of 5.1, the scales of Algorithm 5 and the over-relaxation of 5.3.

    Line 1 (α_0 ← 1) has been done by the caller. The function returns now and then (`PAUSED`, `FULL`) to let
    the caller look at the clock or make room, and goes on where it stopped when it is called again.

    Returns
    -------
    status : int
        One of those of `solvers.hull`.
    """
    alpha, g, diagonal, support, place = hull.alpha, hull.g, hull.diagonal, hull.support, hull.place
    real, counts, scratch = hull.real, hull.counts, hull.scratch
    counts[WORK] = 0
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # Lines 2–3: a violator x̃_v·c < (1 − ε̂)‖c‖² among the drawn samples, else among the support vectors.
        threshold = violation_threshold(rule, real[EPSILON], real[SQUARE_NORM], diagonal[0])
        v, failed = find_violator(hull, threshold, draws, subset, fair, exhaustive)
        if v < 0:
            v = lowest_support(g, support, counts[SUPPORT], scratch)
            if g[v] >= threshold:  # there is none: the ε̂-approximation is done
                if real[EPSILON] <= epsilon:
                    return CONVERGED
                real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
                continue

        # Lines 4–8, for this v, then up to 0.1 · (failed draws) times for support vectors that are violators.
        before = counts[ITERATIONS]
        for _ in range(min(1 + failed // 10, max_iter - before)):
            row_v = row(hull, v)
            u = choose_partner(
                pair, exponent, v, row_v, g, alpha, diagonal, support, counts[SUPPORT], scratch
            )
            if u < 0:
                break
            row_u = row(hull, u)
            beta_hat = (g[u] - g[v]) / max(diagonal[v] + diagonal[u] - 2.0 * row_v[u], TINY)
            beta = min(eta * beta_hat, alpha[u])
            m = counts[TRACKED]
            move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, place, counts, real)
            counts[ITERATIONS] += 1
            counts[WORK] += m + 4 * counts[SUPPORT]
            v = lowest_support(g, support, counts[SUPPORT], scratch)
            if g[v] >= threshold:
                break
        if counts[ITERATIONS] == before:
            return STALLED  # nobody lies behind a violator: rounding has the last word
    return LIMIT


class MNSVC(GeometricSVC):
    """Minimal Norm SVM: an L2-loss support vector machine found by moving weight between pairs of samples.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the squared slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable, default="rbf"
        See `solvers.kernels`. A callable gets two arrays of samples and returns their kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the poly, sigmoid and imq kernels.
    tol : "auto" or float, default="auto"
        ε of the stopping rule; "auto" is the paper's (`solvers.stopping.default_tolerance`). With
        ``stopping="mn"``, `gap_` is at most 1 − (1 − ε)⁴ ≈ 4 ε when `converged_` is true.
    draws : int, default=600
        Candidates that are drawn in vain before the search ends, N_d.
    subset : int, default=1
        Candidates of which the worst is taken, N_r.
    sampling : {"fair", "simple"}, default="fair"
        Draw a class first, then one of its samples; or any sample.
    exhaustive : bool, default=True
        Whether all samples are looked at when the draws have failed, before the search ends, where g of each
        is at hand: with up to 50,000 samples, or in `fit_path`. False: the search ends as in the papers, and
        there may be a violator that was not drawn.
    pair : {"imdm", "mdm", "gmdm"}, default="imdm"
        Which support vector gives its weight to the violator (5.6).
    pair_exponent : float, default=0.5
        k of gmdm, between 0 (mdm) and 1 (imdm).
    eta : float, default=1.0
        Over-relaxation, 1 ≤ η < 2 (5.3).
    stopping : {"mn", "adjmn", "meb"}, default="mn"
        Stopping rule. Those of the ball, "adjmn" and "meb", need the same k(x, x) and the same C for all
        samples.
    bias : {"theoretic", "average", "none"}, default="theoretic"
        Bias Σ α_i y_i (2.98), the mean of the optimality conditions (5.24), or a machine without one (chapter
        6).
    multiclass : {"pairwise", "all_at_once"}, default="pairwise"
        A machine for every pair of classes, or one for all (5.4).
    gram_error : float, default=0.0
        Bound on the error of a value of a precomputed kernel matrix, for which the certificate allows. 0: the
        matrix is the kernel, and float32 values are taken as exact.
    cache_size : float, default=200
        Megabytes for kernel rows.
    max_iter : int, default=-1
        Limit of the iterations of a whole `fit`; −1 for none.
    max_seconds : float, optional
        Limit of the wall time of `fit`.
    warm_start : bool, default=False
        Start a `fit` on the same samples and labels from the weights of the last one.
    probability : bool, default=False
        Offer `predict_proba` (`solvers.platt`); costs five more fits.
    random_state : int, RandomState or None, default=None
        Source of the draws.

    Attributes
    ----------
    See `solvers.base.KernelSVC`.
    """

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol="auto",
        draws=600,
        subset=1,
        sampling="fair",
        exhaustive=True,
        pair="imdm",
        pair_exponent=0.5,
        eta=1.0,
        stopping="mn",
        bias="theoretic",
        multiclass="pairwise",
        gram_error=0.0,
        cache_size=200,
        max_iter=-1,
        max_seconds=None,
        warm_start=False,
        probability=False,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.draws = draws
        self.subset = subset
        self.sampling = sampling
        self.exhaustive = exhaustive
        self.pair = pair
        self.pair_exponent = pair_exponent
        self.eta = eta
        self.stopping = stopping
        self.bias = bias
        self.multiclass = multiclass
        self.gram_error = gram_error
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.probability = probability
        self.random_state = random_state

    def _check_diagonal(self, X, kernel, rows, C):
        if self.stopping == "mn":
            return
        of_kernel = np.ones(1) if kernel.has_constant_diagonal else kernel_diagonal(X, kernel)[rows]
        for what, values in (("k(x, x)", of_kernel), ("C", C)):
            if not np.allclose(values, values[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"stopping={self.stopping!r} measures by a ball on which all samples lie, and needs the "
                    f"same {what} for all of them; it lies between {values.min():g} and {values.max():g}: "
                    "use stopping='mn'"
                )

    def fit_path(self, X, y, Cs):
        """Train for every C of an ascending path, each from the solution before it.

        The same algorithm as `fit` with ``warm_start=True`` and one C after the other, hence within `tol` of
        the same machines, in a fraction of the time: kernel values are read from one Gram matrix, or one of
        each machine, wherever that fits into `cache_size`. The estimator itself is left as it is. `max_iter`
        bounds the training for each C; `max_seconds` must be None; `probability` is not heeded.

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
        model._check_diagonal(source, kernel, rows, np.ones(1))
        course = Course(
            Cs=Cs,
            at_once=model.multiclass == "all_at_once" and classes.size > 2,
            bias=0.0 if model.bias == "none" else 1.0,
            tol=model.tol,
            rules=model._rules(),
            max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
            seed=random_seed(model.random_state),
        )
        memory = 1e6 * model.cache_size
        if kernel.kind == GRAM or 8.0 * rows.size**2 <= memory:
            K = source if kernel.kind == GRAM else kernel_block(source, source, kernel)
            solution = path_from_gram(K, classes, rows, class_start, course, kernel.error)
        else:
            solution = path_by_machines(
                source, kernel, classes, rows, class_start, course, memory, model._solve
            )
        if not np.isfinite(solution.norm2s[Cs >= TINY]).all():  # below, 1/C is infinite
            raise ValueError(NOT_FINITE)
        solution.seconds *= (time.perf_counter() - started) / solution.seconds.sum()
        status = self._path_statuses(solution, rows.size)
        stopping = [self._path_text(solution, j, rows.size) for j in range(Cs.size)]
        return FittedPath(self, solution, status, stopping, kernel, X if kernel.kind == GRAM else source)

    def _stops_by_draws(self, n_samples):
        """Whether a search of a path may end without a look at every sample."""
        return not (self.exhaustive and n_samples <= TRACK_ALL) and self.draws < n_samples

    def _path_statuses(self, solution, n_samples):
        """Return `fit_status_` for every C of the path."""
        by_draws = self._stops_by_draws(n_samples)
        pairs = zip(solution.outcomes, solution.converged, strict=True)
        return np.array(
            [heaviest([fit_status_of(s, c, by_draws) for s, c in zip(*of_C, strict=True)]) for of_C in pairs]
        )

    def _path_text(self, solution, j, n_samples):
        """Return `stopping_` for the path's j-th C."""
        gaps, converged, status = solution.gaps[j], solution.converged[j], solution.outcomes[j]
        draws = self.draws if self._stops_by_draws(n_samples) else 0
        rule = RULES[self.stopping]
        return stopping_of(
            converged, gaps, lambda k: rule_text(rule, converged[k], gaps[k], status[k], draws)
        )

    def _rules(self):
        return Rules(
            stopping=RULES[self.stopping],
            draws=int(self.draws),
            subset=int(self.subset),
            fair=self.sampling == "fair",
            exhaustive=bool(self.exhaustive),
            pair=PAIRS[self.pair],
            exponent=float(self.pair_exponent),
            eta=float(self.eta),
            average_bias=self.bias == "average",
        )

    def _advance(self, hull, epsilon, max_iter, budget):
        return minimal_norm_point(
            hull,
            epsilon,
            RULES[self.stopping],
            int(self.draws),
            int(self.subset),
            self.sampling == "fair",
            bool(self.exhaustive),
            PAIRS[self.pair],
            float(self.pair_exponent),
            float(self.eta),
            max_iter,
            budget,
        )
