"""The machines of a path of `MNSVC`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.gram.minimal_norm import MinimalNormRules
from solvers.hull.descent import Rules
from solvers.hull.stopping import default_tolerance
from solvers.kernels.functions import kernel_block
from solvers.path.driver import BlockSolver, solve_gram


@dataclass
class MinimalNormSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by the pair steps of Algorithm 4.

    A machine without a Gram matrix gets one of its own or, where that would be too large, a training for each
    C.
    """

    parameters: Rules
    tol: str | float  # ε of the stopping rule, or "auto"
    seed: int
    memory: float = np.inf  # bytes that the Gram matrix of a machine may take
    solve: Callable | None = None  # trains a larger `Problem` for one C

    def rules(self, K, problem, groups, seeds, value_error):
        """Return what numba needs."""
        epsilons = np.full((len(groups), problem.Cs.size), 0.0 if self.tol == "auto" else self.tol)
        if self.tol == "auto":
            first = problem.rows[problem.class_start[groups[:, 0]]]
            C = problem.Cs / problem.inverse_weights[groups[:, 0], None]
            square_radius = K[first, first].astype(np.float64)[:, None] + problem.bias + 1.0 / C
            epsilons[:] = default_tolerance(self.parameters.stopping, square_radius, C)
        return MinimalNormRules(self.parameters, epsilons, seeds, value_error)

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[0] if problem.at_once else outcomes.biases[:, :, 0].T

    def train(self, problem, path, limits, seed, outcome):
        """Train a machine for every C."""
        m, n_C = problem.rows.size, path.Cs.size
        weights = np.zeros((n_C, 1, m))
        if self.solve is not None and 8.0 * m**2 > self.memory:
            solve_for_each_C(self.solve, problem, path.Cs, limits, weights[:, 0], outcome)
            return weights[:, 0], weights[:, 0]
        # Two copies: of one, BLAS would compute a symmetric product, which rounds otherwise.
        K = kernel_block(problem.X[problem.rows], problem.X[problem.rows], problem.kernel)
        group = np.arange(problem.class_start.size - 1)
        inverse_weights = 1.0 / problem.C[problem.class_start[:-1]]
        alone = path._replace(
            rows=np.arange(m, dtype=np.int32),
            class_start=problem.class_start,
            inverse_weights=inverse_weights,
        )
        error = problem.kernel.error
        solve_gram(K, error, alone, group[None, :], limits, seed, self, weights, outcome)
        return weights[:, 0], weights[:, 0]


def solve_for_each_C(solve, problem, Cs, limits, weights, outcome):
    """Train a machine for one C after the other, each from the solution before it."""
    for j in range(Cs.size):
        solved = solve(replace(problem, C=Cs[j] * problem.C, max_iter=int(limits[j])))
        problem.start = solved
        weights[j, solved.support] = solved.alpha
        outcome.square_norms[0, j], outcome.gaps[0, j] = solved.objective, solved.gap
        outcome.iterations[0, j], outcome.statuses[0, j] = solved.n_iter, solved.status
        outcome.converged[0, j], outcome.costs[0, j] = solved.converged, solved.n_iter
        outcome.supports[0, j], outcome.evaluations[0, j] = solved.support.size, solved.n_kernel_evals
        outcome.biases[0, j, : solved.bias.size] = solved.bias
