"""The Bayes point machine: the centre of the version space, by a billiard."""

import warnings
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.status import LIMIT, NOT_DRAWN, TIMEOUT
from solvers.estimators.base import ClassWeight, KernelSVC
from solvers.estimators.one_by_one import OneByOneMixin
from solvers.estimators.parameters import Count, Positive, parameter, with_parameters
from solvers.multiclass import random_seed
from solvers.version_space.bayes_point import Billiard, text_of, train_bayes_point
from solvers.version_space.billiard import Played, least_arcs

ENDED_AS_PLANNED = 6
"""`fit_status_` if every ball ended by its rule, but the balls do not agree to `tol`."""
WARN_ANGLE = 0.1
"""Angle between two balls above which `fit` warns, in radians."""


def angle_of(gap):
    """Return the angle whose cosine is 1 − gap.

    Parameters
    ----------
    gap : float
        Gap of two balls, from 0 to 2; larger ones count as 2.

    Returns
    -------
    float
        Angle in radians; NaN for a gap of NaN.
    """
    return float(np.arccos(np.maximum(-1.0, 1.0 - gap)))


@with_parameters
class BayesPointClassifier(OneByOneMixin, KernelSVC):  # numpydoc ignore=PR02
    """Bayes point machine by a billiard in the version space (BPM).

    The version space is the set of unit vectors that classify all training samples correctly, in the space of
    the kernel with the ridge 1/C on its diagonal. Its centre of mass approximates the Bayes point. Several
    balls fly through it and are reflected at the planes of the samples. The mean of their positions estimates
    the centre, and the angle between the means of two balls is the error that is published. A bounce takes
    O(n) operations.

    Parameters
    ----------
    C : float
        1/C is added to the diagonal of the kernel matrix, which lets samples lie on the wrong side. 10⁸ is a
        hard margin: classes that share a sample are then told apart by the ridge alone.
    bias : {"theoretic", "none"}
        "theoretic": 1 is added to the kernel, and the bias is the weight of this constant. "none": no bias.
    restart : float or None
        Length of the path after which a ball stops in flight, and flies on in a random direction; at least
        0.01 radians. The paths are then uniform on the version space. All balls start at the same point, and
        agree until they have left it. They therefore fly at least (2/restart)² arcs, which takes long if
        arcs are short. None: never. Then the path of a ball may fill a part of the version space only.
    flight : {"geodesic", "euclidean"}
        "geodesic": along great circles of the sphere. "euclidean": along straight lines, whose ends are
        projected on the sphere, as in Herbrich, Graepel and Campbell (2001). A ball that meets no plane gets
        a random direction.
    balls : int
        Number of independent balls, at least 2.
    tol : float
        With restarts, balls fly until 1 − cos of the angle between any two of them is at most `tol`. Without
        restarts, or with straight flights, each ball flies until the worst arc of its path would move its
        mean by less than `tol`, the rule of Herbrich, Graepel and Campbell (2001). It does not make the balls
        agree.
    max_bounces : int
        Limit of the bounces of one ball.
    cache_size : float
        Megabytes for kernel values. The training takes two n × n arrays, and is refused if they do not fit.
    multiclass : {"pairwise", "one_vs_rest"}
        One subproblem for every pair of classes, or for every class against all others.
    class_weight : dict, "balanced" or None
        Class t has the ridge 1/(C · class_weight[t]). "balanced" is n_samples / (n_classes · n_t).
    max_iter : int
        Limit of the bounces of all balls in a whole `fit`; −1 for no limit.
    n_jobs : int or None
        Number of threads that train the subproblems, or the balls of two classes. The model is the same for
        any number, bit for bit.
    random_state : int, RandomState or None
        Source of the directions, and of the folds for `probability`. Equal seeds give equal bits.

    Attributes
    ----------
    objective_ : float
        Length of the mean position of the balls, from 0 to 1, summed over the subproblems. It is near 1 for a
        small version space.
    gap_, duality_gap_ : float
        1 − cos of the largest angle between the means of two balls: the largest of the subproblems. It is an
        estimate, and certifies nothing. The mean of the balls is usually nearer to the centre than half of
        the angle.
    converged_ : bool
        Whether `gap_` is at most `tol` after at least 64 and (2/restart)² arcs of each ball, or after the
        rule of each ball holds. It certifies nothing. There is a warning if balls are more than 0.1 rad
        apart, even if `tol` allows it.
    fit_status_ : int
        0 exactly if `converged_`. 1: `max_bounces` or `max_iter`. 2: `max_seconds`. 6: each ball ended by its
        rule, but they disagree; there is a warning if they are more than 0.1 rad apart.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or the kernel matrix with the ridge
        is not positive definite.
    MemoryError
        By `fit`: the n × n arrays exceed `cache_size`, or the training would not fit into memory.

    Notes
    -----
    A weight of a sample scales its ridge. Two copies of a sample have a ridge each, so that a weight of 2 is
    not the same as a repetition. The mean is the exact integral over the paths, also for straight flights.

    References
    ----------
    R. Herbrich, T. Graepel and C. Campbell (2001), Bayes point machines, Journal of Machine Learning Research
    1. P. Ruján (1997), Playing billiards in version space, Neural Computation 9. The restarts, and the
    comparison of the balls, are not in the papers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import BayesPointClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesPointClassifier(C=10.0, gamma=0.5, tol=0.01, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    C: Annotated[float, Interval(Real, 0, None, closed="neither")] = parameter(default=1.0, kw_only=False)
    bias: Annotated[str, StrOptions({"theoretic", "none"})] = "theoretic"
    restart: Annotated[float | None, Interval(Real, 0.01, None, closed="left"), None] = 2.0 * np.pi
    flight: Annotated[str, StrOptions({"geodesic", "euclidean"})] = "geodesic"
    balls: Annotated[int, Interval(Integral, 2, None, closed="left")] = 2
    tol: Positive = 1e-3
    max_bounces: Count = 1_000_000
    cache_size: Annotated[float, Interval(Real, 0, None, closed="neither")] = 1000
    class_weight: ClassWeight = None
    multiclass: Annotated[str, StrOptions({"pairwise", "one_vs_rest"})] = "pairwise"

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
        # The threads of a fit train its subproblems. A single one leaves them to its balls.
        is_single = getattr(self, "classes_", np.empty(0)).size == 2
        return train_bayes_point(
            problem,
            Billiard(
                restart=np.inf if self.restart is None else float(self.restart),
                is_straight=self.flight == "euclidean",
                n_balls=int(self.balls),
                tol=float(self.tol),
                max_bounces=int(self.max_bounces),
                n_jobs=self.n_jobs if is_single and self.max_seconds is None else None,
                cache_bytes=1e6 * self.cache_size,
            ),
        )

    def _seed(self):
        """Return the seed of the directions of a fit.

        Returns
        -------
        int
            Seed of at least 0.
        """
        return random_seed(self.random_state)

    def _stops_by_draws(self, n_samples):
        """Return whether a training may end without a certificate for every sample.

        Parameters
        ----------
        n_samples : int
            Number of training samples.

        Returns
        -------
        bool
            Always True: balls may end at different points.
        """
        return True

    def _subproblem_text(self, status, converged, gap, by_draws):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        status : int
            How the subproblem ended, one of the statuses of `solvers.common.status`.
        converged : bool
            Whether the balls agree.
        gap : float
            1 − cos of the largest angle between two balls.
        by_draws : bool
            Not used.

        Returns
        -------
        str
            Whether the balls agree, or why they ended.
        """
        return text_of(Played(np.empty(0), gap, status, 0, np.nan), self.tol)

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
        if self.fit_status_ == NOT_DRAWN:
            self.fit_status_ = ENDED_AS_PLANNED

    def _fit_path(self, X, y, values, sample_weight, check_finite):
        """Train for every C, with the values of `fit_status_` that `fit` has.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        values : ndarray of shape (n_C,)
            Values of C, ascending.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        check_finite : bool
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        solvers.path.result.FittedPath
            Trained models, one for every C.
        """
        path = super()._fit_path(X, y, values, sample_weight, check_finite)
        path.fit_status_[path.fit_status_ == NOT_DRAWN] = ENDED_AS_PLANNED
        return path

    def _fit(self, X, y, sample_weight, started):
        """Train on all samples, and warn if balls are far apart although `tol` allows it.

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
        if self.converged_ and angle_of(self.gap_) > WARN_ANGLE:
            warnings.warn(
                f"BayesPointClassifier: the balls are {angle_of(self.gap_):.2g} rad apart, which "
                f"tol={self.tol:g} allows. Expected at most {WARN_ANGLE:g} rad: set tol to at most "
                f"{1.0 - np.cos(WARN_ANGLE):.2g}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _warn(self):
        """Warn if a limit ended the flights, or if the balls are far apart."""
        angle, allowed = angle_of(self.gap_), angle_of(self.tol)
        if self.fit_status_ == ENDED_AS_PLANNED and angle <= WARN_ANGLE:
            return
        found = f"the balls are {angle:.2g} rad apart"
        if np.isnan(angle):
            found = "no ball has flown"
        elif self.gap_ > self.tol:
            found += f", expected at most {allowed:.2g} rad for tol={self.tol:g}"
        elif self.restart is None or self.flight == "euclidean":
            found += ", but were stopped before their rule held"
        else:
            found += f", but were stopped before each had flown {least_arcs(self.restart):,} arcs"
        advice = {
            LIMIT: f"raise max_bounces, max_iter or tol{self._reachable()}",
            TIMEOUT: "raise max_seconds or tol",
        }
        remedy = advice.get(self.fit_status_, "set restart=2π, or use more balls")
        warnings.warn(
            f"BayesPointClassifier: {found}: {remedy} (stopping_: {self.stopping_})",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _reachable(self):
        """Return how many bounces the tolerance takes, as `gap_` is about inverse to their number.

        Returns
        -------
        str
            Text about the number of bounces; empty if it is not known.
        """
        if not self.gap_ > self.tol or self.restart is None or self.flight == "euclidean":
            return ""
        bounces = self.n_iter_.max() / self.balls * self.gap_ / self.tol
        return f" (tol={self.tol:g} takes about {bounces:.1g} bounces a ball)"
