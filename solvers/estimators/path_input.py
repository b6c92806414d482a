"""What paths are trained on, checked and put in order."""

from copy import deepcopy
from operator import lt

import numpy as np
from scipy import sparse

from solvers.common.limits import NO_LIMIT
from solvers.common.penalties import require_penalties
from solvers.kernels.functions import require_finite
from solvers.multiclass import require_labels_of_one_type, sort_by_class, without
from solvers.path.result import PathProblem


def detached(estimator):
    """Return a copy that may be changed while a path is trained: the estimator stays as it is.

    Parameters are shared, but for a random generator, which would advance.
    """
    model = estimator._copy()
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state = deepcopy(model.random_state)
    return model


def check_path_input(estimator, X, y, check_finite):
    """Validate samples as `fit` does, but a precomputed Gram matrix in no more than one pass."""
    require_no_time_limit(estimator)
    if estimator.kernel != "precomputed" or sparse.issparse(X):
        return estimator._check_training_samples(X, y)
    X, y = np.asarray(X), check_labels(y)
    if X.dtype not in (np.float64, np.float32) or X.shape != (y.size, y.size):
        raise ValueError(
            f"fit_path with kernel='precomputed' needs a float Gram matrix of shape {(y.size, y.size)}, "
            f"samples × samples; got shape {X.shape}, {X.dtype}"
        )
    if check_finite:
        require_finite(X)
    return X, y


def require_no_time_limit(estimator):
    """Refuse an estimator with a limit that trainings of paths do not keep."""
    if estimator.max_seconds is not None:
        raise ValueError(
            f"fit_path takes no max_seconds, which is {estimator.max_seconds}: "
            "set it to None, or use fit for one C after the other"
        )


def check_labels(y):
    """Return labels as an array; refuse what is none of samples."""
    require_labels_of_one_type(y)
    y = np.asarray(y)
    if y.ndim != 1 or not y.size:
        raise ValueError(f"fit_path needs labels of shape (n_samples,), at least one; got {y.shape}")
    return y


def check_ascending(Cs):
    """Return Cs as an array; refuse what is not an ascending path."""
    Cs = np.asarray(Cs)
    values = Cs.tolist() if Cs.ndim == 1 and Cs.dtype.kind in "iuf" else []
    if not (values and values[0] > 0 and all(map(lt, values, values[1:])) and values[-1] < np.inf):
        raise ValueError(f"Cs must be ascending finite numbers > 0; got {Cs.tolist()}")
    return np.ascontiguousarray(Cs, dtype=np.float64)


def path_problem(model, y, Cs):
    """Sort samples by class, and return what the machines have in common and the weights of the classes."""
    classes, rows, class_start = sort_by_class(y)
    model._require_cache(rows.size)
    weights = model._weights_of_classes(classes, y)
    if model.class_weight is not None and not (weights > 0.0).all():  # refuses them
        without(rows, class_start, np.isin(y, classes[weights <= 0.0]), classes)
    problem = PathProblem(
        Cs=Cs,
        classes=classes,
        rows=rows,
        class_start=class_start,
        inverse_weights=1.0 / weights,
        at_once=model.multiclass == "all_at_once" and classes.size > 2,
        bias=0.0 if model.bias == "none" else 1.0,
        max_iter=NO_LIMIT if model.max_iter == -1 else int(model.max_iter),
        breaks_ties=bool(model.break_ties),  # "auto" does
    )
    if model.class_weight is not None:
        require_penalties(np.append(Cs, 1.0), weights, ["class_weight"])  # 1: blocks hold 1/weight
    return problem, weights
