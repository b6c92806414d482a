"""What the estimators share that move a point of the hull."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.pair_selection import PAIRS, TINY
from solvers.common.resources import NO_LIMIT
from solvers.estimators.base import KernelSVC
from solvers.estimators.fit_path import PathMixin
from solvers.estimators.parameters import Count, Multiclass, Switch
from solvers.hull.block_descent import MinimalNormRules
from solvers.hull.descent import Rules, descend
from solvers.hull.row_training import HullSolver
from solvers.hull.state import TRACK_ALL
from solvers.hull.steps import TO_ORIGIN
from solvers.hull.stopping import RULES, default_tolerance, rule_text
from solvers.kernels.functions import NOT_FINITE
from solvers.margin.descent import large_descent, solve_large_descent, takes_large_descent
from solvers.multiclass import random_seed
from solvers.path.driver import BlockSolver


class GeometricSVC(PathMixin, KernelSVC):
    """Base of the solvers that move a point of the hull (`solvers.hull.state`).

    Parameters
    ----------
    tol : "auto" or float
        ε of the stopping rule, between 0 and 1; "auto" is the papers': 10⁻³ for those of the minimal norm,
        (7.3) for the balls. What is certified for it when `converged_` is true, the table in `solvers` says.
    draws : int
        Candidates that are drawn in vain, with replacement, before the search for a violator ends, N_d (5.1).
    subset : int
        Candidates of which the worst is taken, N_r.
    sampling : {"fair", "simple"}
        Draw a class first, then one of its samples; or any sample.
    exhaustive : bool
        Whether a search that has drawn in vain looks at every sample whose margin is at hand before it ends:
        at all of them, or at the support vectors (`track_margins`). Where all are at hand, and `draws` is at
        least their number, it does so without drawing. False: the search ends with its draws, as in 5.1, and
        there may be a violator that was not drawn.
    track_margins : {"auto"} or bool
        Whether x̃_i·c of every sample is kept up to date, so that to look at a sample costs nothing. False: of
        the support vectors, as in the author's tool, and of what has lately been one; to draw another sample
        costs a kernel value for each of them (5.1.2), and no search looks at all samples. "auto": True for
        machines of up to 50,000 samples, and of more that are trained by the samples near the margin.
        `fit_path` reads kernel values from a matrix where it has one.
    bias : {"theoretic", "average", "none"}
        Bias Σ α_i y_i (2.98), the mean of the optimality conditions (5.24), or a machine without one (chapter
        6).
    multiclass : {"pairwise", "all_at_once"}
        A machine for every pair of classes, or one for all (5.4).
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.
    random_state : int, RandomState or None
        Source of the draws, and of the folds for `probability`.

    Attributes
    ----------
    n_clipped_ : int ndarray of shape (n_subproblems,)
        How many of `n_iter_` the weight of the sample that gives it cut short: η β̂ > α_u (3.3, 4.9).
    """

    tol: Annotated[str | float, StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")] = "auto"
    draws: Count = 600
    subset: Count = 1
    sampling: Annotated[str, StrOptions({"fair", "simple"})] = "fair"
    exhaustive: Switch = True
    track_margins: Annotated[bool | str, "boolean", StrOptions({"auto"})] = "auto"
    bias: Annotated[str, StrOptions({"theoretic", "average", "none"})] = "theoretic"
    multiclass: Multiclass = "pairwise"
    warm_start: Switch = False

    # What is no parameter of every solver.
    pair, pair_exponent, eta, stopping = "mdm", 0.0, 1.0, "meb"
    step, loop, block_rules, draws_per_tuning = TO_ORIGIN, staticmethod(descend), MinimalNormRules, 10
    # `loop` works by rows of the kernel; on a block it is what is implemented for `block_rules`.
    first_epsilon = 0.5  # of the multi-scale approximation (Algorithm 5)
    first_samples = 1  # that get weight before the first iteration

    def _most_tracked(self):
        """Return up to how many samples of a machine margins are kept of all."""
        if self.track_margins == "auto":
            return TRACK_ALL
        return NO_LIMIT if self.track_margins else 0

    def _seed(self):
        return random_seed(self.random_state)

    def _rules(self):
        """Return the parameters as numbers."""
        return Rules(
            step=self.step,
            stopping=RULES[self.stopping],
            draws=int(self.draws),
            subset=int(self.subset),
            fair=self.sampling == "fair",
            exhaustive=bool(self.exhaustive),
            max_tracked=self._most_tracked(),
            pair=PAIRS[self.pair],
            exponent=float(self.pair_exponent),
            eta=float(self.eta),
            draws_per_tuning=self.draws_per_tuning,
            average_bias=self.bias == "average",
            first_epsilon=self.first_epsilon,
            first_samples=self.first_samples,
        )

    def _solve(self, problem):
        rules, memory = self._rules(), 1e6 * self.cache_size
        if problem.deadline == np.inf and takes_large_descent(problem, rules, memory):
            tol = default_tolerance(rules.stopping, 1.0, 1.0) if self.tol == "auto" else float(self.tol)
            return solve_large_descent(problem, rules, tol, memory)
        return HullSolver(rules, self.tol, memory, self.bias, self.loop).solve(problem)

    def _path_solver(self):
        rules, memory = self._rules(), 1e6 * self.cache_size
        return MinimalNormSolver(rules, self.tol, self._seed(), memory, self._solve, self.block_rules)

    def _publish(self, X, samples, subproblems):
        super()._publish(X, samples, subproblems)
        self.n_clipped_ = np.array([s.n_clipped for s in subproblems.solutions], dtype=np.int64)

    def _check_path(self, solution):
        usual = solution.problem.Cs >= TINY  # below, 1/C is infinite
        if not np.isfinite(solution.outcomes.objectives[usual]).all():
            raise ValueError(NOT_FINITE)

    def _stops_by_draws(self, n_samples):
        return not (self.exhaustive and n_samples <= self._most_tracked())

    def _subproblem_text(self, status, converged, gap, by_draws):
        return rule_text(RULES[self.stopping], converged, gap, status, self.draws if by_draws else 0)


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
