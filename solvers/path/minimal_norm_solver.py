"""The machines of a path of the solvers that move a point of the hull."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.hull.block_descent import MinimalNormRules
from solvers.hull.descent import Rules
from solvers.hull.stopping import default_tolerance
from solvers.margin.descent import large_descent, takes_large_descent
from solvers.path.driver import BlockSolver


@dataclass
class MinimalNormSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by Algorithms 1 to 4."""

    parameters: Rules
    tol: str | float  # ε of the stopping rule, or "auto"
    seed: int
    memory: float = np.inf  # bytes that the Gram matrix of a machine may take
    solve: Callable | None = None  # trains a larger `Problem` for one C
    kind: type[MinimalNormRules] = MinimalNormRules  # which algorithm
    has_clipped = True

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return what numba needs."""
        epsilons = np.full((value_errors.size, problem.Cs.size), 0.0 if self.tol == "auto" else self.tol)
        if self.tol == "auto":
            first = problem.rows[problem.class_start[groups[:, 0]]]
            C = np.tile(problem.Cs / problem.inverse_weights[groups[:, 0], None], (len(Ks), 1))
            square_radius = Ks[:, first, first].astype(np.float64).reshape(-1, 1) + problem.bias + 1.0 / C
            epsilons[:] = default_tolerance(self.parameters.stopping, square_radius, C)
        return self.kind(self.parameters, epsilons, seeds, value_errors)

    def train(self, problem, path, limits, seed, outcome):
        """Train a machine; without a Gram matrix where that would be too large."""
        if not takes_large_descent(problem, self.parameters, self.memory):
            return super().train(problem, path, limits, seed, outcome)
        tol = default_tolerance(self.parameters.stopping, 1.0, 1.0) if self.tol == "auto" else self.tol
        rules = MinimalNormRules(self.parameters, np.full((1, path.Cs.size), tol), seed, np.zeros(1))
        alone = outcome.of_subproblem(0)
        weights = large_descent(problem, rules, path.Cs, limits, self.memory, seed[0], alone)
        return weights, weights

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[0] if problem.at_once else outcomes.biases[:, :, 0].T
