"""A machine trained by a loop on the hull: its start, room, clock and rounding, and the certificate."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.common.certificate import AIMED_SHARE, certified_gap, error_of_sums
from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.common.progress import DRAWS_PER_STEP, first_look, has_no_end, resolution
from solvers.common.status import CONVERGED, FULL, NOT_POSITIVE, PAUSED, STALLED, TIMEOUT, UNRESOLVED
from solvers.hull.bias import class_biases
from solvers.hull.descent import Rules, descend
from solvers.hull.draws import draw_first, inner_product
from solvers.hull.state import (
    CLIPPED,
    DRAWN,
    EPSILON,
    EVALUATIONS,
    ITERATIONS,
    SQUARE_NORM,
    SUPPORT,
    TRACKED,
    grow,
    new_hull,
)
from solvers.hull.stopping import (
    NOISE_ROUNDINGS,
    default_tolerance,
    rule_holds,
    rule_text,
    violation_threshold,
)
from solvers.hull.tracked_rows import row, track
from solvers.kernels.functions import GRAM, NOT_FINITE, kernel_diagonal
from solvers.problem import Solution

WORK_BEFORE_PAUSE = 30_000_000  # elementary operations between two looks at the clock: some 20 ms
MIN_WORK = 100_000  # the same where little time is left
WORK_PER_SECOND = 1_500_000_000
REFRESHES = 3  # of g from the kernel, when rounding has moved it
STEPS_WITHOUT_DRIFT = 1000  # rounding moves g by 10⁻¹⁶ a step
ALLOWED_DRIFT = 0.001  # of g that is let pass, as a share of ε ‖c‖²
ROWS_OF_STEP = 2.0  # of the kernel that a step takes where g is kept of every sample, about
ROWS_PER_STEP = 4  # rows of the kernel that take at least as long as a step without a look at the kernel
SHARE_OF_TIME = 0.25  # of what is left that it may take to begin with that
MIN_CERTIFICATE_EVALUATIONS = 50_000_000  # kernel evaluations that a certificate may always cost


@dataclass
class HullSolver:
    """Trains machines by a loop on the hull.

    Parameters
    ----------
    rules : Rules
    tol : "auto" or float
        ε of the stopping rule.
    cache_bytes : float
        Memory for kernel rows.
    bias : {"theoretic", "average", "none"}
    loop : callable
        Runs on the state until it needs its caller; returns a status.
    """

    rules: Rules
    tol: str | float
    cache_bytes: float
    bias: str
    loop: Callable = descend

    def solve(self, problem):
        """Train a machine; return its `Solution`."""
        rules = self.rules
        n_first = rules.first_samples if problem.start is None else problem.start.support.size
        hull = new_hull(problem, self.cache_bytes, rules.first_epsilon, n_first, rules.max_tracked)
        if problem.start is None:
            start_at_random(hull, n_first)
        else:
            start_from(hull, problem.start.support.astype(np.int64), problem.start.alpha)
        rule = rules.stopping
        if isinstance(self.tol, str):
            epsilon = default_tolerance(rule, hull.diagonal[0], problem.C[0])
        else:
            epsilon = self.tol
        max_iter = problem.max_iter
        for _ in range(REFRESHES):
            status, hull = self._descend(hull, AIMED_SHARE * epsilon, max_iter, problem)
            stale = int(hull.counts[ITERATIONS])
            if stale < STEPS_WITHOUT_DRIFT:
                break
            drift = refresh(hull, problem.deadline)
            stale = stale if np.isnan(drift) else 0
            is_settled = not drift > ALLOWED_DRIFT * epsilon * hull.real[SQUARE_NORM]
            if is_settled or status not in (CONVERGED, UNRESOLVED):
                break
        is_finite = np.isfinite(hull.g[: hull.counts[TRACKED]]).all()
        if not is_finite and problem.C.min() >= np.finfo(np.float64).tiny:  # below, 1/C is infinite
            raise ValueError(NOT_FINITE)
        if status == NOT_POSITIVE and not is_negative(hull):
            status = UNRESOLVED
        error = error_of_sums(*self._values(problem, hull), hull.counts[SUPPORT], stale)
        return self._solution(hull, status, float(epsilon), error, problem.deadline)

    def _values(self, problem, hull):
        """Bound the error of k̃ and its size."""
        if hull.tracked_all or problem.kernel.has_constant_diagonal:
            largest = hull.diagonal[: hull.counts[TRACKED]].max()
        else:
            kernel_value = 1.0 if problem.scale.size else kernel_diagonal(problem.X, problem.kernel).max()
            largest = kernel_value + problem.bias + (1.0 / problem.C).max()
        error = problem.kernel.error
        if problem.scale.size:  # of the value and, twice, of half the diagonal's roots
            error = 3.0 * error * problem.scale.max() ** 2
        return error, largest

    def _descend(self, hull, epsilon, max_iter, problem):
        """Iterate to the end, with a look at room, clock and progress on the way; return status and state."""
        steps, last = hull.counts[ITERATIONS], np.inf
        steps_at_start, look = equivalent_steps(hull), first_look(hull.n_samples)
        while True:
            status = self.loop(hull, epsilon, self.rules, max_iter, work_before_pause(problem.deadline))
            if status == FULL:
                hull = grow(hull, self.cache_bytes)
            elif status != PAUSED:
                return status, hull
            if clock() > problem.deadline:
                return TIMEOUT, hull
            if self._gains_from_all(hull, problem.deadline):
                hull = track_all(hull, problem, self.cache_bytes)
            if hull.counts[ITERATIONS] - steps > STEPS_WITHOUT_DRIFT:
                square_norm = hull.real[SQUARE_NORM]
                if abs(square_norm - last) < 1e-15 * last:
                    return UNRESOLVED, hull
                steps, last = hull.counts[ITERATIONS], square_norm
            if (n_done := equivalent_steps(hull) - steps_at_start) >= look[0]:
                if self._has_no_end(hull, look, n_done, epsilon):
                    return STALLED, hull
                look = (2 * n_done, hull.real[SQUARE_NORM], look[1] - hull.real[SQUARE_NORM])

    def _has_no_end(self, hull, look, n_done, epsilon):
        """Whether a training would take far too long; see `solvers.common.progress.has_no_end`."""
        square_norm, m = hull.real[SQUARE_NORM], hull.counts[TRACKED]
        diagonal, rule = hull.diagonal[:m], self.rules.stopping
        resolved, ahead = resolution(diagonal.max()), square_norm - hull.g[:m].min()
        lowest_allowed = min(
            violation_threshold(rule, epsilon, square_norm, diagonal[0]), square_norm - resolved
        )
        return has_no_end(look, n_done, square_norm, ahead, square_norm - lowest_allowed, hull.n_samples)

    def _gains_from_all(self, hull, deadline):
        """Whether draws have cost more so far than it would have to keep g of every sample."""
        if hull.tracked_all or not self.rules.max_tracked:
            return False
        n, counts = hull.n_samples, hull.counts
        values = float(n) * counts[SUPPORT]  # of the kernel, which it takes to begin
        seconds = _seconds(values, hull.point.size)
        return (
            counts[EVALUATIONS] > max(values, ROWS_OF_STEP * n * counts[ITERATIONS])
            and 8.0 * n * hull.features.shape[0] <= self.cache_bytes
            and seconds <= SHARE_OF_TIME * (deadline - clock())
        )

    def _solution(self, hull, status, epsilon, error, deadline):
        """Describe the point of the hull as a machine with margin 1; its g are off by at most `error`."""
        support = np.flatnonzero(hull.alpha[: hull.counts[TRACKED]])
        square_norm = hull.alpha[support] @ hull.g[support]
        if not hull.tracked_all:
            support = support[np.argsort(hull.sample[support])]
        alpha, g, label = hull.alpha[support], hull.g[support], hull.label[support]
        n_classes = hull.class_start.size - 1
        margin = square_norm if square_norm > 0.0 else 1.0  # no margin: the weights stay those of the hull
        biases = class_biases(self.bias, label, alpha, g, square_norm, n_classes) / margin
        gap = lowest = lowest_inner_product(hull, deadline)
        if not np.isnan(lowest):
            gap = float(certified_gap(square_norm, lowest, error, alpha.sum()))
        rule, square_radius = self.rules.stopping, hull.diagonal[0]
        converged = bool(rule_holds(rule, epsilon, square_norm, square_radius, lowest, error, gap))
        is_certain = hull.tracked_all and self.rules.exhaustive
        return Solution(
            support=hull.sample[support],
            alpha=alpha / margin,
            bias=biases[:1] if n_classes == 2 else biases,
            objective=float(square_norm),
            gap=gap,
            n_iter=int(hull.counts[ITERATIONS]),
            n_kernel_evals=int(hull.counts[EVALUATIONS]),
            n_clipped=int(hull.counts[CLIPPED]),
            status=int(status),
            converged=converged,
            stopping=rule_text(rule, converged, gap, status, 0 if is_certain else self.rules.draws),
            by_draws=not is_certain,
        )


def work_before_pause(deadline):
    """Return how many operations to do before the next look at the clock."""
    if deadline == np.inf:
        return WORK_BEFORE_PAUSE
    left = WORK_PER_SECOND * (deadline - clock())
    return int(np.clip(left, MIN_WORK, WORK_BEFORE_PAUSE))


def is_negative(hull):
    """Whether ‖c‖², computed afresh from the kernel, is negative by more than rounding explains."""
    refresh(hull, np.inf)
    rounding = np.finfo(hull.X.dtype if hull.kind == GRAM else np.float64).eps
    largest = np.abs(hull.diagonal[: hull.counts[TRACKED]]).max()
    return hull.real[SQUARE_NORM] < -NOISE_ROUNDINGS * rounding * largest


def equivalent_steps(hull):
    """Return the work so far as a number of steps: what draws and kernel values have cost counts as well."""
    counts = hull.counts
    values = counts[EVALUATIONS] // (ROWS_PER_STEP * hull.n_samples)
    return int(counts[ITERATIONS] + counts[DRAWN] // DRAWS_PER_STEP + values)


def _seconds(values, n_features):
    """Return about how long so many kernel values take."""
    return values * (2 + n_features // 8) / WORK_PER_SECOND


def seconds_to_start(X, n, weights):
    """Return about how long `start_from` takes with n samples, of X, whose weights are not 0."""
    return _seconds(float(n) * np.count_nonzero(weights), X.shape[1])


def start_at_random(hull, count):
    """Line 1 of the algorithms."""
    samples = draw_first(hull.state, hull.class_start, count)
    start_from(hull, samples, np.ones(samples.size))


def start_from(hull, samples, weights):
    """Start from the weights of some samples, scaled to the hull; numba would take seconds to compile it."""
    if hull.tracked_all:
        track(hull, 0, hull.rows.size)
    else:
        for i in samples.tolist():
            track(hull, i, i + 1)
    n, m, p = samples.size, hull.counts[TRACKED], hull.position[samples]
    hull.alpha[p] = weights / np.cumsum(weights)[-1]  # in their order, as the loops of numba add them up
    hull.support[:n], hull.support_index[p], hull.counts[SUPPORT] = p, np.arange(n), n
    hull.scratch[:m] = 0.0
    add_rows(hull, 0, n)
    hull.g[:m] = hull.scratch[:m]
    hull.real[SQUARE_NORM] = np.cumsum(hull.alpha[p] * hull.g[p])[-1]


def track_all(hull, problem, cache_bytes):
    """Return the state of the same point with g of every sample."""
    chosen = hull.support[: hull.counts[SUPPORT]].astype(np.intp)
    samples = hull.sample[chosen].astype(np.int64)
    whole = new_hull(problem, cache_bytes, hull.real[EPSILON], samples.size, hull.n_samples)
    whole.state[:] = hull.state
    start_from(whole, samples, hull.alpha[chosen])
    whole.counts[[ITERATIONS, CLIPPED]] = hull.counts[[ITERATIONS, CLIPPED]]
    whole.counts[EVALUATIONS] += hull.counts[EVALUATIONS]
    return whole


@njit(allocates=False)
def add_rows(hull, first, last):
    """Add α_p k̃(p, ·) of some support vectors to `hull.scratch`."""
    m, total = hull.counts[TRACKED], hull.scratch
    for k in range(first, last):
        p = hull.support[k]
        values = row(hull, p)
        weight = hull.alpha[p]
        for q in range(m):
            total[q] += weight * values[q]


def refresh(hull, deadline):
    """Compute g and ‖c‖² afresh from the kernel; return by how much g had drifted (NaN: no time to)."""
    m = hull.counts[TRACKED]
    step = _samples_before_pause(hull)
    hull.scratch[:m] = 0.0
    for first in range(0, hull.counts[SUPPORT], step):
        add_rows(hull, first, min(first + step, hull.counts[SUPPORT]))
        if clock() > deadline:
            return np.nan
    drift = np.abs(hull.scratch[:m] - hull.g[:m]).max()
    hull.g[:m] = hull.scratch[:m]
    hull.real[SQUARE_NORM] = hull.alpha[:m] @ hull.g[:m]
    return drift


def lowest_inner_product(hull, deadline):
    """Return the lowest g of all samples, or NaN where that would take more than training did."""
    m, n = hull.counts[TRACKED], hull.n_samples
    lowest = hull.g[:m].min()
    if hull.tracked_all:
        return lowest
    if n * m > max(MIN_CERTIFICATE_EVALUATIONS, hull.counts[EVALUATIONS]):
        return np.nan
    step = _samples_before_pause(hull)
    for first in range(0, n, step):
        lowest = min(lowest, lowest_of(hull, first, min(first + step, n)))
        if clock() > deadline:
            return np.nan
    return lowest


def _samples_before_pause(hull):
    return max(1, WORK_BEFORE_PAUSE // int(hull.counts[TRACKED] * (2 + hull.point.size // 8)))


@njit(allocates=False)
def lowest_of(hull, first, last):
    """Lowest g of the samples first ≤ i < last that are not tracked."""
    lowest = np.inf
    for i in range(first, last):
        if hull.position[i] < 0:
            lowest = min(lowest, inner_product(hull, i))
    return lowest
