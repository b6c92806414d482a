"""Training of one subproblem of the Bayes point machine: its matrix, the billiard and the solution."""

from typing import NamedTuple

import numpy as np

from solvers.common.status import CONVERGED, LIMIT, TIMEOUT, uncertified_text
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.problem import Solution
from solvers.version_space.billiard import NotPositiveDefinite, Rules, play, table_of
from solvers.version_space.dense_arrays import require_dense

N_ARRAYS = 2
"""Number of n × n arrays of a training: the kernel matrix and its factor."""
LIMIT_TEXTS = {LIMIT: "max_bounces", TIMEOUT: "max_seconds"}
"""Reasons in `stopping_`, by status."""
TOO_EARLY = ", which says little so early"
"""Addition to the angle between balls that agree, but whose flights a limit has ended."""
DISAGREE = "the balls end at different points"
"""Reason in `stopping_` if each ball ended by its rule, but they disagree."""


class Billiard(NamedTuple):
    """How balls fly, and when they end."""

    restart: float  # length of an arc; infinite for none
    is_straight: bool  # whether flights are straight
    n_balls: int  # number of balls
    tol: float  # largest 1 − cos of the angle between two balls
    max_bounces: int  # largest number of bounces of a ball
    n_jobs: int | None  # number of threads
    cache_bytes: float  # memory for n × n arrays, in bytes


def signed_matrix(problem, kernel):
    """Return the kernel matrix of a subproblem with its bias, ridge and the signs of the labels.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem, with the penalties C of its samples.
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
        Kernel between its samples.

    Returns
    -------
    H : ndarray of shape (n, n)
        ``y_i y_j (k(x_i, x_j) + bias) + δ_ij / C_i``.
    y : ndarray of shape (n,)
        Labels, −1.0 or 1.0.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """
    n = problem.rows.size
    y = np.where(np.arange(n) < problem.class_start[1], 1.0, -1.0)
    H = kernel.gram()
    H += problem.bias
    H *= y[:, None]
    H *= y
    H[np.diag_indices(n)] += 1.0 / problem.C
    return H, y


def train_bayes_point(problem, billiard):
    """Estimate the Bayes point of a subproblem by a billiard.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem to train.
    billiard : Billiard
        How balls fly, and when they end.

    Returns
    -------
    solvers.problem.Solution
        Bayes point of length 1. Its `objective` is the length of the mean position before it is scaled.

    Raises
    ------
    MemoryError
        The n × n arrays exceed the memory.
    ValueError
        The kernel matrix with the ridge is not positive definite.
    """
    n = problem.rows.size
    require_dense(n, N_ARRAYS, billiard.cache_bytes, "BayesPointClassifier")
    kernel = SubproblemKernel(problem)
    try:
        H, y = signed_matrix(problem, kernel)
    except OutOfTime:
        text = uncertified_text(LIMIT_TEXTS[TIMEOUT], np.nan)
        nothing = np.empty(0, np.int64), np.empty(0), np.zeros(1)
        return Solution(*nothing, np.nan, np.nan, 0, 0, TIMEOUT, False, text)
    try:
        table = table_of(H)
    except NotPositiveDefinite as error:
        lowest = float(np.linalg.eigvalsh(H)[0])
        raise ValueError(
            f"BayesPointClassifier: expected a positive definite kernel matrix with the ridge 1/C = "
            f"{1.0 / np.max(problem.C):.3g}, found that of {n:,} samples is not positive definite, with the "
            f"smallest eigenvalue {lowest:.3g}. Use a smaller C, or a positive semidefinite kernel"
        ) from error
    max_bounces = int(min(billiard.max_bounces, max(1, problem.max_iter // billiard.n_balls)))
    rules = Rules(billiard.restart, billiard.is_straight, billiard.tol, max_bounces, problem.deadline)
    played = play(table, rules, billiard.n_balls, problem.seed, billiard.n_jobs)
    support = np.flatnonzero(played.mean)
    alpha = played.mean[support]
    converged = bool(played.gap <= billiard.tol and played.status == CONVERGED)
    return Solution(
        support=support,
        alpha=alpha,
        bias=np.array([problem.bias * float(y[support] @ alpha)]),
        objective=played.concentration,
        gap=played.gap,
        n_iter=played.bounces,
        n_kernel_evals=int(kernel.evaluations),
        status=played.status,
        converged=converged,
        stopping=text_of(played, billiard.tol),
        by_draws=True,
    )


def text_of(played, tol):
    """Return the text for `stopping_` of a subproblem.

    Parameters
    ----------
    played : solvers.version_space.billiard.Played
        Result of the billiard.
    tol : float
        Largest 1 − cos of the angle between two balls.

    Returns
    -------
    str
        Whether the balls agree, or why they ended, with the angle between them in radians.
    """
    angle = f"{np.arccos(max(-1.0, 1.0 - played.gap)):.2g} rad apart"
    if played.gap <= tol and played.status == CONVERGED:
        return f"the balls agree: {angle}"
    reason = DISAGREE if played.status == CONVERGED else LIMIT_TEXTS[played.status]
    doubt = TOO_EARLY if played.gap <= tol else ""
    return f"{reason}; the balls are {angle}{doubt}" if np.isfinite(played.gap) else reason
