"""Ball Vector Machine (Tsang, Kocsor, Kwok 2007; Strack 2013, 2.3.3.2): the centre follows the violators."""

from solvers.common.resources import NO_LIMIT
from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import with_parameters
from solvers.hull.block_ball import ViolatorRules
from solvers.hull.steps import TO_VIOLATOR


@with_parameters
class BallSVC(GeometricSVC):
    """Ball Vector Machine: an L2-loss support vector machine whose centre moves to the violators of a ball.

    No vector ever leaves the core set. The kernel is normalised to constant k(x, x) where it is not (2.47).

    Notes
    -----
    A warm start (in `fit_path`, or by `warm_start`) is allowed: from any point of the hull the steps lead to
    one that satisfies the rule. It is another one, though: weights shrink but never fall to zero, so that
    what has weight at one C of a path keeps it at all that follow.

    Raises
    ------
    ValueError
        By `fit`, as for `SphereSVC`.
    MemoryError
        By `fit`: what the training needs would not fit into memory.

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

    step, block_rules, draws_per_tuning = TO_VIOLATOR, ViolatorRules, NO_LIMIT
    normalises = True
    first_epsilon = 0.1
