"""The machines of a path of `MNSVC`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.gram.minimal_norm import MinimalNormRules
from solvers.hull.descent import Rules
from solvers.hull.stopping import default_tolerance
from solvers.path.driver import BlockSolver, solve_for_each_C, solve_own_gram


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
        m = problem.rows.size
        if self.solve is not None and 8.0 * m**2 > self.memory:
            weights = solve_for_each_C(self.solve, problem, path.Cs, limits, outcome)
        else:
            weights = solve_own_gram(self, problem, path, limits, seed, outcome)
        return weights, weights
