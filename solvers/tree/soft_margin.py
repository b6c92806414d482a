"""The linear support vector machine with a free bias and a penalty for each sample.

min ½ ‖w‖² + Σ C_i ξ_i subject to y_i (w·x_i + b) ≥ 1 − ξ_i and ξ_i ≥ 0.

Penalties may differ by many orders of magnitude, as in a tree, where one class has nearly hard margins. For
at most `MAX_RANK` features or samples, a primal-dual interior-point method with Mehrotra's predictor solves a
system of that size about twenty times (Fine and Scheinberg 2001), whatever the penalties are. Otherwise
`solvers.smo` takes steps on rows of the linear kernel.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from solvers.common.clock import clock
from solvers.common.resources import NO_LIMIT
from solvers.kernels.functions import LINEAR, for_samples
from solvers.kernels.functions import Kernel as KernelFunction
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.problem import Problem
from solvers.smo.kernel_rows import rows_of
from solvers.smo.row_training import SmoState, certify

MAX_RANK = 1000
"""Largest number of features or samples for which the interior-point method is used."""
MAX_ROWS = 20_000
"""Largest number of samples of which steps on kernel rows are taken."""
TOLERANCE = 1e-9
"""Complementarity at which the interior-point method ends, as a share of the objective."""
MAX_ROUNDS = 60
"""Largest number of rounds of the interior-point method."""
SHARE_OF_STEP = 0.995
"""Share of the largest step that keeps all variables positive."""
SMALLEST_STEP = 1e-8
"""Step below which rounding ends the interior-point method."""
SPAN_TOLERANCE = 1e-4
"""Distance of w from Σ α_i y_i x_i, as a share of its length, from which on w is corrected."""
SMALLEST_SINGULAR_VALUE = 1e-10
"""Singular value of the samples, as a share of the largest, below which it is rounding."""
VALUES_AT_A_TIME = 1 << 22
"""Number of features of samples that are multiplied together."""
SMO_TOLERANCE, SMO_STEPS_PER_ROW, SMO_BYTES = 1e-4, 100, 2e8
"""Tolerance, limit of the steps for each sample, and memory of steps on kernel rows."""


def is_solvable(X):
    """Return whether `soft_margin` solves a problem of this size.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.

    Returns
    -------
    bool
        False for more than `MAX_ROWS` samples with more than `MAX_RANK` features.
    """
    return min(X.shape) <= MAX_RANK or X.shape[0] <= MAX_ROWS


def soft_margin(X, y, C, deadline=np.inf):
    """Return the weights of the features at the solution.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels −1.0 and 1.0, both present.
    C : ndarray of shape (n,)
        Penalties, positive.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which the training stops.

    Returns
    -------
    ndarray of shape (d,)
        Weights w.

    Raises
    ------
    OutOfTime
        The deadline passed.
    """
    if min(X.shape) > MAX_RANK:
        return _by_steps(X, y, C, deadline)
    if X.shape[1] <= X.shape[0] and not (sparse.issparse(X) and X.shape[1] > MAX_RANK):
        dense = X.toarray() if sparse.issparse(X) else X
        return interior_point(dense - dense.mean(axis=0), y, C, deadline).w
    products = X @ X.T
    values, vectors = linalg.eigh(products.toarray() if sparse.issparse(products) else products)
    kept = values > values[-1] * 1e-14
    features = vectors[:, kept] * np.sqrt(values[kept])
    solution = interior_point(features - features.mean(axis=0), y, C, deadline)
    return np.asarray(X.T @ (y * solution.alpha)).ravel()


class Solution(NamedTuple):
    """Solution of the interior-point method."""

    w: np.ndarray  # (d,): weights of the features
    alpha: np.ndarray  # (n,): dual weights, positive
    gap: float  # Σ α t + Σ (C − α) ξ, the primal less the dual objective


class _State(NamedTuple):
    """Point of the interior-point method: all but w and b are positive."""

    w: np.ndarray  # (d,)
    b: float
    alpha: np.ndarray  # (n,): dual weights
    beta: np.ndarray  # (n,): C − α
    slack: np.ndarray  # (n,): y (w·x + b) − 1 + ξ
    xi: np.ndarray  # (n,): losses


def interior_point(X, y, C, deadline=np.inf):
    """Solve the problem by Mehrotra's predictor and corrector.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels −1.0 and 1.0, both present.
    C : ndarray of shape (n,)
        Penalties, positive.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which the training stops.

    Returns
    -------
    Solution
        Solution.

    Raises
    ------
    OutOfTime
        The deadline passed.
    """
    n = y.size
    state = _start(X, y, C)
    for _ in range(MAX_ROUNDS):
        complementarity = float(state.alpha @ state.slack + state.beta @ state.xi)
        primal = 0.5 * float(state.w @ state.w) + float(C @ state.xi)
        if complementarity <= TOLERANCE * max(primal, np.finfo(float).tiny):
            break
        if clock() >= deadline:
            raise OutOfTime
        try:
            system = _System(X, y, state)
        except linalg.LinAlgError:  # by rounding, near a solution with features that depend on one another
            break
        mu = complementarity / (2 * n)
        step = system.step(-state.alpha * state.slack, -state.beta * state.xi)
        t = _largest_step(state, step)
        after = _moved(state, step, t)
        ahead = float(after.alpha @ after.slack + after.beta @ after.xi) / (2 * n)
        target = (ahead / mu) ** 3 * mu
        step = system.step(
            target - state.alpha * state.slack - step.alpha * step.slack,
            target - state.beta * state.xi - step.beta * step.xi,
        )
        t = min(1.0, SHARE_OF_STEP * _largest_step(state, step))
        if not t > SMALLEST_STEP:
            break
        state = _moved(state, step, t)
    gap = float(state.alpha @ state.slack + state.beta @ state.xi)
    return Solution(_in_span(X, y, state), state.alpha, gap)


def _in_span(X, y, state):
    """Return the weights of the features without what rounding added outside the span of the samples.

    At a solution w = Σ α_i y_i x_i. Where features depend on one another and penalties are large, rounding
    adds to w a vector at right angles to all samples. It changes no score of these, but that of others.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels.
    state : _State
        Point.

    Returns
    -------
    ndarray of shape (d,)
        w, or the shortest weights with the same scores if w is far from Σ α_i y_i x_i.
    """
    w = state.w
    if np.linalg.norm(w - X.T @ (y * state.alpha)) <= SPAN_TOLERANCE * np.linalg.norm(w):
        return w
    return linalg.lstsq(X, X @ w, cond=SMALLEST_SINGULAR_VALUE, check_finite=False)[0]


def _start(X, y, C):
    """Return a point that satisfies all equations, with positive variables.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels.
    C : ndarray of shape (n,)
        Penalties.

    Returns
    -------
    _State
        Point.
    """
    of_first = y > 0.0
    sums = C[of_first].sum(), C[~of_first].sum()
    share = 0.5 * min(sums)
    alpha = np.where(of_first, share / sums[0], share / sums[1]) * C
    w = X.T @ (y * alpha)
    square = float(w @ w)
    w *= min(1.0, 1.0 / np.sqrt(square)) if square > 0.0 else 1.0
    scores = X @ w
    b = -0.5 * float(scores[of_first].mean() + scores[~of_first].mean())
    margin = y * (scores + b) - 1.0
    shift = 1.0 + float(np.abs(margin).mean())
    return _State(w, b, alpha, C - alpha, np.maximum(margin, 0.0) + shift, np.maximum(-margin, 0.0) + shift)


class _System:
    """Newton's system at a point, factored once for predictor and corrector.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels.
    state : _State
        Point.

    Raises
    ------
    LinAlgError
        The system is not positive definite within rounding errors.
    """

    def __init__(self, X, y, state):
        self._X, self._y, self._state = X, y, state
        self._theta = 1.0 / (state.slack / state.alpha + state.xi / state.beta)
        d = X.shape[1]
        M = np.zeros((d + 1, d + 1))
        rows = max(1, VALUES_AT_A_TIME // max(1, d))
        for part in (slice(start, start + rows) for start in range(0, y.size, rows)):
            scaled = X[part] * np.sqrt(self._theta[part])[:, None]
            M[:d, :d] += scaled.T @ scaled
        M[:d, :d].flat[:: d + 1] += 1.0
        M[d, :d] = M[:d, d] = self._theta @ X
        M[d, d] = self._theta.sum()
        self._factor = linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

    def step(self, of_alpha, of_beta):
        """Return the step for given changes of the products of paired variables.

        Parameters
        ----------
        of_alpha, of_beta : ndarray of shape (n,)
            Changes of α t and of β ξ.

        Returns
        -------
        _State
            Step of every variable.
        """
        s, X, y = self._state, self._X, self._y
        primal = y * (X @ s.w + s.b) - 1.0 + s.xi - s.slack
        h = of_alpha / s.alpha - of_beta / s.beta - primal
        signed = y * (s.alpha + self._theta * h)
        right = np.append(X.T @ signed - s.w, signed.sum())
        move = linalg.cho_solve(self._factor, right, check_finite=False)
        scores = y * (X @ move[:-1] + move[-1])
        alpha = self._theta * (h - scores)
        xi = (of_beta + s.xi * alpha) / s.beta
        return _State(move[:-1], float(move[-1]), alpha, -alpha, (of_alpha - s.slack * alpha) / s.alpha, xi)


def _largest_step(state, step):
    """Return the largest step, at most 1, that keeps all variables nonnegative.

    Parameters
    ----------
    state : _State
        Point.
    step : _State
        Direction.

    Returns
    -------
    float
        Factor of the direction.
    """
    ratio = 1.0
    for value, change in zip(state[2:], step[2:], strict=True):
        ratio = max(ratio, float((-change / value).max()))
    return 1.0 / ratio


def _moved(state, step, t):
    """Return the point after a step.

    Parameters
    ----------
    state : _State
        Point.
    step : _State
        Direction.
    t : float
        Factor of the direction.

    Returns
    -------
    _State
        New point.
    """
    return _State(*(value + t * change for value, change in zip(state, step, strict=True)))


def _by_steps(X, y, C, deadline):
    """Solve the problem by steps on rows of the linear kernel.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    y : ndarray of shape (n,)
        Labels.
    C : ndarray of shape (n,)
        Penalties.
    deadline : float
        Time on `solvers.common.clock.clock` at which the training stops.

    Returns
    -------
    ndarray of shape (d,)
        Weights w.

    Raises
    ------
    OutOfTime
        The deadline passed.
    """
    rows = np.concatenate((np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0))).astype(np.int32)
    kernel, prepared = for_samples(KernelFunction(LINEAR), X, None)
    problem = Problem(
        X=prepared,
        rows=rows,
        class_start=np.array([0, np.count_nonzero(y > 0.0), y.size]),
        C=C[rows],
        kernel=kernel,
        bias=0.0,
        scale=np.empty(0),
        seed=1,
        deadline=deadline,
        max_iter=NO_LIMIT,
    )
    state = SmoState(problem, "l1")
    state.store = rows_of(state.kernel, SMO_BYTES)
    certify(state, SMO_TOLERANCE, True, SMO_STEPS_PER_ROW * y.size)
    return np.asarray(X[rows].T @ state.beta).ravel()
