"""Representation of values in messages."""

import numpy as np


def plain(value):
    """Return the representation of a value in which NumPy's scalars look like Python's.

    Parameters
    ----------
    value : object
        A scalar or a container of scalars, such as ``{"a": np.float64(0.0)}``.

    Returns
    -------
    str
        Representation of the value. For the example it is ``"{'a': 0.0}"``, where `repr` returns
        ``"{'a': np.float64(0.0)}"``.
    """
    with np.printoptions(legacy="1.25"):
        return repr(value)
