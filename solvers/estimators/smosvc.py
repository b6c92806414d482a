"""SMO for the L1 and the L2 support vector machine with a free bias, the problems of LIBSVM."""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.resources import require_memory
from solvers.common.status import TIMEOUT, certified_text, uncertified_text
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.parameters import Positive, Switch, parameter, with_parameters
from solvers.gram.class_blocks import ClassBlocks
from solvers.gram.subproblems import class_sizes
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.kernels.tiles import is_tiled
from solvers.margin.l1_path import (
    MAX_DENSE,
    has_large_subproblem,
    large_path,
    solve_large,
    takes_large_path,
)
from solvers.path.driver import BlockSolver
from solvers.smo.block_path import N_INDICES, N_SHORT_VECTORS, N_VECTORS, SmoRules
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.smo.kernel_rows import rows_of
from solvers.smo.row_training import SmoState, certify


@with_parameters
class SMOSVC(PathMixin, KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine by sequential minimal optimisation.

    It solves the dual problem with the constraint Σ α_i y_i = 0, so the bias is not penalised. It uses
    second-order working-set selection, shrinking and LIBSVM's stopping rule. `fit_path` trains for many C on
    dense blocks of the Gram matrix. At a small C, it starts from sums of kernel values over the classes.
    While most weights are at their bounds, it scales them with C. It alternates SMO steps with Newton's
    method on the free weights. Both `fit` and `fit_path` train subproblems of the Gaussian kernel with more
    than 3,000 samples without a Gram matrix, on the samples near the margin.

    Parameters
    ----------
    C : float
        Penalty of the slacks (l1) or of their squares (l2). Infinite: no slack is allowed, and training ends
        by itself only if the kernel separates the classes.
    loss : {"l1", "l2"}
        "l1": C Σ ξ_i, so 0 ≤ α_i ≤ C, as in `sklearn.svm.SVC`. "l2": ½ C Σ ξ_i², so α_i ≥ 0 on the kernel k +
        δ_ij / C. This is the modified L2 SVM of `NewtonSVC` except for the bias, which is part of the kernel
        and penalised there.
    tol : float
        Largest violation of the optimality conditions, in units of the margin (LIBSVM's rule), and largest
        `gap_`. When `converged_` is true, neither exceeds it.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    shrinking : bool
        Leave out samples whose weights are likely to stay at a bound. Subproblems without a Gram matrix
        always do so.
    cache_size : float
        Megabytes for kernel rows or blocks and for copies of the samples.
    selection : {"second", "first"}
        Weight that shrinks in a step of `fit`: the one with the largest gain ("second", of second order), or
        the one with the largest violation ("first"). `fit_path` always takes the largest gain.
    working_set : int
        Number of weights over which a step of `fit` minimises, even, at least 2. From 4 on, `fit` solves a
        problem of that many variables at a time, and `n_iter_` counts the pair steps within these problems.
        `fit_path` always takes pairs.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.
    gram_shift : float
        Number that was subtracted from all values of a precomputed kernel, at prediction as well. The free
        bias absorbs it, so it changes no decision. If all values of k are near 1, float32 values of k − 1 are
        more precise.

    Attributes
    ----------
    objective_ : float
        Dual objective ½ αᵀQα − Σ α_i, summed over the subproblems. It is never positive. LIBSVM prints the
        same number as "obj".
    gap_, duality_gap_ : float
        Primal minus dual objective as a share of the primal one, with an allowance for all rounding errors:
        the largest of the subproblems. It exceeds 1 if the dual objective may be negative. It is NaN if
        `max_seconds` ended a subproblem before its kernel matrix was available or the margins of all samples
        were known.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    R.-E. Fan, P.-H. Chen and C.-J. Lin (2005), Working set selection using second order information for
    training support vector machines, Journal of Machine Learning Research 6: steps; section 4: shrinking. T.
    Joachims (1999), Making large-scale SVM learning practical: shrinking. C.-C. Chang and C.-J. Lin (2011),
    LIBSVM: a library for support vector machines, ACM TIST 2: the stopping rule.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import SMOSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SMOSVC(C=4.0, gamma=0.5).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    loss: Annotated[str, StrOptions({"l1", "l2"})] = "l1"
    tol: Positive = 1e-3
    shrinking: Switch = True
    selection: Annotated[str, StrOptions({"second", "first"})] = "second"
    working_set: Annotated[int, Interval(Integral, 2, None, closed="left")] = 2
    warm_start: Switch = False
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"
    C: Annotated[float, Interval(Real, 0, None, closed="right")] = parameter(default=1.0, kw_only=False)

    gram_shift: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0

    bias = "none"  # no constant is added to the kernel: the bias of this problem is free

    def _validate_params(self):
        """Raise if a parameter is not valid, or if parameters do not fit together."""
        super()._validate_params()
        if self.working_set % 2:
            raise ValueError(
                f"working_set={self.working_set}: expected an even number. Set it to {self.working_set + 1}"
            )

    def _shift(self):
        """Return the number that was subtracted from the values of a precomputed kernel.

        Returns
        -------
        float
            `gram_shift`; 0 for other kernels.
        """
        return float(self.gram_shift) if self.kernel == "precomputed" else 0.0

    def _train(self, samples, starts, seeds, budget):
        """Train every subproblem within a budget, on the kernel matrix without its shift.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        starts : list of Solution or None
            Solution to start from, for each subproblem.
        seeds : uint64 ndarray of shape (n_subproblems,)
            Seeds of the random draws, one for each subproblem.
        budget : Budget
            Remaining iterations and time.

        Returns
        -------
        Subproblems
            Trained subproblems.
        """
        if self._shift():
            what = "a copy of the kernel matrix, for gram_shift,"
            require_memory(8.0 * samples.X.size, what, "pass the kernel without a shift, with gram_shift=0")
            K = samples.X.astype(np.float64)  # a float32 sum would lose the precision of the difference
            K += self._shift()
            error = samples.kernel.error + UNIT_ROUNDOFF * np.abs(K).max()
            samples = samples._replace(X=K, kernel=samples.kernel._replace(error=error))
        return super()._train(samples, starts, seeds, budget)

    def _takes_default_steps(self):
        """Return whether the steps of `fit` are those of `fit_path`, which minimise over pairs by their gain.

        Returns
        -------
        bool
            False with another `selection` or `working_set`.
        """
        return self.selection == "second" and self.working_set == 2

    def _trains_together(self, samples):
        """Return whether `_train_together` trains all subproblems.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.

        Returns
        -------
        bool
            False if `fit` takes other steps than `fit_path`.
        """
        return self._takes_default_steps() and super()._trains_together(samples)

    def _solve(self, problem):
        """Train one subproblem, without a Gram matrix if it is large.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        Solution
            Trained subproblem.
        """
        if self._takes_default_steps() and takes_large_path(problem, 1e6 * self.cache_size):
            return solve_large(problem, float(self.tol), 1e6 * self.cache_size, self.loss == "l1")
        state = SmoState(problem, self.loss, self.selection == "second", self.working_set)
        tol = float(self.tol)
        try:
            state.store = rows_of(state.kernel, 1e6 * self.cache_size, self.working_set)
            if problem.start is not None:
                state.start_from(problem.start)
            status, gap, converged = certify(state, tol, self.shrinking, problem.max_iter)
        except OutOfTime:
            status, gap, converged = TIMEOUT, np.nan, False
        return state.solution(status, gap, converged, tol)

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
            False if a subproblem is trained without a Gram matrix.
        """
        return problem.rows.size <= MAX_DENSE or not has_large_subproblem(problem, kernel, X)

    def _path_solver(self):
        """Return the block solver of `fit_path`.

        Returns
        -------
        SmoSolver
            Solver with the parameters of this estimator.
        """
        return SmoSolver(
            self.loss == "l1", float(self.tol), 1e6 * self.cache_size, self._solve, self._shift()
        )

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the tolerance is certified.
        gap : float
            Certified relative duality gap of the subproblem.
        by_draws : bool
            Not used: SMO draws no samples.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        return certified_text(self.tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap)


@dataclass
class SmoSolver(BlockSolver):
    """Block solver (`solvers.path.driver.BlockSolver`) by SMO: `smo.block_path` and `margin.l1_path`.

    An instance serves one path, whose subproblems share its kernel blocks.
    """

    hinge: bool  # whether the loss is C ξ; if not, ½ C ξ²
    tol: float
    memory: float  # largest size of the kernel values of a subproblem, in bytes
    solve: Callable  # function that trains a larger `Problem` for one C
    shift: float = 0.0  # number that was subtracted from the values of a Gram matrix
    seed: int = 0
    has_labels = False  # weights have the signs of the labels
    _blocks: ClassBlocks | None = field(default=None, init=False)

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return the named tuple that selects SMO, with its workspace.

        Parameters
        ----------
        solvers : sequence of SmoSolver
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
        SmoRules
            Parameters and workspace of the block solver.
        """
        m = int(class_sizes(problem.class_start)[groups].sum(axis=1).max())
        vectors, short_vectors = np.empty(N_VECTORS * m), np.empty(N_SHORT_VECTORS * m, np.float32)
        indices = np.empty(N_INDICES * m, np.int64)
        shifts = np.repeat([solver.shift for solver in solvers], len(groups))
        return SmoRules(self.hinge, self.tol, value_errors, shifts, vectors, short_vectors, indices)

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem from features, without a Gram matrix if it is large.

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
        weights, model : ndarray of shape (n_C, m)
            Weights of margin 1, twice the same array.
        """
        if not takes_large_path(problem, self.memory):
            return super().train(problem, path, limits, seed, outcome)
        samples, subproblem_outcome = self._blocks_of(problem).samples, outcome.of_subproblem(0)
        weights = large_path(
            problem, samples, path.Cs, self.tol, limits, self.memory, subproblem_outcome, self.hinge
        )
        return weights, weights

    def subproblem_gram(self, problem):
        """Return the Gram matrix of a subproblem, with values of earlier subproblems if possible.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.

        Returns
        -------
        K : ndarray of shape (m, m), C-contiguous
            Kernel values.
        error : float
            Bound on the error of a value.
        """
        blocks = self._blocks_of(problem)
        return super().subproblem_gram(problem) if blocks is None else blocks.gram(problem)

    def _blocks_of(self, problem):
        """Return the kernel blocks that the subproblems of a path share.

        Parameters
        ----------
        problem : Problem
            Any subproblem of the path.

        Returns
        -------
        ClassBlocks or None
            Blocks; None if the kernel has no tiles.
        """
        if self._blocks is None and is_tiled(problem.kernel, problem.X):
            self._blocks = ClassBlocks(problem.X, problem.kernel, self.memory)
        return self._blocks

    def intercepts(self, weights, outcomes, problem):
        """Return the intercepts that the solver computed with the weights.

        Parameters
        ----------
        weights : ndarray
            Weights in the layout of `PathSolution.weights`, not used.
        outcomes : Outcomes
            Results of all subproblems.
        problem : PathProblem
            Problem of the path, not used.

        Returns
        -------
        ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
            Intercepts, positive for the first class of a subproblem.
        """
        return outcomes.biases[:, :, 0].T
