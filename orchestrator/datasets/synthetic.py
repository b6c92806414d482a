"""Generated datasets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checkers(n: int = 1000, seed: int = 0, board: int = 4) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return points of the unit square, labelled by the colour of their field on a checkers board.

    Parameters
    ----------
    n : int
        Number of points, drawn uniformly.
    seed : int
        Seed of the draw.
    board : int
        Number of fields on a side.

    Returns
    -------
    X : float64 array, shape (n, 2)
    y : int64 array, shape (n,)
        0 for the colour of the field at the origin, 1 for the other.
    """
    X = np.random.default_rng(seed).random((n, 2))
    fields = np.floor(X * board).astype(np.int64)
    return X, fields.sum(axis=1) % 2
