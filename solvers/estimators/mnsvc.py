"""Minimal Norm SVM (Strack 2013, chapter 4): the point of the hull that is closest to the origin."""

from numbers import Real
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.pair_selection import PAIRS
from solvers.estimators.base import ClassWeight
from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import OverRelaxation, with_parameters
from solvers.kernels.functions import kernel_diagonal


@with_parameters
class MNSVC(GeometricSVC):
    """Minimal Norm SVM: an L2-loss support vector machine found by moving weight between pairs of samples.

    Minimises ‖c‖² over the hull of the training samples (Strack 2013, 2.114): a violator of the stopping rule
    is drawn at random and gets weight from the support vector for which that pays most.

    Parameters
    ----------
    pair : {"imdm", "mdm", "gmdm"}
        Which support vector gives its weight to the violator (5.6): that of the largest decrease of ‖c‖², of
        the largest g, or between the two.
    pair_exponent : float
        k of gmdm, between 0 (mdm) and 1 (imdm).
    eta : float
        Over-relaxation, 1 ≤ η < 2 (5.3); from 2 on, ‖c‖ could grow.
    stopping : {"mn", "violation", "adjmn", "meb"}
        Stopping rule (`solvers.hull.stopping`): no sample has x̃_i·c below ‖c‖² (1 − ε)² ("mn", which is what
        the author's tool computes) or below ‖c‖² (1 − ε) ("violation", which is what 4.10 and Algorithm 4
        say). Those of the ball, "adjmn" and "meb", need the same k(x, x) and the same C for all samples.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, or k(x, x) or C differ between samples and
        `stopping` needs them not to.
    MemoryError
        By `fit`: what the training needs would not fit into memory.

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
    stopping: Annotated[str, StrOptions({"mn", "violation", "adjmn", "meb"})] = "mn"
    class_weight: ClassWeight = None

    def _check_diagonal(self, X, kernel, rows, C):
        if self.stopping in ("mn", "violation"):
            return
        of_kernel = np.ones(1) if kernel.has_constant_diagonal else kernel_diagonal(X, kernel)[rows]
        for what, values in (("k(x, x)", of_kernel), ("C", C)):
            if not np.allclose(values, values[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"stopping={self.stopping!r} measures by a ball on which all samples lie, and needs the "
                    f"same {what} for all of them; it lies between {values.min():g} and {values.max():g}: "
                    "use stopping='mn'"
                )
