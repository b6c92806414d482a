"""The machines of a path of `SMOSVC`."""

from collections.abc import Callable
from dataclasses import dataclass

from solvers.gram.smo_path import SmoRules
from solvers.path.driver import BlockSolver, solve_for_each_C, solve_own_gram


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
        if 8.0 * problem.rows.size**2 > self.memory:
            weights = solve_for_each_C(self.solve, problem, path.Cs, limits, outcome)
        else:
            weights = solve_own_gram(self, problem, path, limits, seed, outcome)
        return weights, weights
