"""Training of one subproblem by a loop on kernel rows: start, memory, clock, rounding and certificate."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from solvers.common.certificate import AIMED_SHARE, certified_gap, error_of_sums
from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.common.progress import DRAWS_PER_STEP, first_look, has_stalled, resolution
from solvers.common.status import CONVERGED, FULL, NOT_POSITIVE, PAUSED, STALLED, TIMEOUT, UNRESOLVED
from solvers.hull.bias import class_biases
from solvers.hull.descent import Rules, descend
from solvers.hull.draws import draw_first, inner_product
from solvers.hull.state import (
    CLIPPED,
    DRAWN,
    EPSILON,
    EVALUATIONS,
    FULL_UPDATES,
    ITERATIONS,
    SLOTS,
    SQUARE_NORM,
    SUPPORT,
    TRACKED,
    WholeHull,
    emptied,
    grow,
    new_hull,
)
from solvers.hull.stopping import (
    CORE,
    NOISE_ROUNDINGS,
    default_tolerance,
    rule_holds,
    rule_text,
    violation_threshold,
)
from solvers.hull.tracked_rows import row, track
from solvers.kernels.functions import GRAM, NOT_FINITE, kernel_diagonal
from solvers.problem import Solution

# Elementary operations between two readings of the clock, about 20 ms.
WORK_BEFORE_PAUSE = 30_000_000
# The same close to the deadline, in elementary operations.
MIN_WORK = 100_000
WORK_PER_SECOND = 1_500_000_000
# Largest number of descents for one C. Before each one but the first, g is recomputed from the kernel.
REFRESHES = 3
# Steps after which g is recomputed, because rounding moves it by about 10⁻¹⁶ at each step.
STEPS_WITHOUT_DRIFT = 1000
# Largest rounding drift of g that needs no refinement, as a share of ε ‖c‖².
ALLOWED_DRIFT = 0.001
# Approximate number of kernel rows that a step computes where all samples are tracked.
ROWS_OF_STEP = 2.0
# Kernel rows that take at least as long to compute as a step without kernel evaluations.
ROWS_PER_STEP = 4
# Largest share of the remaining time that the start of tracking all samples may take.
SHARE_OF_TIME = 0.25
# Kernel evaluations that a certificate may always cost.
MIN_CERTIFICATE_EVALUATIONS = 50_000_000


@dataclass
class HullSolver:
    """Solver of subproblems by a loop on kernel rows.

    Attributes
    ----------
    rules : Rules
        Parameters of the algorithm.
    tol : "auto" or float
        Tolerance ε of the stopping rule; "auto" is the tolerance of the papers.
    cache_bytes : float
        Memory for kernel rows, in bytes.
    bias : {"theoretic", "average", "none"}
        Formula of the bias.
    loop : callable
        Compiled loop that runs on the state until it needs its caller, and returns a status. Default
        `descend`.
    keeps_rows : bool
        Whether the next training on the same samples takes over the cached kernel rows. Its results are the
        same, and it counts fewer kernel values.
    """

    rules: Rules
    tol: str | float
    cache_bytes: float
    bias: str
    loop: Any = descend
    keeps_rows: bool = False
    _last: WholeHull | None = field(default=None, init=False)

    def solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.

        Returns
        -------
        solvers.problem.Solution
            The trained subproblem.

        Raises
        ------
        ValueError
            If kernel values are not finite.
        """
        rules = self.rules
        problem = self._with_affordable_start(problem)
        n_first = rules.first_samples if problem.start is None else problem.start.support.size
        hull = self._take_over(problem)
        if hull is None:
            hull = new_hull(problem, self.cache_bytes, n_first, rules.max_tracked)
        self.loop.compile_ahead(hull, 1.0, rules, problem.max_iter, work_before_pause(problem.deadline))
        if problem.start is None:
            start_at_random(hull, n_first)
        else:
            start_from(hull, problem.start.support.astype(np.int64), problem.start.alpha)
        if self.keeps_rows and isinstance(hull, WholeHull):
            self._last = hull
        rule = rules.stopping
        if isinstance(self.tol, str):
            epsilon = default_tolerance(rule, hull.diagonal[0], problem.C[0])
        else:
            epsilon = self.tol
        hull.real[EPSILON] = max(rules.first_epsilon, AIMED_SHARE * epsilon)
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
        if not is_finite and problem.C.min() >= np.finfo(np.float64).tiny:  # 1/C is infinite for smaller C
            raise ValueError(NOT_FINITE)
        if status == NOT_POSITIVE and not is_negative(hull):
            status = UNRESOLVED
        error = error_of_sums(*self._values(problem, hull), hull.counts[SUPPORT], stale)
        return self._solution(hull, status, float(epsilon), error, problem.deadline)

    def _with_affordable_start(self, problem):
        """Return the problem, without its start if a path would start from a core set beyond the cache.

        A core set never shrinks. If its rows do not fit, training from nothing computes fewer values.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.

        Returns
        -------
        solvers.problem.Problem
            The problem, or a copy without a start.
        """
        if not self.keeps_rows or problem.start is None or self.rules.stopping != CORE:
            return problem
        fits = 8.0 * problem.rows.size * problem.start.support.size <= self.cache_bytes
        return problem if fits else replace(problem, start=None)

    def _take_over(self, problem):
        """Return the state of the last training, without weights, if it was on the same samples.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.

        Returns
        -------
        WholeHull or None
            State whose cache has the kernel rows of the last training.
        """
        last, self._last = self._last, None
        if last is None or last.rows is not problem.rows:
            return None
        return emptied(last, problem)

    def _values(self, problem, hull):
        """Bound the error and the size of k̃.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.
        hull : Hull or WholeHull
            State of the solver.

        Returns
        -------
        error : float
            Bound on the error of a value of k̃.
        largest : float
            Bound on the size of the values.
        """
        if hull.tracked_all or problem.kernel.has_constant_diagonal:
            largest = hull.diagonal[: hull.counts[TRACKED]].max()
        else:
            kernel_value = 1.0 if problem.scale.size else kernel_diagonal(problem.X, problem.kernel).max()
            largest = kernel_value + problem.bias + (1.0 / problem.C).max()
        error = problem.kernel.error
        if problem.scale.size:  # errors of the value and of two roots of diagonal entries
            error = 3.0 * error * problem.scale.max() ** 2
        return error, largest

    def _descend(self, hull, epsilon, max_iter, problem):
        """Iterate to the end, and check memory, clock and progress on the way.

        Parameters
        ----------
        hull : Hull or WholeHull
            State of the solver.
        epsilon : float
            Tolerance ε of the stopping rule.
        max_iter : int
            Number of iterations after which the training stops.
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.

        Returns
        -------
        status : int
            One of the statuses of `solvers.common.status`.
        hull : Hull or WholeHull
            State at the end, which may be another object.
        """
        steps, last = hull.counts[ITERATIONS], np.inf
        steps_at_start, last_check = equivalent_steps(hull), first_look(hull.n_samples)
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
            if (n_done := equivalent_steps(hull) - steps_at_start) >= last_check[0]:
                if self._has_stalled(hull, last_check, n_done, epsilon):
                    return STALLED, hull
                last_check = (2 * n_done, hull.real[SQUARE_NORM], last_check[1] - hull.real[SQUARE_NORM])

    def _has_stalled(self, hull, last_check, n_done, epsilon):
        """Return whether a training would take far too long.

        Parameters
        ----------
        hull : Hull or WholeHull
            State of the solver.
        last_check : tuple
            Result of the last check; see `solvers.common.progress.first_look`.
        n_done : int
            Work so far, as a number of steps.
        epsilon : float
            Tolerance ε of the stopping rule.

        Returns
        -------
        bool
            The answer of `solvers.common.progress.has_stalled`.
        """
        square_norm, m = hull.real[SQUARE_NORM], hull.counts[TRACKED]
        diagonal, rule = hull.diagonal[:m], self.rules.stopping
        resolved, ahead = resolution(diagonal.max()), square_norm - hull.g[:m].min()
        lowest_allowed = min(
            violation_threshold(rule, epsilon, square_norm, diagonal[0]), square_norm - resolved
        )
        return has_stalled(
            last_check, n_done, square_norm, ahead, square_norm - lowest_allowed, hull.n_samples
        )

    def _gains_from_all(self, hull, deadline):
        """Return whether draws have cost more so far than tracking all samples would have cost.

        Parameters
        ----------
        hull : Hull or WholeHull
            State of the solver.
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Returns
        -------
        bool
            False if all samples are tracked already, or if memory or time do not suffice.
        """
        if hull.tracked_all or not self.rules.max_tracked:
            return False
        n, counts = hull.n_samples, hull.counts
        values = float(n) * counts[SUPPORT]  # kernel values that the start of tracking takes
        seconds = _seconds(values, hull.point.size)
        return (
            counts[EVALUATIONS] > max(values, ROWS_OF_STEP * n * counts[ITERATIONS])
            and 8.0 * n * hull.features.shape[0] <= self.cache_bytes
            and seconds <= SHARE_OF_TIME * (deadline - clock())
        )

    def _solution(self, hull, status, epsilon, error, deadline):
        """Describe the hull point as a trained subproblem with margin 1.

        Parameters
        ----------
        hull : Hull or WholeHull
            State of the solver.
        status : int
            One of the statuses of `solvers.common.status`.
        epsilon : float
            Tolerance ε of the stopping rule.
        error : float
            Bound on the error of g.
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Returns
        -------
        solvers.problem.Solution
            The trained subproblem.
        """
        support = np.flatnonzero(hull.alpha[: hull.counts[TRACKED]])
        square_norm = hull.alpha[support] @ hull.g[support]
        if not hull.tracked_all:
            support = support[np.argsort(hull.sample[support])]
        alpha, g, label = hull.alpha[support], hull.g[support], hull.label[support]
        n_classes = hull.class_start.size - 1
        margin = square_norm if square_norm > 0.0 else 1.0  # without a margin, keep the hull's weights
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
            n_full_updates=int(hull.counts[FULL_UPDATES]),
            status=int(status),
            converged=converged,
            stopping=rule_text(rule, converged, gap, status, 0 if is_certain else self.rules.draws),
            by_draws=not is_certain,
        )


def work_before_pause(deadline):
    """Return the number of elementary operations until the next reading of the clock.

    Parameters
    ----------
    deadline : float
        Time of `solvers.common.clock.clock` at which to stop, in seconds.

    Returns
    -------
    int
        Between `MIN_WORK` and `WORK_BEFORE_PAUSE`.
    """
    if deadline == np.inf:
        return WORK_BEFORE_PAUSE
    left = WORK_PER_SECOND * (deadline - clock())
    return int(np.clip(left, MIN_WORK, WORK_BEFORE_PAUSE))


def is_negative(hull):
    """Return whether ‖c‖², recomputed from the kernel, is negative by more than rounding explains.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, whose g and ‖c‖² are recomputed.

    Returns
    -------
    bool
        True if the kernel is not positive definite on these samples.
    """
    refresh(hull, np.inf)
    rounding = np.finfo(hull.X.dtype if hull.kind == GRAM else np.float64).eps
    largest = np.abs(hull.diagonal[: hull.counts[TRACKED]]).max()
    return hull.real[SQUARE_NORM] < -NOISE_ROUNDINGS * rounding * largest


def equivalent_steps(hull):
    """Return the work so far as a number of steps; draws and kernel values count too.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.

    Returns
    -------
    int
        Number of steps that take as long.
    """
    counts = hull.counts
    values = counts[EVALUATIONS] // (ROWS_PER_STEP * hull.n_samples)
    return int(counts[ITERATIONS] + counts[DRAWN] // DRAWS_PER_STEP + values)


def _seconds(values, n_features):
    """Estimate the time to compute kernel values.

    Parameters
    ----------
    values : float
        Number of kernel values.
    n_features : int
        Number of features of a sample.

    Returns
    -------
    float
        Time in seconds.
    """
    return values * (2 + n_features // 8) / WORK_PER_SECOND


def seconds_to_start(X, n, weights):
    """Estimate the time that `start_from` takes.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
        All training samples of the fit.
    n : int
        Number of samples of the subproblem.
    weights : ndarray of shape (n,)
        Weights to start from.

    Returns
    -------
    float
        Time in seconds.
    """
    return _seconds(float(n) * np.count_nonzero(weights), X.shape[1])


def start_at_random(hull, count):
    """Do line 1 of the algorithms: give equal weights to random samples.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    count : int
        Number of draws.
    """
    samples = draw_first(hull.state, hull.class_start, count)
    start_from(hull, samples, np.ones(samples.size))


def start_from(hull, samples, weights):
    """Start from the weights of some samples, scaled to the hull.

    This is Python code because numba would take seconds to compile it.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    samples : int64 ndarray of shape (k,)
        Indices of the samples.
    weights : ndarray of shape (k,)
        Positive weights of these samples.
    """
    if hull.tracked_all:
        track(hull, 0, hull.rows.size)
    else:
        for i in samples.tolist():
            track(hull, i, i + 1)
    set_diagonal(hull)
    n, m, p = samples.size, hull.counts[TRACKED], hull.position[samples]
    hull.alpha[p] = weights / np.cumsum(weights)[-1]  # added up in order, as numba's loops do
    hull.support[:n], hull.support_index[p], hull.counts[SUPPORT] = p, np.arange(n), n
    hull.scratch[:m] = 0.0
    add_rows(hull, 0, n)
    hull.g[:m] = hull.scratch[:m]
    hull.real[SQUARE_NORM] = np.cumsum(hull.alpha[p] * hull.g[p])[-1]


def set_diagonal(hull):
    """Give the cached rows the diagonal of the present penalties, which they may have from other ones.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    """
    slots = np.arange(hull.counts[SLOTS])
    owner = hull.owner[slots]
    hull.cache[slots * hull.slot.size + owner] = hull.diagonal[owner]


def track_all(hull, problem, cache_bytes):
    """Return a state of the same point in which all samples are tracked.

    Parameters
    ----------
    hull : Hull
        State in which some samples are tracked.
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    WholeHull
        The new state.
    """
    chosen = hull.support[: hull.counts[SUPPORT]].astype(np.intp)
    samples = hull.sample[chosen].astype(np.int64)
    whole = new_hull(problem, cache_bytes, samples.size, hull.n_samples)
    whole.real[EPSILON] = hull.real[EPSILON]
    whole.state[:] = hull.state
    start_from(whole, samples, hull.alpha[chosen])
    kept = [ITERATIONS, CLIPPED, FULL_UPDATES]
    whole.counts[kept] = hull.counts[kept]
    whole.counts[EVALUATIONS] += hull.counts[EVALUATIONS]
    return whole


@njit(allocates=False)
def add_rows(hull, first, last):
    """Add α_p k̃(p, ·) of some support vectors to `hull.scratch`.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    first, last : int
        Range of the support vectors in `hull.support`, without `last`.
    """
    m, total = hull.counts[TRACKED], hull.scratch
    for k in range(first, last):
        p = hull.support[k]
        values = row(hull, p)
        weight = hull.alpha[p]
        for q in range(m):
            total[q] += weight * values[q]


def refresh(hull, deadline):
    """Recompute g and ‖c‖² from the kernel.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    deadline : float
        Time of `solvers.common.clock.clock` at which to stop, in seconds.

    Returns
    -------
    float
        Largest change of g; NaN if the deadline passed first.
    """
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
    """Return the lowest g of all samples.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    deadline : float
        Time of `solvers.common.clock.clock` at which to stop, in seconds.

    Returns
    -------
    float
        The lowest g; NaN if it would take more kernel evaluations than the training and than
        `MIN_CERTIFICATE_EVALUATIONS`, or if time ran out.
    """
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
    """Return the number of samples that are processed between two readings of the clock.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.

    Returns
    -------
    int
        At least 1.
    """
    return max(1, WORK_BEFORE_PAUSE // int(hull.counts[TRACKED] * (2 + hull.point.size // 8)))


@njit(allocates=False)
def lowest_of(hull, first, last):
    """Return the lowest g of those samples in a range that are not tracked.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    first, last : int
        Range of the samples, without `last`.

    Returns
    -------
    float
        The lowest g; infinite if all samples of the range are tracked.
    """
    lowest = np.inf
    for i in range(first, last):
        if hull.position[i] < 0:
            lowest = min(lowest, inner_product(hull, i))
    return lowest
