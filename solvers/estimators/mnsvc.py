"""Minimal Norm SVM (Strack 2013, chapter 4): the point of the hull that is closest to the origin."""

from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.pair_selection import PAIRS
from solvers.estimators.base import ClassWeight
from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import OverRelaxation, TuningDraws, with_parameters
from solvers.kernels.functions import kernel_diagonal


@with_parameters
class MNSVC(GeometricSVC):  # numpydoc ignore=PR02
    """Minimal Norm SVM: an L2-loss support vector machine trained by moving weight between pairs of samples.

    It minimises ‖c‖² over the hull of the training samples (Strack 2013, 2.114). Each step draws a violator
    of the stopping rule at random. The violator receives weight from the support vector for which the gain is
    largest.

    Parameters
    ----------
    pair : {"imdm", "mdm", "gmdm"}
        Rule that chooses the support vector that gives weight (5.6): the largest decrease of ‖c‖² ("imdm"),
        the largest g ("mdm"), or a compromise ("gmdm").
    pair_exponent : float
        Exponent k of gmdm, between 0 (equal to mdm) and 1 (close to imdm).
    eta : float
        Over-relaxation η of the steps, 1 ≤ η < 2 (5.3). From 2 on, ‖c‖ could grow.
    draws_per_tuning : int or None
        Number of unsuccessful draws for which one extra step is taken (5.1). The draws are counted in each
        search that finds a violator. An extra step uses a support vector that violates the rule. None: no
        extra steps.
    stopping : {"mn", "violation", "adjmn", "meb"}
        Stopping rule (`solvers.hull.stopping`). "mn": no sample has x̃_i·c below ‖c‖² (1 − ε)², the rule of
        Strack's program. "violation": none has it below ‖c‖² (1 − ε), the rule of 4.10 and Algorithm 4.
        "adjmn" and "meb" measure by a ball and need the same k(x, x) and the same C for all samples.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, or `stopping` needs equal k(x, x) and C and
        they differ.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    R. Strack (2013), Geometric approach to support vector machines learning for large datasets, chapter 4,
    Algorithm 4; 5.1 (draws), 5.2 (scales, Algorithm 5), 5.3 (over-relaxation), 5.4 (all classes at once), 5.6
    (pairs).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import MNSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MNSVC(C=4.0, gamma=0.5, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    >>> model.stopping_
    'certified: gap <= 1 - (1 - tol)^4'
    """

    has_no_side_effects = True

    pair: Annotated[str, StrOptions(set(PAIRS))] = "imdm"
    pair_exponent: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.5
    eta: OverRelaxation = 1.0
    draws_per_tuning: TuningDraws = 10
    stopping: Annotated[str, StrOptions({"mn", "violation", "adjmn", "meb"})] = "mn"
    class_weight: ClassWeight = None

    def _check_diagonal(self, X, kernel, rows, C):
        if self.stopping in ("mn", "violation"):
            return
        of_kernel = np.ones(1) if kernel.has_constant_diagonal else kernel_diagonal(X, kernel)[rows]
        for what, values in (("k(x, x)", of_kernel), ("C", C)):
            if not np.allclose(values, values[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"stopping={self.stopping!r} assumes that all samples lie on a ball, and needs the same "
                    f"{what} for all of them; found {values.min():g} to {values.max():g}: use stopping='mn'"
                )
