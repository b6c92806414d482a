"""Base of the estimators that move a point of the hull."""

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
from solvers.estimators.parameters import Count, Multiclass, Switch, declares_parameters
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
from solvers.path.tiles import MAX_SAMPLES


@declares_parameters
class GeometricSVC(PathMixin, KernelSVC):  # numpydoc ignore=PR02
    """Base of the estimators that move a point of the hull (`solvers.hull.state`).

    Parameters
    ----------
    tol : "auto" or float
        Tolerance ε of the stopping rule, between 0 and 1. "auto" is that of the papers: 10⁻³ for the rules of
        the minimal norm, (7.3) for the balls. The table in `solvers` says what `converged_` certifies for it.
    draws : int
        Number N_d of candidates, drawn with replacement, without a violator after which the search ends
        (5.1).
    subset : int
        Number N_r of candidates that are compared at a time; the worst of them is used.
    sampling : {"fair", "simple"}
        Draw a class first and then one of its samples ("fair"), or any sample with equal probability.
    exhaustive : bool
        Whether a search whose draws found no violator checks all tracked samples before it ends: all samples
        or the support vectors, see `track_margins`. If all samples are tracked and `draws` is at least their
        number, it checks them without drawing. False: the search ends with its draws, as in 5.1, and may miss
        a violator.
    track_margins : {"auto"} or bool
        Whether x̃_i·c of every sample is kept up to date, so that checking a sample costs nothing. False:
        only the values of current and recent support vectors are, as in Strack's program. Drawing another
        sample then costs a kernel value for each support vector (5.1.2), and no search checks all samples.
        These kernel values are kept for later draws, as far as `cache_size` allows it.
        "auto": True for subproblems of up to 50,000 samples, and for larger ones that are trained on the
        samples near the margin. Other subproblems start with draws. They track all samples once the draws
        have cost more kernel values than that would, if memory and time suffice. `fit_path` reads kernel
        values from a matrix where it has one.
    bias : {"theoretic", "average", "none"}
        Bias Σ α_i y_i (2.98), mean of the optimality conditions (5.24), or no bias (chapter 6).
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        One subproblem for every pair of classes, one for every class against all others, or one for all
        classes (5.4).
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.
    first_epsilon : float
        First tolerance of Algorithm 5 (5.2), at least 0 and below 1. Training reaches this tolerance, then
        half of it, and so on down to `tol`. With 0 there is only one scale.
    random_state : int, RandomState or None
        Source of the draws, and of the folds for `probability`.

    Attributes
    ----------
    n_clipped_ : int ndarray of shape (n_subproblems,)
        Number of steps that the weight of the giving sample shortened: η β̂ > α_u (3.3, 4.9).
    n_full_updates_ : int ndarray of shape (n_subproblems,)
        Number of steps that were not shortened (3.3); for `CoreSVC`, number of samples that joined the core
        set.
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
    first_epsilon: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.5

    # Values of the estimators that do not have the parameter.
    pair, pair_exponent, eta, stopping = "mdm", 0.0, 1.0, "meb"
    step, loop, block_rules = TO_ORIGIN, staticmethod(descend), MinimalNormRules
    # `loop` trains by kernel rows. On a block, the class `block_rules` selects the body of
    # `solvers.hull.block_descent.descend`: for `MinimalNormRules` in hull/block_descent.py, for
    # `ViolatorRules` in hull/block_ball.py, for `CoreSetRules` in hull/block_core_set.py.
    first_samples = 1  # number of samples that get weight before the first iteration

    def _most_tracked(self):
        """Return the largest subproblem for which the values of all samples are tracked.

        Returns
        -------
        int
            Number of samples.
        """
        if self.track_margins == "auto":
            return TRACK_ALL
        return NO_LIMIT if self.track_margins else 0

    def _seed(self):
        """Return the seed of the draws of a fit.

        Returns
        -------
        int
            Seed of at least 0.
        """
        return random_seed(self.random_state)

    def _rules(self):
        """Return the parameters as numbers.

        Returns
        -------
        Rules
            Parameters for the compiled loops.
        """
        draws_per_tuning = getattr(self, "draws_per_tuning", None)  # a parameter of MNSVC and SphereSVC
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
            draws_per_tuning=NO_LIMIT if draws_per_tuning is None else int(draws_per_tuning),
            average_bias=self.bias == "average",
            first_epsilon=float(self.first_epsilon),
            first_samples=self.first_samples,
        )

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
        rules, memory = self._rules(), 1e6 * self.cache_size
        if problem.deadline == np.inf and takes_large_descent(problem, rules, memory):
            tol = default_tolerance(rules.stopping, 1.0, 1.0) if self.tol == "auto" else float(self.tol)
            return solve_large_descent(problem, rules, tol, memory)
        return HullSolver(rules, self.tol, memory, self.bias, self.loop).solve(problem)

    def _path_solver(self):
        """Return the block solver of `fit_path`.

        Returns
        -------
        MinimalNormSolver
            Solver with the parameters of this estimator.
        """
        rules, memory = self._rules(), 1e6 * self.cache_size
        by_rows = HullSolver(rules, self.tol, memory, self.bias, self.loop, keeps_rows=True)
        return MinimalNormSolver(rules, self.tol, self._seed(), memory, by_rows.solve, self.block_rules)

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
        self.n_clipped_: np.ndarray = trained.n_clipped
        self.n_full_updates_: np.ndarray = trained.n_full_updates

    def _trains_together(self, samples):
        """Return whether `_train_together` trains all subproblems.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.

        Returns
        -------
        bool
            False if the samples of the subproblems are not to be tracked.
        """
        return self._most_tracked() >= MAX_SAMPLES and super()._trains_together(samples)

    def _check_path(self, solution):
        """Raise if an objective of a path is not finite, which an unsuitable kernel causes.

        Parameters
        ----------
        solution : PathSolution
            Result of training for all values of C.
        """
        has_finite_inverse = solution.problem.Cs >= TINY
        if not np.isfinite(solution.outcomes.objectives[has_finite_inverse]).all():
            raise ValueError(NOT_FINITE)

    def _stops_by_draws(self, n_samples):
        """Return whether a search may end without a check of every sample.

        Parameters
        ----------
        n_samples : int
            Number of training samples.

        Returns
        -------
        bool
            False if every search ends with a check of all samples.
        """
        return not (self.exhaustive and n_samples <= self._most_tracked())

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
            Whether the search may have missed a sample.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        return rule_text(RULES[self.stopping], converged, gap, status, self.draws if by_draws else 0)


@dataclass
class MinimalNormSolver(BlockSolver):
    """Block solver (`solvers.path.driver.BlockSolver`) by Algorithms 1 to 4 of Strack (2013)."""

    parameters: Rules
    tol: str | float  # ε of the stopping rule, or "auto"
    seed: int
    memory: float = np.inf  # largest size of the Gram matrix of a subproblem, in bytes
    solve: Callable | None = None  # function that trains a larger `Problem` for one C
    kind: type[MinimalNormRules] = MinimalNormRules  # class that selects the algorithm
    has_clipped = True

    def rules(self, solvers, Ks, problem, groups, seeds, value_errors):
        """Return the named tuple that selects the algorithm.

        Parameters
        ----------
        solvers : sequence of MinimalNormSolver
            One solver for each Gram matrix.
        Ks : ndarray of shape (n_matrices, n, n)
            Gram matrices of the same samples, one for each kernel, such as each γ.
        problem : PathProblem
            Problem that all matrices share.
        groups : int64 ndarray of shape (n_subproblems, classes of a subproblem)
            Class indices of each subproblem.
        seeds : uint64 ndarray of shape (n_matrices · n_subproblems,)
            Seeds of the random draws, one for each subproblem.
        value_errors : ndarray of shape (n_matrices · n_subproblems,)
            Bounds on the errors of the values of their blocks.

        Returns
        -------
        MinimalNormRules
            Tuple of the class `kind`.
        """
        epsilons = np.full((value_errors.size, problem.Cs.size), 0.0 if self.tol == "auto" else self.tol)
        if self.tol == "auto":
            start = problem.class_start[groups[:, 0]]
            first = problem.rows[start]
            C = np.tile(problem.Cs / problem.inverse_weights[start, None], (len(Ks), 1))
            square_radius = Ks[:, first, first].astype(np.float64).reshape(-1, 1) + problem.bias + 1.0 / C
            epsilons[:] = default_tolerance(self.parameters.stopping, square_radius, C)
        return self.kind(self.parameters, epsilons, seeds, value_errors)

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
            Seed of the subproblem.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights, model : ndarray of shape (n_C, m)
            Weights of margin 1, twice the same array.
        """
        if not takes_large_descent(problem, self.parameters, self.memory):
            return super().train(problem, path, limits, seed, outcome)
        tol = default_tolerance(self.parameters.stopping, 1.0, 1.0) if self.tol == "auto" else self.tol
        rules = MinimalNormRules(self.parameters, np.full((1, path.Cs.size), tol), seed, np.zeros(1))
        subproblem_outcome = outcome.of_subproblem(0)
        weights = large_descent(problem, rules, path.Cs, limits, self.memory, seed[0], subproblem_outcome)
        return weights, weights

    def intercepts(self, weights, outcomes, problem):
        """Return the intercepts that the solver computed with the weights.

        Parameters
        ----------
        weights : ndarray
            Weights in the layout of `PathSolution.weights`, not used.
        outcomes : Outcomes
            Results of all subproblems.
        problem : PathProblem
            Sorted samples, weights and values of C that the path trains on.

        Returns
        -------
        ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
            Intercepts, positive for the first class of a subproblem.
        """
        return outcomes.biases[0] if problem.at_once else outcomes.biases[:, :, 0].T
