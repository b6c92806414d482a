"""The machines of a path of `SMOSVC`."""

from collections.abc import Callable
from dataclasses import dataclass

from solvers.gram.large_path import large_path, takes_large_path
from solvers.gram.smo_path import SmoRules
from solvers.path.driver import BlockSolver


@dataclass
class SmoSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by `solvers.gram.smo_path`."""

    hinge: bool  # the loss is C ξ; if not, ½ C ξ²
    tol: float
    memory: float  # bytes for kernel values of a machine
    solve: Callable  # trains a larger `Problem` for one C
    seed: int = 0

    def rules(self, K, problem, groups, seeds, value_error):
        """Return what numba needs."""
        return SmoRules(self.hinge, self.tol, value_error)

    def train(self, problem, path, limits, seed, outcome):
        """Train a large machine of the L1 loss without a Gram matrix."""
        if not (self.hinge and takes_large_path(problem, self.memory)):
            return super().train(problem, path, limits, seed, outcome)
        alone = outcome.of_machine(0)
        weights = large_path(problem, path.Cs, self.tol, limits, self.memory, alone)
        return weights, weights

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[:, :, 0].T
