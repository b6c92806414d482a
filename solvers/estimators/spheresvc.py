"""Sphere SVM (Strack 2013, chapter 3): the centre of the smallest ball, moved by pairs of samples."""

from solvers.estimators.geometric import GeometricSVC
from solvers.estimators.parameters import OverRelaxation, TuningDraws, with_parameters
from solvers.hull.steps import TO_BALL


@with_parameters
class SphereSVC(GeometricSVC):  # numpydoc ignore=PR02
    """Sphere SVM: an L2-loss support vector machine trained as the centre of an enclosing ball.

    The squared distance of a sample from the centre is τ̃ − 2 g_i + ‖c‖², so the farthest sample has the
    lowest g. A kernel whose k(x, x) is not constant is normalised (2.47),
    unless it is precomputed or callable: `fit` refuses those.

    Parameters
    ----------
    eta : float
        Over-relaxation η of the steps, 1 ≤ η < 2 (5.3).
    draws_per_tuning : int or None
        Number of unsuccessful draws for each extra step with a support vector that violates the rule, after a
        search that found a violator (5.1). None: no extra steps.

    Notes
    -----
    A warm start (in `fit_path`, or by `warm_start`) is allowed: from any point of the hull, the steps lead to
    a point that satisfies the rule. That point differs from the point of a cold start. The rule accepts many
    points (gaps near 3/4), and support vectors of a smaller C that satisfy it remain.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample or a label is not valid, samples have different weights other than 0,
        or the kernel cannot be normalised.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    R. Strack (2013), Geometric approach to support vector machines learning for large datasets, chapter 3,
    Algorithm 3; 5.1 (draws), 5.2 (scales), 5.3 (over-relaxation).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import SphereSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SphereSVC(C=4.0, gamma=0.5, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    draws: int = 590
    subset: int = 59
    eta: OverRelaxation = 1.0
    draws_per_tuning: TuningDraws = 10

    step = TO_BALL
    normalises = True
