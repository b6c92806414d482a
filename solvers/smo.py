"""SMO for the L1 and the L2 support vector machine with a bias constraint: LIBSVM's problems."""

from typing import Any

import numpy as np

from solvers.base import KernelSVC, Solution, check_choice, check_count, check_number
from solvers.certificate import AFFORDABLE, AIM, FEW_ROUNDINGS, TERMS_IN_PRODUCT, error_of_sums
from solvers.hull import CONVERGED, LIMIT, NOT_POSITIVE, STALLED, TIMEOUT
from solvers.kernels import UNIT_ROUNDOFF
from solvers.smo_rows import MachineKernel, OutOfTime, rows_of
from solvers.smo_steps import NO_STEP, OPTIMAL, PAUSED, ROW_MISSING, UNBOUNDED, smo_steps
from solvers.stopping import ENDED, left_over

STEPS_BEFORE_SHRINKING = 1000
# Leaving samples out pays when at least this share of the active ones goes.
WORTH_SHRINKING = 0.3
# Near the solution all samples are looked at once more before the last steps, as LIBSVM does.
UNSHRINK_AT = 10.0
WORK_BEFORE_LOOK = 10_000_000  # samples that steps pass over between two looks at the clock
# How often a tighter tolerance is tried where the gradient or the gap, computed afresh, misses it.
REFINEMENTS = 30
ENDS = {UNBOUNDED: NOT_POSITIVE, NO_STEP: STALLED}  # what `smo_steps` says, for a fit
REASONS = {**ENDED, NOT_POSITIVE: "the kernel is not positive definite"}


class SMOSVC(KernelSVC):
    """Support vector machine by sequential minimal optimisation.

    The dual with its constraint Σ α_i y_i = 0 (the bias is not penalised), second-order working-set selection
    (Fan, Chen & Lin 2005), shrinking (Joachims 1999) and LIBSVM's stopping rule.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slacks.
    loss : {"l1", "l2"}, default="l1"
        "l1": C Σ ξ_i, so 0 ≤ α_i ≤ C, as in `sklearn.svm.SVC`. "l2": ½ C Σ ξ_i², so α_i ≥ 0 on the kernel k +
        δ_ij / C. This is the modified L2 SVM of `NewtonSVC` but for the bias: there it is part of the kernel
        and penalised.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable, default="rbf"
        See `solvers.kernels`. A callable gets two arrays of samples and returns their kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the poly, sigmoid and imq kernels.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the margin (LIBSVM's rule), and largest
        `gap_`: when `converged_` is true, neither is above it.
    shrinking : bool, default=True
        Leave out samples whose weights are at a bound and look like staying there.
    gram_error : float, default=0.0
        Bound on the error of a value of a precomputed kernel matrix, for which the certificate allows. 0: the
        matrix is the kernel, and float32 values are taken as exact.
    cache_size : float, default=200
        Megabytes for kernel rows and for copies of the samples.
    max_iter : int, default=-1
        Limit of the steps of a whole `fit`; −1 for none.
    max_seconds : float, optional
        Limit of the wall time of `fit`.
    probability : bool, default=False
        Provide `predict_proba`, at the cost of five more trainings (Platt 1999).

    Attributes
    ----------
    objective_ : float
        Dual objective ½ αᵀQα − Σ α_i, summed over the machines: the number that LIBSVM prints as "obj".
    gap_, duality_gap_ : float
        Primal minus dual objective as a share of the primal one, with all roundings allowed for; the largest
        of the machines, above 1 where the dual objective may be negative. NaN if `max_seconds` ended a
        machine whose kernel matrix was not at hand: there was none yet, or it does not fit into `cache_size`.

    See `solvers.base.KernelSVC` for the others.
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="l1",
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol=1e-3,
        shrinking=True,
        gram_error=0.0,
        cache_size=200,
        max_iter=-1,
        max_seconds=None,
        probability=False,
    ):
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.gram_error = gram_error
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.probability = probability

    def _validate_params(self):
        super()._validate_params()
        check_choice("loss", self.loss, ("l1", "l2"))
        check_number("tol", self.tol, "a number > 0", lambda v: 0 < v < np.inf)
        check_number("cache_size", self.cache_size, "a number of megabytes > 0", lambda v: v > 0)
        if self.max_iter != -1:
            check_count("max_iter", self.max_iter)

    def _solve(self, problem):
        state = _State(problem, self.loss)
        tol = float(self.tol)
        try:
            state.store = rows_of(state.kernel, 1e6 * self.cache_size)
            status, gap, converged = _certify(state, tol, self.shrinking, problem.max_iter)
        except OutOfTime:
            status, gap, converged = TIMEOUT, np.nan, False
        return state.solution(status, gap, converged, tol)


class _State:
    """Weights β_i = y_i α_i of all samples, and which of them are active."""

    def __init__(self, problem, loss):
        n = problem.rows.size
        self.y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
        C = np.broadcast_to(problem.C, (n,))
        limit = C if loss == "l1" else np.full(n, np.inf)
        self.C, self.loss = C, loss
        self.low = np.where(self.y > 0, 0.0, -limit)
        self.high = np.where(self.y > 0, limit, 0.0)
        self.ridge = np.zeros(n) if loss == "l1" else 1.0 / C
        self.kernel = MachineKernel(problem)
        self.kernel_error = problem.kernel.error
        self.store: Any = None
        self.diag = self.kernel.diagonal() + self.ridge
        self.beta = np.zeros(n)
        self.F = -self.y
        self.active = np.arange(n)
        self.steps = 0
        self.objective = 0.0

    def advance(self, tol, max_steps):
        """Take steps with the active samples; return the status of `smo_steps`.

        Raises
        ------
        OutOfTime
        """
        a = self.active
        chunk = max(1, WORK_BEFORE_LOOK // a.size)
        F, beta = self.F[a], self.beta[a]
        fixed = (self.low[a], self.high[a], self.diag[a], self.ridge[a])
        store = self.store
        try:
            while True:
                status, steps, wanted, gain = smo_steps(
                    store.rows, store.slot, store.clock, F, beta, *fixed, tol, min(chunk, max_steps)
                )
                self.steps += steps
                self.objective -= gain
                max_steps -= steps
                if status == ROW_MISSING:
                    store.fetch(wanted)
                elif status != PAUSED:
                    return status
                self.kernel.check_time()
                if max_steps == 0:
                    return status
        finally:
            self.F[a], self.beta[a] = F, beta

    def violation(self):
        """Return min F over weights that can grow and max F over those that can shrink, among the active."""
        a = self.active
        F, beta = self.F[a], self.beta[a]
        can_grow, can_shrink = beta < self.high[a], beta > self.low[a]
        return F[can_grow].min(initial=np.inf), F[can_shrink].max(initial=-np.inf)

    def shrink(self):
        """Leave out samples at a bound that want to move beyond it (Fan, Chen & Lin 2005, section 4)."""
        a = self.active
        lowest, highest = self.violation()
        F, beta = self.F[a], self.beta[a]
        rests = ((beta <= self.low[a]) & (highest < F)) | ((beta >= self.high[a]) & (lowest > F))
        n_resting = np.count_nonzero(rests)
        # Less than two cannot take a step; rounding can make all of them look like staying at their bounds.
        if n_resting >= WORTH_SHRINKING * a.size and a.size - n_resting >= 2:
            self.active = a[~rests]
            self.store.activate(self.active)

    def unshrink(self):
        """Make all samples active and bring the gradient of the others up to date."""
        others = np.setdiff1d(np.arange(self.beta.size), self.active)
        support = np.flatnonzero(self.beta)
        product = self.store.product(others, support, self.beta[support])
        self.F[others] = product + self.ridge[others] * self.beta[others] - self.y[others]
        self.active = np.arange(self.beta.size)
        self.store.activate(self.active)

    def recompute(self):
        """Compute the gradient of all samples afresh: rounding has moved it a little at every step.

        Raises
        ------
        OutOfTime
        """
        everyone = np.arange(self.beta.size)
        support = np.flatnonzero(self.beta)
        product = self.store.product(everyone, support, self.beta[support])
        self.F = product + self.ridge * self.beta - self.y
        self.objective = 0.5 * float(self.beta @ self.F - np.abs(self.beta).sum())
        if self.active.size < everyone.size:
            self.active = everyone
            self.store.activate(everyone)

    def error(self):
        """Bound the error of a gradient that has just been computed."""
        weight = np.abs(self.beta).sum()
        n_terms = np.count_nonzero(self.beta)
        error = error_of_sums(self.kernel_error, np.abs(self.diag).max(), n_terms / TERMS_IN_PRODUCT, 0)
        return weight * error + FEW_ROUNDINGS * UNIT_ROUNDOFF

    def bias(self):
        """Return the bias: the mean over the free weights of the active samples."""
        a = self.active
        F, beta = self.F[a], self.beta[a]
        free = (beta > self.low[a]) & (beta < self.high[a])
        if free.any():
            return -F[free].mean()
        ends = np.array(self.violation())
        return -ends[np.isfinite(ends)].mean() if np.isfinite(ends).any() else 0.0

    def gap(self, error):
        """Primal minus dual objective as a share of the primal one, at most; with `error` 0, about."""
        alpha, bias = np.abs(self.beta), self.bias()
        weight = alpha.sum()
        # β·F = βᵀQβ − Σα
        quadratic = float(self.beta @ self.F + weight)
        rounding = 0.0  # of a sum over all samples, and what is made of it
        if error > 0.0:
            rounding = (alpha.size / TERMS_IN_PRODUCT + FEW_ROUNDINGS) * UNIT_ROUNDOFF
        doubt = error * (weight + 1.0) + rounding * (alpha @ np.abs(self.F) + weight)
        # A sum Σ β that is not quite zero moves the dual by as much as a bias can.
        imbalance = abs(self.beta.sum()) + rounding * weight
        dual = weight - 0.5 * (quadratic + doubt) - imbalance * (1.0 + abs(bias))
        dual -= rounding * (weight + abs(quadratic))
        # A dual that is not positive counts the more the smaller the primal objective is.
        sign = 1.0 if dual > 0.0 else -1.0
        # f(x_i) is F_i + y_i without the ridge's share.
        slack = np.maximum(0.0, sign * error - self.y * (self.F - self.ridge * self.beta + bias))
        norm2 = max(0.0, quadratic - float(self.ridge @ self.beta**2) + sign * doubt)
        loss = self.C @ slack if self.loss == "l1" else 0.5 * self.C @ slack**2
        primal = float(0.5 * norm2 + loss) * (1.0 + sign * rounding)
        return max(0.0, float((primal - dual) / primal)) * (1.0 + rounding) if primal > 0.0 else np.inf

    def largest_violation(self, error):
        """Largest violation of the optimality conditions by any sample, at most."""
        lowest, highest = self.violation()
        return highest - lowest + 2.0 * error

    def solution(self, status, gap, converged, tol):
        """Describe the machine.

        Where time was over before samples that had been left out could be looked at again, the bias is that
        of the others.
        """
        support = np.flatnonzero(self.beta)
        text = f"certified: violation and gap <= {tol:g}"
        return Solution(
            support=support,
            alpha=np.abs(self.beta[support]),
            bias=np.array([self.bias()]),
            objective=self.objective,
            gap=gap,
            n_iter=self.steps,
            n_kernel_evals=int(self.kernel.evaluations),
            status=status,
            converged=converged,
            stopping=text if converged else left_over(REASONS[status], gap),
        )


def _certify(state, tol, shrinking, max_iter):
    """Minimise until violation and gap are certified to be at most `tol`; return status, gap and outcome.

    Raises
    ------
    OutOfTime
        Where there is no time left for the certificate.
    """
    aimed_at = AIM * tol
    for _ in range(REFINEMENTS):
        try:
            status = _minimise(state, aimed_at, shrinking, max_iter)
        except OutOfTime:
            if not state.store.is_whole:
                raise
            status = TIMEOUT
        state.recompute()
        error = state.error()
        gap, violation = state.gap(error), state.largest_violation(error)
        if gap <= tol and violation <= tol:
            return CONVERGED, gap, True
        # A tighter tolerance does not help where it is the doubt about the kernel's values that counts.
        enough = AFFORDABLE * tol
        is_hopeless = 2.0 * error > tol or (
            state.gap(0.0) <= enough and state.largest_violation(0.0) <= enough
        )
        if status != CONVERGED or is_hopeless:
            break
        aimed_at *= 0.5
    return status, gap, False


def _minimise(state, tol, shrinking, max_iter):
    """Take steps and shrink until all samples together are optimal; return the status of the fit.

    At `max_iter` samples may be left out.

    Raises
    ------
    OutOfTime
    """
    n = state.beta.size
    interval = min(n, STEPS_BEFORE_SHRINKING) if shrinking else STEPS_BEFORE_SHRINKING
    looked_again = False
    while True:
        status = state.advance(tol, int(min(interval, max_iter - state.steps)))
        whole = state.active.size == n
        if status == OPTIMAL and whole:
            return CONVERGED
        if state.steps >= max_iter:
            return LIMIT
        if whole and status in ENDS:
            return ENDS[status]
        if status in (OPTIMAL, *ENDS):
            state.unshrink()
        elif shrinking:
            lowest, highest = state.violation()
            if not whole and not looked_again and highest - lowest <= UNSHRINK_AT * tol:
                looked_again = True
                state.unshrink()
            state.shrink()
