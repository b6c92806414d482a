"""Core Vector Machine (Tsang, Kwok and Cheung 2005; Strack 2013, 2.3.3.1): balls of a growing core set."""

from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import with_parameters
from solvers.hull.block_core_set import CoreSetRules
from solvers.hull.core_set import core_set_ball


@with_parameters
class CoreSVC(GeometricSVC):
    """Core Vector Machine: an L2-loss support vector machine trained by the balls of a growing core set.

    A kernel whose k(x, x) is not constant is normalised (2.47),
    unless it is precomputed or callable: `fit` refuses those.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, samples have different weights other than 0,
        or the kernel cannot be normalised.
    MemoryError
        By `fit`: the training would not fit into memory.

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
    """

    has_no_side_effects = True

    draws: int = 420
    subset: int = 60

    loop, block_rules = staticmethod(core_set_ball), CoreSetRules
    normalises = True
    stopping = "core"
    first_samples = 20
