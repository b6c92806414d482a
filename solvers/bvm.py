"""Ball Vector Machine (Tsang, Kocsor, Kwok 2007; Strack 2013, 2.3.3.2): the centre follows the violators."""

import numpy as np
from numba import njit

from solvers.cache import row
from solvers.draws import find_violator
from solvers.geometric import GeometricSVC
from solvers.hull import (
    CONVERGED,
    EPSILON,
    GO_ON,
    ITERATIONS,
    LIMIT,
    SQUARE_NORM,
    SUPPORT,
    TRACKED,
    WORK,
    interruption,
)
from solvers.pairs import lowest_support
from solvers.stopping import MEB, violation_threshold
from solvers.weights import scale_and_add


@njit(nogil=True, cache=True, error_model="numpy")
def ball_towards_violators(hull, epsilon, draws, subset, fair, exhaustive, max_iter, budget):
    """Algorithm 2, with the draws of 5.1 and the scales of Algorithm 5. No vector ever leaves the core set.

    Lines 1–2 have been done by the caller: all weight on a sample, and R̂² = τ̃.

    Returns
    -------
    status : int
        One of those of `solvers.hull`; after PAUSED and FULL, call again to go on.
    """
    alpha, g, diagonal, support, place = hull.alpha, hull.g, hull.diagonal, hull.support, hull.place
    real, counts, scratch = hull.real, hull.counts, hull.scratch
    square_radius = diagonal[0]
    counts[WORK] = 0
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # Lines 3–4: a violator ‖c − x̃_v‖ > (1 + ε̂) R̂ among the drawn samples, else among the core set.
        threshold = violation_threshold(MEB, real[EPSILON], real[SQUARE_NORM], square_radius)
        v, _ = find_violator(hull, threshold, draws, subset, fair, exhaustive)
        if v < 0:
            v = lowest_support(g, support, counts[SUPPORT], scratch)
            if g[v] >= threshold:  # there is none: the ε̂-approximation is done
                if real[EPSILON] <= epsilon:
                    return CONVERGED
                real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
                continue

        # Lines 5–7: move the centre until x̃_v lies on the ball (2.133).
        row_v = row(hull, v)
        square_distance = square_radius - 2.0 * g[v] + real[SQUARE_NORM]
        beta = 1.0 - np.sqrt(square_radius / square_distance)
        m = counts[TRACKED]
        scale_and_add(v, beta, row_v, m, alpha, g, diagonal, support, place, counts, real)
        counts[ITERATIONS] += 1
        counts[WORK] += m + counts[SUPPORT]
    return LIMIT


class BallSVC(GeometricSVC):
    """Ball Vector Machine: an L2-loss support vector machine whose centre moves to the violators of a ball.

    The kernel is normalised to constant k(x, x) where it is not (2.47).

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol, sampling, exhaustive, bias, multiclass, gram_error, cache_size, \
max_iter, max_seconds, warm_start, probability, random_state
        As in `MNSVC`; "auto" is the tolerance of (7.3).
    draws : int, default=600
        Candidates that are drawn in vain before the search ends, N_d.
    subset : int, default=60
        Candidates of which the farthest is taken, N_r.

    Attributes
    ----------
    See `solvers.base.KernelSVC`.
    """

    normalises = True
    first_epsilon = 0.1

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol="auto",
        draws=600,
        subset=60,
        sampling="fair",
        exhaustive=True,
        bias="theoretic",
        multiclass="pairwise",
        gram_error=0.0,
        cache_size=200,
        max_iter=-1,
        max_seconds=None,
        warm_start=False,
        probability=False,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.draws = draws
        self.subset = subset
        self.sampling = sampling
        self.exhaustive = exhaustive
        self.bias = bias
        self.multiclass = multiclass
        self.gram_error = gram_error
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.probability = probability
        self.random_state = random_state

    def _advance(self, hull, epsilon, max_iter, budget):
        draws, subset = int(self.draws), int(self.subset)
        fair, exhaustive = self.sampling == "fair", bool(self.exhaustive)
        return ball_towards_violators(hull, epsilon, draws, subset, fair, exhaustive, max_iter, budget)
