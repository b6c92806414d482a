"""What a fitted estimator tells about itself, by attributes of scikit-learn's own conventions.

All are optional. An attribute that is missing, or not a number, leaves its column empty.
"""

from typing import Any

import numpy as np


def published_columns(estimator: Any, y_train: np.ndarray) -> dict[str, Any]:
    """Read iterations, support vectors, certificate and status of a fitted estimator.

    Parameters
    ----------
    estimator : fitted classifier
    y_train : ndarray, shape (n_train,)
        The labels it was fitted on.

    Returns
    -------
    dict
        The columns `n_iter n_kernel_evals n_sv sv_share gap objective converged fit_status stopping` it has.
    """
    columns: dict[str, Any] = {
        "n_iter": _total(getattr(estimator, "n_iter_", None)),
        "n_kernel_evals": _total(getattr(estimator, "n_kernel_evals_", None)),
        "n_sv": _total(getattr(estimator, "n_support_", None)),
        "gap": _number(getattr(estimator, "duality_gap_", None)),
        "objective": _number(getattr(estimator, "objective_", None)),
    }
    columns["sv_share"] = support_vector_share(estimator, y_train)
    converged = getattr(estimator, "converged_", None)
    columns["converged"] = None if converged is None else bool(converged)
    status = getattr(estimator, "fit_status_", None)
    columns["fit_status"] = None if status is None else str(status)
    stopping = getattr(estimator, "stopping_", None)
    columns["stopping"] = None if stopping is None else str(stopping)
    return {name: value for name, value in columns.items() if value is not None}


def published_path_columns(fitted: Any, n: int) -> list[dict[str, Any]]:
    """Read the same columns for each of the n trainings of a path that was fitted in one call.

    Its attributes are those of a fitted estimator, each with one value a training, and `sv_share_`.
    """
    sources = {
        "n_iter": ("n_iter_", int),
        "n_kernel_evals": ("n_kernel_evals_", int),
        "n_sv": ("n_support_", int),
        "sv_share": ("sv_share_", float),
        "gap": ("duality_gap_", float),
        "objective": ("objective_", float),
        "converged": ("converged_", bool),
        "fit_status": ("fit_status_", str),
        "stopping": ("stopping_", str),
    }
    columns = {
        name: [kind(value) for value in getattr(fitted, attribute)]
        for name, (attribute, kind) in sources.items()
        if hasattr(fitted, attribute)
    }
    return [{name: values[index] for name, values in columns.items()} for index in range(n)]


def support_vector_share(estimator: Any, y_train: np.ndarray) -> float | None:
    """Return the mean over pair machines of support vectors ÷ training rows of the pair.

    Read from `dual_coef_` and `n_support_` as `sklearn.svm.SVC` lays them out for one-vs-one machines:
    in the columns of class i's support vectors, row j − 1 belongs to the machine i–j for j > i and row j
    to the machine j–i for j < i. Any other layout gives support vectors ÷ training rows.
    """
    n_support = getattr(estimator, "n_support_", None)
    if n_support is None:
        return None
    per_class = np.atleast_1d(np.asarray(n_support))
    n_classes = len(per_class)
    dual_coef = getattr(estimator, "dual_coef_", None)
    if n_classes < 2 or dual_coef is None or dual_coef.shape != (n_classes - 1, per_class.sum()):
        return float(per_class.sum() / len(y_train))
    used = np.asarray(dual_coef.todense() if hasattr(dual_coef, "todense") else dual_coef) != 0
    ends = np.concatenate([[0], np.cumsum(per_class)])
    sums = np.concatenate([np.zeros((n_classes - 1, 1), dtype=int), np.cumsum(used, axis=1)], axis=1)
    blocks = sums[:, ends[1:]] - sums[:, ends[:-1]]  # (machine's row, class) -> support vectors
    counts = np.unique(y_train, return_counts=True)[1]
    first, second = np.triu_indices(n_classes, k=1)
    of_pair = blocks[second - 1, first] + blocks[first, second]
    return float(np.mean(of_pair / (counts[first] + counts[second])))


def _total(value: Any) -> int | None:
    return None if value is None else int(np.sum(value))


def _number(value: Any) -> float | None:
    return None if value is None else float(np.sum(value))
