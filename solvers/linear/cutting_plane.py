"""One-slack cutting planes for the hinge loss without a free bias, with the line search of OCAS.

For samples of weight s_i, share p_i = s_i/Σs and C' = C/Σs, the objective is

    F(w) = ½ ‖w‖² + C R(w),    R(w) = Σ p_i max(0, 1 − y_i w·φ_i) = ½ ‖w‖² + C' Σ s_i max(0, …).

Every subset c of the samples gives a cut, R(w) ≥ δ_c − w·ψ_c with δ_c = Σ_c p_i and ψ_c = Σ_c p_i y_i φ_i.
Equality holds for the samples with a loss at w. A round minimises ½ ‖w‖² + C ξ over the cuts found so far,
and adds the cut at a new point. The value of the dual at any weights of the cuts bounds the minimum F* from
below. Hence dual ≤ F* ≤ F(w) for every w.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.clock import clock
from solvers.common.resources import NO_LIMIT, require_memory
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT
from solvers.linear.features import Features
from solvers.linear.line_search import line_minimum
from solvers.linear.quadratic_program import maximise

IDLE_ROUNDS = 5
"""Rounds without weight after which a cut is dropped."""
SHARE_OF_LAST = 0.1
"""Share of the last solution of the quadratic program in the point of the next cut.

The best point has the remaining share.
"""
STALLED_ROUNDS = 20
"""Rounds without progress of both bounds after which a training ends."""
SMALLEST_PROGRESS = 1e-13
"""Smallest progress of a bound, as a share of the objective."""
SHARE_OF_PROGRAM = 0.1
"""Tolerance of the quadratic program, as a share of `tol`."""


@dataclass
class HingeProblem:
    """Subproblem of two classes."""

    features: Features
    labels: np.ndarray  # (n,): −1.0 or 1.0
    shares: np.ndarray  # (n,): weights of the samples, with the sum 1
    C: float  # penalty of a sample of weight 1, times the sum of the weights


class Limits(NamedTuple):
    """Tolerance and budget of a training."""

    tol: float  # largest difference of the bounds, as a share of C
    max_iter: int  # largest number of rounds, or `NO_LIMIT`
    deadline: float  # time on `solvers.common.clock.clock`


class Outcome(NamedTuple):
    """Result of a training."""

    w: np.ndarray  # (dimension,): best point met
    primal: float  # objective at w
    dual: float  # lower bound of the minimum over these features
    error: float  # allowance for the rounding errors of both
    n_iter: int  # rounds
    status: int  # how the training ended
    dual_weights: np.ndarray  # (n,): Σ_c α_c p_i over the cuts c with sample i, or (0,) if they are not kept

    @property
    def gap(self):
        """Certified gap of the bounds, as a share of the primal one."""
        return (self.primal - max(self.dual, 0.0) + self.error) / self.primal


@dataclass
class Cuts:
    """Cuts with their weights and inner products; `keeps_members` also keeps the samples of each cut."""

    dimension: int
    n_samples: int
    keeps_members: bool
    size: int = field(default=0, init=False)

    def __post_init__(self):
        """Allocate memory for a few cuts."""
        self._psi = np.empty((0, self.dimension))
        self._members = np.empty((0, self.n_samples if self.keeps_members else 0), np.bool_)
        self._H = np.empty((0, 0))
        self._delta, self._alpha, self._idle = np.empty(0), np.empty(0), np.empty(0, np.int64)

    @property
    def psi(self):
        """The vectors ψ_c, of shape (size, dimension)."""
        return self._psi[: self.size, : self.dimension]

    @property
    def delta(self):
        """The constants δ_c, of shape (size,)."""
        return self._delta[: self.size]

    @property
    def alpha(self):
        """The weights α_c, of shape (size,)."""
        return self._alpha[: self.size]

    @property
    def members(self):
        """The samples of each cut, of shape (size, n_samples)."""
        return self._members[: self.size]

    def add(self, psi, delta, members):
        """Add a cut of weight 0, and drop those that have been idle.

        Parameters
        ----------
        psi : ndarray of shape (dimension,)
            Vector of the cut.
        delta : float
            Constant of the cut.
        members : bool ndarray of shape (n_samples,)
            Samples of the cut.
        """
        self._drop_idle()
        if self.size == self._alpha.size:
            self._enlarge(self.size + max(16, self.size // 2), self._psi.shape[1])
        k = self.size
        self._psi[k, : self.dimension] = psi
        self._delta[k], self._alpha[k], self._idle[k] = delta, 0.0, 0
        if self.keeps_members:
            self._members[k] = members
        self.size += 1
        self._H[k, : k + 1] = self._H[: k + 1, k] = self.psi @ psi

    def optimise(self, C, tol):
        """Set the weights to the maximiser of the dual over these cuts.

        Parameters
        ----------
        C : float
            Largest sum of the weights.
        tol : float
            Largest distance of the value from the maximum, as a share of C.
        """
        maximise(np.ascontiguousarray(self._H[: self.size, : self.size]), self.delta, C, tol, self.alpha)
        idle = self._idle[: self.size]
        idle += 1
        idle[self.alpha > 0.0] = 0

    def append_feature(self, values):
        """Append a component to the vectors of all cuts.

        Parameters
        ----------
        values : ndarray of shape (size,)
            New component of each cut.
        """
        if self.dimension == self._psi.shape[1]:
            self._enlarge(self._alpha.size, self.dimension + max(16, self.dimension // 2))
        self._psi[: self.size, self.dimension] = values
        self.dimension += 1
        self._H[: self.size, : self.size] += np.outer(values, values)

    def dual_weights(self, shares):
        """Return the weights of the samples that the weights of the cuts amount to.

        Parameters
        ----------
        shares : ndarray of shape (n_samples,)
            Weights of the samples, with the sum 1.

        Returns
        -------
        ndarray of shape (n_samples,), or (0,)
            p_i Σ α_c over the cuts c with sample i; empty without `keeps_members`.
        """
        if not self.keeps_members:
            return np.empty(0)
        total = np.zeros(shares.size)
        for c in np.flatnonzero(self.alpha):
            total[self._members[c]] += self._alpha[c]
        return total * shares

    def _drop_idle(self):
        """Remove the cuts that have had no weight for `IDLE_ROUNDS` rounds."""
        kept = np.flatnonzero(self._idle[: self.size] < IDLE_ROUNDS)
        if kept.size == self.size:
            return
        k = kept.size
        for array in (self._psi, self._members, self._delta, self._alpha, self._idle):
            array[:k] = array[kept]
        self._H[:k, :k] = self._H[np.ix_(kept, kept)]
        self.size = k

    def _enlarge(self, n_cuts, width):
        """Move the cuts to larger arrays.

        Parameters
        ----------
        n_cuts : int
            Number of cuts that fit afterwards.
        width : int
            Number of components that fit afterwards.
        """
        require_memory(
            n_cuts * (8.0 * width + 8.0 * n_cuts + self._members.shape[1]),
            f"{n_cuts:,} cuts of {width:,} features",
            "use a larger tol, a smaller C, or fewer features",
        )
        k = self.size
        for name in ("_delta", "_alpha", "_idle", "_members", "_H", "_psi"):
            old = getattr(self, name)
            shape = {"_H": (n_cuts, n_cuts), "_psi": (n_cuts, width)}.get(name, (n_cuts, *old.shape[1:]))
            new = np.empty(shape, old.dtype)
            if old.ndim == 1 or name == "_members":
                new[:k] = old[:k]
            else:
                filled = (k, k) if name == "_H" else (k, old.shape[1])
                new[: filled[0], : filled[1]] = old[: filled[0], : filled[1]]
            setattr(self, name, new)


class _Point(NamedTuple):
    """Weights with their scores and objective."""

    w: np.ndarray
    scores: np.ndarray
    objective: float


def train(
    problem: HingeProblem,
    limits: Limits,
    line_search: bool,
    grow: Callable[[Cuts], bool] | None = None,
    keeps_members: bool = False,
) -> Outcome:
    """Minimise the objective to its tolerance.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem.
    limits : Limits
        Tolerance, largest number of rounds and deadline.
    line_search : bool
        Whether a round ends at the best point of the half-line from the best point met to the solution of the
        quadratic program, and whether the next cut is taken near that point (Franc and Sonnenburg 2009,
        algorithm 2). If not, cuts are taken at the solutions of the quadratic program (Joachims 2006).
    grow : callable or None, default=None
        Function that is called with the cuts after a new one. It may append a feature to the features and to
        all cuts, and returns whether more features may follow. The training does not converge before it
        returns False.
    keeps_members : bool, default=False
        Whether to keep the samples of each cut, for `grow` and for the weights of the samples.

    Returns
    -------
    Outcome
        Best point met, with bounds of its objective.
    """
    features, C = problem.features, problem.C
    cuts = Cuts(features.dimension, problem.labels.size, keeps_members)
    best = _Point(np.zeros(features.dimension), np.zeros(problem.labels.size), C)
    at, dual, last, rounds_without, n_iter, is_growing = best.scores, -np.inf, best, 0, 0, grow is not None
    while True:
        _add_cut(problem, cuts, at)
        if is_growing and grow is not None:
            is_growing = grow(cuts)
            best = best._replace(w=_padded(best.w, features.dimension))
            dual = -np.inf  # the bound of fewer features does not hold for more
        n_iter += 1
        cuts.optimise(C, SHARE_OF_PROGRAM * limits.tol)
        w = cuts.alpha @ cuts.psi
        value = float(cuts.delta @ cuts.alpha - 0.5 * (w @ w))
        last = _point(problem, w, features.scores(w))
        before, best = best, _best_of(problem, best, last, line_search)
        moved = max(value - dual, before.objective - best.objective) > SMALLEST_PROGRESS * best.objective
        rounds_without = 0 if moved or is_growing else rounds_without + 1
        dual = max(dual, value)
        error = _rounding(problem, best, w)
        if not is_growing and best.objective - dual + error <= limits.tol * C:
            best = _point(problem, best.w, features.scores(best.w))  # without the drift of updated scores
            if best.objective - dual + error <= limits.tol * C:
                status = CONVERGED
                break
        if rounds_without >= STALLED_ROUNDS:
            status = STALLED
            break
        if limits.max_iter != NO_LIMIT and n_iter >= limits.max_iter:
            status = LIMIT
            break
        if clock() >= limits.deadline:
            status = TIMEOUT
            break
        at = last.scores
        if line_search:
            at = SHARE_OF_LAST * last.scores + (1.0 - SHARE_OF_LAST) * best.scores
    best = _point(problem, best.w, features.scores(best.w))
    return Outcome(best.w, best.objective, dual, error, n_iter, status, cuts.dual_weights(problem.shares))


def _add_cut(problem, cuts, scores):
    """Add the cut at a point.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem.
    cuts : Cuts
        Cuts, which receive a new one.
    scores : ndarray of shape (n,)
        Scores of the samples at the point.
    """
    members = problem.labels * scores < 1.0
    shares = np.where(members, problem.shares, 0.0)
    cuts.add(problem.features.combine(shares * problem.labels), shares.sum(), members)


def _point(problem, w, scores):
    """Return a point with its objective.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem.
    w : ndarray of shape (dimension,)
        Weights of the features.
    scores : ndarray of shape (n,)
        Scores of the samples.

    Returns
    -------
    _Point
        Weights, scores and objective.
    """
    losses = np.maximum(1.0 - problem.labels * scores, 0.0)
    return _Point(w, scores, float(0.5 * (w @ w) + problem.C * (problem.shares @ losses)))


def _best_of(problem, best, last, line_search):
    """Return the better of two points, or the best one of the half-line from one through the other.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem.
    best : _Point
        Best point met so far, where the half-line starts.
    last : _Point
        Solution of the quadratic program.
    line_search : bool
        Whether to search the half-line.

    Returns
    -------
    _Point
        Best point, whose objective is at most that of `best`.
    """
    found = last
    direction = last.w - best.w
    curvature = float(direction @ direction)
    if line_search and curvature > 0.0:
        slack = 1.0 - problem.labels * best.scores
        change = problem.labels * (best.scores - last.scores)
        penalty = problem.C * problem.shares
        t = line_minimum(slack, change, penalty, curvature, float(best.w @ direction))
        scores = best.scores + t * (last.scores - best.scores)
        found = _point(problem, best.w + t * direction, scores)
    return found if found.objective < best.objective else best


def _padded(w, dimension):
    """Return weights with zeros for new features.

    Parameters
    ----------
    w : ndarray
        Weights of the first features.
    dimension : int
        Number of all features.

    Returns
    -------
    ndarray of shape (dimension,)
        Weights; `w` itself if no feature is new.
    """
    return w if w.size == dimension else np.concatenate((w, np.zeros(dimension - w.size)))


def _rounding(problem, best, w):
    """Return an allowance for the rounding errors of both bounds.

    Parameters
    ----------
    problem : HingeProblem
        Subproblem.
    best : _Point
        Point of the upper bound.
    w : ndarray of shape (dimension,)
        Point of the lower bound.

    Returns
    -------
    float
        Bound on the absolute error of their difference.
    """
    of_scores = 2.0 * problem.features.rounding(best.w) + 2.0 * problem.features.rounding(w)
    of_sums = (problem.labels.size + w.size) * UNIT_ROUNDOFF * (1.0 + best.objective / problem.C)
    return problem.C * (of_scores + of_sums)
