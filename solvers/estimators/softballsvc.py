"""The soft ball of Strack (2013), which is a ν support vector machine with a penalised bias."""

import inspect
import re
import warnings
from dataclasses import dataclass, field, make_dataclass
from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.penalties import require_penalties
from solvers.common.status import NOT_POSITIVE
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.one_by_one import OneByOneMixin, OneByOneSolver
from solvers.estimators.parameters import Positive, Switch, parameter, with_parameters
from solvers.estimators.training_input import check_ascending
from solvers.path.driver import solve_for_each_C
from solvers.path.result import FittedPath
from solvers.version_space.soft_ball import ball_text, train_soft_ball


def without_C(cls):
    """Remove the parameter C, which a base declares, from an estimator.

    Parameters
    ----------
    cls : type
        Class that `with_parameters` has decorated. Its first parameter after C becomes positional.

    Returns
    -------
    type
        The class itself. It keeps the attribute C = 1, the factor of the weights of its samples.
    """
    signature = inspect.signature(cls.__init__)
    names = [name for name in signature.parameters if name not in ("self", "C")]
    names.sort(key=lambda name: name != "nu")
    fields = [
        (name, object, field(default=signature.parameters[name].default, kw_only=name != "nu"))
        for name in names
    ]
    init = vars(make_dataclass(cls.__name__, fields, eq=False, repr=False))["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    cls.__init__ = init
    for table in (cls._parameter_constraints, cls._checked_defaults):
        table.pop("C", None)
    described = re.search(r"^nu : .*\n(?: .*\n)+", cls.__doc__, re.MULTILINE)
    doc = cls.__doc__.replace(described[0], "") if described else cls.__doc__
    cls.__doc__ = re.sub(r"^C : .*\n(?: .*\n)+", described[0] if described else "", doc, flags=re.MULTILINE)
    return cls


class NuPath(FittedPath):
    """Trained models of `SoftBallSVC.fit_path`, one for every ν.

    Parameters
    ----------
    path : FittedPath
        Trained models, whose values of C are those of ν.

    Attributes
    ----------
    nus_ : ndarray of shape (n_nu,)
        Values of ν, ascending.
    """

    def __init__(self, path):
        self.__dict__ = dict(path.__dict__)
        self.nus_: np.ndarray = path.Cs_


@dataclass
class NuSolver(OneByOneSolver):
    """Solver of a path of ν."""

    tol: float = 1e-3  # largest gap
    cache_bytes: float = np.inf  # memory for kernel rows, in bytes

    def train(self, problem, path, limits, seed, outcome):
        """Train a subproblem for every ν, and fill its row of the outcomes.

        Parameters
        ----------
        problem : Problem
            Subproblem with its features.
        path : PathProblem
            Path, whose values of C are those of ν.
        limits : int64 ndarray of shape (n_nu,)
            Limits of the iterations for each ν.
        seed : uint64 ndarray of shape (1,)
            Seed of the subproblem, not used.
        outcome : Outcomes
            Arrays of one row, which receive the results.

        Returns
        -------
        weights, model : ndarray of shape (n_nu, m)
            Weights of the samples, twice the same array.
        """
        shared, _ = self.prepare(problem)
        nus = iter(path.Cs.tolist())

        def solve(subproblem):
            """Train the subproblem for the next ν.

            Parameters
            ----------
            subproblem : Problem
                Subproblem, whose penalties are multiplied by ν, which changes none of their quotients.

            Returns
            -------
            BallSolution
                Trained subproblem.
            """
            return train_soft_ball(subproblem, next(nus), self.tol, self.cache_bytes)

        weights = solve_for_each_C(solve, shared, path.Cs, limits, outcome)
        return weights, weights


@without_C
@with_parameters
class SoftBallSVC(OneByOneMixin, KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine as the soft smallest ball around its samples (Strack 2013, 2.134).

    It minimises R² + 1/(m ν) Σ d_i² subject to ‖c − x̃_i‖² ≤ R² + d_i² for m samples x̃_i = y_i (φ(x_i), 1).
    This is a ν support vector machine with a penalised bias: min αᵀK̃α over 0 ≤ α_i ≤ 1/(m ν), Σ α_i = 1.
    Strack (2013) leaves its training open. Steps of pairs solve it.

    Parameters
    ----------
    nu : float
        Parameter ν, above 0 and at most 1: at most ν m samples are outside the ball, and at least ν m are
        support vectors.
    tol : float
        Largest `gap_` that counts as converged.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.
    class_weight : dict, "balanced" or None
        Factors of the samples' weights: sample i may have at most the weight s_i/(ν Σ s) in the centre.

    Attributes
    ----------
    objective_ : float
        Objective R² + 1/(m ν) Σ d_i² at its dual bound k̃(x, x) − ‖c‖², summed over the subproblems.
    gap_, duality_gap_ : float
        Certified bound on the relative error of ‖c‖², with an allowance for all rounding errors: the largest
        of the subproblems.
    radius_ : ndarray of shape (n_subproblems,)
        Radius R of each ball.
    n_outside_ : int ndarray of shape (n_subproblems,)
        Number of samples outside each ball.
    fit_status_ : int
        0 exactly if `converged_`. 3: the reduced hulls of two classes touch, so that ‖c‖² is 0 and no
        direction is better than another; a larger ν separates them. The other numbers are those of `SMOSVC`.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or k(x, x) is not constant and
        cannot be normalised.
    MemoryError
        By `fit`: the training would not fit into memory.

    Notes
    -----
    The coefficients are scaled so that samples on the ball have the margin 1. The thesis prints (2.136) with
    −ρ/(m ν) + (C/2) Σ ζ_i. This is the same machine only for C = 2/(m ν)².

    Steps of pairs train; `n_iter_` counts them. After 50 steps a sample, an interior point method takes over
    if there are at most 2,000 samples: the hulls of two classes nearly touch, and millions of steps are left.

    References
    ----------
    R. Strack (2013), Geometric approach to support vector machines learning for large datasets, sections 2.4
    and 8: the soft ball, without an algorithm. B. Schölkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett
    (2000), New support vector algorithms, Neural Computation 12: ν.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import SoftBallSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftBallSVC(0.1, gamma=0.5).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    nu: Annotated[float, Interval(Real, 0, 1, closed="right")] = parameter(default=0.5, kw_only=False)
    tol: Positive = 1e-3
    warm_start: Switch = False
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"

    normalises = True  # the samples of a ball lie on a sphere

    def fit_path(self, X, y, nus, sample_weight=None, *, check_finite=True):
        """Train for every ν of an ascending path, each from the solution before it.

        `max_iter` limits the training for each ν. `max_seconds` must be None. `probability` has no effect.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        nus : array-like of shape (n_nu,)
            Values of ν, ascending, above 0 and at most 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, as in `fit`.
        check_finite : bool, default=True
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        NuPath
            Trained models, one for every ν.

        Raises
        ------
        ValueError
            A parameter, a sample, a label or `nus` is not valid, or kernel values are not finite.
        MemoryError
            The training would not fit into memory.
        """
        try:
            values = check_ascending(nus)
        except ValueError:
            values = np.array([np.inf])
        if values[-1] > 1.0:
            raise ValueError(
                f"nus must be ascending numbers above 0 and at most 1; got {np.asarray(nus).tolist()}"
            )
        return NuPath(self._fit_path(X, y, values, sample_weight, check_finite))

    def _solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem to train, with weights of its samples as penalties.

        Returns
        -------
        BallSolution
            Trained subproblem.
        """
        return train_soft_ball(problem, float(self.nu), float(self.tol), 1e6 * self.cache_size)

    def _path_solver(self):
        """Return the solver of a path of ν.

        Returns
        -------
        OneByOneSolver
            Solver with the parameters of this estimator.
        """
        return NuSolver(self._prepared, tol=float(self.tol), cache_bytes=1e6 * self.cache_size)

    def _train(self, samples, starts, seeds, budget):
        """Train every subproblem within a budget, and set `radius_` and `n_outside_`.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        starts : list of Solution or None
            Solution to start from, for each subproblem.
        seeds : uint64 ndarray of shape (n_subproblems,)
            Seeds of the subproblems, not used.
        budget : Budget
            Remaining iterations and time.

        Returns
        -------
        Subproblems
            Trained subproblems.
        """
        trained = super()._train(samples, starts, seeds, budget)
        squares = np.array([solution.square_radius for solution in trained.solutions])
        self.radius_: np.ndarray = np.sqrt(np.maximum(squares, 0.0))
        self.n_outside_: np.ndarray = np.array([solution.n_outside for solution in trained.solutions])
        return trained

    def _check_weights(self, weights, Cs, sample_weight):
        """Raise if weights leave the range of float64. They may differ, unlike those of the other balls.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Positive weights of the samples, multiplied by those of their classes.
        Cs : ndarray of shape (n_values,)
            Factors of the weights.
        sample_weight : array-like or None
            Weights as the user passed them, for messages.
        """
        given = {"sample_weight": sample_weight, "class_weight": self.class_weight}
        require_penalties(Cs, weights, [name for name, value in given.items() if value is not None])

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the tolerance is certified.
        gap : float
            Certified relative error of ‖c‖².
        by_draws : bool
            Not used: nothing is drawn.

        Returns
        -------
        str
            Certified bound, or the reason why the training ended.
        """
        return ball_text(status, converged, gap, self.tol)

    def _warn(self):
        """Warn that a subproblem did not converge, with the reason and what to do."""
        if self.fit_status_ != NOT_POSITIVE:
            super()._warn()
            return
        remedy = "Expected a nu for which they do not: raise nu"
        if self.nu == 1.0:
            remedy = "No nu separates them. Use other features or another kernel"
        warnings.warn(
            f"SoftBallSVC(nu={self.nu:g}): ‖c‖² is 0, because the reduced hulls of two classes touch. "
            f"{remedy} (stopping_: {self.stopping_})",
            ConvergenceWarning,
            stacklevel=3,
        )
