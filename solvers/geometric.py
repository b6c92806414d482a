"""What the geometric solvers share above their numba loops: parameters, driver and certificate."""

import time

import numpy as np
from numba import njit

from solvers.base import KernelSVC, Solution, check_choice, check_count, check_number
from solvers.bias import class_biases
from solvers.cache import row, track
from solvers.draws import inner_product, random_below
from solvers.hull import (
    EVALUATIONS,
    FULL,
    ITERATIONS,
    PAUSED,
    SQUARE_NORM,
    SUPPORT,
    TIMEOUT,
    TRACKED,
    grow,
    new_hull,
)
from solvers.pairs import PAIRS
from solvers.stopping import RULES, default_tolerance
from solvers.weights import enter, square_norm_of

WORK_BEFORE_PAUSE = 30_000_000  # elementary operations between two looks at the clock: some 20 ms
SURE_CERTIFICATE = 50_000_000  # kernel evaluations that a certificate may always cost


class GeometricSVC(KernelSVC):
    """Base of the solvers that move a point of the hull (`solvers.hull`)."""

    def _advance(self, hull, epsilon, max_iter, budget):
        """Run the solver's loop on `hull` until it has something to say; return its status."""
        raise NotImplementedError

    def _validate_params(self):
        super()._validate_params()
        check_count("draws", self.draws)
        check_count("subset", self.subset)
        check_choice("sampling", self.sampling, ("fair", "simple"))
        check_choice("stopping", self.stopping, RULES)
        check_choice("bias", self.bias, ("theoretic", "average", "none"))
        check_choice("multiclass", self.multiclass, ("pairwise", "all_at_once"))
        if self.tol != "auto":
            check_number("tol", self.tol, "'auto' or a number between 0 and 1", lambda v: 0 < v < 1)
        if self.max_iter != -1:
            check_count("max_iter", self.max_iter)
        check_number("cache_size", self.cache_size, "a number of megabytes > 0", lambda v: v > 0)
        if hasattr(self, "eta"):
            check_number(
                "eta", self.eta, "a number with 1 ≤ eta < 2 (from 2 on, ‖c‖ can grow)", lambda v: 1 <= v < 2
            )
        if hasattr(self, "pair"):
            check_choice("pair", self.pair, PAIRS)
            check_number("pair_exponent", self.pair_exponent, "a number from 0 to 1", lambda v: 0 <= v <= 1)

    def _solve(self, problem):
        cache_bytes = self.cache_size * 1e6
        hull = new_hull(problem, cache_bytes, problem.seed)
        if problem.start is None:
            start_at_random(hull)
        else:
            start_from(hull, problem.start.support, problem.start.alpha)
            lowest_inner_product(hull, problem.deadline)
            hull.real[SQUARE_NORM] = square_norm_of(hull.alpha, hull.g, hull.support, hull.counts[SUPPORT])
            hull.real[SQUARE_NORM] = square_norm_of(hull.alpha, hull.g, hull.support, hull.counts[SUPPORT])
        square_radius = hull.diagonal[0]
        epsilon = self.tol
        if epsilon == "auto":
            epsilon = default_tolerance(RULES[self.stopping], square_radius, 1.0 / hull.inverse_C[0])
        max_iter = np.iinfo(np.int64).max if self.max_iter == -1 else int(self.max_iter)
        while True:
            status = self._advance(hull, float(epsilon), max_iter, WORK_BEFORE_PAUSE)
            if status == FULL:
                hull = grow(hull, cache_bytes)
            elif status != PAUSED:
                break
            if time.monotonic() > problem.deadline:
                status = TIMEOUT
                break
        return solution_of(hull, status, self.bias, problem.deadline)


def solution_of(hull, status, bias_rule, deadline):
    """Describe the point of the hull as a machine with margin 1, and certify it."""
    support = np.sort(hull.support[: hull.counts[SUPPORT]])
    lowest = lowest_inner_product(hull, deadline)
    hull.real[SQUARE_NORM] = square_norm_of(hull.alpha, hull.g, hull.support, hull.counts[SUPPORT])
    square_norm = hull.real[SQUARE_NORM]
    alpha, g, label = hull.alpha[support], hull.g[support], hull.label[support]
    n_classes = hull.class_start.size - 1
    biases = class_biases(bias_rule, label, alpha, g, square_norm, n_classes) / square_norm
    order = np.argsort(hull.sample[support])
    return Solution(
        support=hull.sample[support][order],
        alpha=alpha[order] / square_norm,
        bias=biases[:1] if n_classes == 2 else biases,
        objective=float(square_norm),
        gap=relative_gap(square_norm, lowest),
        n_iter=int(hull.counts[ITERATIONS]),
        n_kernel_evals=int(hull.counts[EVALUATIONS]),
        status=int(status),
    )


def relative_gap(square_norm, lowest):
    """Bound of the relative error of ‖c‖² by the lowest g of all the samples: 1 − (max(g_min, 0) / ‖c‖²)²."""
    return float(1.0 - (max(lowest, 0.0) / square_norm) ** 2) if lowest < square_norm else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def start_at_random(hull):
    """Line 1 of the algorithms: all the weight on one sample."""
    n = hull.rows.size
    first = random_below(hull.state, n)
    if hull.tracked_all:
        track(hull, 0, n)
    else:
        track(hull, first, first + 1)
    p = hull.position[first]
    hull.alpha[p] = 1.0
    enter(p, hull.support, hull.place, hull.counts)
    values = row(hull, p)
    hull.g[: hull.counts[TRACKED]] = values[: hull.counts[TRACKED]]
    hull.real[SQUARE_NORM] = square_norm_of(hull.alpha, hull.g, hull.support, hull.counts[SUPPORT])


@njit(nogil=True, cache=True, error_model="numpy")
def start_from(hull, samples, weights):
    """Start from the weights of another solution instead."""
    if hull.tracked_all:
        track(hull, 0, hull.rows.size)
    else:
        for i in samples:
            track(hull, i, i + 1)
    total = weights.sum()
    for k in range(samples.size):
        p = hull.position[samples[k]]
        hull.alpha[p] = weights[k] / total
        enter(p, hull.support, hull.place, hull.counts)


def lowest_inner_product(hull, deadline):
    """Recompute g of the tracked samples from the kernel, and return the lowest g of all samples.

    NaN where that would cost more kernel evaluations than training did, or the time is over.
    """
    m = hull.counts[TRACKED]
    step = max(1, WORK_BEFORE_PAUSE // (m * (2 + hull.point.size // 8)))
    hull.scratch[:m] = 0.0
    for first in range(0, hull.counts[SUPPORT], step):
        add_rows(hull, first, min(first + step, hull.counts[SUPPORT]))
        if time.monotonic() > deadline:
            return np.nan
    hull.g[:m] = hull.scratch[:m]
    lowest = hull.g[:m].min()
    n = hull.n_samples
    if hull.tracked_all:
        return lowest
    if n * m > max(SURE_CERTIFICATE, hull.counts[EVALUATIONS]):
        return np.nan
    for first in range(0, n, step):
        lowest = min(lowest, lowest_of(hull, first, min(first + step, n)))
        if time.monotonic() > deadline:
            return np.nan
    return lowest


@njit(nogil=True, cache=True, error_model="numpy")
def add_rows(hull, first, last):
    """Add α_p k̃(p, ·) of some support vectors to `hull.scratch`."""
    m = hull.counts[TRACKED]
    for k in range(first, last):
        p = hull.support[k]
        values = row(hull, p)
        weight = hull.alpha[p]
        for q in range(m):
            hull.scratch[q] += weight * values[q]


@njit(nogil=True, cache=True, error_model="numpy")
def lowest_of(hull, first, last):
    """Lowest g of the samples first ≤ i < last that are not tracked."""
    lowest = np.inf
    for i in range(first, last):
        if hull.position[i] < 0:
            lowest = min(lowest, inner_product(hull, i))
    return lowest
