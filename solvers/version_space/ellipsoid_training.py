"""Training of a subproblem by the ellipsoidal machine: kernel matrix, factor, algorithm and solution."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from solvers.common.blas import one_blas_thread
from solvers.common.status import CONVERGED, STALLED, TIMEOUT, uncertified_text
from solvers.kernels.functions import GRAM, LINEAR
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.problem import Solution
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.version_space.dense_arrays import require_dense
from solvers.version_space.ellipsoid_dual import (
    Block,
    SpanFactor,
    is_positive_semidefinite,
    new_block,
    noise_of,
    outside_share,
    penalties_of,
    residual_target,
)
from solvers.version_space.ellipsoid_newton import Limits, linearised_again, train
from solvers.version_space.ellipsoid_smo import minimise_by_pairs

UNIT_ROUNDOFF_32 = 2.0**-24
"""Unit roundoff of float32."""
N_ARRAYS = 4
"""Number of n × n arrays of a training whose kernel matrix has full rank."""
VANISHED_SHARE = 1e-3
"""Share of Σ α_i ‖z_i‖ below which v = Σ α_i y_i z_i is 0. Small penalties shorten v, but not its share."""


@dataclass
class Options:
    """Parameters of a training that do not depend on its samples."""

    r: float  # share of log|B| in the objective
    is_hard: bool  # whether no sample may violate its constraint
    by_pairs: bool  # whether pair steps are taken first
    rounds: int  # number of linearisations
    low_rank: bool  # whether a factor of low rank may be used
    tol: float  # largest gap
    cache_bytes: float  # memory for n × n arrays, in bytes


@dataclass
class EllipsoidSolution(Solution):
    """Trained subproblem, with its ellipsoid."""

    r: float = field(default=np.nan, kw_only=True)  # value that was used
    log_volume: float = field(default=np.nan, kw_only=True)  # log|B| on the span of the samples
    outside: float = field(default=np.nan, kw_only=True)  # share of samples that the ellipsoid sticks out of
    is_collapsed: bool = field(default=False, kw_only=True)  # whether v = 0
    is_constant: bool = field(default=False, kw_only=True)  # whether v = 0 because all samples are equal
    is_softened: bool = field(default=False, kw_only=True)  # whether a hard margin has no solution
    interior: np.ndarray | None = field(default=None, kw_only=True)  # start for another C or r


class EllipsoidTraining:
    """Training of one subproblem for one or more values of C, on one kernel matrix.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem.
    options : Options
        Parameters.
    C_max : ndarray of shape (n,) or (1,)
        Largest penalties that will be trained for, which the factor of low rank depends on.
    """

    def __init__(self, problem, options, C_max):
        n = problem.rows.size
        require_dense(n, N_ARRAYS, options.cache_bytes, "EllipsoidSVC")
        self._options, self._deadline = options, problem.deadline
        kernel = SubproblemKernel(problem)
        y = np.ones(n)
        y[problem.class_start[1] :] = -1.0
        K = kernel.gram()
        K = np.ascontiguousarray(0.5 * (K + K.T))
        self.evaluations = kernel.evaluations
        self._diagonal = np.maximum(K.diagonal(), 0.0)
        with one_blas_thread():
            self._block = self._factored(problem, K, y, C_max)
            is_known = problem.kernel.is_positive
            if not (is_known or is_positive_semidefinite(self._block)):
                lowest = float(np.linalg.eigvalsh(K)[0])
                raise ValueError(
                    "the kernel matrix of the training samples: expected a positive semidefinite one, found "
                    f"the eigenvalue {lowest:.3g}. Use another kernel, such as kernel='rbf'"
                )

    def _factored(self, problem, K, y, C_max):
        """Return the samples with a factor of their kernel matrix.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Subproblem.
        K : ndarray of shape (n, n)
            Kernel matrix.
        y : ndarray of shape (n,)
            Labels.
        C_max : ndarray of shape (n,) or (1,)
            Largest penalties.

        Returns
        -------
        Block
            Samples.
        """
        options = self._options
        X = problem.X
        if problem.kernel.kind == LINEAR and not sparse.issparse(X) and X.shape[1] < y.size:
            Z = np.ascontiguousarray(X[problem.rows].T)
            return Block(K, y, Z, np.zeros(y.size), is_given=True)
        target = None
        if options.low_rank and options.rounds == 1:
            target = residual_target(self._penalties(C_max), self._diagonal, options.r, options.tol)
        error, floor = problem.kernel.error, 0.0
        if problem.kernel.kind == GRAM and X.dtype == np.float32:  # its values have roundings of their own
            error += UNIT_ROUNDOFF_32 * float(self._diagonal.max())
            floor = y.size * error
        return new_block(K, y, target, error, floor)

    def _penalties(self, C):
        """Return the penalties of the slacks.

        Parameters
        ----------
        C : ndarray of shape (n,) or (1,)
            Values of C, multiplied by the weights of the samples.

        Returns
        -------
        ndarray of shape (n,)
            C_i / k(x_i, x_i); infinite for a hard margin.
        """
        return penalties_of(np.array([np.inf]) if self._options.is_hard else C, self._diagonal)

    def solve_problem(self, problem):
        """Train for the penalties of a subproblem of the same samples, and count kernel values only once.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Subproblem.

        Returns
        -------
        EllipsoidSolution
            Trained subproblem.
        """
        solution = self.solve(problem.C, problem.max_iter, problem.start)
        self.evaluations = 0
        return solution

    def solve(self, C, max_iter, start=None):
        """Train for one C.

        Parameters
        ----------
        C : ndarray of shape (n,) or (1,)
            Values of C, multiplied by the weights of the samples.
        max_iter : int
            Limit of the rounds or steps.
        start : Solution or None, default=None
            Solution for another C or r, to start from.

        Returns
        -------
        EllipsoidSolution
            Trained subproblem.
        """
        options, block = self._options, self._block
        r = options.r
        limits = Limits(options.tol, max_iter, self._deadline)
        penalties = self._penalties(C)
        interior = getattr(start, "interior", None)
        if interior is not None and interior.size != block.size:
            interior = None
        note, used_r, used_C, outcome, n_pairs = "", r, penalties, None, 0
        # The gap of a point whose objective overflows is infinite.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            if options.by_pairs:
                outcome = minimise_by_pairs(block, penalties, r, limits, interior)
                n_pairs = outcome.n_iter
                if outcome.status == STALLED:
                    note = f"; Newton's method took over after {n_pairs:,} pair steps"
                    interior = None
            if outcome is None or outcome.status == STALLED:
                outcome, used_r, used_C = train(block, penalties, r, limits, interior)
                outcome.n_iter += n_pairs
            if options.rounds > 1:
                outcome, block = linearised_again(block, outcome, used_C, used_r, limits, options.rounds)
            return self._solution(block, outcome, r, used_r, used_C, note)

    def _solution(self, block, outcome, r, used_r, C, note):
        """Return the result of a training.

        Parameters
        ----------
        block : Block
            Samples of the last round.
        outcome : solvers.version_space.ellipsoid_newton.Outcome
            Result.
        r, used_r : float
            Share of log|B| that was asked for, and that was used.
        C : ndarray of shape (n,)
            Penalties that were used.
        note : str
            Addition to `stopping_`.

        Returns
        -------
        EllipsoidSolution
            Trained subproblem, scaled to a mean margin of 1.
        """
        options, found = self._options, outcome.certificate
        span = SpanFactor(block, used_r)
        span.log_determinant(outcome.alpha)
        scale = found.mean_margin if found.mean_margin > 0.0 else 1.0
        weights = block.y * found.coefficients / scale
        support = np.flatnonzero(weights)
        gap = found.gap if np.isfinite(found.gap) else np.nan
        converged = outcome.status == CONVERGED and found.gap <= options.tol
        is_softened = options.is_hard and bool(np.isfinite(C[0]))
        longest = float(outcome.alpha @ np.sqrt(self._diagonal))
        is_collapsed = found.is_collapsed and found.norm <= VANISHED_SHARE * longest
        if used_r != r:
            note += f"; r raised to {used_r:.6g}, below which the ellipsoid is a ball without contact"
        if is_softened:
            note += "; the classes do not separate: the model of C=1e8"
        if is_collapsed:
            note += "; collapse: v = 0"
        text = f"certified: gap <= {options.tol:g}"
        if not converged:
            text = uncertified_text(SMO_STOPPING_TEXTS[outcome.status], gap)
        return EllipsoidSolution(
            support=support,
            alpha=weights[support],
            bias=np.array([found.bias / scale]),
            objective=found.objective,
            gap=gap,
            n_iter=outcome.n_iter,
            n_kernel_evals=self.evaluations,
            status=outcome.status,
            converged=converged,
            stopping=text + note,
            r=used_r,
            log_volume=span.log_volume(),
            outside=outside_share(block, span, found),
            is_collapsed=is_collapsed,
            is_constant=is_collapsed and bool(np.ptp(block.K) <= noise_of(block.K.diagonal())),
            is_softened=is_softened,
            interior=outcome.start,
        )


def out_of_time():
    """Return the solution of a subproblem whose kernel matrix could not be computed in time.

    Returns
    -------
    EllipsoidSolution
        Solution without support vectors.
    """
    return EllipsoidSolution(
        support=np.empty(0, np.int64),
        alpha=np.empty(0),
        bias=np.zeros(1),
        objective=np.nan,
        gap=np.nan,
        n_iter=0,
        n_kernel_evals=0,
        status=TIMEOUT,
        converged=False,
        stopping=uncertified_text(SMO_STOPPING_TEXTS[TIMEOUT], np.nan),
    )


def solve_subproblem(problem, options):
    """Train a subproblem.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem.
    options : Options
        Parameters.

    Returns
    -------
    EllipsoidSolution
        Trained subproblem.
    """
    try:
        training = EllipsoidTraining(problem, options, problem.C)
        return training.solve(problem.C, problem.max_iter, problem.start)
    except OutOfTime:
        return out_of_time()
