"""The ellipsoidal support vector machine: the centre of a large ellipsoid in the version space."""

import warnings
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.status import STALLED
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.one_by_one import OneByOneMixin, OneByOneSolver
from solvers.estimators.parameters import Positive, Switch, parameter, with_parameters
from solvers.estimators.training_input import check_ascending, detached
from solvers.path.driver import solve_for_each_C
from solvers.version_space.ellipsoid_training import EllipsoidTraining, Options, solve_subproblem


@with_parameters
class EllipsoidSVC(OneByOneMixin, KernelSVC):  # numpydoc ignore=PR02
    """Ellipsoidal support vector machine (e-SVM).

    The support vector machine is the centre of the largest ball in the version space, the set of all weight
    vectors that separate the samples. This machine is the centre of a large ellipsoid, which is closer to the
    centre of mass, the Bayes point. It minimises −r log|B| + (1−r) tr B + Σ C_i ξ_i over the centre w, the
    bias b, the matrix B and slacks, so that y_i (w·z_i + b) + ξ_i ≥ z_iᵀ B z_i and ‖w‖ ≤ 1, with
    C_i = C / k(x_i, x_i). The problem is convex, and `gap_` certifies the solution. Decisions are divided by
    the mean margin, so that those of different subproblems are comparable.

    Parameters
    ----------
    C : float
        Penalty of the slacks; it has no effect for a hard margin. Values k(x, x) below 10⁻⁶ of their mean
        count as that in C / k(x, x).
    r : float
        Share of log|B| in the objective, between 0 and 1. Towards 1 the machine becomes the analytic centre.
        If r/(1−r) is at most the margin of the hard SVM, the problem has no unique solution. Then r is raised
        until r/(1−r) is 1.001 times this margin, and `stopping_` says so.
    margin : {"soft", "hard"}
        Whether constraints may be violated. If the classes do not separate, a hard margin is replaced by
        C = 10⁸, with a warning; `gap_` and `converged_` then refer to that problem.
    solver : {"newton", "smo"}
        "newton": a primal-dual barrier method, with one n × n matrix a round. "smo": the pair steps of the
        paper; Newton's method takes over after 50 steps a sample, and `stopping_` says so.
    rounds : int
        Number of linearisations of the constraint of the largest ellipsoid. The first is around a multiple of
        I, as in the paper; each further one is around the last B. Further ones hardly change the
        centre in two dimensions, and make the machine worse in many.
    rank : {"auto"} or None
        "auto": a factor of the kernel matrix of low rank, with a residual that costs at most 1 % of `tol`, if
        its rank is at most half the number of samples. None: a complete factor.
    tol : float
        Largest gap.
    cache_size : float
        Megabytes for the n × n arrays of a subproblem; `fit` refuses more.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    warm_start : bool
        Start from the solution of the last `fit` on the same samples, for another C or r.
    max_iter : int
        Limit of the rounds, or of the pair steps, of a whole `fit`; −1 for no limit.

    Attributes
    ----------
    objective_ : float
        Dual objective r log|B⁻¹| − ‖v‖ + r dim on the span of the samples, summed over the subproblems.
    gap_, duality_gap_ : float
        Primal minus dual objective, divided by Σ C_i ξ_i + ‖v‖: the largest of the subproblems. It allows for
        rounding errors. NaN if no point of the primal problem is known.
    converged_ : bool
        Whether `gap_` ≤ `tol`.
    r_ : ndarray of shape (n_subproblems,)
        Values of r that were used.
    collapse_ : bool
        Whether v = Σ α_i y_i z_i vanishes in a subproblem, because the classes overlap and C is large. Then
        ‖w‖ < 1, and the barrier defines w.
    ellipsoid_volume_ : ndarray of shape (n_subproblems,)
        log|B| on the span of the training samples. In all other directions B is r/(1−r) I.
    outside_ : ndarray of shape (n_subproblems,)
        Share of the samples that the ellipsoid sticks out of: y_i (w·z_i + b) < ‖B z_i‖. The problem bounds
        ‖B z_i‖ from below only.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or the kernel matrix is not
        positive semidefinite.
    MemoryError
        By `fit`: the n × n arrays exceed `cache_size`.

    References
    ----------
    M. Momma (2011), Ellipsoidal support vector machines: problem (7), and the pair steps. The certificate,
    Newton's method and the treatment of v = 0 are not in the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import EllipsoidSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EllipsoidSVC(C=10.0, gamma=0.5).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    C: Positive = parameter(default=1.0, kw_only=False)
    r: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.9
    margin: Annotated[str, StrOptions({"soft", "hard"})] = "soft"
    solver: Annotated[str, StrOptions({"newton", "smo"})] = "newton"
    rounds: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1
    rank: Annotated[str | None, StrOptions({"auto"}), None] = "auto"
    tol: Positive = 1e-3
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"
    warm_start: Switch = False

    bias = "none"  # no constant is added to the kernel: the bias of this problem is free

    def fit_path(self, X, y, Cs, sample_weight=None, *, r=None, check_finite=True):
        """Train for every C of an ascending path, each from the solution before it.

        The kernel matrix of a subproblem and its factor are computed once for all C. The paths of several `r`
        do not share them, and do not start from each other. The estimator stays unchanged. `max_iter` limits
        the training for each C. `max_seconds` must be None. `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        Cs : array-like of shape (n_C,)
            Values of C, ascending.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i].
        r : array-like of shape (n_r,), default=None
            Values of r, ascending, above 0 and below 1. A path of all C is trained for each. By default only
            that of the estimator.
        check_finite : bool, default=True
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        solvers.path.result.FittedPath or list of it
            Trained models, one for every C; with `r`, a path for each of its values.

        Raises
        ------
        ValueError
            A parameter, a sample, a label, Cs or r is not valid.
        MemoryError
            The n × n arrays exceed `cache_size`.
        """
        if r is not None:
            try:
                values = check_ascending(r)
            except ValueError:  # which names Cs
                values = None
            if values is None or values[-1] >= 1.0:
                raise ValueError(f"r: expected ascending numbers in (0, 1), found {r}")
            models = [detached(self) for _ in values]
            for model, value in zip(models, values.tolist(), strict=True):
                model.r = value
            return [model.fit_path(X, y, Cs, sample_weight, check_finite=check_finite) for model in models]
        return self._fit_path(X, y, check_ascending(Cs), sample_weight, check_finite)

    def _path_solver(self):
        """Return the solver of a path.

        Returns
        -------
        EllipsoidPath
            Solver with the parameters of this estimator.
        """
        return EllipsoidPath(self._options)

    def _options(self):
        """Return the parameters of a training.

        Returns
        -------
        Options
            Parameters that do not depend on the samples.
        """
        return Options(
            r=float(self.r),
            is_hard=self.margin == "hard",
            by_pairs=self.solver == "smo",
            rounds=int(self.rounds),
            low_rank=self.rank == "auto",
            tol=float(self.tol),
            cache_bytes=1e6 * self.cache_size,
        )

    def _solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        Solution
            Trained subproblem.
        """
        return solve_subproblem(problem, self._options())

    def _train(self, samples, starts, seeds, budget):
        """Train every subproblem within a budget, and keep what describes the ellipsoids.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        starts : list of Solution or None
            Solution to start from, for each subproblem.
        seeds : uint64 ndarray of shape (n_subproblems,)
            Seeds, not used.
        budget : Budget
            Remaining iterations and time.

        Returns
        -------
        Subproblems
            Trained subproblems.
        """
        trained = super()._train(samples, starts, seeds, budget)
        solutions = trained.solutions
        self.r_: np.ndarray = np.array([each.r for each in solutions])
        self.ellipsoid_volume_: np.ndarray = np.array([each.log_volume for each in solutions])
        self.outside_: np.ndarray = np.array([each.outside for each in solutions])
        self.collapse_: bool = any(each.is_collapsed for each in solutions)
        self._is_constant = any(each.is_constant for each in solutions)
        self._is_softened = any(each.is_softened for each in solutions)
        return trained

    def _fit(self, X, y, sample_weight, started):
        """Train on all samples, and warn of a collapse or of a margin that cannot be hard.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        super()._fit(X, y, sample_weight, started)
        if self.converged_ and (remark := self._remark()):
            warnings.warn(remark, ConvergenceWarning, stacklevel=4)

    def _warn(self):
        """Warn once that a subproblem did not converge, with the reason and what to do."""
        remark = self._remark()
        if not remark and self.margin == "hard":
            remark = (
                "EllipsoidSVC: rounding limits the steps, because the classes hardly separate, or tol is "
                "small. Scale the samples, raise tol, or set margin='soft'"
            )
        if self.fit_status_ == STALLED and remark:
            warnings.warn(f"{remark} (stopping_: {self.stopping_})", ConvergenceWarning, stacklevel=3)
        else:
            super()._warn()

    def _remark(self):
        """Return what the user should know of the problem that was solved.

        Returns
        -------
        str
            Text about a margin that cannot be hard, or about a collapse; empty for any other problem.
        """
        if self._is_softened:
            return (
                "EllipsoidSVC: margin='hard' expects classes that a hyperplane separates, found classes that "
                "overlap or share a row. The model is that of margin='soft', C=1e8. Set margin='soft'"
            )
        if self._is_constant:
            return (
                "EllipsoidSVC: expected samples that differ, found that all samples of a subproblem are "
                "equal, so that v = 0 for every C (collapse_). Check the samples, or use a larger gamma"
            )
        if self.collapse_:
            return (
                f"EllipsoidSVC: the classes overlap, and C={self.C:g} is so large that v = 0 (collapse_). "
                "The barrier defines w. Use a smaller C"
            )
        return ""


class EllipsoidPath(OneByOneSolver):
    """Solver of the subproblems of a path, with one kernel matrix and one factor for all C."""

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem for every C, and fill its row of the outcomes.

        Parameters
        ----------
        problem : Problem
            Subproblem, with penalties for C = 1.
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
            Weights, twice the same array.
        """
        training = EllipsoidTraining(problem, self.prepare(), path.Cs[-1] * problem.C)
        weights = solve_for_each_C(training.solve_problem, problem, path.Cs, limits, outcome)
        return weights, weights
