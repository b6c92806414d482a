"""The problem of a large subproblem, solved on blocks of the samples near the margin.

Each round solves the problem of the samples near the margin, on a float32 block of their kernel
(`solvers.margin.margin_block`). It uses the steps of `smo.block_steps` and Newton's method. Then the gradient
of all samples is updated, and the samples near the margin are chosen again. This ends when no sample violates
its optimality condition. Each round corrects the rounding errors of the last block.
"""

from contextlib import suppress
from itertools import count

import numpy as np

from solvers.common.certificate import AFFORDABLE_SHARE, AIMED_SHARE
from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.common.reductions import total_size
from solvers.common.status import CONVERGED, LIMIT, PAUSED, STALLED, TIMEOUT
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.kernels.tiles import Samples, error_of_values
from solvers.margin.dual_point import DualPoint
from solvers.margin.margin_block import MIN_ROWS, MarginBlock
from solvers.margin.newton_face import FIRST_PROXIMITY, BlockPoint, face_cost, newton_on_face
from solvers.smo.block_path import (
    ALLOWED_DRIFT,
    BOUNDED_PER_FREE,
    MAX_STEPS,
    MIN_SHARE,
    MIN_STEPS,
    NO_PROGRESS,
    REFINEMENTS,
    STEPS_WITHOUT_PROGRESS,
    state_of,
)
from solvers.smo.block_steps import smo_block_steps
from solvers.smo.certificate import extremes, gap_of, set_to_bounds

# Largest distance of F + b from 0 with which a sample at its bound is near the margin, in margins.
NEAR = 0.03
# Number of samples near the margin beyond twice the free ones: smallest number, and share of all samples.
# The samples farthest from the margin are left out.
FEW_NEAR, SHARE_NEAR = 600, 1.0 / 13.0
# Largest share of the block for free samples, so that others can enter.
SHARE_OF_FREE = 0.75
# Largest subproblem that is solved on the block of all its samples, in samples.
MAX_WHOLE_BLOCK = 600
# Violation that a round solves to, as a share of the violation at its start. The next round would undo a
# smaller one.
SHARE_OF_VIOLATION = 0.03
# Smallest violation that a round solves to, as a share of the target violation.
SHARE_INSIDE = 0.9
# Cost of the steps after which Newton's method runs, as a share of its cost.
PATIENCE = 0.8
# Rounding prevents further progress if this number of rounds reduces the objective by less than this share of
# the sum of weights.
ROUNDS_WITHOUT_PROGRESS, NO_PROGRESS_OF_ROUNDS = 20, 1e-13
# Share of the memory for the block.
SHARE_OF_BLOCK = 0.75
# Memory of Newton's method for each pair of free weights, in bytes: half of their kernel, and corrections.
BYTES_OF_NEWTON = 5.0
# Work of steps between two readings of the clock, in nanoseconds.
STEPS_BEFORE_CHECK = 50_000_000.0
# Size of the subsample from which the first C starts: share of the samples, smallest and largest number of
# samples, and smallest number of samples of a class.
SUBSAMPLE, MIN_SUBSAMPLE, MAX_SUBSAMPLE, MIN_OF_CLASS = 0.1, 1000, 4000, 50
# Largest violation of the solution for the subsample, in margins.
TOL_OF_SUBSAMPLE = 0.05
# Value of γ times the mean square distance below which the block contains k - 1: a float32 near 1 would be
# too coarse.
SMALL_DISTANCE = 0.7


@njit
def step_cost(w):
    """Return the cost of one step on w rows that come from memory, in nanoseconds of a 2025 core.

    Parameters
    ----------
    w : int
        Number of rows.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 40.0 + 1.3 * w


@njit(allocates=False)
def steps_before_newton(K, diagonal, inverse_C, F, beta, low, high, tol, elapsed_cost, max_steps, scratch):
    """Take steps until they cost more than `PATIENCE` times Newton's method.

    Parameters
    ----------
    K : float32 array (w, any), C-contiguous
        The block, without labels, less the shift.
    diagonal : array (w,)
        Diagonal of ``K`` plus `inverse_C`.
    inverse_C : array (w,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    F, beta : arrays (w,), changed in place
        Gradient and signed weights.
    low, high : arrays (w,)
        Bounds of the weights.
    tol : float
        Largest violation.
    elapsed_cost : float
        Cost of the steps since Newton's method last ran; −∞ if it must not run.
    max_steps : int
        Number of steps after which the loop stops.
    scratch : float32 array (4, w)
        Scratch memory, overwritten.

    Returns
    -------
    status : int
        PAUSED: run Newton's method. LIMIT: the steps are used up. Otherwise a status of `smo_block_steps`.
    steps : int
        Number of steps that were taken.
    """
    w = F.size
    taken, without_progress, gains = 0, 0, 0.0
    while taken < max_steps:
        n = 0
        for t in range(w):
            n += low[t] < beta[t] < high[t]
        left = PATIENCE * face_cost(n, w) - (elapsed_cost + taken * step_cost(w))
        if n > 1 and left < 0.0:
            return PAUSED, taken
        due = np.int64(min(left / step_cost(w), MAX_STEPS))
        allowed = min(max(MIN_STEPS, due), max_steps - taken)
        status, steps, gain = smo_block_steps(
            K, diagonal, inverse_C, F, beta, low, high, tol, allowed, scratch
        )
        taken += steps
        if status != PAUSED:
            return status, taken
        without_progress += steps
        gains += gain
        if without_progress >= STEPS_WITHOUT_PROGRESS:
            if not gains > NO_PROGRESS * total_size(beta):
                return STALLED, taken
            without_progress, gains = 0, 0.0
    return LIMIT, taken


class LargeSubproblem(DualPoint):
    """Point of a subproblem that moves to the solution for a C.

    Parameters
    ----------
    samples, n_features, rows, y
        As in `solvers.margin.dual_point.DualPoint`.
    memory : float
        Memory for the block and for Newton's method, in bytes.
    deadline : float, default=np.inf
        Time of `solvers.common.clock.clock` at which to stop, in seconds.
    hinge : bool, default=True
        Whether the loss is C ξ; if not, it is ½ C ξ².
    """

    _aimed_share = AIMED_SHARE  # target violation, as a share of the tolerance
    _unknown_gap = np.nan  # gap of a point whose gradient is not known

    def __init__(self, samples: Samples, n_features, rows, y, memory, deadline=np.inf, hinge=True):
        super().__init__(samples, n_features, rows, y, deadline, hinge)
        self._n_features, self._memory = n_features, memory
        mean = self._tiles.values.sum(axis=(0, 2)) / rows.size
        square_distance = 2.0 * samples.halves[rows].mean() - mean @ mean  # γ times the mean square distance
        shift = 1.0 if square_distance < SMALL_DISTANCE else 0.0
        self._block = MarginBlock(samples, n_features, rows, shift, SHARE_OF_BLOCK * memory)
        self._value_error = error_of_values(samples)
        self.newtons, self._proximity = 0, FIRST_PROXIMITY
        self._generator = np.random.default_rng(0)  # chooses samples of a block

    @property
    def evaluations(self):
        """Number of kernel values computed so far."""
        return self._evaluations + self._block.evaluations

    def start(self, max_iter):
        """Start from the solution for a subsample.

        The subsample is solved for a larger C, in proportion to its smaller number of samples. If most
        weights of the solution are at their bounds, weights of all samples are set to their bounds in the
        order of the margins, up to the sum of the solution's weights. If the deadline passes before F of all
        samples is known, the weights are those of the subsample, for the C of all samples.

        Parameters
        ----------
        max_iter : int
            Number of iterations after which the training stops.

        Returns
        -------
        iterations : int
            Number of iterations on the subsample.
        """
        m = self.y.size
        n = min(max(MIN_SUBSAMPLE, int(SUBSAMPLE * m)), MAX_SUBSAMPLE, self._largest_part())
        if n >= m:
            return 0
        classes = [np.flatnonzero(self.y == sign) for sign in (1.0, -1.0)]
        generator = np.random.default_rng(0)
        chosen, C = [], np.ones(m)
        for members in classes:
            size = min(members.size, max(MIN_OF_CLASS, round(n * members.size / m)))
            chosen.append(np.sort(generator.permutation(members)[:size]))
            C[members] = self.C[members] * (members.size / size)
        some = np.concatenate((*chosen, np.flatnonzero(self.y == 0.0)))
        part = self._part(some)
        part.set_C(self.C[some] if self._hinge else C[some])
        _, iterations = part.minimise(TOL_OF_SUBSAMPLE, max_iter)
        is_bounded = self._hinge and part.n_bounded() >= BOUNDED_PER_FREE * part.n_free()
        subsample_state = part.beta.copy(), part.F + (self._ridge[some] - part._ridge) * part.beta, part.bias
        if is_bounded:
            part.raise_C(C[some])
            iterations += part.minimise(TOL_OF_SUBSAMPLE, max_iter - iterations)[1]
        self._evaluations += part.evaluations
        support = np.flatnonzero(part.beta)
        self.beta[some] = part.beta
        try:
            self._add(some[support], part.beta[support], self._deadline)
            if is_bounded:
                total = part.beta.clip(min=0.0).sum()
                self.beta = self._at_bounds(self.y * (self.F + part.bias), classes, total)
                self._recompute(self._deadline)
        except OutOfTime:
            self.beta, self.F = np.zeros(m), -self.y
            self.beta[some], self.F[some], self._bias_of_some = subsample_state
            return iterations
        if not self._hinge:
            with suppress(OutOfTime):
                self._move_towards(self._from_slacks(self.F + part.bias))
        return iterations

    def _largest_part(self):
        """Return the largest number of samples whose tiles and block fit into the memory for a block.

        Returns
        -------
        int
            Number of samples, at least `MIN_ROWS`, and at most the capacity of the block.
        """
        d = float(self._n_features)  # 4 n² + 8 n d bytes
        n = np.sqrt(d * d + SHARE_OF_BLOCK * self._memory / 4.0) - d
        return min(self._block.capacity, max(MIN_ROWS, int(n)))

    def _part(self, some):
        """Return the subproblem of some of the samples.

        Parameters
        ----------
        some : int64 ndarray
            Indices of the samples.

        Returns
        -------
        LargeSubproblem
            An object of the same class, without weights.
        """
        return type(self)(
            *(self._samples, self._n_features, self._rows[some], self.y[some], self._memory),
            *(self._deadline, self._hinge),
        )

    def _from_slacks(self, level):
        """Return the weights that belong to the slacks of the L2 loss, scaled so that their sum is zero.

        Parameters
        ----------
        level : ndarray of shape (m,)
            Gradient plus bias.

        Returns
        -------
        ndarray of shape (m,)
            Signed weights; the present ones if a class has no slack.
        """
        level = level - self._ridge * self.beta
        beta = np.where(self.y * level < 0.0, -self.C * level, 0.0)
        if (self.y == 0.0).any():
            beta[self.y == 0.0] = -beta.sum()
            return beta
        positive, negative = beta.clip(min=0.0).sum(), -beta.clip(max=0.0).sum()
        less = min(positive, negative)
        if less <= 0.0:
            return self.beta
        return np.where(beta > 0.0, less / positive, less / negative) * beta

    def _at_bounds(self, margins, classes, largest):
        """Return weights that are C where the margins are smallest, and 0 elsewhere.

        The sum of the weights is the same in each class. It is the larger of two sums, each of C over the
        samples of one class with negative margin. It is limited by `largest`, because an inaccurate solution
        may put many samples just inside the margin.

        Parameters
        ----------
        margins : ndarray of shape (m,)
            Margin of each sample, less 1.
        classes : list of int64 ndarray
            Samples of each class.
        largest : float
            Largest sum of the weights of a class.

        Returns
        -------
        ndarray of shape (m,)
            Signed weights.
        """
        inside = max(self.C[members][margins[members] < 0.0].sum() for members in classes)
        total = min(inside, largest, *(self.C[members].sum() for members in classes))
        beta = np.zeros(self.y.size)
        for members in classes:
            order = members[np.argsort(margins[members], kind="stable")]
            before = np.cumsum(self.C[order]) - self.C[order]
            beta[order] = self.y[order] * np.clip(total - before, 0.0, self.C[order])
        return beta

    def solve(self, tol, max_iter):
        """Minimise until violation and gap are certified to be at most `tol`.

        Parameters
        ----------
        tol : float
            Largest violation and relative duality gap that count as converged.
        max_iter : int
            Number of iterations after which the training stops.

        Returns
        -------
        status : int
            One of the statuses of `solvers.common.status`.
        gap : float
            Upper bound on the relative duality gap, certified in float64.
        converged : bool
            Whether violation and gap are certified.
        iterations : int
            Number of iterations that were done.
        """
        if self._bias_of_some is not None:
            return TIMEOUT, self._unknown_gap, False, 0
        aim, iterations = self._aimed_share * tol, 0
        for _ in range(REFINEMENTS):
            status, taken = self.minimise(aim, max_iter - iterations)
            iterations += taken
            if self._drift > ALLOWED_DRIFT * aim:
                try:
                    with self._restored_when_out_of_time():
                        self._recompute(self._deadline)
                except OutOfTime:
                    status = TIMEOUT  # the error includes the drift
            b, violation, _, error = state_of(
                self.F, self.beta, self._low, self._high, self._value_error, self._drift
            )
            gap, exact = self._gap(b, error), self._gap(b, 0.0)
            converged = gap <= tol and violation + 2.0 * error <= tol
            if converged or status != CONVERGED:
                break
            # A tighter tolerance does not help where the error of the kernel values dominates.
            enough = AFFORDABLE_SHARE * tol
            is_unreachable = 2.0 * error > enough or gap - exact > enough or max(exact, violation) <= enough
            if is_unreachable and violation <= tol:
                break
            aim *= min(0.5, max(MIN_SHARE, enough / exact)) if violation <= tol else 0.5
        return status, gap, converged, iterations

    def _gap(self, b, error):
        """Return the gap of the point.

        Parameters
        ----------
        b : float
            Bias of the decision function at the point.
        error : float
            Bound on the error of the gradient; with 0, the result is an estimate instead of a bound.

        Returns
        -------
        float
            Upper bound on the relative duality gap; an estimate if `error` is 0.
        """
        return gap_of(self.F, self.beta, self.y, self.C, self._ridge, self._hinge, b, error)

    def minimise(self, tol, max_iter):
        """Solve for the samples near the margin until no sample violates its condition by more than `tol`.

        Parameters
        ----------
        tol : float
            Largest violation.
        max_iter : int
            Number of iterations after which the training stops.

        Returns
        -------
        status : int
            CONVERGED, LIMIT, TIMEOUT or STALLED.
        iterations : int
            Number of iterations that were done.
        """
        iterations, before = 0, np.inf
        for n_rounds in count():
            # The bias that defines the samples near the margin does not count such weights as free.
            self._drift += set_to_bounds(self.beta, self._low, self._high, ALLOWED_DRIFT * tol)
            lowest, highest = extremes(self.F, self.beta, self._low, self._high)
            violation = highest - lowest
            if violation <= tol:
                return CONVERGED, iterations
            if iterations >= max_iter:
                return LIMIT, iterations
            if clock() > self._deadline:
                return TIMEOUT, iterations
            if n_rounds % ROUNDS_WITHOUT_PROGRESS == 0:
                objective = self.objective
                if before - objective <= NO_PROGRESS_OF_ROUNDS * np.abs(self.beta).sum():
                    return STALLED, iterations
                before = objective
            self._block.gather(self._near_margin())
            inner_tol = max(SHARE_INSIDE * tol, SHARE_OF_VIOLATION * violation)
            try:
                iterations += self._minimise_on_block(inner_tol, max_iter - iterations)
            except OutOfTime:
                return TIMEOUT, iterations

    def _near_margin(self):
        """Return which samples are near the margin, on the wrong side of it, or free.

        Returns
        -------
        bool ndarray of shape (m,)
            The samples; at most the capacity of the block.
        """
        m = self.y.size
        if min(MAX_WHOLE_BLOCK, self._block.capacity) >= m:
            return np.ones(m, dtype=bool)
        level = self.F + self.bias
        grow, shrink = self.beta < self._high, self.beta > self._low
        near = (grow & (level < NEAR)) | (shrink & (level > -NEAR))
        free = grow & shrink
        n_free, others = int(np.count_nonzero(free)), max(FEW_NEAR, int(SHARE_NEAR * m))
        limit = min(self._block.capacity, 2 * n_free + others)
        if np.count_nonzero(near) <= limit:
            return near
        near = free.copy()
        if n_free > (max_free := int(SHARE_OF_FREE * limit)):
            # These samples are random. With the largest violations, the rounds would converge slowly.
            near[self._generator.permutation(np.flatnonzero(free))[max_free:]] = False
        half = (limit - np.count_nonzero(near)) // 2
        for value, is_open in ((level, grow & ~near), (-level, shrink & ~near)):
            lowest = np.flatnonzero(is_open)
            if lowest.size > half:
                lowest = lowest[np.argpartition(value[lowest], half)[:half]]
            near[lowest] = True
        return near

    def _minimise_on_block(self, tol, max_iter):
        """Minimise over the members of the block, and update the gradient of all samples.

        Parameters
        ----------
        tol : float
            Largest violation.
        max_iter : int
            Number of iterations after which the training stops.

        Returns
        -------
        int
            Number of iterations.

        Raises
        ------
        OutOfTime
            If the deadline passes. The point is then unchanged.
        """
        block, members = self._block, self._block.members
        w, left = members.size, self._memory - block.values.nbytes
        F, beta = self.F[members], self.beta[members]
        low, high = self._low[members], self._high[members]
        ridge = self._ridge[members]
        point = BlockPoint(block.values, block.shift, ridge, F, beta, low, high)
        diagonal = (1.0 - block.shift) + ridge
        scratch = np.empty((4, w), np.float32)
        iterations, elapsed_cost = 0, 0.0
        chunk = int(STEPS_BEFORE_CHECK / step_cost(w))
        while iterations < max_iter and clock() < self._deadline:
            status, taken = steps_before_newton(
                *(block.values, diagonal, ridge, F, beta, low, high, tol, elapsed_cost),
                int(min(chunk, max_iter - iterations)),
                scratch,
            )
            iterations += taken
            elapsed_cost += taken * step_cost(w)
            if status == PAUSED:
                n_free = np.count_nonzero((low < beta) & (beta < high))
                moved = False
                if BYTES_OF_NEWTON * n_free**2 <= left:
                    moved, self._proximity = newton_on_face(point, tol, self._proximity)
                self.newtons += moved
                elapsed_cost = 0.0 if moved else -np.inf
                iterations += 1
            elif status != LIMIT:
                break
        change = beta - self.beta[members]
        changed = np.flatnonzero(change)
        with self._restored_when_out_of_time():
            self.beta[members] = beta
            self._add(members[changed], change[changed], self._deadline)
        return iterations
