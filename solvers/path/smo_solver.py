"""The machines of a path of `SMOSVC`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.gram.smo_path import SmoRules
from solvers.kernels.functions import kernel_block
from solvers.path.driver import BlockSolver, solve_gram


@dataclass
class SmoSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by `solvers.gram.smo_path`.

    A machine without a Gram matrix gets one of its own or, where that would be too large, a training for each
    C.
    """

    hinge: bool  # the loss is C ξ; if not, ½ C ξ²
    tol: float
    memory: float  # bytes that the Gram matrix of a machine may take
    solve: Callable  # trains a larger `Problem` for one C
    seed: int = 0

    def rules(self, K, problem, groups, seeds, value_error):
        """Return what numba needs."""
        return SmoRules(self.hinge, self.tol, value_error)

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[:, :, 0].T

    def train(self, problem, path, limits, seed, outcome):
        """Train a machine for every C."""
        m = problem.rows.size
        weights = np.zeros((path.Cs.size, 1, m))
        if 8.0 * m**2 > self.memory:
            self._train_one_by_one(problem, path.Cs, limits, weights[:, 0], outcome)
            return weights[:, 0], weights[:, 0]
        X = problem.X[problem.rows]
        alone = path._replace(
            rows=np.arange(m, dtype=np.int32),
            class_start=problem.class_start,
            inverse_weights=1.0 / problem.C[problem.class_start[:-1]],
        )
        K = kernel_block(X, X, problem.kernel)
        solve_gram(K, problem.kernel.error, alone, np.array([[0, 1]]), limits, seed, self, weights, outcome)
        return weights[:, 0], weights[:, 0]

    def _train_one_by_one(self, problem, Cs, limits, weights, outcome):
        for j in range(Cs.size):
            solved = self.solve(replace(problem, C=Cs[j] * problem.C, max_iter=int(limits[j])))
            problem.start = solved
            weights[j, solved.support] = solved.alpha
            outcome.square_norms[0, j], outcome.gaps[0, j] = solved.objective, solved.gap
            outcome.iterations[0, j], outcome.statuses[0, j] = solved.n_iter, solved.status
            outcome.converged[0, j], outcome.costs[0, j] = solved.converged, solved.n_iter
            outcome.supports[0, j], outcome.evaluations[0, j] = solved.support.size, solved.n_kernel_evals
            outcome.biases[0, j] = solved.bias[0], -solved.bias[0]
