"""The machines of a path of `SMOSVC`."""

from collections.abc import Callable
from dataclasses import dataclass

from solvers.gram.smo_path import SmoRules
from solvers.path.driver import BlockSolver


@dataclass
class SmoSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by `solvers.gram.smo_path`."""

    hinge: bool  # the loss is C ξ; if not, ½ C ξ²
    tol: float
    memory: float  # bytes that the Gram matrix of a machine may take
    solve: Callable  # trains a larger `Problem` for one C
    seed: int = 0
    has_labels = False  # weights have them

    def rules(self, K, problem, groups, seeds, value_error):
        """Return what numba needs."""
        return SmoRules(self.hinge, self.tol, value_error)

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[:, :, 0].T
