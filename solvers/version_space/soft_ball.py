"""The soft ball (Strack 2013, 2.134): min R² + Σ box_i d_i² subject to ``‖c − x̃_i‖² ≤ R² + d_i²``.

The samples x̃_i = y_i (φ(x_i), 1) have the kernel ``k̃(i, j) = y_i y_j (k(x_i, x_j) + 1)``, whose diagonal τ̃ is
constant. The thesis has ``box_i = 1/(m ν)``. The dual is min αᵀK̃α subject to ``0 ≤ α_i ≤ box_i`` and Σ α = 1:
the ν support vector machine with a penalised bias. Its value ‖c‖² gives that of the primal, τ̃ − ‖c‖².

With F = K̃α and any ρ, weak duality bounds the smallest norm: ‖c*‖ ≥ (ρ − Σ box_i max(0, ρ − F_i)) / ‖c‖. The
best ρ is the weighted quantile of F at which the boxes of the samples below it add up to 1.

Steps of pairs train. Where they are many, because the hulls of the classes nearly touch, an interior point
method follows if all of K̃ is held.
"""

from dataclasses import dataclass

import numpy as np

from solvers.common.certificate import (
    AIMED_SHARE,
    FEW_ROUNDINGS,
    TERMS_IN_PRODUCT,
    UNIT_ROUNDOFF,
    error_of_sums,
)
from solvers.common.progress import first_look, has_stalled
from solvers.common.status import (
    CONVERGED,
    LIMIT,
    NOT_POSITIVE,
    PAUSED,
    ROW_MISSING,
    STALLED,
    STOPPING_TEXTS,
    TIMEOUT,
    uncertified_text,
)
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.problem import Solution
from solvers.smo.certificate import extremes
from solvers.smo.kernel_rows import CachedRows, rows_of
from solvers.smo.row_steps import smo_steps
from solvers.smo.row_training import REFINEMENTS, WORK_BEFORE_CHECK
from solvers.version_space.soft_ball_interior import minimise_inside

FIRST_TOL = 1e-2
"""Violation that the first steps aim at, as a share of ‖c‖² of the start."""
SHARE_OF_VIOLATION = 0.25
"""First violation to aim at, as a share of the tolerance of the gap."""
STEPS_OF_PAIRS, MAX_INSIDE = 50, 2000
"""Steps for each sample before an interior point method follows, and the most samples for which it does."""
SHARE_OF_GAP = 1e-6
"""Gap that the interior point method aims at, as a share of the tolerance."""
LARGEST_BOX = 1e4
"""Largest bound of a weight. Bounds above 1 have no effect, but weights are set to 0 by their share of it."""
COLLAPSED = 1e-12
"""Value of ‖c‖² below which the hulls of the classes touch, as a share of τ̃."""
TOUCHING = "the reduced hulls of the classes touch, so that ‖c‖² is 0"
NOT_SEMIDEFINITE = "‖c‖² is negative, so that the kernel is not positive semidefinite"


@dataclass
class BallSolution(Solution):
    """Trained subproblem with the radius of its ball."""

    square_radius: float = np.nan  # R²
    n_outside: int = 0  # number of samples outside the ball
    touches_for_all_nu: bool = False  # whether the hulls of the classes touch for ν = 1, too


class SignedRows:
    """Rows of ``k̃(i, j) = scale_i scale_j k(x_i, x_j) y_i y_j + y_i y_j``.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
        Kernel between the samples of the subproblem.
    y : ndarray of shape (n,)
        Labels, −1.0 or 1.0.
    scale : ndarray of shape (n,), or (0,)
        1/√k(x, x) if the kernel is to be normalised, else empty.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """

    def __init__(self, kernel, y, scale, cache_bytes):
        self._y, self._factors = y, y * scale if scale.size else y
        self._store = rows_of(kernel, cache_bytes)
        self.is_whole = self._store.is_whole
        if self.is_whole:
            self._sign(self._store.rows, slice(None))

    @property
    def arrays(self):
        """Rows, slots and clock, as `solvers.smo.row_steps.smo_steps` takes them."""
        return self._store.rows, self._store.slot, self._store.clock

    def _sign(self, rows, samples):
        """Give kernel rows their signs and the constant, in place.

        Parameters
        ----------
        rows : ndarray of shape (k, n)
            Kernel values.
        samples : slice
            Samples of the rows.
        """
        rows *= self._factors[samples, None]
        rows *= self._factors
        for row, label in zip(rows, self._y[samples], strict=True):
            row += label * self._y

    def fetch(self, i):
        """Compute the row of a sample.

        Parameters
        ----------
        i : int
            Sample.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        assert isinstance(self._store, CachedRows)
        self._store.fetch(i)
        row = int(self._store.slot[i])
        self._sign(self._store.rows[row : row + 1], slice(i, i + 1))

    def product(self, support, weights):
        """Compute ``K̃[:, support] @ weights``.

        Parameters
        ----------
        support : int64 ndarray of shape (k,)
            Indices of the columns.
        weights : ndarray of shape (k,)
            Weight of each column.

        Returns
        -------
        ndarray of shape (n,)
            The product.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        every = np.arange(self._y.size)
        if self.is_whole:
            return self._store.product(every, support, weights)
        product = self._store.product(every, support, self._factors[support] * weights)
        return self._factors * product + self._y * (self._y[support] @ weights)


def best_offset(F, box):
    """Return the ρ that maximises ``ρ − Σ box_i max(0, ρ − F_i)``, and that maximum.

    Parameters
    ----------
    F : ndarray of shape (n,)
        Inner products with the centre.
    box : ndarray of shape (n,)
        Largest weights, of at least 1 in sum.

    Returns
    -------
    offset, value : float
        ρ and the maximum.
    """
    order = np.argsort(F, kind="stable")
    reached = np.cumsum(box[order])
    last = min(int(np.searchsorted(reached, 1.0 - FEW_ROUNDINGS * UNIT_ROUNDOFF)), F.size - 1)
    offset = F[order[last]]
    return float(offset), float(offset - (box * np.maximum(0.0, offset - F)).sum())


class SoftBallState:
    """Weights α of all samples of a subproblem, and F = K̃α.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their weights as C, the kernel and the limits.
    nu : float
        Share ν of the weight of the samples that may lie outside the ball; above 0 and at most 1.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """

    def __init__(self, problem, nu, cache_bytes):
        n = problem.rows.size
        self.y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
        weights = np.broadcast_to(problem.C, (n,)) / problem.C.max()
        self.box = weights / (nu * weights.sum()) if nu < 1.0 else weights / weights.sum()
        self.box = np.minimum(self.box, LARGEST_BOX)
        self.kernel, self.kernel_error = SubproblemKernel(problem), problem.kernel.error
        of_kernel = self.kernel.diagonal()
        self.diagonal = (of_kernel if problem.scale.size == 0 else of_kernel * problem.scale**2) + 1.0
        self.steps = 0
        self.store = SignedRows(self.kernel, self.y, problem.scale, cache_bytes)
        self.alpha = self._start(problem.start)
        self.recompute()

    def _start(self, solution):
        """Return feasible weights.

        Parameters
        ----------
        solution : solvers.problem.Solution or None
            Solution for another ν, whose weights are clipped. None: weights in equal shares of the boxes.

        Returns
        -------
        ndarray of shape (n,)
            Weights within the boxes, of sum 1.
        """
        if solution is None or not solution.support.size or not np.abs(solution.alpha).sum() > 0.0:
            return self.box / self.box.sum()
        alpha = np.zeros(self.y.size)
        alpha[solution.support] = np.abs(solution.alpha) / np.abs(solution.alpha).sum()
        alpha = np.minimum(alpha, self.box)
        free = self.box - alpha  # what the clipping took away is shared out by the free parts of the boxes
        return alpha + free * min(1.0, max(0.0, 1.0 - alpha.sum()) / max(free.sum(), 1e-300))

    def recompute(self):
        """Recompute F from the weights, because every step adds rounding errors.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        support = np.flatnonzero(self.alpha)
        self.F = self.store.product(support, self.alpha[support])
        self.square_norm = float(self.alpha @ self.F)

    def gap(self):
        """Bound the relative error of ‖c‖², with an allowance for all rounding errors.

        Returns
        -------
        float
            Gap between 0 and 1; 1 if no smaller bound is known.
        """
        largest = float(self.diagonal.max())
        n_terms = np.count_nonzero(self.alpha) / TERMS_IN_PRODUCT
        error = error_of_sums(self.kernel_error, largest, n_terms, 0)
        total = float(self.alpha.sum())
        error += self.alpha.size * UNIT_ROUNDOFF * largest  # of the sum over the boxes
        _, value = best_offset(self.F, self.box)
        if not 0.0 < self.square_norm + error < np.inf:
            return 1.0
        share = max(value - 2.0 * error, 0.0) * min(total, 1.0 / total) / (self.square_norm + error)
        return 1.0 - min(share, 1.0) ** 2

    def touches_for_all_nu(self):
        """Return whether ‖c‖² vanishes for ν = 1, for which the hulls are smallest and only one c is left.

        Returns
        -------
        bool
            True if no ν separates the classes.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        alpha = self.box / self.box.sum()
        square_norm = float(alpha @ self.store.product(np.arange(alpha.size), alpha))
        return square_norm <= COLLAPSED * self.diagonal.max()

    def minimise(self, tol, max_iter):
        """Take steps until no violation exceeds a tolerance.

        Parameters
        ----------
        tol : float
            Largest violation, a difference of two F.
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
        n = self.alpha.size
        low, zero, chunk = np.zeros(n), np.zeros(n), max(1, WORK_BEFORE_CHECK // n)
        started, objective, look = self.steps, 0.5 * self.square_norm, first_look(n)
        while True:
            allowed = int(min(chunk, max_iter - self.steps))
            status, steps, wanted, gain = smo_steps(
                *(*self.store.arrays, self.F, self.alpha, low, self.box),
                *(self.diagonal, zero, tol, allowed),
            )
            self.steps += steps
            objective -= gain
            if status == ROW_MISSING:
                self.store.fetch(wanted)
            elif status != PAUSED:
                return status
            if self.steps >= max_iter:
                return LIMIT
            if (taken := self.steps - started) >= look[0]:
                lowest, highest = extremes(self.F, self.alpha, low, self.box)
                if has_stalled(look, taken, objective, highest - lowest, tol, n):
                    return STALLED
                look = (2 * taken, objective, look[1] - objective)
            self.kernel.check_time()

    def _jump(self, tol):
        """Replace the weights by those of an interior point method.

        Parameters
        ----------
        tol : float
            Gap to aim at, as a share of ‖c‖².

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        floor = COLLAPSED * self.diagonal.max()
        self.alpha = minimise_inside(self.store.arrays[0], self.box, tol, floor, self.kernel.check_time)

    def certify(self, tol, max_iter):
        """Minimise until the gap is certified to be at most a tolerance.

        Parameters
        ----------
        tol : float
            Largest gap that counts as converged.
        max_iter : int
            Number of steps after which the training stops.

        Returns
        -------
        status : int
            One of the statuses of `solvers.common.status`.
        gap : float
            Certified gap.
        """
        share, gap, n = FIRST_TOL, np.nan, self.alpha.size
        may_jump = self.store.is_whole and n <= MAX_INSIDE
        limit = min(max_iter, STEPS_OF_PAIRS * n) if may_jump else max_iter
        try:
            for _ in range(REFINEMENTS):
                try:
                    status = self.minimise(share * self.square_norm, limit)
                    if may_jump and status in (LIMIT, STALLED) and self.steps < max_iter:
                        self._jump(SHARE_OF_GAP * tol)
                        status, may_jump = CONVERGED, False
                        limit = min(max_iter, self.steps + STEPS_OF_PAIRS * n)
                except OutOfTime:
                    status = TIMEOUT
                self.recompute()
                gap = self.gap()
                if gap <= tol:
                    return CONVERGED, gap
                if self.square_norm <= COLLAPSED * self.diagonal.max():
                    return NOT_POSITIVE, gap
                if status != CONVERGED:
                    return status, gap
                share = min(0.5 * share, SHARE_OF_VIOLATION * AIMED_SHARE * tol)
        except OutOfTime:
            return TIMEOUT, gap
        return STALLED, gap


def train_soft_ball(problem, nu, tol, cache_bytes):
    """Train a subproblem by steps of pairs.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem to train. Its penalties C are the weights of the samples.
    nu : float
        Share ν of the weight of the samples that may lie outside the ball; above 0 and at most 1.
    tol : float
        Largest gap that counts as converged.
    cache_bytes : float
        Memory for kernel rows, in bytes.

    Returns
    -------
    BallSolution
        Trained subproblem. Its weights are scaled to the margin 1 of the free samples.
    """
    try:
        state = SoftBallState(problem, nu, cache_bytes)
    except OutOfTime:
        nothing = np.empty(0, np.int64), np.empty(0), np.zeros(1)
        text = uncertified_text(STOPPING_TEXTS[TIMEOUT], np.nan)
        return BallSolution(*nothing, np.nan, np.nan, 0, 0, TIMEOUT, False, text)
    status, gap = state.certify(tol, problem.max_iter)
    touches_for_all_nu = False
    if status == NOT_POSITIVE:
        try:
            touches_for_all_nu = state.touches_for_all_nu()
        except OutOfTime:
            status = TIMEOUT
    if state.square_norm < -COLLAPSED * state.diagonal.max():
        gap = np.nan  # no bound holds for a kernel that is not positive semidefinite
    offset, _ = best_offset(state.F, state.box)
    support, converged = np.flatnonzero(state.alpha), status == CONVERGED
    alpha = state.alpha[support] / (offset if offset > 0.0 else 1.0)
    constant = float(state.diagonal.mean())
    # A sample at a distance of R lies on the ball; a violation of `tol` counts as a rounding error.
    n_outside = int(np.count_nonzero(state.F - offset < -tol * abs(offset)))
    return BallSolution(
        support=support,
        alpha=alpha,
        bias=np.array([state.y[support] @ alpha]),
        objective=constant - state.square_norm,
        gap=float(gap),
        n_iter=int(state.steps),
        n_kernel_evals=int(state.kernel.evaluations),
        status=int(status),
        converged=converged,
        stopping=ball_text(status, converged, gap, tol),
        square_radius=constant + state.square_norm - 2.0 * offset,
        n_outside=n_outside,
        touches_for_all_nu=touches_for_all_nu,
    )


def ball_text(status, converged, gap, tol):
    """Return the text for `stopping_` of a subproblem.

    Parameters
    ----------
    status : int
        How the training ended, one of the statuses of `solvers.common.status`.
    converged : bool
        Whether the tolerance is certified.
    gap : float
        Certified relative error of ‖c‖²; NaN if ‖c‖² is negative by more than rounding.
    tol : float
        Largest gap that counts as converged.

    Returns
    -------
    str
        Certified bound, or the reason why the training ended.
    """
    if converged:
        return f"certified: gap <= {tol:g}"
    if status == NOT_POSITIVE:
        return uncertified_text(NOT_SEMIDEFINITE if np.isnan(gap) else TOUCHING, gap)
    return uncertified_text(STOPPING_TEXTS[status], gap)
