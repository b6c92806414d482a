"""Algorithms 3 and 4 on many samples, for an ascending path of C, without a Gram matrix.

The kernel part of g_i = x̃_i·c is stored for all samples in float64. Its kernel values are computed and used
at once (`solvers.kernels.tiles`). The iteration runs on a float32 block of the samples near the margin, with
the same draws, steps and counters as on all samples (`solvers.hull.block_descent.descend_block`). Then g of
all samples is updated, and the samples near the margin are chosen again. This ends when no sample violates
the ε-approximation. Each round corrects the rounding errors of the last block.
"""

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    FEW_ROUNDINGS,
    TERMS_IN_PRODUCT,
    UNIT_ROUNDOFF,
    certified_gap,
    error_of_sums,
)
from solvers.common.compile import njit
from solvers.common.status import CONVERGED, LIMIT, STALLED
from solvers.gram.outcomes import new_outcomes
from solvers.hull.bias import class_biases
from solvers.hull.block_descent import ALLOWED_DRIFT, REFRESHES, MinimalNormRules, descend_block
from solvers.hull.draws import draw_first
from solvers.hull.stopping import MN, VIOLATION, rule_holds, rule_text, violation_threshold
from solvers.kernels.tiles import (
    ROWS_AT_A_TIME,
    add_products,
    error_of_values,
    fill_block,
    in_float32,
    tiles_of,
)
from solvers.margin.l1_path import COST_OF_STEP, bytes_of_tiles, samples_of, takes_large_path
from solvers.margin.margin_block import KEPT_SHARE, MIN_ROWS, compact, new_block, piece_of
from solvers.margin.subproblem import (
    FEW_NEAR,
    NEAR,
    ROUNDS_WITHOUT_PROGRESS,
    SHARE_INSIDE,
    SHARE_NEAR,
    SHARE_OF_BLOCK,
    SHARE_OF_FREE,
    SHARE_OF_VIOLATION,
)
from solvers.problem import Solution

# Size of the first block of evenly spaced samples: share of the samples, and smallest number.
FIRST_SHARE, MIN_FIRST = 0.1, 1000
# Number of rows that are copied to columns at a time.
ROWS_TO_COLUMNS = 16
# Smallest decrease of ‖c‖² in `ROUNDS_WITHOUT_PROGRESS` rounds that counts as progress, as a share of ‖c‖².
NO_PROGRESS = 1e-12


@njit
def steps_on_block(
    path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
):
    """Call `descend_block` from Python.

    Parameters
    ----------
    path_rules : MinimalNormRules
        Parameters of the algorithm, and the tolerances, seed and value error of each subproblem.
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
        As in `solvers.hull.block_descent.descend_block`.

    Returns
    -------
    tuple
        ``(square_norm, steps, clipped, status)`` as in `descend_block`.
    """
    return descend_block(
        *(H, diagonal, inverse_C, class_start, alpha, g, square_norm),
        *(epsilon, path_rules.rules, max_iter, state, np.empty((4, g.size), np.float32)),
    )


@njit(allocates=False)
def spread(values, indices):
    """Move the first rows and columns of a matrix to other indices.

    The indices are ascending, so that no value is overwritten before it is read.

    Parameters
    ----------
    values : array (n, any)
        Matrix whose first rows and columns are moved in place.
    indices : int64 array
        New index of each of the first rows and columns, ascending.
    """
    for a in range(indices.size - 1, -1, -1):
        source, target = values[a], values[indices[a]]
        for b in range(indices.size - 1, -1, -1):
            target[indices[b]] = source[b]


@njit(allocates=False)
def apply_labels(values, new, n_first, n):
    """Change the sign of kernel values between the classes in new rows, and copy these rows to columns.

    Parameters
    ----------
    values : array (n, any)
        Kernel values of which the first `n` rows and columns are in use; changed in place.
    new : int64 array
        Indices of the new rows.
    n_first : int
        Index of the first row of the second class.
    n : int
        Number of rows.
    """
    for row in new:
        first, end = (n_first, n) if row < n_first else (0, n_first)
        for j in range(first, end):
            values[row, j] = -values[row, j]
    for start in range(0, new.size, ROWS_TO_COLUMNS):
        some = new[start : start + ROWS_TO_COLUMNS]
        for j in range(n):
            for row in some:
                values[j, row] = values[row, j]


def epsilon_reached(stopping, square_norm, lowest):
    """Return the smallest ε, at most 1, for which a point satisfies the stopping rule.

    Parameters
    ----------
    stopping : {MN, VIOLATION}
        Rule that ends the training.
    square_norm : float
        Squared norm ‖c‖² of the current point c.
    lowest : float
        Lowest g of all samples.

    Returns
    -------
    float
        Relative tolerance ε, from 0 to 1.
    """
    share = max(lowest, 0.0) / square_norm
    return 1.0 - np.sqrt(share) if stopping == MN else 1.0 - share


def takes_large_descent(problem, rules, memory):
    """Return whether a subproblem is trained here; see the table in the documentation of the solvers.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    rules : solvers.hull.descent.Rules
        Parameters of the algorithm.
    memory : float
        Memory for the whole training, in bytes.

    Returns
    -------
    bool
        True for a large subproblem of two classes under a minimal-norm rule with an exhaustive search.
    """
    if 8.0 * problem.rows.size**2 <= memory:
        return False
    is_exhaustive = rules.exhaustive and rules.max_tracked > 0  # an exhaustive search is cheap here
    is_of_minimal_norm = rules.stopping in (MN, VIOLATION) and problem.scale.size == 0
    has_two_classes = problem.class_start.size == 3
    return is_exhaustive and is_of_minimal_norm and has_two_classes and takes_large_path(problem, memory)


class LargeHull:
    """A hull point of a subproblem, and the kernel part of g of all samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    path_rules : solvers.hull.block_descent.MinimalNormRules
        Parameters of the algorithm, and the tolerances, seed and value error of each subproblem.
    memory : float
        Memory for the whole training, in bytes.
    seed : uint64
        Seed of the draws.

    Attributes
    ----------
    alpha : ndarray of shape (m,)
        Weights of the hull point.
    inverse_C : ndarray of shape (m,)
        1/C of each sample, which the caller sets before any other use.
    drift : float
        Bound on the rounding error of g since it was last recomputed.
    evaluations : int
        Number of kernel values computed so far.
    """

    def __init__(self, problem, path_rules, memory, seed):
        self._path_rules, self._state = path_rules, np.full(1, seed, np.uint64)
        self._class_start, self._bias = problem.class_start, problem.bias
        self._rows = problem.rows.astype(np.int64)
        self._n_features = problem.X.shape[1]
        self._samples = samples_of(problem)
        self._short_samples = in_float32(self._samples, 0.0)
        self._tiles = tiles_of(self._samples, self._rows, self._n_features)
        m = self._rows.size
        left = SHARE_OF_BLOCK * (memory - bytes_of_tiles(problem))
        self._capacity = int(min(m, max(MIN_ROWS, np.sqrt(left / 4.0))))
        self._piece = piece_of(self._samples, self._n_features, left)
        self._members, self._block = np.empty(0, np.int64), new_block(self._capacity)
        self._y = np.where(np.arange(m) < self._class_start[1], 1.0, -1.0)
        self._product = np.zeros(m)  # Σ_j y_j α_j k(j, i)
        self.drift, self.evaluations = 0.0, 0
        self._generator = np.random.default_rng(int(seed))  # chooses samples of a block
        self._value_error = error_of_values(self._samples)
        self.alpha, self.inverse_C = np.zeros(m), np.zeros(m)
        if problem.start is None:
            first = draw_first(self._state, self._class_start, path_rules.rules.first_samples)
            self.alpha[first] = 1.0 / first.size
        else:
            first = problem.start.support
            self.alpha[first] = problem.start.alpha / problem.start.alpha.sum()
        self._add(first, self.alpha[first])

    def point(self):
        """Return ``‖c‖²``, and g of all samples.

        Returns
        -------
        square_norm : float
            Squared norm ``‖c‖²`` of the current point c.
        g : ndarray of shape (m,)
            Inner products x̃_i · c.
        """
        signed = self._product + self._bias * (self._y @ self.alpha)
        g = self._y * signed + self.inverse_C * self.alpha
        return float(self.alpha @ g), g

    def error(self):
        """Bound the error of g and of ``‖c‖²``.

        Returns
        -------
        float
            Upper bound on the absolute error.
        """
        largest = 1.0 + self._bias + self.inverse_C.max()
        return error_of_sums(self._value_error, largest, self.alpha.size / TERMS_IN_PRODUCT, 0) + self.drift

    def minimise(self, epsilon, max_iter):
        """Iterate until no sample violates the ε-approximation.

        Parameters
        ----------
        epsilon : float
            Tolerance ε of the stopping rule.
        max_iter : int
            Number of steps after which the loop stops.

        Returns
        -------
        status : int
            CONVERGED, STALLED or LIMIT.
        steps : int
            Number of steps that were taken.
        clipped : int
            Number of steps that were shortened by the available weight.
        """
        steps = clipped = 0
        stopping, before, n_rounds = self._path_rules.rules.stopping, np.inf, 0
        while True:
            square_norm, g = self.point()
            if g.min() >= violation_threshold(stopping, epsilon, square_norm, 0.0):
                return CONVERGED, steps, clipped
            if not 0.0 < square_norm < np.inf:
                return STALLED, steps, clipped
            if steps >= max_iter:
                return LIMIT, steps, clipped
            if n_rounds % ROUNDS_WITHOUT_PROGRESS == 0:
                if before - square_norm <= NO_PROGRESS * square_norm:
                    return STALLED, steps, clipped
                before = square_norm
            n_rounds += 1
            reached = epsilon_reached(stopping, square_norm, g.min())
            epsilon_inside = max(SHARE_INSIDE * epsilon, SHARE_OF_VIOLATION * reached)
            self._gather(self._near_margin(square_norm, g))
            taken, n_clipped = self._descend(square_norm, g, epsilon_inside, max_iter - steps)
            steps, clipped = steps + taken, clipped + n_clipped

    def refresh(self):
        """Recompute g from the kernel."""
        self._product[:], self.drift = 0.0, 0.0
        support = np.flatnonzero(self.alpha)
        self._add(support, self.alpha[support])

    def _near_margin(self, square_norm, g):
        """Return the samples that have weight, or are near the margin or beyond it.

        Parameters
        ----------
        square_norm : float
            Squared norm ``‖c‖²`` of the current point c.
        g : ndarray of shape (m,)
            Inner products x̃_i · c.

        Returns
        -------
        int64 ndarray
            Indices of the samples, ascending; at most the capacity of the block.
        """
        m, has_weight = g.size, self.alpha > 0.0
        if self._capacity >= m:
            return np.arange(m)
        n_support = int(np.count_nonzero(has_weight))
        if n_support <= self._path_rules.rules.first_samples:  # only at the start, never at an optimum
            n_first = min(self._capacity, max(MIN_FIRST, int(FIRST_SHARE * m))) - n_support
            return np.union1d(np.flatnonzero(has_weight), np.linspace(0, m - 1, n_first).astype(np.int64))
        near = has_weight | (g < (1.0 + NEAR) * square_norm)
        limit = min(self._capacity, 2 * n_support + max(FEW_NEAR, int(SHARE_NEAR * m)))
        if np.count_nonzero(near) <= limit:
            return np.flatnonzero(near)
        near = has_weight.copy()
        if n_support > (max_weighted := int(SHARE_OF_FREE * limit)):
            # These samples are random. With the largest violations, the rounds would converge slowly.
            near[self._generator.permutation(np.flatnonzero(has_weight))[max_weighted:]] = False
        others, n_left = np.flatnonzero(~near), limit - int(np.count_nonzero(near))
        near[others[np.argpartition(g[others], n_left)[:n_left]]] = True
        return np.flatnonzero(near)

    def _gather(self, wanted):
        """Make the block contain the wanted samples and few others, in ascending order, with labels and bias.

        Parameters
        ----------
        wanted : int64 ndarray
            Samples that the block must contain, ascending.
        """
        members = np.union1d(self._members, wanted)
        if members.size > self._capacity or wanted.size < KEPT_SHARE * members.size:
            members = wanted
        kept = np.isin(self._members, members, assume_unique=True)
        is_new = ~np.isin(members, self._members, assume_unique=True)
        if not kept.all():
            compact(self._block, np.flatnonzero(kept))
        if is_new.any():
            spread(self._block, np.flatnonzero(~is_new))
            self._fill(members, np.flatnonzero(is_new))
        self._members = members

    def _fill(self, members, new):
        """Compute the new rows of the block, and copy them to columns.

        Parameters
        ----------
        members : int64 ndarray
            Samples of the block, ascending.
        new : int64 ndarray
            Indices of the new rows.
        """
        rows, block = self._rows[members], self._block
        for start in range(0, members.size, self._piece):
            columns = tiles_of(self._short_samples, rows[start : start + self._piece], self._n_features)
            fill_block(self._short_samples, rows[new], new, columns, start, -self._bias, block)
        apply_labels(block, new, np.searchsorted(members, self._class_start[1]), members.size)
        self.evaluations += new.size * members.size

    def _descend(self, square_norm, g, epsilon, max_iter):
        """Iterate on the block, and update g of all samples.

        Parameters
        ----------
        square_norm : float
            Squared norm ``‖c‖²`` of the current point c.
        g : ndarray of shape (m,)
            Inner products x̃_i · c.
        epsilon : float
            Tolerance ε of the stopping rule.
        max_iter : int
            Number of steps after which the loop stops.

        Returns
        -------
        steps : int
            Number of steps that were taken.
        clipped : int
            Number of steps that were shortened by the available weight.
        """
        members = self._members
        alpha, inverse_C = self.alpha[members], self.inverse_C[members]
        diagonal = 1.0 + self._bias + inverse_C
        starts = np.unique(np.searchsorted(members, self._class_start))  # classes without members drop out
        _, steps, clipped, _ = steps_on_block(
            *(self._path_rules, self._block[: members.size], diagonal, inverse_C, starts),
            *(alpha, g[members], square_norm, epsilon, max_iter, self._state),
        )
        change = alpha - self.alpha[members]
        moved = np.flatnonzero(change)
        self.alpha[members] = alpha
        self._add(members[moved], change[moved])
        return steps, clipped

    def _add(self, chosen, weights):
        """Update the kernel part of g after a change of some weights.

        Parameters
        ----------
        chosen : int64 ndarray of shape (k,)
            Indices of the samples whose weights changed.
        weights : ndarray of shape (k,)
            Change of their weights.
        """
        add_products(self._samples, self._rows[chosen], self._y[chosen] * weights, self._tiles, self._product)
        self.evaluations += chosen.size * self.alpha.size
        terms = min(chosen.size, ROWS_AT_A_TIME) + FEW_ROUNDINGS
        portions = chosen.size / ROWS_AT_A_TIME + 1.0
        self.drift += UNIT_ROUNDOFF * (terms * np.abs(weights).sum() + portions)


def large_descent(problem, path_rules, Cs, limits, memory, seed, outcome):
    """Train a subproblem of two classes for every C, each time from the last solution.

    The first training starts from the weights of the last fit if they are given, else from random samples.

    Parameters
    ----------
    problem : solvers.problem.Problem
        The subproblem. The penalty of a sample is its C times that of the path.
    path_rules : solvers.hull.block_descent.MinimalNormRules
        Rules of the path, for one subproblem.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    limits : int64 ndarray of shape (n_C,)
        Largest number of steps for each C.
    memory : float
        Memory for the whole training, in bytes.
    seed : uint64
        Seed of the draws.
    outcome : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_C,), which receive the results.

    Returns
    -------
    weights : ndarray of shape (n_C, m)
        Dual weights of the samples, scaled to a margin of 1.
    """
    m, stopping = problem.rows.size, path_rules.rules.stopping
    weights = np.zeros((Cs.size, m))
    label = (np.arange(m) >= problem.class_start[1]).astype(np.int64)
    bias_rule = "average" if path_rules.rules.average_bias else "theoretic"
    with one_blas_thread():
        hull = LargeHull(problem, path_rules, memory, seed)
        for k, C in enumerate(Cs):
            before = hull.evaluations
            hull.inverse_C = 1.0 / np.broadcast_to(C * problem.C, (m,))
            epsilon = float(path_rules.epsilons[0, k])
            status, steps, clipped = _reach(hull, epsilon, int(limits[k]), stopping)
            square_norm, g = hull.point()
            error = hull.error()
            gap = float(certified_gap(square_norm, g.min(), error, hull.alpha.sum()))
            outcome.statuses[k], outcome.gaps[k], outcome.objectives[k] = status, gap, square_norm
            outcome.converged[k] = rule_holds(stopping, epsilon, square_norm, 0.0, g.min(), error, gap)
            outcome.iterations[k], outcome.clipped[k] = steps, clipped
            outcome.full_updates[k] = steps - clipped
            outcome.evaluations[k] = hull.evaluations - before
            outcome.costs[k] = outcome.evaluations[k] + COST_OF_STEP * steps
            support = np.flatnonzero(hull.alpha)
            outcome.supports[k] = support.size
            chosen = (label[support], hull.alpha[support], g[support])
            biases = class_biases(bias_rule if problem.bias else "none", *chosen, square_norm, 2)
            # Without a margin the weights stay those of the hull.
            margin = square_norm if square_norm > 0.0 else 1.0
            with np.errstate(over="ignore"):
                outcome.biases[k], weights[k] = biases / margin, hull.alpha / margin
    return weights


def solve_large_descent(problem, rules, tol, memory):
    """Train a subproblem for a single C.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    rules : solvers.hull.descent.Rules
        Parameters of the algorithm.
    tol : float
        Tolerance ε of the stopping rule.
    memory : float
        Memory for the whole training, in bytes.

    Returns
    -------
    solvers.problem.Solution
        The trained subproblem.
    """
    outcome, seeds = new_outcomes(1, 1, 2).of_subproblem(0), np.full(1, problem.seed, np.uint64)
    path_rules = MinimalNormRules(rules, np.full((1, 1), tol), seeds, np.zeros(1))
    limits = np.array([problem.max_iter])
    weights = large_descent(problem, path_rules, np.ones(1), limits, memory, seeds[0], outcome)[0]
    support, status, gap = np.flatnonzero(weights), int(outcome.statuses[0]), float(outcome.gaps[0])
    converged = bool(outcome.converged[0])
    return Solution(
        support=support,
        alpha=weights[support],
        bias=outcome.biases[0, :1],
        objective=float(outcome.objectives[0]),
        gap=gap,
        n_iter=int(outcome.iterations[0]),
        n_kernel_evals=int(outcome.evaluations[0]),
        n_clipped=int(outcome.clipped[0]),
        n_full_updates=int(outcome.full_updates[0]),
        status=status,
        converged=converged,
        stopping=rule_text(rules.stopping, converged, gap, status, 0),
    )


def _reach(hull, epsilon, max_iter, stopping):
    """Minimise until the rule holds for the exact kernel, if rounding permits.

    Parameters
    ----------
    hull : LargeHull
        The hull point, changed in place.
    epsilon : float
        Tolerance ε of the stopping rule.
    max_iter : int
        Number of steps after which the loop stops.
    stopping : {MN, VIOLATION}
        Rule that ends the training.

    Returns
    -------
    status : int
        One of the statuses of `solvers.common.status`.
    steps : int
        Number of steps that were taken.
    clipped : int
        Number of steps that were shortened by the available weight.
    """
    steps = clipped = 0
    # Both g and ||c||² carry the error; the rule with (1 − ε)² allows twice the error for the same ε.
    n_shares = 2.0 if stopping == VIOLATION else 1.0
    for _ in range(REFRESHES):
        square_norm = hull.point()[0]
        aim = AIMED_SHARE * epsilon
        lost = n_shares * hull.error() / square_norm if square_norm > 0.0 else np.inf
        aim -= lost if lost < AFFORDABLE_SHARE * aim else 0.0
        status, taken, n_clipped = hull.minimise(aim, max_iter - steps)
        steps, clipped = steps + taken, clipped + n_clipped
        if hull.drift <= ALLOWED_DRIFT * aim * hull.point()[0]:
            break
        hull.refresh()
    return status, steps, clipped
