"""Core Vector Machine (Tsang, Kwok and Cheung 2005; Strack 2013, 2.3.3.1): balls of a growing core set."""

from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import with_parameters
from solvers.hull.block_core_set import CoreSetRules
from solvers.hull.core_set import core_set_ball


@with_parameters
class CoreSVC(GeometricSVC):
    """Core Vector Machine: an L2-loss support vector machine found from the balls of a growing core set.

    The kernel is normalised to constant k(x, x) where it is not (2.47).

    References
    ----------
    I. W. Tsang, J. T. Kwok and P.-M. Cheung (2005), Core vector machines: fast SVM training on very large
    data sets, Journal of Machine Learning Research 6. R. Strack (2013), Geometric approach to support vector
    machines learning for large datasets, 2.3.3.1, Algorithm 1; 5.1 (draws).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import CoreSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoreSVC(C=4.0, gamma=0.5, tol=1e-3, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])

    Raises
    ------
    ValueError
        By `fit`: as `SphereSVC` does.
    MemoryError
        By `fit`, if the training needs more than is free.
    """

    has_no_side_effects = True

    draws: int = 420
    subset: int = 60

    loop, block_rules = staticmethod(core_set_ball), CoreSetRules
    normalises = True
    stopping = "core"
    first_samples = 20
