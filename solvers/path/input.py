"""What `fit_path` is called with."""

from copy import deepcopy
from operator import lt

import numpy as np
from scipy import sparse

from solvers.kernels.functions import require_finite


def detached(estimator):
    """Return a copy that may be changed while a path is trained: the estimator stays as it is.

    Parameters are shared, but for a random generator, which would advance.
    """
    model = object.__new__(type(estimator))
    vars(model).update(vars(estimator))
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state = deepcopy(model.random_state)
    return model


def check_path_input(estimator, X, y):
    """Validate samples as `fit` does, but a precomputed Gram matrix with little more than one sum."""
    if estimator.max_seconds is not None:
        raise ValueError(
            f"fit_path takes no max_seconds, which is {estimator.max_seconds}: "
            "set it to None, or use fit for one C after the other"
        )
    if estimator.kernel != "precomputed" or sparse.issparse(X):
        return estimator._check_training_samples(X, y)
    X, y = np.asarray(X), np.asarray(y)
    if X.dtype not in (np.float64, np.float32) or X.shape != (y.size, y.size) or y.ndim != 1:
        raise ValueError(
            f"fit_path with kernel='precomputed' needs a float Gram matrix of shape {(y.size, y.size)}, "
            f"samples × samples; got shape {X.shape}, {X.dtype}"
        )
    require_finite(X)
    return X, y


def check_ascending(Cs):
    """Return Cs as an array; refuse what is not an ascending path."""
    Cs = np.ascontiguousarray(Cs, dtype=np.float64)
    values = Cs.tolist() if Cs.ndim == 1 else []
    if not (values and values[0] > 0 and all(map(lt, values, values[1:])) and values[-1] < np.inf):
        raise ValueError(f"Cs must be ascending finite numbers > 0; got {Cs.tolist()}")
    return Cs
