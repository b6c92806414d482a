"""The columns of a row that come from attributes of a fitted estimator, by scikit-learn's conventions.

All are optional. An attribute that is missing, or not a number, leaves its column empty.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orchestrator.study.records import Columns
from orchestrator.study.storable import LARGEST, storable_text


def fitted_columns(estimator: Any, y_train: np.ndarray) -> dict[str, Any]:
    """Read iterations, support vectors, certificate and status of a fitted estimator.

    Parameters
    ----------
    estimator : fitted classifier
    y_train : ndarray, shape (n_train,)
        The labels it was fitted on.

    Returns
    -------
    dict
        The columns `n_iter n_clipped n_kernel_evals n_sv sv_share gap objective converged fit_status
        stopping` it has; of a pipeline those of its last step.
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    columns = {
        name: (_total if read is _count else read)(getattr(estimator, attribute, None))
        for name, (attribute, read) in _COLUMNS.items()
    }
    share = _read(lambda: support_vector_share(estimator, y_train))
    columns["sv_share"] = share if share is not None and 0 <= share <= 1 else None
    return {name: value for name, value in columns.items() if value is not None}


def fitted_path_columns(fitted: Any, n: int) -> Columns:
    """Read the same columns of the n trainings of a path that was fitted in one call.

    Its attributes are those of a fitted estimator, each with one value a training, and `sv_share_`.
    """
    return {
        name: _of_each(read, getattr(fitted, attribute)[:n])
        for name, (attribute, read) in {**_COLUMNS, "sv_share": ("sv_share_", _number)}.items()
        if hasattr(fitted, attribute)
    }


def _of_each(read: Callable[[Any], Any], values: Any) -> list[Any]:
    """Read the value of each training; an array of numbers as they should be is one step."""
    if isinstance(values, np.ndarray) and values.dtype == _ARRAYS.get(read, object):
        numbers = values.tolist()
        if read is _status:
            return list(map(str, numbers))
        if read not in (_count, _gap) or min(numbers, default=0) >= 0:
            return numbers
    if read is _status and set(map(type, values)) == {str}:
        return list(values)
    return [read(value) for value in values]


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


def _read(read: Callable[[], Any]) -> Any:
    """Return what a function reads of an estimator's attribute; None if it holds something else."""
    try:
        return read()
    except BaseException:  # whatever classes of other authors hold and raise
        return None


def _total(value: Any) -> int | None:
    """Return the sum of counts, as Python's integers, which do not overflow."""
    counts = None if value is None else _read(lambda: np.asarray(value).ravel().tolist())
    if counts is None or any(_count(count) is None for count in counts):
        return None
    return _count(sum(map(int, counts)))


def _number(value: Any) -> float | None:
    """Return the sum of numbers."""
    if value is None or isinstance(value, float):
        return value if value is None else float(value)
    return _read(lambda: _real(np.sum(value)))


def _count(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    number = _read(lambda: int(value))
    return number if number is not None and 0 <= number <= LARGEST else None


def _real(value: Any) -> float | None:
    return None if isinstance(value, (complex, np.complexfloating)) else float(value)


def _gap(value: Any) -> float | None:
    """Return a gap, which is never negative."""
    gap = _number(value)
    return None if gap is not None and gap < 0 else gap


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _status(value: Any) -> str | None:
    return None if value is None else storable_text(value)


_ARRAYS: dict[Callable[[Any], Any], type] = {
    _count: np.int64,
    _number: np.float64,
    _gap: np.float64,
    _truth: np.bool_,
    _status: np.int64,
}
"""The types of arrays of which Python's numbers are what a function reads of each value, or their texts."""

_COLUMNS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "n_iter": ("n_iter_", _count),
    "n_clipped": ("n_clipped_", _count),
    "n_kernel_evals": ("n_kernel_evals_", _count),
    "n_sv": ("n_support_", _count),
    "gap": ("duality_gap_", _gap),
    "objective": ("objective_", _number),
    "converged": ("converged_", _truth),
    "fit_status": ("fit_status_", _status),
    "stopping": ("stopping_", _status),
}
