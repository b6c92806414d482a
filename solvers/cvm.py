"""Core Vector Machine (Tsang, Kwok and Cheung 2005; Strack 2013, 2.3.3.1): balls of a growing core set."""

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
from solvers.pairs import IMDM, choose_partner, lowest_support
from solvers.stopping import CORE, violation_threshold
from solvers.weights import enter, shift_weight


@njit(nogil=True, cache=True, error_model="numpy")
def core_set_ball(hull, epsilon, draws, subset, fair, exhaustive, max_iter, budget):
    """Algorithm 1, with the draws of 5.1 and the scales of Algorithm 5.

    The core set is the list of support vectors of `hull`; a vector stays on it when its weight falls to zero.
    The caller has put the first vectors on it (line 1).

    Returns
    -------
    status : int
        One of those of `solvers.hull`; after PAUSED and FULL, call again to go on.
    """
    alpha, g, diagonal, support, place = hull.alpha, hull.g, hull.diagonal, hull.support, hull.place
    real, counts, scratch = hull.real, hull.counts, hull.scratch
    square_radius = diagonal[0]  # τ̃
    counts[WORK] = 0
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # The ball of the core set, by second-order pair steps until its farthest and its nearest vector with
        # weight differ by ε̂ R² in inner product: twice that in squared distance, within (1 + ε̂) R.
        v = lowest_support(g, support, counts[SUPPORT], scratch)
        row_v = row(hull, v)
        u = choose_partner(IMDM, 1.0, v, row_v, g, alpha, diagonal, support, counts[SUPPORT], scratch)
        threshold = violation_threshold(CORE, real[EPSILON], real[SQUARE_NORM], square_radius)
        width = real[EPSILON] * (square_radius - real[SQUARE_NORM])
        if u >= 0 and (g[u] - g[v] > width or g[v] < threshold):
            row_u = row(hull, u)
            beta = min((g[u] - g[v]) / (diagonal[v] + diagonal[u] - 2.0 * row_v[u]), alpha[u])
            m = counts[TRACKED]
            shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real)
            counts[ITERATIONS] += 1
            counts[WORK] += m + 4 * counts[SUPPORT]
            continue

        # A sample outside of (1 + ε̂) times that ball joins the core set.
        v, _ = find_violator(hull, threshold, draws, subset, fair, exhaustive)
        if v >= 0 and place[v] < 0:
            enter(v, support, place, counts)
        elif real[EPSILON] <= epsilon:
            return CONVERGED
        else:
            real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
    return LIMIT


class CoreSVC(GeometricSVC):
    """Core Vector Machine: an L2-loss support vector machine found from the balls of a growing core set.

    The kernel is normalised to constant k(x, x) where it is not (2.47).

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol, sampling, exhaustive, bias, multiclass, gram_error, cache_size, \
max_iter, max_seconds, warm_start, probability, random_state
        As in `MNSVC`; "auto" is the tolerance of (7.3).
    draws : int, default=420
        Candidates that are drawn in vain before the search ends, N_d.
    subset : int, default=60
        Candidates of which the farthest is taken, N_r.

    Attributes
    ----------
    See `solvers.base.KernelSVC`.
    """

    normalises = True
    stopping = "core"
    first_samples = 20

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol="auto",
        draws=420,
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
        return core_set_ball(hull, epsilon, draws, subset, fair, exhaustive, max_iter, budget)
