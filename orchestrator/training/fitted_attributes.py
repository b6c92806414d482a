"""Read the columns of a row that come from attributes of a fitted estimator.

The attributes follow scikit-learn's conventions, and all are optional. A missing attribute leaves its column
empty. An attribute of the wrong type leaves it empty too, and the row's message names the attribute. Values
that may be endless are not iterated over.
"""

import math
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orchestrator.study.records import LARGEST, PARTS_OF_FIT, Columns
from orchestrator.study.text import represented, storable_text
from orchestrator.training.prediction_cost import model_values

_ADDRESS = re.compile(" at 0x[0-9a-f]*")

REPRESENTATIVES = "n_representatives_"
"""Attribute with the number of representatives, of which a path may have one for all its trainings."""

_Read = Callable[[Any], Any]
"""Function that converts an attribute's value to a column's value, or returns None if it does not fit."""


def fitted_columns(estimator: Any, y_train: np.ndarray) -> dict[str, Any]:
    """Read iterations, support vectors, certificate and status of a fitted estimator.

    Parameters
    ----------
    estimator : fitted classifier
        For a pipeline, its last step is read.
    y_train : ndarray, shape (n_train,)
        The labels that it was fitted on.

    Returns
    -------
    dict
        Columns that the estimator provides, among `n_iter n_clipped n_full_updates n_kernel_evals n_sv
        sv_share n_representatives n_nodes mean_depth model_values gap objective converged fit_status
        stopping reduction_seconds certificate_seconds`. A `message` names attributes of a wrong type.
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
    values = _read(model_values, estimator)
    if values is not None:
        columns["model_values"] = values
    return columns | ({"message": " ".join(left_out.values())} if left_out else {})


def fitted_path_columns(fitted: Any, n: int) -> Columns:
    """Read the columns of `fitted_columns` for all trainings of a path that was fitted in one call.

    Parameters
    ----------
    fitted : object
        The result of `fit_path`. Its attributes are those of a fitted estimator, with one value for each
        training, and `sv_share_`. The seconds of `PARTS_OF_FIT` belong to the whole path; each training gets
        an equal share. The number of representatives is that of every training.
    n : int
        Number of trainings.

    Returns
    -------
    dict
        Columns by name, each a list of n values.
    """
    columns: Columns = {}
    left_out: dict[int, str] = {}
    for name, (attribute, read) in _PATH_COLUMNS.items():
        value = getattr(fitted, attribute, None)
        if value is None:
            continue
        if name in PARTS_OF_FIT:
            seconds = _read(read, value)
            columns[name] = [None if seconds is None else seconds / n] * n
            if seconds is None:
                left_out |= {k: f"{left_out.get(k, '')} {_left_out(name, value)}" for k in range(n)}
            continue
        if attribute == REPRESENTATIVES and isinstance(value, (int, np.integer)):
            value = [value] * n
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
    """Return `fit_seconds_` of a path that was fitted in one call.

    Parameters
    ----------
    fitted : object
        The result of `fit_path`.

    Returns
    -------
    ndarray or None
        Seconds of each training; None if the values are not numbers.
    """
    value = fitted.fit_seconds_
    return _read(lambda value: np.array(_numbers(value), dtype=float), _one_each(value))


def _left_out(name: str, value: Any, expected: str = "") -> str:
    """Return a sentence that says why a column is empty. It is the same in every process.

    Parameters
    ----------
    name : str
        Name of the column.
    value : object
        The attribute's value.
    expected : str
        The expected value in words. Empty by default, for the expectation of the column's type.

    Returns
    -------
    str
        Sentence for the message of the row.
    """
    attribute, read = _PATH_COLUMNS[name]
    found = _ADDRESS.sub("", represented(value))  # addresses differ between processes

    return f"{attribute}: expected {expected or _EXPECTED[read]}, found {found}; the column {name} is empty."


def _one_each(value: Any) -> Any:
    """Return a list, tuple or array whose values can be read one by one; None for anything else.

    Parameters
    ----------
    value : object
        A list, a tuple, an array or anything else.

    Returns
    -------
    list, tuple, ndarray or None
        The values; None if `value` has no length.
    """
    if isinstance(value, (list, tuple)):
        return value
    array = np.asarray(value) if hasattr(type(value), "__array__") else np.array(None)
    return array if array.ndim else None


def _of_each(read: _Read, values: Any) -> list[Any]:
    """Read the value of each training.

    An array of the expected type is converted in one step, for speed.

    Parameters
    ----------
    read : callable
        Converts one value.
    values : sequence
        One value for each training.

    Returns
    -------
    list
        Converted values, None where a value is missing or does not fit.
    """
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
    """Return the mean, over the subproblems of a model, of support vectors ÷ training rows of the subproblem.

    The support vectors are counted in `dual_coef_` and `n_support_`, in one of two layouts. That of
    `sklearn.svm.SVC` has one-vs-one subproblems: in the columns of class i's support vectors, row j − 1
    belongs to the subproblem i–j for j > i, and row j to the subproblem j–i for j < i. With a row for each
    class, all training rows belong to the subproblem of a row. Any other layout gives support vectors ÷
    training rows.

    Parameters
    ----------
    estimator : fitted classifier
        With `n_support_` and, optionally, `dual_coef_`.
    y_train : ndarray, shape (n_train,)
        The labels that it was fitted on.

    Returns
    -------
    float or None
        The share; None without `n_support_`.
    """
    n_support = getattr(estimator, "n_support_", None)
    if n_support is None:
        return None
    per_class = np.atleast_1d(np.asarray(n_support))
    n_classes = len(per_class)
    dual_coef: Any = getattr(estimator, "dual_coef_", None)
    shape = () if dual_coef is None else dual_coef.shape
    if n_classes < 2 or shape not in ((n_classes - 1, per_class.sum()), (n_classes, per_class.sum())):
        return float(per_class.sum() / len(y_train))
    used = np.asarray(dual_coef.todense() if hasattr(dual_coef, "todense") else dual_coef) != 0
    if shape[0] == n_classes:
        return float(used.sum() / (n_classes * len(y_train)))
    ends = np.concatenate([[0], np.cumsum(per_class)])
    sums = np.concatenate([np.zeros((n_classes - 1, 1), dtype=int), np.cumsum(used, axis=1)], axis=1)
    blocks = sums[:, ends[1:]] - sums[:, ends[:-1]]  # (row of dual_coef_, class) -> support vectors
    counts = np.unique(y_train, return_counts=True)[1]
    first, second = np.triu_indices(n_classes, k=1)
    of_pair = blocks[second - 1, first] + blocks[first, second]
    return float(np.mean(of_pair / (counts[first] + counts[second])))


def _read(read: _Read, value: Any) -> Any:
    """Convert a value, and return None if that fails.

    Parameters
    ----------
    read : callable
        Converts the value.
    value : object
        Any value.

    Returns
    -------
    object
        The converted value; None if it does not fit or `read` raises.
    """
    try:
        return read(value)
    except BaseException:  # a class of the user may raise any exception
        return None


def _numbers(value: Any) -> list[Any]:
    """Return the real numbers of a number, an array or a list of these, as Python numbers.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    list of int or float
        The numbers, in order.

    Raises
    ------
    TypeError
        If the value contains anything else, or nothing.
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
    raise TypeError(f"expected real numbers, found {represented(value)}")


def _total(value: Any) -> int | None:
    """Return the sum of counts as a Python integer, which does not overflow.

    Parameters
    ----------
    value : object
        A number, an array or a list of these.

    Returns
    -------
    int or None
        The sum; None unless all are whole numbers of at least 0.
    """
    counts = _numbers(value)
    if any(count < 0 or count != int(count) for count in counts):
        return None
    return _count(sum(map(int, counts)))


def _number(value: Any) -> float | None:
    """Return the sum of numbers.

    Parameters
    ----------
    value : object
        A number, an array or a list of these.

    Returns
    -------
    float
        The number, or the sum of several.
    """
    if type(value) is float:
        return value
    return float(np.sum(_numbers(value)))


def _count(value: Any) -> int | None:
    """Return a count.

    Parameters
    ----------
    value : object
        One number, which may be in an array or a list.

    Returns
    -------
    int or None
        The count; None unless it is a whole number from 0 to `LARGEST`.
    """
    (number,) = _numbers(value)
    return int(number) if 0 <= number <= LARGEST and number == int(number) else None


def _gap(value: Any) -> float | None:
    """Return a duality gap.

    Parameters
    ----------
    value : object
        A number, or an array or a list whose sum is the gap.

    Returns
    -------
    float or None
        The gap; None if it is negative.
    """
    gap = _number(value)
    return None if gap is not None and gap < 0 else gap


def _seconds(value: Any) -> float | None:
    """Return a duration in seconds.

    Parameters
    ----------
    value : object
        A number, or an array or a list whose sum is the duration.

    Returns
    -------
    float or None
        The duration; None unless it is finite and at least 0.
    """
    seconds = _number(value)
    return seconds if seconds is not None and 0 <= seconds < math.inf else None


def _truth(value: Any) -> bool | None:
    """Return a boolean.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool or None
        The boolean; None unless the value is a boolean of Python or NumPy.
    """
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _status(value: Any) -> str | None:
    """Return a status as text that can be stored.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    str or None
        Text of the status.
    """
    return storable_text(value)


_ARRAYS: dict[_Read, type] = {
    _count: np.int64,
    _number: np.float64,
    _gap: np.float64,
    _truth: np.bool_,
    _status: np.int64,
}
"""NumPy type of the arrays whose elements need no conversion, by reading function."""

_COLUMNS: dict[str, tuple[str, _Read]] = {
    "n_iter": ("n_iter_", _count),
    "n_clipped": ("n_clipped_", _count),
    "n_full_updates": ("n_full_updates_", _count),
    "n_kernel_evals": ("n_kernel_evals_", _count),
    "n_sv": ("n_support_", _count),
    "n_representatives": (REPRESENTATIVES, _count),
    "n_nodes": ("n_nodes_", _count),
    "mean_depth": ("mean_depth_", _gap),
    "gap": ("duality_gap_", _gap),
    "objective": ("objective_", _number),
    "converged": ("converged_", _truth),
    "fit_status": ("fit_status_", _status),
    "stopping": ("stopping_", _status),
    "reduction_seconds": ("reduction_seconds_", _seconds),
    "certificate_seconds": ("certificate_seconds_", _seconds),
}
"""Attribute and reading function of each column of a fitted estimator."""


_PATH_COLUMNS: Mapping[str, tuple[str, _Read]] = {**_COLUMNS, "sv_share": ("sv_share_", _number)}
"""Attribute and reading function of each column of a fitted path."""


_EXPECTED: Mapping[_Read, str] = {
    _count: "whole numbers from 0 to 2⁶³ − 1",
    _number: "real numbers",
    _gap: "a real number of at least 0",
    _seconds: "a finite number of seconds of at least 0",
    _truth: "True or False",
    _status: "a text",
}
"""Expected values of an attribute, in words, by reading function."""
