"""The relative margin machine: hinge loss, and a bound on the size of all decisions of training samples.

With f = Kθ + b the problem is min ½ θᵀKθ + Σ C_i ξ_i subject to ``y_i f_i ≥ 1 − ξ_i`` and ``|f_i| ≤ bound``.
Its dual has three multipliers a sample: α_i of the margin, λ_i and λ*_i of the two bounds. The signed weight
is ``θ_i = y_i α_i − λ_i + λ*_i`` with Σ θ = 0. For a given θ_i the cheapest multipliers are known: at most
one of them moves at a time. The dual is therefore min ½ θᵀKθ + Σ h_i(θ_i), where h_i is convex and linear in
three pieces. It has the slope −bound below the range of the margin's weight (0 … C_i, or −C_i … 0), −y_i
within this range, and bound above it. A step moves weight between two samples until the gradients agree or
one of them reaches the end of its piece.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    FEW_ROUNDINGS,
    TERMS_IN_PRODUCT,
    UNIT_ROUNDOFF,
    error_of_sums,
)
from solvers.common.compile import inner, njit
from solvers.common.pair_selection import SMALLEST_SQUARE_DISTANCE
from solvers.common.progress import first_look, has_stalled
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
from solvers.smo.certificate import AT_BOUND, SMO_STOPPING_TEXTS
from solvers.smo.kernel_rows import rows_of
from solvers.smo.row_steps import MAX_GRADIENT, smallest_violation
from solvers.smo.row_training import REFINEMENTS, WORK_BEFORE_CHECK

NO_MOVE = 1e300
"""Slope of a weight that cannot grow; its negative is that of a weight that cannot shrink."""


class Pieces(NamedTuple):
    """The linear pieces of h_i of every sample."""

    y: np.ndarray  # (n,): labels, −1.0 or 1.0
    low: np.ndarray  # (n,): least weight of the margin's piece: 0, or −C_i
    high: np.ndarray  # (n,): largest weight of the margin's piece: C_i, or 0
    bound: float  # largest size of a decision, at least 1; infinite for none


def pieces_of(y, C, bound):
    """Return the pieces of a subproblem.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels, −1.0 or 1.0.
    C : ndarray of shape (n,)
        Penalties of the slacks.
    bound : float
        Largest size of a decision, at least 1.

    Returns
    -------
    Pieces
        Pieces of all samples.
    """
    return Pieces(y, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0), min(float(bound), NO_MOVE))


@inner
def slopes_at(pieces, i, theta):
    """Return the slopes of h_i to the left and to the right of a weight.

    Parameters
    ----------
    pieces : Pieces
        Pieces of all samples.
    i : int
        Sample.
    theta : float
        Its weight.

    Returns
    -------
    left, right : float
        Slopes; −`NO_MOVE` or `NO_MOVE` where the weight cannot move.
    """
    low, high, y, bound = pieces.low[i], pieces.high[i], pieces.y[i], pieces.bound
    left = -bound if theta <= low else (-y if theta <= high else bound)
    right = -bound if theta < low else (-y if theta < high else bound)
    return left, right


@inner
def ends_at(pieces, i, theta):
    """Return the next ends of pieces below and above a weight.

    Parameters
    ----------
    pieces : Pieces
        Pieces of all samples.
    i : int
        Sample.
    theta : float
        Its weight.

    Returns
    -------
    below, above : float
        Ends; infinite where the piece has none.
    """
    low, high = pieces.low[i], pieces.high[i]
    below = high if theta > high else (low if theta > low else -np.inf)
    above = low if theta < low else (high if theta < high else np.inf)
    return below, above


@njit
def fill_slopes(pieces, theta, left, right):
    """Write the slopes of all samples.

    Parameters
    ----------
    pieces : Pieces
        Pieces of all samples.
    theta : array (n,)
        Weights.
    left, right : arrays (n,)
        Receive the slopes to the left and to the right.
    """
    for i in range(theta.size):
        left[i], right[i] = slopes_at(pieces, i, theta[i])


@inner
def lowest_to_grow(f, right):
    """Return the index of the smallest gradient of a weight that can grow.

    Parameters
    ----------
    f : array (n,)
        Kθ.
    right : array (n,)
        Slopes to the right.

    Returns
    -------
    int
        Index; 0 if no weight can grow.
    """
    best, lowest = 0, np.inf
    for t in range(f.size):
        value = f[t] + right[t]
        if value < lowest:
            best, lowest = t, value
    return best


@inner
def best_to_shrink(f, left, row, diagonal, i, level):
    """Return the index of the largest gain among the weights that can shrink.

    Parameters
    ----------
    f : array (n,)
        Kθ.
    left : array (n,)
        Slopes to the left.
    row : array (n,)
        Kernel row of sample i.
    diagonal : array (n,)
        Values k(x, x).
    i : int
        Sample whose weight grows.
    level : float
        Gradient of its growth.

    Returns
    -------
    best : int
        Index; −1 if no gradient is larger than `level`.
    highest : float
        Largest gradient of a weight that can shrink.
    """
    best, most, highest = -1, 0.0, -np.inf
    own = diagonal[i]
    for t in range(f.size):
        ahead = f[t] + left[t] - level
        highest = max(highest, ahead)
        ahead = max(ahead, 0.0)
        gain = ahead * ahead / max(own + diagonal[t] - 2.0 * row[t], SMALLEST_SQUARE_DISTANCE)
        if gain > most:
            best, most = t, gain
    return best, highest + level


@njit
def relative_margin_steps(rows, slot, clock, f, theta, left, right, pieces, diagonal, tol, max_steps):
    """Take steps until the point is optimal, the steps are used up, or a kernel row is missing.

    Parameters
    ----------
    rows : array (n_slots, n)
        Kernel rows available. The row of sample i is ``rows[slot[i]]``, and is missing if ``slot[i] < 0``.
    slot : int64 array (n,)
        Slot of the row of each sample, or a negative number.
    clock : int64 array (n_slots + 1,)
        Time at which each row was last used; the last entry is the current time, in uses.
    f, theta, left, right : arrays (n,), changed in place
        Kθ, weights, and slopes of h_i to both sides.
    pieces : Pieces
        Pieces of all samples.
    diagonal : array (n,)
        Values k(x, x).
    tol : float
        Largest violation. The violation that rounding alone can cause replaces it if that is larger.
    max_steps : int
        Number of steps after which the loop stops.

    Returns
    -------
    status : int
        CONVERGED, PAUSED, ROW_MISSING, NOT_POSITIVE or STALLED.
    steps : int
        Number of steps that were taken.
    wanted : int
        The sample whose row is missing, or -1.
    gain : float
        Decrease of the objective.
    """
    gain = 0.0
    tol = smallest_violation(tol, diagonal, theta)
    for step in range(max_steps):
        i = lowest_to_grow(f, right)
        if slot[i] < 0:
            return ROW_MISSING, step, i, gain
        clock[-1] += 1
        clock[slot[i]] = clock[-1]
        row_i, level = rows[slot[i]], f[i] + right[i]
        j, highest = best_to_shrink(f, left, row_i, diagonal, i, level)
        if j < 0 or highest - level <= tol:
            return CONVERGED, step, -1, gain
        if not highest - level < MAX_GRADIENT:
            return NOT_POSITIVE, step, -1, gain
        if slot[j] < 0:
            return ROW_MISSING, step, j, gain
        clock[slot[j]] = clock[-1]
        row_j, ahead = rows[slot[j]], f[j] + left[j] - level
        square_distance = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], SMALLEST_SQUARE_DISTANCE)
        end_i, end_j = ends_at(pieces, i, theta[i])[1], ends_at(pieces, j, theta[j])[0]
        slack_i, slack_j = end_i - theta[i], theta[j] - end_j
        delta = min(ahead / square_distance, slack_i, slack_j)
        gain += delta * (ahead - 0.5 * delta * square_distance)
        theta[i] = end_i if delta == slack_i else theta[i] + delta
        theta[j] = end_j if delta == slack_j else theta[j] - delta
        left[i], right[i] = slopes_at(pieces, i, theta[i])
        left[j], right[j] = slopes_at(pieces, j, theta[j])
        for t in range(f.size):
            f[t] += delta * (row_i[t] - row_j[t])
    return PAUSED, max_steps, -1, gain


@njit
def bias_of_pieces(f, left, right):
    """Return the bias: the mean of −(f + slope) over weights within a piece, else the middle of its range.

    Parameters
    ----------
    f : array (n,)
        Kθ.
    left, right : arrays (n,)
        Slopes of h_i to both sides.

    Returns
    -------
    float
        Intercept b of the decision function.
    """
    n_free, total, lowest, highest = 0, 0.0, np.inf, -np.inf
    for t in range(f.size):
        if left[t] == right[t]:
            n_free += 1
            total += f[t] + left[t]
        lowest, highest = min(lowest, f[t] + right[t]), max(highest, f[t] + left[t])
    if n_free:
        return -total / n_free
    return -0.5 * (lowest + highest)


@njit
def dual_cost(pieces, theta):
    """Return Σ h_i(θ_i) and the total size of the multipliers.

    Parameters
    ----------
    pieces : Pieces
        Pieces of all samples.
    theta : array (n,)
        Weights.

    Returns
    -------
    cost, size : float
        Sum of h_i, and the sum of its terms without signs.
    """
    cost, size = 0.0, 0.0
    for i in range(theta.size):
        inside = min(max(theta[i], pieces.low[i]), pieces.high[i])
        beyond = abs(theta[i] - inside)
        of_bound = pieces.bound * beyond if beyond > 0.0 else 0.0
        cost += of_bound - pieces.y[i] * inside
        size += of_bound + abs(inside)
    return cost, size


@njit
def relative_margin_gap(f, theta, pieces, C, bias, error):
    """Bound the duality gap as a share of the primal objective.

    The primal point is (w, b), scaled by min(1, bound / max |f + b|).

    Parameters
    ----------
    f, theta : arrays (n,)
        Kθ and weights.
    pieces : Pieces
        Pieces of all samples.
    C : array (n,)
        Penalties.
    bias : float
        Intercept b of the decision function.
    error : float
        Bound on the error of a value of `f`; with 0, the result is an estimate instead of a bound.

    Returns
    -------
    float
        The gap; infinite if the primal objective is not positive and finite.
    """
    n = f.size
    rounding = (n + FEW_ROUNDINGS) * UNIT_ROUNDOFF if error > 0.0 else 0.0
    quadratic, magnitude, weight, imbalance, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        quadratic += theta[i] * f[i]
        magnitude += abs(theta[i] * f[i])
        weight += abs(theta[i])
        imbalance += theta[i]
        largest = max(largest, abs(f[i] + bias))
    doubt = error * weight + rounding * magnitude
    cost, size = dual_cost(pieces, theta)
    # A sum Σ θ that is not quite zero moves the dual by as much as a bias can.
    imbalance = abs(imbalance) + rounding * weight
    dual = -cost - 0.5 * (quadratic + doubt) - imbalance * (1.0 + abs(bias)) - rounding * size
    shrinkage = min(1.0, pieces.bound / (largest + error))
    loss = 0.0
    sign = 1.0 if dual > 0.0 else -1.0  # if the dual is not positive, a smaller primal gives a larger gap
    for i in range(n):
        loss += C[i] * max(0.0, 1.0 + sign * error - shrinkage * pieces.y[i] * (f[i] + bias))
    primal = 0.5 * shrinkage**2 * max(0.0, quadratic + sign * doubt) + loss
    primal *= 1.0 + sign * rounding
    if not 0.0 < primal < np.inf:
        return np.inf
    return max(0.0, (primal - dual) / primal) * (1.0 + rounding)


class RelativeMarginState:
    """Weights θ of all samples of a subproblem, with Kθ and the slopes of their costs.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    bound : float
        Largest size of a decision, at least 1; infinite for none.
    cache_bytes : float
        Memory for kernel rows, in bytes.
    """

    def __init__(self, problem, bound, cache_bytes):
        n = problem.rows.size
        self.y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
        self.C = np.ascontiguousarray(np.broadcast_to(problem.C, (n,)))
        self.pieces = pieces_of(self.y, self.C, bound)
        self.kernel = SubproblemKernel(problem)
        self.kernel_error = problem.kernel.error
        self.diagonal = self.kernel.diagonal()
        self.theta, self.f = np.zeros(n), np.zeros(n)
        self.left, self.right = np.empty(n), np.empty(n)
        fill_slopes(self.pieces, self.theta, self.left, self.right)
        self.steps, self.objective = 0, 0.0
        self.store = rows_of(self.kernel, cache_bytes)

    def start_from(self, solution):
        """Start from the weights of another solution, scaled down if they violate a bound.

        Parameters
        ----------
        solution : solvers.problem.Solution
            Solution for other penalties.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        theta = np.zeros(self.y.size)
        theta[solution.support] = self.y[solution.support] * solution.alpha
        if self.pieces.bound >= NO_MOVE:  # only the margin's piece is finite
            used = theta != 0.0
            limit = np.where(theta > 0.0, self.pieces.high, -self.pieces.low)[used]
            theta *= min(1.0, (limit / np.abs(theta[used])).min(initial=1.0))
        self.theta = theta
        self.recompute()

    def recompute(self):
        """Recompute Kθ, the slopes and the objective, because every step adds rounding errors.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        support = np.flatnonzero(self.theta)
        self.f = self.store.product(np.arange(self.theta.size), support, self.theta[support])
        fill_slopes(self.pieces, self.theta, self.left, self.right)
        self.objective = 0.5 * float(self.theta @ self.f) + dual_cost(self.pieces, self.theta)[0]

    def violation(self):
        """Return the largest difference of gradients between which weight can move.

        Returns
        -------
        float
            Violation of the optimality conditions, in units of the margin.
        """
        return float((self.f + self.left).max() - (self.f + self.right).min())

    def error(self):
        """Bound the error of a value of Kθ that has just been recomputed.

        Returns
        -------
        float
            Bound on the error.
        """
        n_terms, largest = np.count_nonzero(self.theta), np.abs(self.diagonal).max()
        error = error_of_sums(self.kernel_error, largest, n_terms / TERMS_IN_PRODUCT, 0)
        return float(np.abs(self.theta).sum() * error + FEW_ROUNDINGS * UNIT_ROUNDOFF)

    def minimise(self, tol, max_iter):
        """Take steps until no violation exceeds a tolerance.

        Parameters
        ----------
        tol : float
            Largest violation.
        max_iter : int
            Number of steps of the whole training after which it stops.

        Returns
        -------
        int
            One of the statuses of `solvers.common.status`.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        n, store, started = self.y.size, self.store, self.steps
        chunk, look = max(1, WORK_BEFORE_CHECK // n), first_look(n)
        while True:
            allowed = int(min(chunk, max_iter - self.steps))
            status, steps, wanted, gain = relative_margin_steps(
                *(store.rows, store.slot, store.clock, self.f, self.theta, self.left, self.right),
                *(self.pieces, self.diagonal, tol, allowed),
            )
            self.steps += steps
            self.objective -= gain
            if status == ROW_MISSING:
                store.fetch(wanted)
            elif status != PAUSED:
                return status
            if self.steps >= max_iter:
                return LIMIT
            if (taken := self.steps - started) >= look[0]:
                if has_stalled(look, taken, self.objective, self.violation(), tol, n):
                    return STALLED
                look = (2 * taken, self.objective, look[1] - self.objective)
            self.kernel.check_time()

    def certify(self, tol, max_iter):
        """Minimise until violation and gap are certified to be at most a tolerance.

        Parameters
        ----------
        tol : float
            Largest violation and relative duality gap that count as converged.
        max_iter : int
            Number of steps after which the training stops.

        Returns
        -------
        status : int
            One of the statuses of `solvers.common.status`.
        gap : float
            Upper bound on the relative duality gap.
        converged : bool
            Whether violation and gap are certified.
        """
        aimed_at, gap = AIMED_SHARE * tol, np.nan
        try:
            for _ in range(REFINEMENTS):
                try:
                    status = self.minimise(aimed_at, max_iter)
                except OutOfTime:
                    status = TIMEOUT
                self.recompute()
                error, bias = self.error(), self.bias()
                gap = relative_margin_gap(self.f, self.theta, self.pieces, self.C, bias, error)
                violation = self.violation()
                if gap <= tol and violation + 2.0 * error <= tol:
                    return CONVERGED, gap, True
                estimate = relative_margin_gap(self.f, self.theta, self.pieces, self.C, bias, 0.0)
                # A tighter tolerance does not help where the error of the kernel values dominates.
                enough = AFFORDABLE_SHARE * tol
                if status != CONVERGED or 2.0 * error > tol or max(estimate, violation) <= enough:
                    break
                aimed_at *= 0.5
        except OutOfTime:
            status = TIMEOUT
        # Of an indefinite kernel the dual objective is no lower bound.
        return status, np.nan if status == NOT_POSITIVE else gap, False

    def bias(self):
        """Return the bias of the current point.

        A weight within roundings of an end of its piece counts as at the end. If the penalties of two classes
        have the same sum, all weights may be at ends, and rounding would then decide which of them are not.

        Returns
        -------
        float
            Intercept b of the decision function.
        """
        theta, (left, right) = self.theta.copy(), np.empty((2, self.theta.size))
        near = AT_BOUND * np.minimum(self.pieces.high - self.pieces.low, np.abs(theta).max())
        for end in (self.pieces.low, self.pieces.high):
            theta = np.where(np.abs(theta - end) <= near, end, theta)
        fill_slopes(self.pieces, theta, left, right)
        return float(bias_of_pieces(self.f, left, right))


def train_relative_margin(problem, bound, tol, cache_bytes):
    """Train a subproblem by steps of pairs.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem to train.
    bound : float
        Largest size of a decision, at least 1; infinite for none.
    tol : float
        Largest violation and relative duality gap that count as converged.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    solvers.problem.Solution
        Trained subproblem. Its weights y_i θ_i have either sign.
    """
    try:
        state = RelativeMarginState(problem, bound, cache_bytes)
        if problem.start is not None:
            state.start_from(problem.start)
    except OutOfTime:
        return _untrained()
    status, gap, converged = state.certify(tol, problem.max_iter)
    support = np.flatnonzero(state.theta)
    return Solution(
        support=support,
        alpha=(state.y * state.theta)[support],
        bias=np.array([state.bias()]),
        objective=float(state.objective),
        gap=float(gap),
        n_iter=int(state.steps),
        n_kernel_evals=int(state.kernel.evaluations),
        status=int(status),
        converged=converged,
        stopping=certified_text(tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap),
    )


def _untrained():
    """Return the solution of a subproblem whose deadline passed before its kernel values were available.

    Returns
    -------
    solvers.problem.Solution
        Solution without support vectors.
    """
    return Solution(
        support=np.empty(0, np.int64),
        alpha=np.empty(0),
        bias=np.zeros(1),
        objective=0.0,
        gap=np.nan,
        n_iter=0,
        n_kernel_evals=0,
        status=TIMEOUT,
        converged=False,
        stopping=uncertified_text(SMO_STOPPING_TEXTS[TIMEOUT], np.nan),
    )
