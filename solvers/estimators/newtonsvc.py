"""The modified L2 SVM to a certified gap, by whichever exact method suits the problem."""

from dataclasses import dataclass
from functools import reduce
from numbers import Real
from operator import or_
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.blas import one_blas_thread
from solvers.common.status import CONVERGED, STOPPING_TEXTS, uncertified_text
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.parameters import Multiclass, Switch, with_parameters
from solvers.gram.outcomes import method_names, new_outcomes
from solvers.hull.bias import class_biases
from solvers.margin.l1_path import MAX_DENSE, has_large_subproblem
from solvers.newton.block_path import NewtonRules
from solvers.newton.method_choice import FEATURE_ROWS, FEW_FEATURES, SOME_FEATURES, solve_subproblem
from solvers.path.driver import BlockSolver
from solvers.path.result import intercepts
from solvers.problem import Solution


@dataclass
class NewtonSolution(Solution):
    """A trained machine and what only `NewtonSVC` tells about it."""

    methods: int = 0
    weights: np.ndarray | None = None  # (n,) to start from


@with_parameters
class NewtonSVC(PathMixin, KernelSVC):
    """Modified L2 SVM, solved exactly.

    Minimises ``||c||²`` over the hull of the training samples (Strack 2013, 2.114), as `MNSVC` does, until
    its relative error is certified to be at most `tol`. Per machine the cheapest exact method is taken:
    Newton's method in a low-rank feature space, second-order pair steps on the Gram block, or Newton's method
    on the support block. Machines of two classes, the Gaussian kernel and more than 3,000 samples are trained
    without a Gram matrix: in feature space, or by the last two on the samples near the margin.

    Parameters
    ----------
    tol : float
        Bound on ``1 - (max(g_min, 0) / ||c||²)²`` over all samples, hence on the relative error of the
        objective; between 0 and 1.
    bias : {"theoretic", "none"}
        Bias Σ α_i y_i (2.98), or a machine without one. (At the exact solution the average bias is the
        theoretic one.)
    multiclass : {"pairwise", "all_at_once"}
        A machine for every pair of classes, or one for all (5.4).
    compact : bool
        Where a machine was solved in an r-dimensional feature space, publish it on its r pivots (`dual_coef_`
        may then be negative) instead of on all of its support vectors.
    cache_size : float
        Megabytes that the kernel values of a machine may take. Where neither the samples near the margin nor
        the Gram block are of use, a larger machine is solved on a growing working set, or on kernel rows.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.

    Attributes
    ----------
    method_ : str
        The methods that were used, such as ``"pair_steps+support_newton"``.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid.
    MemoryError
        By `fit`: what the training needs would not fit into memory.

    References
    ----------
    R. Strack (2013), Geometric approach to support vector machines learning for large datasets, (2.114): the
    problem. S. Fine and K. Scheinberg (2001), Efficient SVM training using low-rank kernel representations,
    Journal of Machine Learning Research 2: pivoted Cholesky. R.-E. Fan, P.-H. Chen and C.-J. Lin (2005),
    Working set selection using second order information for training support vector machines, Journal of
    Machine Learning Research 6: pair steps. O. Chapelle (2007), Training a support vector machine in the
    primal, Neural Computation 19, eq. 10-12: Newton.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import NewtonSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NewtonSVC(C=4.0, gamma=0.5).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    >>> model.stopping_
    'certified: gap <= 0.001'
    """

    has_no_side_effects = True

    tol: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 1e-3
    bias: Annotated[str, StrOptions({"theoretic", "none"})] = "theoretic"
    multiclass: Multiclass = "pairwise"
    compact: Switch = False
    cache_size: float = 1000
    warm_start: Switch = False
    class_weight: ClassWeight = None

    def _publish(self, X, samples, subproblems):
        super()._publish(X, samples, subproblems)
        self.method_ = method_names(reduce(or_, (solution.methods for solution in subproblems.solutions)))

    def _solve(self, problem):
        start = None if problem.start is None else problem.start.weights
        C, limits, memory = np.array([float(self.C)]), np.array([problem.max_iter]), 1e6 * self.cache_size
        outcomes = new_outcomes(1, 1, 0)
        solved = solve_subproblem(problem, C[0], C, float(self.tol), limits, memory, outcomes, start)
        outcome, weights = solved.outcome, solved.weights[0]
        if self.compact and len(solved.coefficients):
            support = np.sort(solved.pivots)
            alpha = solved.coefficients[0][np.argsort(solved.pivots)]
        else:
            support = np.flatnonzero(weights)
            alpha = weights[support]
        n_classes = problem.class_start.size - 1
        label = np.searchsorted(problem.class_start, support, side="right") - 1
        # At the exact solution the average bias is the theoretic one.
        biases = class_biases(self.bias, label, alpha, None, None, n_classes)
        return NewtonSolution(
            support=support,
            alpha=alpha,
            bias=biases[:1] if n_classes == 2 else biases,
            objective=float(outcome.objectives[0]),
            gap=float(outcome.gaps[0]),
            n_iter=int(outcome.iterations[0]),
            n_kernel_evals=int(outcome.evaluations[0]),
            status=int(outcome.statuses[0]),
            converged=bool(outcome.statuses[0] == CONVERGED),
            stopping=self._subproblem_text(outcome.statuses[0], None, outcome.gaps[0]),
            methods=int(outcome.methods[0]),
            weights=weights,
        )

    def _subproblem_text(self, status, converged, gap, by_draws=False):
        return (
            f"certified: gap <= {self.tol:g}"
            if status == CONVERGED
            else uncertified_text(STOPPING_TEXTS[status], gap)
        )

    def prefers_gram(self, n_samples, n_features):
        """Whether `fit_path` gains from a Gram matrix that the caller shares between calls.

        Low-dimensional data is solved faster from its features: its kernels have small rank, and only a few
        of their columns are ever evaluated.
        """
        return n_features > FEW_FEATURES or n_samples < FEATURE_ROWS

    def _takes_one_gram(self, problem, kernel, X):
        n_samples, n_features = X.shape
        # Machine by machine the rank may be found small before any kernel value is computed.
        may_be_small = n_features <= SOME_FEATURES and n_samples > MAX_DENSE
        is_large = problem.bias == 1.0 and has_large_subproblem(problem, kernel, X)
        return self.prefers_gram(n_samples, n_features) and not may_be_small and not is_large

    def _path_solver(self):
        return NewtonSolver(float(self.tol), 1e6 * self.cache_size)


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
