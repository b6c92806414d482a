"""The relative margin machine: large margins relative to the spread of the decisions."""

from numbers import Real
from typing import Annotated

from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.status import certified_text, uncertified_text
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.one_by_one import OneByOneMixin
from solvers.estimators.parameters import Positive, Switch, parameter, with_parameters
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.version_space.relative_margin import train_relative_margin


@with_parameters
class RelativeMarginSVC(OneByOneMixin, KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine whose decisions are bounded on the training samples (RMM).

    It minimises ½ ‖w‖² + C Σ ξ_i subject to y_i f(x_i) ≥ 1 − ξ_i and |f(x_i)| ≤ `bound`, with a bias that is
    not penalised. A small bound makes the margin large relative to the spread of the decisions. Steps of
    pairs solve the dual problem, in which the coefficient of a sample may have either sign.

    Parameters
    ----------
    C : float
        Penalty of the slacks.
    bound : float
        Largest size of the decision of a training sample, at least 1. Infinite: the problem of `SMOSVC`.
    tol : float
        Largest violation of the optimality conditions, in units of the margin, and largest `gap_`. When
        `converged_` is true, neither exceeds it.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    warm_start : bool
        Start a `fit` on the same samples and labels from the weights of the last one.

    Attributes
    ----------
    objective_ : float
        Negative dual objective, summed over the subproblems. It is never positive, as for `SMOSVC`.
    gap_, duality_gap_ : float
        Primal minus dual objective as a share of the primal one, with an allowance for all rounding errors:
        the largest of the subproblems. The primal point is the solution, scaled down so that no decision
        exceeds `bound`. NaN if `max_seconds` ended a subproblem before its kernel values were available.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    P. K. Shivaswamy and T. Jebara (2010), Maximum relative margin and data-dependent regularization, Journal
    of Machine Learning Research 11. Bounds on the decisions of test samples, which the paper also considers,
    are not part of it: they would use the test set in training.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import RelativeMarginSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RelativeMarginSVC(C=4.0, bound=1.5, gamma=0.5).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    C: Positive = parameter(default=1.0, kw_only=False)
    bound: Annotated[float, Interval(Real, 1, None, closed="both")] = 2.0
    tol: Positive = 1e-3
    warm_start: Switch = False
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"

    bias = "none"  # no constant is added to the kernel: the bias of this problem is free

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
        return train_relative_margin(problem, float(self.bound), float(self.tol), 1e6 * self.cache_size)

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
            Not used: nothing is drawn.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        return certified_text(self.tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap)
