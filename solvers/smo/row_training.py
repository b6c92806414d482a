"""One machine by SMO: steps, shrinking, refreshed gradients and the certificate at the end."""

from typing import Any

import numpy as np

from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    FEW_ROUNDINGS,
    TERMS_IN_PRODUCT,
    UNIT_ROUNDOFF,
    error_of_sums,
)
from solvers.common.progress import first_look, has_no_end, resolution
from solvers.common.status import (
    CONVERGED,
    LIMIT,
    NOT_POSITIVE,
    PAUSED,
    ROW_MISSING,
    STALLED,
    TIMEOUT,
    certified_text,
    uncertified_text,
)
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.problem import Solution
from solvers.smo.certificate import SMO_STOPPING_TEXTS, bias_of, extremes, gap_of
from solvers.smo.row_steps import smo_steps

STEPS_BEFORE_SHRINKING = 1000
# Leaving samples out pays when at least this share of the active ones goes.
WORTH_SHRINKING = 0.3
# Near the solution all samples are looked at once more before the last steps, as LIBSVM does.
UNSHRINK_AT = 10.0
WORK_BEFORE_LOOK = 10_000_000  # samples that steps pass over between two looks at the clock
# How often a tighter tolerance is tried where the gradient or the gap, computed afresh, misses it.
REFINEMENTS = 30


class SmoState:
    """Weights β_i = y_i α_i of all samples, and which of them are active."""

    def __init__(self, problem, loss):
        n = problem.rows.size
        self.y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
        C = np.ascontiguousarray(np.broadcast_to(problem.C, (n,)))
        limit = C if loss == "l1" else np.full(n, np.inf)
        self.C, self.loss = C, loss
        self.low = np.where(self.y > 0, 0.0, -limit)
        self.high = np.where(self.y > 0, limit, 0.0)
        self.inverse_C = np.zeros(n) if loss == "l1" else 1.0 / C
        self.kernel = SubproblemKernel(problem)
        self.kernel_error = problem.kernel.error
        self.store: Any = None
        self.diagonal = self.kernel.diagonal() + self.inverse_C
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
        fixed = (self.low[a], self.high[a], self.diagonal[a], self.inverse_C[a])
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

    def start_from(self, solution):
        """Begin with the weights of a solution for other penalties, scaled down where they leave the bounds.

        Raises
        ------
        OutOfTime
        """
        limit = np.maximum(self.high, -self.low)[solution.support]
        scale = min(1.0, (limit / solution.alpha).min(initial=1.0))
        self.beta[solution.support] = self.y[solution.support] * np.minimum(scale * solution.alpha, limit)
        self.recompute()

    def violation(self):
        """Return min F over weights that can grow and max F over those that can shrink, among the active."""
        a = self.active
        return extremes(self.F[a], self.beta[a], self.low[a], self.high[a])

    def violation_and_allowed(self, tol):
        """Return the violation among the active, and the largest that steps to `tol` or to rounding leave."""
        lowest, highest = self.violation()
        resolved = 2.0 * resolution(self.diagonal.max() * np.abs(self.beta).sum() + 1.0)
        return highest - lowest, max(tol, resolved)

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
        self._refresh(np.setdiff1d(np.arange(self.beta.size), self.active))

    def recompute(self):
        """Compute the gradient of all samples afresh: rounding has moved it a little at every step.

        Raises
        ------
        OutOfTime
        """
        self._refresh(np.arange(self.beta.size))
        self.objective = 0.5 * float(self.beta @ self.F - np.abs(self.beta).sum())

    def _refresh(self, samples):
        """Compute the gradient of some samples from the weights; make all active."""
        support = np.flatnonzero(self.beta)
        product = self.store.product(samples, support, self.beta[support])
        self.F[samples] = product + self.inverse_C[samples] * self.beta[samples] - self.y[samples]
        if self.active.size < self.beta.size:
            self.active = np.arange(self.beta.size)
            self.store.activate(self.active)

    def error(self):
        """Bound the error of a gradient that has just been computed."""
        weight = np.abs(self.beta).sum()
        n_terms = np.count_nonzero(self.beta)
        error = error_of_sums(self.kernel_error, np.abs(self.diagonal).max(), n_terms / TERMS_IN_PRODUCT, 0)
        return weight * error + FEW_ROUNDINGS * UNIT_ROUNDOFF

    def bias(self):
        """Return the bias: the mean over the free weights of the active samples."""
        a = self.active
        return bias_of(self.F[a], self.beta[a], self.low[a], self.high[a])

    def gap(self, error):
        """Primal minus dual objective as a share of the primal one, at most; with `error` 0, about."""
        hinge = self.loss == "l1"
        return gap_of(self.F, self.beta, self.y, self.C, self.inverse_C, hinge, self.bias(), error)

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
            stopping=certified_text(tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap),
        )


def certify(state, tol, shrinking, max_iter):
    """Minimise until violation and gap are certified to be at most `tol`; return status, gap and outcome.

    Raises
    ------
    OutOfTime
        Where there is no time left for the certificate.
    """
    aimed_at = AIMED_SHARE * tol
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
        enough = AFFORDABLE_SHARE * tol
        is_unreachable = 2.0 * error > tol or (
            state.gap(0.0) <= enough and state.largest_violation(0.0) <= enough
        )
        if status != CONVERGED or is_unreachable:
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
    looked_again, steps_at_start, look = False, state.steps, first_look(n)
    while True:
        status = state.advance(tol, int(min(interval, max_iter - state.steps)))
        whole = state.active.size == n
        if status == CONVERGED and whole:
            return CONVERGED
        if state.steps >= max_iter:
            return LIMIT
        if whole and status in (NOT_POSITIVE, STALLED):
            return status
        if (steps := state.steps - steps_at_start) >= look[0]:
            if has_no_end(look, steps, state.objective, *state.violation_and_allowed(tol), n):
                return STALLED
            look = (2 * steps, state.objective, look[1] - state.objective)
        if status != PAUSED:
            state.unshrink()
        elif shrinking:
            lowest, highest = state.violation()
            if not whole and not looked_again and highest - lowest <= UNSHRINK_AT * tol:
                looked_again = True
                state.unshrink()
            state.shrink()
