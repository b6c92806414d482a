"""The modified L2 SVM, trained to a certified gap by the exact method that suits each subproblem."""

from dataclasses import dataclass
from numbers import Real
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
    """Trained subproblem, with results that only `NewtonSVC` reports."""

    methods: int = 0  # bits of `solvers.gram.outcomes.METHOD_NAMES`
    weights: np.ndarray | None = None  # (n,): weights of all samples, for a warm start


@with_parameters
class NewtonSVC(PathMixin, KernelSVC):  # numpydoc ignore=PR02
    """Modified L2 SVM, solved exactly.

    It minimises ``||c||²`` over the hull of the training samples (Strack 2013, 2.114), as `MNSVC` does, until
    its relative error is certified to be at most `tol`. Each subproblem is trained by the cheapest of three
    exact methods: Newton's method in a low-rank feature space, second-order pair steps on the Gram block, and
    Newton's method on the support block. Subproblems of two classes with the Gaussian kernel and more than
    3,000 samples are trained without a Gram matrix: in feature space, or by the last two methods on the
    samples near the margin.

    Parameters
    ----------
    tol : float
        Bound on ``1 - (max(g_min, 0) / ||c||²)²`` over all samples, and so on the relative error of the
        objective; between 0 and 1.
    bias : {"theoretic", "none"}
        Bias Σ α_i y_i (2.98), or no bias. At the exact solution the average bias equals the theoretic one.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        One subproblem for every pair of classes, one for every class against all others, or one for all
        classes (5.4).
    compact : bool
        Whether to express a subproblem that was solved in an r-dimensional feature space by its r pivots
        instead of all its support vectors. `dual_coef_` may then be negative.
    cache_size : float
        Largest size of the kernel values of a subproblem, in megabytes. Larger subproblems are trained on the
        samples near the margin if possible, else on a growing working set or on kernel rows.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.

    Attributes
    ----------
    method_ : str
        Names of the methods that were used, such as ``"pair_steps+support_newton"``.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid.
    MemoryError
        By `fit`: the training would not fit into memory.

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

    def _publish(self, X, samples, trained):
        """Set the fitted attributes.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.
        samples : TrainingSet
            Samples sorted by class.
        trained : Trained
            Results of the subproblems.
        """
        super()._publish(X, samples, trained)
        self.method_: str = method_names(trained.methods)

    def _solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        NewtonSolution
            Trained subproblem.
        """
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
        # At the exact solution the average bias equals the theoretic one.
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
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool or None
            Not used: the status says whether the tolerance is certified.
        gap : float
            Certified relative duality gap of the subproblem.
        by_draws : bool, default=False
            Not used: no method draws samples.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        return (
            f"certified: gap <= {self.tol:g}"
            if status == CONVERGED
            else uncertified_text(STOPPING_TEXTS[status], gap)
        )

    def prefers_gram(self, n_samples: int, n_features: int) -> bool:
        """Return whether `fit_path` gains from a Gram matrix that the caller shares between calls.

        Samples with few features are trained faster from their features. Their kernel matrices have a low
        rank, and only a few columns are evaluated.

        Parameters
        ----------
        n_samples : int
            Number of training samples.
        n_features : int
            Number of columns of the feature matrix.

        Returns
        -------
        bool
            Whether to pass a Gram matrix.
        """
        return n_features > FEW_FEATURES or n_samples < FEATURE_ROWS

    def _takes_one_gram(self, problem, kernel, X):
        """Return whether `fit_path` computes one Gram matrix of all samples.

        Parameters
        ----------
        problem : PathProblem
            Sorted samples, weights and values of C that the path trains on.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.

        Returns
        -------
        bool
            False if each subproblem is trained from its features.
        """
        n_samples, n_features = X.shape
        # Training by subproblems can detect a low rank before it computes any kernel value.
        may_have_low_rank = n_features <= SOME_FEATURES and n_samples > MAX_DENSE
        is_large = problem.bias == 1.0 and has_large_subproblem(problem, kernel, X)
        return self.prefers_gram(n_samples, n_features) and not may_have_low_rank and not is_large

    def _path_solver(self):
        """Return the block solver of `fit_path`.

        Returns
        -------
        NewtonSolver
            Solver with the parameters of this estimator.
        """
        return NewtonSolver(float(self.tol), 1e6 * self.cache_size)


@dataclass
class NewtonSolver(BlockSolver):
    """Block solver (`solvers.path.driver.BlockSolver`) by the exact methods of `solvers.newton.block_path`.

    `solvers.newton.method_choice` chooses the method of a subproblem without a Gram matrix.
    """

    tol: float
    memory: float = np.inf  # largest size of the Gram matrix of a subproblem, in bytes
    seed: int = 0
    has_methods = True
    order = "F"

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return the named tuple that selects Newton's methods.

        Parameters
        ----------
        solvers : sequence of NewtonSolver
            One solver for each Gram matrix.
        Ks : ndarray of shape (n_matrices, n, n)
            Gram matrices of the same samples, one for each kernel, such as each γ.
        problem : PathProblem
            Problem that all matrices share.
        groups : int64 ndarray of shape (n_subproblems, classes of a subproblem)
            Class indices of each subproblem.
        seeds : uint64 ndarray of shape (n_matrices · n_subproblems,)
            Seeds of the subproblems, not used.
        value_errors : ndarray of shape (n_matrices · n_subproblems,)
            Bounds on the errors of the values of their blocks.

        Returns
        -------
        NewtonRules
            Parameters of the block solver.
        """
        return NewtonRules(self.tol, value_errors, np.inf, np.empty(0))

    def threads(self):
        """Return the context of one BLAS thread, which is faster for factors of small blocks.

        Returns
        -------
        AbstractContextManager
            Context in which numba solves the blocks.
        """
        return one_blas_thread()

    def intercepts(self, weights, outcomes, problem):
        """Return the theoretic intercepts, computed from the weights.

        Parameters
        ----------
        weights : ndarray
            Weights in the layout of `PathSolution.weights`.
        outcomes : Outcomes
            Results of all subproblems, not used.
        problem : PathProblem
            Sorted samples, weights and values of C that the path trains on.

        Returns
        -------
        ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
            Intercepts, positive for the first class of a subproblem.
        """
        return intercepts(weights, problem.class_start, problem.bias, problem.multiclass)

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem from features for every C.

        A model that was trained in feature space has coefficients on its pivots only.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.
        path : PathProblem
            Path with the values of C.
        limits : int64 ndarray of shape (n_C,)
            Limits of the iterations for each C.
        seed : uint64 ndarray of shape (1,)
            Seed of the subproblem, not used.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights : ndarray of shape (n_C, m)
            Weights of margin 1, at least 0.
        model : ndarray of shape (n_C, m)
            Weights of any sign that give the same decisions.
        """
        solved = solve_subproblem(problem, 1.0, path.Cs, self.tol, limits, self.memory, outcome)
        outcome.supports[0] = np.count_nonzero(solved.weights, axis=1)
        model = solved.weights
        if len(solved.coefficients):
            n_compact = len(solved.coefficients)
            model = np.concatenate((np.zeros((n_compact, problem.rows.size)), solved.weights[n_compact:]))
            model[:n_compact, solved.pivots] = solved.coefficients
        return solved.weights, model
