"""The machines of a path of `NewtonSVC`."""

from dataclasses import dataclass

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.newton.block_path import NewtonRules
from solvers.newton.method_choice import solve_subproblem
from solvers.path.driver import BlockSolver
from solvers.path.result import intercepts


@dataclass
class NewtonSolver(BlockSolver):
    """A `solvers.path.driver.BlockSolver` by the exact methods of `solvers.newton.block_path`.

    A machine without a Gram matrix is trained by whichever method suits it (`solvers.newton.method_choice`).
    """

    tol: float
    memory: float = np.inf  # bytes that the Gram matrix of a machine may take
    seed: int = 0
    has_methods = True
    order = "F"

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return what numba needs."""
        return NewtonRules(self.tol, value_errors, np.inf, np.empty(0))

    def threads(self):
        """Return the context of one thread for the factorisations of small blocks."""
        return one_blas_thread()

    def intercepts(self, weights, outcomes, problem):
        """Return the theoretic ones, of the weights."""
        return intercepts(weights, problem.class_start, problem.bias, problem.at_once)

    def train(self, problem, path, limits, seed, outcome):
        """Train a machine for every C; solved in feature space, the model has its pivots only."""
        solved = solve_subproblem(problem, 1.0, path.Cs, self.tol, limits, self.memory, outcome)
        outcome.supports[0] = np.count_nonzero(solved.weights, axis=1)
        model = solved.weights
        if len(solved.coefficients):
            compact = len(solved.coefficients)
            model = np.concatenate((np.zeros((compact, problem.rows.size)), solved.weights[compact:]))
            model[:compact, solved.pivots] = solved.coefficients
        return solved.weights, model
