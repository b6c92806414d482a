"""The ellipsoidal kernel machine: a support vector machine in the metric of an enclosing ellipsoid."""

from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.status import TIMEOUT, certified_text, uncertified_text
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.one_by_one import OneByOneMixin, with_own_gram
from solvers.estimators.parameters import Positive, Switch, parameter, with_parameters
from solvers.kernels.functions import LINEAR
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.version_space.ellipsoidal_kernel import EllipsoidalKernel, EllipsoidalSolution


@with_parameters
class EllipsoidalKernelSVC(OneByOneMixin, KernelSVC):  # numpydoc ignore=PR02
    """Support vector machine in the metric of the smallest ellipsoid around its samples (EKM).

    The ellipsoid minimises −log|P| + η tr P + E Σ τ_i subject to (x_i − μ)ᵀP(x_i − μ) ≤ 1 + τ_i, in the space
    of the kernel. Exact steps of single weights solve its dual problem. `SMOSVC`, with the hinge loss and a
    free bias, is then trained on products in the metric P. The ellipsoid does not depend on C, so `fit_path`
    computes it once.

    Parameters
    ----------
    C : float
        Penalty of the slacks of the support vector machine.
    slack : float
        Penalty E of the distance of a sample outside the ellipsoid, multiplied by the weight of the sample.
        Infinite: no sample is outside.
    ridge : float
        Number η, as a share of the mean square distance of the samples from their mean. Without it a
        nonsingular kernel matrix makes all samples equally distant from each other, and nothing can be
        learned.
    tol : float
        Largest violation and gap of the support vector machine, and largest gap of the ellipsoid.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    cache_size : float
        Megabytes for kernel values. A training on kernel values takes four n × n arrays, and is refused if
        they do not fit. The linear kernel is trained on features where n is at least three times their
        number.
    warm_start : bool
        Start the support vector machine from the weights of the last `fit` on the same samples and labels.

    Attributes
    ----------
    objective_ : float
        Dual objective ½ αᵀQα − Σ α_i of the support vector machines, summed over the subproblems.
    gap_, duality_gap_ : float
        The larger one of the relative gap of the support vector machine, as for `SMOSVC`, and of
        `ellipsoid_gap_`; the largest of the subproblems.
    ellipsoid_gap_ : float
        Bound on the distance of the log volume of an ellipsoid from its optimum, for each dimension.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, all samples of a subproblem are
        equal, or the kernel is not positive semidefinite.
    MemoryError
        By `fit`: the n × n arrays exceed `cache_size`, or the training would not fit into memory.

    References
    ----------
    P. K. Shivaswamy and T. Jebara (2007), Ellipsoidal machines, AISTATS: the machine. A. Dolia, C. Harris, J.
    Shawe-Taylor and D. M. Titterington (2007), Kernel ellipsoidal trimming, Computational Statistics & Data
    Analysis 52: the ridge.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import EllipsoidalKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EllipsoidalKernelSVC(C=4.0, kernel="linear").fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    C: Positive = parameter(default=1.0, kw_only=False)
    slack: Annotated[float, Interval(Real, 0, None, closed="right")] = np.inf
    ridge: Positive = 1e-3
    tol: Positive = 1e-3
    cache_size: Annotated[float, Interval(Real, 0, None, closed="neither")] = 1000
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
        EllipsoidalSolution
            Trained subproblem.
        """
        try:
            metric = self._metric(problem, problem.C / self.C)
        except OutOfTime:
            nothing = np.empty(0, np.int64), np.empty(0), np.zeros(1)
            text = uncertified_text(SMO_STOPPING_TEXTS[TIMEOUT], np.nan)
            return EllipsoidalSolution(*nothing, 0.0, np.nan, 0, 0, TIMEOUT, False, text)
        return metric.solve(problem, float(self.tol))

    def _metric(self, problem, weights):
        """Return the kernel in the metric of the ellipsoid of a subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem.
        weights : ndarray of shape (1,) or (n,)
            Weights of its samples.

        Returns
        -------
        EllipsoidalKernel
            Kernel.
        """
        weights = np.ascontiguousarray(np.broadcast_to(weights, problem.rows.shape), dtype=np.float64)
        options = float(self.slack), float(self.ridge), float(self.tol), 1e6 * self.cache_size
        return EllipsoidalKernel(problem, weights, *options)

    def _prepared(self, problem):
        """Return a subproblem of a path, and the function that trains it in the metric of its ellipsoid.

        Parameters
        ----------
        problem : Problem
            Subproblem, whose penalties are those of C = 1.

        Returns
        -------
        problem : Problem
            Subproblem to train.
        solve : callable
            Function of a `Problem` that returns its `Solution`.
        """
        if problem.kernel.kind != LINEAR:
            problem = with_own_gram(problem, 1e6 * self.cache_size)
        metric = self._metric(problem, problem.C)
        return problem, lambda subproblem: metric.solve(subproblem, float(self.tol))

    def _train(self, samples, starts, seeds, budget):
        """Train every subproblem within a budget, and set `ellipsoid_gap_`.

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
        self.ellipsoid_gap_: float = max(solution.ellipsoid_gap for solution in trained.solutions)
        return trained

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the tolerance is certified.
        gap : float
            Larger one of the two gaps of the subproblem.
        by_draws : bool
            Not used: nothing is drawn.

        Returns
        -------
        str
            Certified bounds, or the reason why the training ended.
        """
        return certified_text(self.tol) if converged else uncertified_text(SMO_STOPPING_TEXTS[status], gap)
