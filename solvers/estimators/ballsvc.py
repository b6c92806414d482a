"""Ball Vector Machine (Tsang, Kocsor, Kwok 2007; Strack 2013, 2.3.3.2): the centre moves to the violators."""

from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import with_parameters
from solvers.hull.block_ball import ViolatorRules
from solvers.hull.steps import TO_VIOLATOR


@with_parameters
class BallSVC(GeometricSVC):
    """Ball Vector Machine: an L2-loss support vector machine whose centre moves to the violators of a ball.

    Vectors never leave the core set. A kernel whose k(x, x) is not constant is normalised (2.47),
    unless it is precomputed or callable: `fit` refuses those.

    Notes
    -----
    A warm start (in `fit_path`, or by `warm_start`) is allowed: from any point of the hull, the steps lead to
    a point that satisfies the rule. That point differs from the point of a cold start. Weights shrink but
    never reach zero, so a support vector at one C of a path remains one at all later C.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, samples have different weights other than 0,
        or the kernel cannot be normalised.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    I. W. Tsang, A. Kocsor and J. T. Kwok (2007), Simpler core vector machines with enclosing balls, ICML.
    R. Strack (2013), Geometric approach to support vector machines learning for large datasets, 2.3.3.2,
    Algorithm 2 and (2.133); 5.1 (draws).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import BallSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BallSVC(C=4.0, gamma=0.5, tol=1e-3, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    subset: int = 60
    first_epsilon: float = 0.1

    step, block_rules = TO_VIOLATOR, ViolatorRules
    normalises = True
