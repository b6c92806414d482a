"""Generated datasets."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError


def checkers(
    n: int = 1000, seed: int = 0, board: int = 4, label_noise: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return points of the unit square, labelled by the colour of their field on a checkers board.

    Parameters
    ----------
    n : int
        Number of points, drawn uniformly.
    seed : int
        Seed of the draw.
    board : int
        Number of fields on a side.
    label_noise : float
        Share of the points with the other label, from 0 to 1.

    Returns
    -------
    X : float64 array, shape (n, 2)
        Coordinates.
    y : int64 array, shape (n,)
        Labels: 0 for the colour of the field at the origin, 1 for the other.
    """
    generator = np.random.default_rng(seed)
    X = generator.random((n, 2))
    fields = np.floor(X * board).astype(np.int64)
    return X, _mislabelled(fields.sum(axis=1) % 2, 2, label_noise, generator)


def waveform(
    n: int = 5000, seed: int = 0, positive: int | None = None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the waveforms of Breiman et al.: random mixtures of two of three triangles, with normal noise.

    The best classifier has an accuracy of about 86 %.

    Parameters
    ----------
    n : int
        Number of points; the class of each is drawn uniformly.
    seed : int
        Seed of the draw.
    positive : int, optional
        Class that becomes 1; all others become -1. By default labels are unchanged.

    Returns
    -------
    X : float64 array, shape (n, 21)
        Waveforms.
    y : int64 array, shape (n,)
        Classes from 0 to 2, or 1 and -1.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen and C. Stone (1984), *Classification and Regression
    Trees*, section 2.6.
    """
    generator = np.random.default_rng(seed)
    triangles = np.maximum(6 - np.abs(np.arange(1, 22) - np.array([[11], [15], [7]])), 0)
    first, second = triangles[[0, 0, 1]], triangles[[1, 2, 2]]
    y = generator.integers(3, size=n)
    share = generator.random((n, 1))
    X = share * first[y] + (1 - share) * second[y]
    X = X + generator.normal(size=X.shape)
    return X, y if positive is None else np.where(y == positive, 1, -1)


def two_spirals(
    n: int = 1000, noise: float = 0.1, turns: float = 1.5, label_noise: float = 0.0, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return points of the plane on two intertwined spirals, one for each class.

    Parameters
    ----------
    n : int
        Number of points; half of them, rounded up, have class 0.
    noise : float
        Standard deviation of the normal noise in both coordinates; the arms are half a unit apart.
    turns : float
        Number of turns of each spiral around the origin.
    label_noise : float
        Share of the points with the other label, from 0 to 1.
    seed : int
        Seed of the draw.

    Returns
    -------
    X : float64 array, shape (n, 2)
        Coordinates.
    y : int64 array, shape (n,)
        Classes 0 and 1.
    """
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 2
    radius = turns * np.sqrt(generator.random(n))  # the density is constant along a spiral
    angle = 2 * np.pi * radius + np.pi * y
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X + generator.normal(0.0, noise, X.shape), _mislabelled(y, 2, label_noise, generator)


def blobs(
    n: int = 1000,
    features: int = 2,
    classes: int = 2,
    overlap: float = 0.05,
    label_noise: float = 0.0,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return normally distributed classes of equal size; every two classes have the given overlap.

    Parameters
    ----------
    n : int
        Number of points.
    features : int
        Number of features, at least the number of classes; each has variance 1 within a class.
    classes : int
        Number of classes, at least 2.
    overlap : float
        Error of the best classifier for any two of the classes, above 0 and at most 0.5. With two classes, it
        is the lowest possible error.
    label_noise : float
        Share of the points with another label, from 0 to 1.
    seed : int
        Seed of the draw.

    Returns
    -------
    X : float64 array, shape (n, features)
        Coordinates of the points.
    y : int64 array, shape (n,)
        Classes from 0.
    """
    if not 2 <= classes <= features:
        raise DatasetError(
            f"expected from 2 classes to the number of features ({features}), found {classes}; "
            "set `features` or `classes`"
        )
    if not 0 < overlap <= 0.5:
        raise DatasetError(f"expected an overlap above 0 and up to 0.5, found {overlap}")
    generator = np.random.default_rng(seed)
    y = np.arange(n) % classes
    # Two normal classes with means δ apart have an error of Φ(-δ / 2); unit vectors are √2 apart.
    centres = np.eye(classes, features) * -2 * NormalDist().inv_cdf(overlap) / np.sqrt(2)
    X = centres[y] + generator.normal(size=(n, features))
    return X, _mislabelled(y, classes, label_noise, generator)


def _mislabelled(y: NDArray[Any], classes: int, share: float, generator: np.random.Generator) -> NDArray[Any]:
    """Replace a share of the labels by others, in place, and return the labels.

    Parameters
    ----------
    y : int array, shape (n,)
        Labels from 0.
    classes : int
        Number of classes.
    share : float
        Share of the labels to replace, from 0 to 1.
    generator : Generator
        Source of random numbers.
    """
    if not 0 <= share <= 1:
        raise DatasetError(f"expected a label_noise from 0 to 1, found {share}")
    rows = generator.permutation(len(y))[: round(share * len(y))]
    y[rows] = (y[rows] + generator.integers(1, classes, len(rows))) % classes
    return y
