"""A few rounds of the large L1 problem from given weights."""

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.status import NOT_DRAWN, TIMEOUT, certified_text, uncertified_text
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.margin.l1_path import bytes_of_tiles, samples_of
from solvers.margin.subproblem import LargeSubproblem
from solvers.problem import Solution
from solvers.smo.block_path import state_of
from solvers.smo.certificate import SMO_STOPPING_TEXTS

ROUNDS = "all rounds were taken"
"""Reason in `stopping_` if a training ended after its rounds, with the status `NOT_DRAWN`."""


class LimitedRounds(LargeSubproblem):
    """Point of a subproblem that moves until its gap is small enough, or for some rounds.

    Parameters
    ----------
    *args : objects
        Arguments of `LargeSubproblem`.
    max_rounds : int
        Largest number of rounds.
    max_gap : float
        Gap at which to stop.
    """

    def __init__(self, *args, max_rounds, max_gap):
        super().__init__(*args)
        self.rounds, self._max_rounds, self._max_gap = 0, max_rounds, max_gap

    def gap(self):
        """Return the certified gap of the point.

        Returns
        -------
        float
            Upper bound on the relative duality gap.
        """
        point = self.F, self.beta, self._low, self._high
        b, _, _, error = state_of(*point, self._value_error, self._drift)
        return self._gap(b, error)

    def _minimise_on_block(self, tol, max_iter):
        """Minimise over the members of the block, unless the rounds or the gap end the training.

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
            If the training ends, or the deadline passes. The point is then unchanged.
        """
        if self.rounds == self._max_rounds or self.gap() <= self._max_gap:
            raise OutOfTime
        self.rounds += 1
        return super()._minimise_on_block(tol, max_iter)


def improve(problem, alpha, tol, memory, max_rounds):
    """Improve the weights of a large subproblem of the L1 loss by some rounds.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits. `takes_large_path` of
        `solvers.margin.l1_path` holds.
    alpha : ndarray of shape (m,)
        Weights to start from, at least 0, with the same sum in both classes up to rounding.
    tol : float
        Gap at which to stop.
    memory : float
        Memory for the whole training, in bytes.
    max_rounds : int
        Largest number of rounds.

    Returns
    -------
    solvers.problem.Solution
        Improved weights with their certified gap. `converged` says whether that is at most `tol`. The status
        is `NOT_DRAWN` after `max_rounds`.
    """
    m = problem.rows.size
    C = np.ascontiguousarray(np.broadcast_to(problem.C, (m,)))
    y = np.where(np.arange(m) < problem.class_start[1], 1.0, -1.0)
    point = LimitedRounds(
        samples_of(problem),
        problem.X.shape[1],
        problem.rows.astype(np.int64),
        y,
        memory - bytes_of_tiles(problem),
        problem.deadline,
        max_rounds=max_rounds,
        max_gap=tol,
    )
    with one_blas_thread():
        point.set_C(C)
        point.set_weights(y * np.minimum(alpha, C))
        status, _, _, iterations = point.solve(tol, problem.max_iter)
    gap = point.gap()
    if status == TIMEOUT and point.rounds == max_rounds:
        status = NOT_DRAWN
    converged = bool(gap <= tol)
    reason = ROUNDS if status == NOT_DRAWN else SMO_STOPPING_TEXTS[status]
    support = np.flatnonzero(point.beta)
    return Solution(
        support=support,
        alpha=np.abs(point.beta[support]),
        bias=np.array([point.bias]),
        objective=float(point.objective),
        gap=float(gap),
        n_iter=iterations,
        n_kernel_evals=int(point.evaluations),
        status=status,
        converged=converged,
        stopping=certified_text(tol) if converged else uncertified_text(reason, gap),
    )
