"""Training of one subproblem by SMO on kernel rows: steps, shrinking, gradients and certificate."""

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
from solvers.common.progress import first_look, has_stalled, resolution
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
from solvers.smo.working_set import working_set_steps

# Number of steps between two attempts to shrink.
STEPS_BEFORE_SHRINKING = 1000
# Smallest share of the active samples that must go for shrinking to pay.
WORTH_SHRINKING = 0.3
# Violation at which all samples become active once before the last steps, as in LIBSVM, in tolerances.
UNSHRINK_AT = 10.0
# Number of samples that steps pass over between two readings of the clock.
WORK_BEFORE_CHECK = 10_000_000
# Largest number of tighter tolerances that are tried while the recomputed gradient or gap misses `tol`.
REFINEMENTS = 30


class SmoState:
    """Signed weights β_i = y_i α_i of all samples, their gradient, and the active samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    loss : {"l1", "l2"}
        Hinge loss, or its square for "l2".
    second_order : bool
        Whether the pair of a step is the one with the largest gain; otherwise it violates most.
    working_set : int
        Number of weights over which a step minimises, even.
    """

    def __init__(self, problem, loss, second_order=True, working_set=2):
        n = problem.rows.size
        self.y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
        C = np.ascontiguousarray(np.broadcast_to(problem.C, (n,)))
        limit = C if loss == "l1" else np.full(n, np.inf)
        self.C, self.loss = C, loss
        self.second_order, self.working_set = second_order, working_set
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
        """Take steps with the active samples.

        Parameters
        ----------
        tol : float
            Largest violation.
        max_steps : int
            Number of steps after which the loop stops.

        Returns
        -------
        int
            Status of `smo_steps`.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        a = self.active
        chunk = max(1, WORK_BEFORE_CHECK // a.size)
        F, beta = self.F[a], self.beta[a]
        fixed = (self.low[a], self.high[a], self.diagonal[a], self.inverse_C[a])
        store = self.store
        try:
            while True:
                point = store.rows, store.slot, store.clock, F, beta, *fixed, tol, min(chunk, max_steps)
                if self.working_set == 2:
                    status, steps, wanted, gain = smo_steps(*point, self.second_order)
                else:
                    status, steps, wanted, gain = working_set_steps(
                        *point, self.second_order, self.working_set
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
        """Start from the weights of another solution, scaled down if they violate the bounds.

        Parameters
        ----------
        solution : solvers.problem.Solution
            Solution for other penalties.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        limit = np.maximum(self.high, -self.low)[solution.support]
        scale = min(1.0, (limit / solution.alpha).min(initial=1.0))
        self.beta[solution.support] = self.y[solution.support] * np.minimum(scale * solution.alpha, limit)
        self.recompute()

    def violation(self):
        """Return the extremes of F that define the violation among the active samples.

        Returns
        -------
        lowest, highest : float
            Smallest F of the weights that can grow, and largest F of those that can shrink.
        """
        a = self.active
        return extremes(self.F[a], self.beta[a], self.low[a], self.high[a])

    def violation_and_allowed(self, tol):
        """Return the violation among the active samples, and the largest violation at which steps end.

        Parameters
        ----------
        tol : float
            Largest violation that the user allows.

        Returns
        -------
        violation, allowed : float
            The violation, and the larger of `tol` and the violation that rounding alone can cause.
        """
        lowest, highest = self.violation()
        resolved = 2.0 * resolution(self.diagonal.max() * np.abs(self.beta).sum() + 1.0)
        return highest - lowest, max(tol, resolved)

    def shrink(self):
        """Deactivate samples whose weights would move beyond a bound (Fan, Chen & Lin 2005, section 4)."""
        a = self.active
        lowest, highest = self.violation()
        F, beta = self.F[a], self.beta[a]
        rests = ((beta <= self.low[a]) & (highest < F)) | ((beta >= self.high[a]) & (lowest > F))
        n_resting = np.count_nonzero(rests)
        # A step needs two samples, and rounding can make all weights seem to stay at their bounds.
        if n_resting >= WORTH_SHRINKING * a.size and a.size - n_resting >= 2:
            self.active = a[~rests]
            self.store.activate(self.active)

    def unshrink(self):
        """Activate all samples, and recompute the gradient of those that were not active.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        self._refresh(np.setdiff1d(np.arange(self.beta.size), self.active))

    def recompute(self):
        """Recompute the gradient of all samples and the objective, because every step adds rounding errors.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        self._refresh(np.arange(self.beta.size))
        self.objective = 0.5 * float(self.beta @ self.F - np.abs(self.beta).sum())

    def _refresh(self, samples):
        """Recompute the gradient of some samples from the weights, and activate all samples.

        Parameters
        ----------
        samples : int64 ndarray
            Indices of the samples whose gradient is recomputed.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        support = np.flatnonzero(self.beta)
        product = self.store.product(samples, support, self.beta[support])
        self.F[samples] = product + self.inverse_C[samples] * self.beta[samples] - self.y[samples]
        if self.active.size < self.beta.size:
            self.active = np.arange(self.beta.size)
            self.store.activate(self.active)

    def error(self):
        """Bound the error of a gradient that has just been recomputed.

        Returns
        -------
        float
            Bound on the error of a value.
        """
        weight = np.abs(self.beta).sum()
        n_terms = np.count_nonzero(self.beta)
        error = error_of_sums(self.kernel_error, np.abs(self.diagonal).max(), n_terms / TERMS_IN_PRODUCT, 0)
        return weight * error + FEW_ROUNDINGS * UNIT_ROUNDOFF

    def bias(self):
        """Return the bias: the mean of −F over the free weights of the active samples.

        Returns
        -------
        float
            Intercept b of the decision function.
        """
        a = self.active
        return bias_of(self.F[a], self.beta[a], self.low[a], self.high[a])

    def gap(self, error):
        """Bound the duality gap as a share of the primal objective.

        Parameters
        ----------
        error : float
            Bound on the error of the gradient; with 0, the result is an estimate instead of a bound.

        Returns
        -------
        float
            Upper bound on gap ÷ primal objective; an estimate if `error` is 0.
        """
        hinge = self.loss == "l1"
        return gap_of(self.F, self.beta, self.y, self.C, self.inverse_C, hinge, self.bias(), error)

    def largest_violation(self, error):
        """Bound the largest violation of the optimality conditions by any sample.

        Parameters
        ----------
        error : float
            Bound on the error of the gradient.

        Returns
        -------
        float
            Upper bound on the violation, in float64.
        """
        lowest, highest = self.violation()
        return highest - lowest + 2.0 * error

    def solution(self, status, gap, converged, tol):
        """Return the trained subproblem.

        If the deadline passed before inactive samples were examined again, the bias is that of the active
        samples.

        Parameters
        ----------
        status : int
            One of the statuses of `solvers.common.status`.
        gap : float
            Upper bound on the relative duality gap, certified in float64.
        converged : bool
            Whether violation and gap are certified.
        tol : float
            Largest violation and relative duality gap that count as converged.

        Returns
        -------
        solvers.problem.Solution
            The trained subproblem.
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
    """Minimise until violation and gap are certified to be at most `tol`.

    Parameters
    ----------
    state : SmoState
        State of the training, changed in place.
    tol : float
        Largest violation and relative duality gap that count as converged.
    shrinking : bool
        Whether samples at bounds may be deactivated.
    max_iter : int
        Number of steps after which the loop stops.

    Returns
    -------
    status : int
        One of the statuses of `solvers.common.status`.
    gap : float
        Upper bound on the relative duality gap, certified in float64.
    converged : bool
        Whether violation and gap are certified.

    Raises
    ------
    OutOfTime
        If the deadline passes before the certificate is computed.
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
        # A tighter tolerance does not help where the error of the kernel values dominates.
        enough = AFFORDABLE_SHARE * tol
        is_unreachable = 2.0 * error > tol or (
            state.gap(0.0) <= enough and state.largest_violation(0.0) <= enough
        )
        if status != CONVERGED or is_unreachable:
            break
        aimed_at *= 0.5
    return status, gap, False


def _minimise(state, tol, shrinking, max_iter):
    """Take steps and shrink until all samples together are optimal.

    Samples may still be inactive if `max_iter` is reached.

    Parameters
    ----------
    state : SmoState
        State of the training, changed in place.
    tol : float
        Largest violation.
    shrinking : bool
        Whether samples at bounds may be deactivated.
    max_iter : int
        Number of steps after which the loop stops.

    Returns
    -------
    int
        One of the statuses of `solvers.common.status`.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """
    n = state.beta.size
    interval = min(n, STEPS_BEFORE_SHRINKING) if shrinking else STEPS_BEFORE_SHRINKING
    was_unshrunk, steps_at_start, last_check = False, state.steps, first_look(n)
    while True:
        status = state.advance(tol, int(min(interval, max_iter - state.steps)))
        whole = state.active.size == n
        if status == CONVERGED and whole:
            return CONVERGED
        if state.steps >= max_iter:
            return LIMIT
        if whole and status in (NOT_POSITIVE, STALLED):
            return status
        if (steps := state.steps - steps_at_start) >= last_check[0]:
            if has_stalled(last_check, steps, state.objective, *state.violation_and_allowed(tol), n):
                return STALLED
            last_check = (2 * steps, state.objective, last_check[1] - state.objective)
        if status != PAUSED:
            state.unshrink()
        elif shrinking:
            lowest, highest = state.violation()
            if not whole and not was_unshrunk and highest - lowest <= UNSHRINK_AT * tol:
                was_unshrunk = True
                state.unshrink()
            state.shrink()
