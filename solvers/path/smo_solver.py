"""The machines of a path of `SMOSVC`."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from solvers.gram.class_blocks import ClassBlocks
from solvers.gram.gather import class_sizes
from solvers.kernels.tiles import is_tiled
from solvers.margin.l1_path import large_path, takes_large_path
from solvers.path.driver import BlockSolver
from solvers.smo.block_path import N_INDICES, N_SHORT_VECTORS, N_VECTORS, SmoRules


@dataclass
class SmoSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by `solvers.smo.block_path` and `solvers.margin.l1_path`.

    It is made for one path, and keeps what the machines of that have in common.
    """

    hinge: bool  # the loss is C ξ; if not, ½ C ξ²
    tol: float
    memory: float  # bytes for the kernel values of a machine
    solve: Callable  # trains a larger `Problem` for one C
    shift: float = 0.0  # what was subtracted from the kernel values of a Gram matrix
    seed: int = 0
    has_labels = False  # weights have them
    _blocks: ClassBlocks | None = field(default=None, init=False)

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return what numba needs."""
        m = int(class_sizes(problem.class_start)[groups].sum(axis=1).max())
        vectors, short_vectors = np.empty(N_VECTORS * m), np.empty(N_SHORT_VECTORS * m, np.float32)
        indices = np.empty(N_INDICES * m, np.int64)
        shifts = np.repeat([solver.shift for solver in solvers], len(groups))
        return SmoRules(self.hinge, self.tol, value_errors, shifts, vectors, short_vectors, indices)

    def train(self, problem, path, limits, seed, outcome):
        """Train a large machine without a Gram matrix."""
        if not takes_large_path(problem, self.memory):
            return super().train(problem, path, limits, seed, outcome)
        samples, alone = self._blocks_of(problem).samples, outcome.of_subproblem(0)
        weights = large_path(problem, samples, path.Cs, self.tol, limits, self.memory, alone, self.hinge)
        return weights, weights

    def own_gram(self, problem):
        """Evaluate what other machines have not done before, where that is possible."""
        blocks = self._blocks_of(problem)
        return super().own_gram(problem) if blocks is None else blocks.gram(problem)

    def _blocks_of(self, problem):
        if self._blocks is None and is_tiled(problem.kernel, problem.X):
            self._blocks = ClassBlocks(problem.X, problem.kernel, self.memory)
        return self._blocks

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[:, :, 0].T
