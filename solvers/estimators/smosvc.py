"""SMO for the L1 and the L2 support vector machine with a bias constraint: LIBSVM's problems."""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.resources import require_memory
from solvers.common.status import TIMEOUT, certified_text, uncertified_text
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.parameters import Positive, Switch, with_parameters
from solvers.gram.class_blocks import ClassBlocks
from solvers.gram.subproblems import class_sizes
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.kernels.tiles import is_tiled
from solvers.margin.l1_path import (
    LARGEST_DENSE,
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
class SMOSVC(PathMixin, KernelSVC):
    """Support vector machine by sequential minimal optimisation.

    The dual with its constraint Σ α_i y_i = 0 (the bias is not penalised), second-order working-set
    selection, shrinking and LIBSVM's stopping rule. `fit_path` trains for many C on dense blocks of the Gram
    matrix: from sums over classes where C is small, by scaling the weights with C while most are at their
    bounds, and with Newton's method on the free weights beside the steps. Machines of the Gaussian kernel on
    more than 3,000 samples are trained without a Gram matrix, by both: what is solved at a time is the
    problem of the samples near the margin.

    Parameters
    ----------
    C : float
        Penalty of the slacks (l1) or of their squares (l2). Infinite: no slack is allowed, and training only
        ends by itself where the kernel separates the classes.
    loss : {"l1", "l2"}
        "l1": C Σ ξ_i, so 0 ≤ α_i ≤ C, as in `sklearn.svm.SVC`. "l2": ½ C Σ ξ_i², so α_i ≥ 0 on the kernel k +
        δ_ij / C. This is the modified L2 SVM of `NewtonSVC` but for the bias: there it is part of the kernel
        and penalised.
    tol : float
        Largest violation of the optimality conditions, in units of the margin (LIBSVM's rule), and largest
        `gap_`: when `converged_` is true, neither is above it.
    shrinking : bool
        Leave out samples whose weights are at a bound and look like staying there; machines without a Gram
        matrix always do.
    cache_size : float
        Megabytes for kernel rows or blocks and for copies of the samples.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.
    gram_shift : float
        What has been subtracted from all values of a precomputed kernel, those of predictions too. The free
        bias takes it up, so that it changes no decision; but where all values are near 1, those of k − 1 keep
        in float32 what those of k lose.

    Attributes
    ----------
    objective_ : float
        Dual objective ½ αᵀQα − Σ α_i, summed over the machines: the number that LIBSVM prints as "obj".
    gap_, duality_gap_ : float
        Primal minus dual objective as a share of the primal one, with all roundings allowed for; the largest
        of the machines, above 1 where the dual objective may be negative. NaN if `max_seconds` ended a
        machine whose kernel matrix was not at hand: there was none yet, or it does not fit into `cache_size`;
        or a large machine before the margins of all samples were known.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid.
    MemoryError
        By `fit`: what the training needs would not fit into memory.

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
    warm_start: Switch = False
    class_weight: ClassWeight = None
    C: Annotated[float, Interval(Real, 0, None, closed="right")] = 1.0

    gram_shift: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0

    bias = "none"  # that would be added to the kernel: here it is free

    def _shift(self):
        return float(self.gram_shift) if self.kernel == "precomputed" else 0.0

    def _train(self, samples, starts, seeds, budget):
        if self._shift():
            what, remedy = "a copy of the kernel matrix, for gram_shift,", "subtract nothing from the kernel"
            require_memory(8.0 * samples.X.size, what, remedy)
            K = samples.X.astype(np.float64)  # in float32 the sum would lose what the difference has kept
            K += self._shift()
            error = samples.kernel.error + UNIT_ROUNDOFF * np.abs(K).max()
            samples = samples._replace(X=K, kernel=samples.kernel._replace(error=error))
        return super()._train(samples, starts, seeds, budget)

    def _solve(self, problem):
        if takes_large_path(problem, 1e6 * self.cache_size):
            return solve_large(problem, float(self.tol), 1e6 * self.cache_size, self.loss == "l1")
        state = SmoState(problem, self.loss)
        tol = float(self.tol)
        try:
            state.store = rows_of(state.kernel, 1e6 * self.cache_size)
            if problem.start is not None:
                state.start_from(problem.start)
            status, gap, converged = certify(state, tol, self.shrinking, problem.max_iter)
        except OutOfTime:
            status, gap, converged = TIMEOUT, np.nan, False
        return state.solution(status, gap, converged, tol)

    def _takes_one_gram(self, problem, kernel, X):
        return problem.rows.size <= LARGEST_DENSE or not has_large_subproblem(problem, kernel, X)

    def _path_solver(self):
        return SmoSolver(
            self.loss == "l1", float(self.tol), 1e6 * self.cache_size, self._solve, self._shift()
        )

    def _subproblem_text(self, status, converged, gap, by_draws):
        return certified_text(self.tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap)


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

    def subproblem_gram(self, problem):
        """Evaluate what other machines have not done before, where that is possible."""
        blocks = self._blocks_of(problem)
        return super().subproblem_gram(problem) if blocks is None else blocks.gram(problem)

    def _blocks_of(self, problem):
        if self._blocks is None and is_tiled(problem.kernel, problem.X):
            self._blocks = ClassBlocks(problem.X, problem.kernel, self.memory)
        return self._blocks

    def intercepts(self, weights, outcomes, problem):
        """Return those that were found with the weights."""
        return outcomes.biases[:, :, 0].T
