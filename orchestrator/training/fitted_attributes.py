"""The columns of a row that come from attributes of a fitted estimator, by scikit-learn's conventions.

All are optional. An attribute that is missing leaves its column empty. One that holds something else than its
column does so, too, and the row's message names it. Nothing that could be endless is iterated over.
"""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orchestrator.study.records import Columns
from orchestrator.study.storable import LARGEST, storable_text
from orchestrator.study.text import shown

_ADDRESS = re.compile(" at 0x[0-9a-f]*")

_Read = Callable[[Any], Any]
"""Returns what a column holds of an attribute's value, None if the value is something else."""


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
        stopping` it has; of a pipeline those of its last step. A `message` if an attribute was left out.
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    columns: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, (attribute, read) in _COLUMNS.items():
        value = getattr(estimator, attribute, None)
        if value is None:
            continue
        found = _read(_total if read is _count else read, value)
        if found is None:
            left_out[name] = _left_out(name, value)
        else:
            columns[name] = found
    if "n_sv" in columns:
        share = _read(lambda fitted: support_vector_share(fitted, y_train), estimator)
        if share is not None and 0 <= share <= 1:
            columns["sv_share"] = share
    return columns | ({"message": " ".join(left_out.values())} if left_out else {})


def fitted_path_columns(fitted: Any, n: int) -> Columns:
    """Read the same columns of the n trainings of a path that was fitted in one call.

    Its attributes are those of a fitted estimator, each with one value a training, and `sv_share_`.
    """
    columns: Columns = {}
    left_out: dict[int, str] = {}
    for name, (attribute, read) in _PATH_COLUMNS.items():
        value = getattr(fitted, attribute, None)
        if value is None:
            continue
        values = value if type(value) is np.ndarray and value.ndim else _read(_one_each, value)
        if values is None or len(values) != n:
            sentence = _left_out(name, value, f"{n} values in an array, one for each training")
            left_out |= {k: f"{left_out.get(k, '')} {sentence}" for k in range(n)}
            continue
        columns[name] = _of_each(read, values)
        if None in columns[name]:
            for k, found in enumerate(columns[name]):
                if found is None and values[k] is not None:
                    left_out[k] = f"{left_out.get(k, '')} {_left_out(name, values[k])}"
    if left_out:
        columns["message"] = [left_out.get(k, "").strip() for k in range(n)]
    return columns


def seconds_of_trainings(fitted: Any) -> np.ndarray | None:
    """Return the `fit_seconds_` of a path that was fitted in one call; None if they are not numbers."""
    value = fitted.fit_seconds_
    return _read(lambda value: np.array(_numbers(value), dtype=float), _one_each(value))


def _left_out(name: str, value: Any, expected: str = "") -> str:
    """Say which attribute a column has not been filled from, and why, in the same words in every process."""
    attribute, read = _PATH_COLUMNS[name]
    found = _ADDRESS.sub("", shown(value))
    return f"{attribute}: expected {expected or _EXPECTED[read]}, found {found}; the column {name} is empty."


def _one_each(value: Any) -> Any:
    """Return values that can be counted and read one by one, None if there may be no end of them."""
    if isinstance(value, (list, tuple)):
        return value
    array = np.asarray(value) if hasattr(type(value), "__array__") else np.array(None)
    return array if array.ndim else None


def _of_each(read: _Read, values: Any) -> list[Any]:
    """Read the value of each training; an array of numbers as they should be is one step."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == _ARRAYS.get(read, object):
        numbers = values.tolist()
        if read is _status:
            return list(map(str, numbers))
        if read not in (_count, _gap) or min(numbers, default=0) >= 0:
            return numbers
    if read is _status and set(map(type, values)) == {str}:
        return list(values)
    return [None if value is None else _read(read, value) for value in values]


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


def _read(read: _Read, value: Any) -> Any:
    """Return what a function reads of an attribute's value; None if it holds something else."""
    try:
        return read(value)
    except BaseException:  # whatever classes of other authors hold and raise
        return None


def _numbers(value: Any) -> list[Any]:
    """Return the real numbers that a number, an array or a list of them holds, as Python's.

    Raises
    ------
    TypeError
        If it holds anything else, or nothing.
    """
    if isinstance(value, (list, tuple)) and len(value) > 0:
        if all(isinstance(each, (int, float, np.number, np.ndarray)) for each in value):
            return list(chain.from_iterable(map(_numbers, value)))
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int):
        return [int.__int__(value)]
    elif isinstance(value, float):
        return [float.__float__(value)]
    elif hasattr(type(value), "__array__") and not np.ma.is_masked(value):
        array = np.asarray(value)
        if array.dtype.kind in "iuf" and array.size:
            return array.ravel().tolist()
    raise TypeError(f"expected real numbers, found {shown(value)}")


def _total(value: Any) -> int | None:
    """Return the sum of counts, as Python's integers, which do not overflow."""
    counts = _numbers(value)
    if any(count < 0 or count != int(count) for count in counts):
        return None
    return _count(sum(map(int, counts)))


def _number(value: Any) -> float | None:
    """Return the sum of numbers."""
    if type(value) is float:
        return value
    return float(np.sum(_numbers(value)))


def _count(value: Any) -> int | None:
    (number,) = _numbers(value)
    return int(number) if 0 <= number <= LARGEST and number == int(number) else None


def _gap(value: Any) -> float | None:
    """Return a gap, which is never negative."""
    gap = _number(value)
    return None if gap is not None and gap < 0 else gap


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _status(value: Any) -> str | None:
    return storable_text(value)


_ARRAYS: dict[_Read, type] = {
    _count: np.int64,
    _number: np.float64,
    _gap: np.float64,
    _truth: np.bool_,
    _status: np.int64,
}
"""The types of arrays of which Python's numbers are what a function reads of each value, or their texts."""

_COLUMNS: dict[str, tuple[str, _Read]] = {
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

_PATH_COLUMNS: Mapping[str, tuple[str, _Read]] = {**_COLUMNS, "sv_share": ("sv_share_", _number)}

_EXPECTED: Mapping[_Read, str] = {
    _count: "whole numbers from 0 to 2⁶³ − 1",
    _number: "real numbers",
    _gap: "a real number of at least 0",
    _truth: "True or False",
    _status: "a text",
}
"""What an attribute should hold, by what reads it."""
