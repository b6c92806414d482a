"""Sphere SVM (Strack 2013, chapter 3): the centre of the smallest ball, moved by pairs of samples."""

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
    STALLED,
    SUPPORT,
    TRACKED,
    WORK,
    interruption,
)
from solvers.pairs import MDM, choose_partner, lowest_support
from solvers.stopping import MEB, violation_threshold
from solvers.weights import move_weight

TINY = np.finfo(np.float64).tiny


@njit(nogil=True, cache=True, error_model="numpy")
def enclosing_ball(hull, epsilon, draws, subset, fair, exhaustive, eta, max_iter, budget):
    """Algorithm 3, with the draws of 5.1, the scales of Algorithm 5 and the over-relaxation of 5.3.

    Lines 1–2 have been done by the caller: all weight on a sample, and R̂² = τ̃. A sample's squared distance
    from the centre is τ̃ − 2 g_i + ‖c‖², so that the farthest one has the lowest g.

    Returns
    -------
    status : int
        One of those of `solvers.hull`; after PAUSED and FULL, call again to go on.
    """
    alpha, g, diagonal, support, place = hull.alpha, hull.g, hull.diagonal, hull.support, hull.place
    real, counts, scratch = hull.real, hull.counts, hull.scratch
    counts[WORK] = 0
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # Lines 3–4: a violator ‖c − x̃_v‖ > (1 + ε̂) R̂ among the drawn samples, else among the support
        # vectors.
        threshold = violation_threshold(MEB, real[EPSILON], real[SQUARE_NORM], diagonal[0])
        v, failed = find_violator(hull, threshold, draws, subset, fair, exhaustive)
        if v < 0:
            v = lowest_support(g, support, counts[SUPPORT], scratch)
            if g[v] >= threshold:  # there is none: the ε̂-approximation is done
                if real[EPSILON] <= epsilon:
                    return CONVERGED
                real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
                continue

        # Lines 5–10, for this v, then up to 0.1 · (failed draws) times for support vectors that are
        # violators.
        before = counts[ITERATIONS]
        for _ in range(min(1 + failed // 10, max_iter - before)):
            row_v = row(hull, v)
            u = choose_partner(MDM, 0.0, v, row_v, g, alpha, diagonal, support, counts[SUPPORT], scratch)
            if u < 0:
                break
            row_u = row(hull, u)
            square_distance = max(diagonal[v] + diagonal[u] - 2.0 * row_v[u], TINY)
            rho = (diagonal[v] - row_v[u] - g[v] + g[u]) / square_distance
            outside = real[SQUARE_NORM] - 2.0 * g[v]  # ‖x̃_v − c‖² − R̂²
            root = rho * rho - outside / square_distance
            beta_hat = rho - np.sqrt(root) if root > 0.0 else rho  # the line may miss the ball
            beta = min(eta * beta_hat, alpha[u])
            m = counts[TRACKED]
            move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, place, counts, real)
            counts[ITERATIONS] += 1
            counts[WORK] += m + 4 * counts[SUPPORT]
            v = lowest_support(g, support, counts[SUPPORT], scratch)
            if g[v] >= threshold:
                break
        if counts[ITERATIONS] == before:
            return STALLED  # nobody lies behind a violator: rounding has the last word
    return LIMIT


class SphereSVC(GeometricSVC):
    """Sphere SVM: an L2-loss support vector machine found as the centre of an enclosing ball.

    The kernel is normalised to constant k(x, x) where it is not (2.47).

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol, sampling, exhaustive, eta, bias, multiclass, gram_error, \
cache_size, max_iter, max_seconds, warm_start, probability, random_state
        As in `MNSVC`; "auto" is the tolerance of (7.3).
    draws : int, default=590
        Candidates that are drawn in vain before the search ends, N_d.
    subset : int, default=59
        Candidates of which the farthest is taken, N_r.

    Attributes
    ----------
    See `solvers.base.KernelSVC`.
    """

    normalises = True

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        tol="auto",
        draws=590,
        subset=59,
        sampling="fair",
        exhaustive=True,
        eta=1.0,
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
        self.eta = eta
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
        fair, exhaustive, eta = self.sampling == "fair", bool(self.exhaustive), float(self.eta)
        return enclosing_ball(hull, epsilon, draws, subset, fair, exhaustive, eta, max_iter, budget)
