"""Predictions of a fitted estimator on the test rows: computed once, checked, scored by scikit-learn."""

import numbers
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if

from orchestrator.study.study import Metric
from orchestrator.training.metrics import scorer

_SUM_TOLERANCE = 1e-3
"""How far the probabilities of a row may be from a sum of one, in single precision for example."""


class ResponseError(ValueError):
    """An estimator returned something that cannot be scored; the message says what was expected."""


class UndefinedError(ResponseError):
    """A response of the right form that is not a number, as few rows may lead to."""


def checked_labels(predicted: Any, classes: NDArray[Any], n: int) -> NDArray[Any]:
    """Return predicted labels in the type of the classes.

    Parameters
    ----------
    predicted : array-like
        What `predict` returned: an array, a list or a pandas Series.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows, ascending.
    n : int
        Number of rows that were to be predicted.

    Raises
    ------
    ResponseError
        Unless there is exactly one of the classes for each row.
    """
    array = _plain_array("predict", predicted)
    if array.shape != (n,):
        raise ResponseError(
            f"expected one label for each of {n} rows from predict, found an array of shape {array.shape}"
        )
    labels = _comparable(array, classes)
    nearest = classes[np.minimum(np.searchsorted(classes, labels), len(classes) - 1)]
    known = nearest == labels
    if not known.all():
        raise _not_a_class(labels[~known][0], classes)
    return nearest


def checked_path_labels(
    predicted: Sequence[Any], classes: NDArray[Any], n: int
) -> tuple[NDArray[Any], dict[int, ResponseError]]:
    """Return the labels that each training of a path predicts, in the type of the classes.

    Parameters
    ----------
    predicted : sequence of array-like
        By training.
    classes, n
        See `checked_labels`.

    Returns
    -------
    labels : ndarray, shape (n_trainings, n)
        Any of the classes where there is an error.
    errors : dict of int to ResponseError
        By training.
    """
    if isinstance(predicted, np.ndarray) and predicted.shape == (len(predicted), n):
        with suppress(ResponseError):
            return checked_labels(predicted.ravel(), classes, predicted.size).reshape(predicted.shape), {}
    labels, errors = np.full((len(predicted), n), classes[0], classes.dtype), {}
    for k, one in enumerate(predicted):
        try:
            labels[k] = checked_labels(one, classes, n)
        except ResponseError as error:
            errors[k] = error
    return labels, errors


def _comparable(array: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as numbers or text, whichever the classes are."""
    text = classes.dtype.kind == "U"
    if array.dtype.kind in "OT":
        scalars = (str,) if text else (bool, int, float, np.bool_, np.integer, np.floating)
        for value in array:
            if not isinstance(value, scalars):
                raise _not_a_class(value, classes)
        array = np.array(array.tolist())
    if array.dtype.kind not in ("U" if text else "biuf"):
        raise _not_a_class(array[0], classes)
    return array


def _not_a_class(value: Any, classes: NDArray[Any]) -> ResponseError:
    known = ", ".join(repr(label) for label in classes[:5].tolist()) + (", …" if len(classes) > 5 else "")
    found = value.item() if isinstance(value, np.generic) else value
    return ResponseError(
        f"expected labels of the training classes ({known}) from predict, found {_short(found)}"
    )


def checked_values(method: str, values: Any, n: int, n_classes: int) -> NDArray[Any]:
    """Return decision values or probabilities that are real numbers, of a shape that fits rows and classes.

    Raises
    ------
    ResponseError
        If they are not.
    """
    array = _plain_array(method, values)
    if array.dtype.kind not in "biuf":
        raise ResponseError(f"expected real numbers from {method}, found type {array.dtype}")
    shapes: list[tuple[int, ...]]
    if method == "predict_proba":
        expected, shapes = f"({n}, {n_classes})", [(n, n_classes)]
    elif n_classes == 2:
        expected, shapes = f"({n},)", [(n,)]
    else:
        expected = f"({n}, {n_classes}) or one column for each pair"
        shapes = [(n, n_classes), (n, n_classes * (n_classes - 1) // 2)]
    if array.shape not in shapes:
        raise ResponseError(f"expected an array of shape {expected} from {method}, found {array.shape}")
    if np.isnan(array).any():
        raise UndefinedError(f"expected numbers from {method}, found NaN")
    if method == "predict_proba":
        off = np.abs(array.sum(axis=1) - 1) > _SUM_TOLERANCE
        if np.any(array < 0) or np.any(array > 1) or np.any(off):
            raise UndefinedError(
                "expected probabilities from predict_proba, from 0 to 1 and with sum 1 in each row"
            )
    return array


def require_classes(estimator: Any, classes: NDArray[Any]) -> None:
    """Check that `classes_` holds the classes in ascending order, which columns and signs refer to.

    Raises
    ------
    ResponseError
        If it does not.
    """
    found = _plain_array("classes_", estimator.classes_)
    if found.shape != classes.shape or not np.all(found == classes):
        raise ResponseError("expected the training classes in ascending order in classes_, found others")


def checked_score(metric: str, score: Any) -> float:
    """Return a score that is a finite real number.

    Raises
    ------
    ResponseError
        If it is not.
    """
    real = isinstance(score, numbers.Real) and not isinstance(score, (bool, np.bool_))
    if real and np.isfinite(number := float(score)):
        return number
    kind = UndefinedError if real else ResponseError
    raise kind(f"expected a finite number as the score {metric}, found {_short(score)}")


def _plain_array(method: str, values: Any) -> NDArray[Any]:
    """Return an array-like as an array of no subclass, which might compare or index in ways of its own."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ResponseError(f"expected an answer for every row from {method}, found a masked array")
    if scipy.sparse.issparse(values) or not (
        isinstance(values, (list, tuple)) or hasattr(values, "__array__")
    ):
        raise ResponseError(f"expected an array from {method}, found {_short(values)}")
    return np.array(values, subok=False)


def _short(value: Any) -> str:
    """Describe a value of any class in a few words."""
    if isinstance(value, (str, bytes, numbers.Number)) or value is None:
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:59]}…"
    return f"an object of type {type(value).__name__}"


class Responses(ClassifierMixin, BaseEstimator):
    """A fitted classifier and what it predicts of some rows, as scikit-learn's scorers see it.

    Each of its methods is called once, however many scorers use it.

    Parameters
    ----------
    estimator : fitted classifier
    call_method : callable
        Returns what a method of the estimator, given by name, returns for the rows.
    labels : ndarray, shape (n,)
        Its checked predictions.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows, ascending.
    """

    def __init__(
        self, estimator: Any, call_method: Callable[[str], Any], labels: NDArray[Any], classes: NDArray[Any]
    ):
        self.estimator = estimator
        self.call_method = call_method
        self.labels = labels
        self.classes = classes
        self.classes_ = classes
        self._rows: Any = None
        self._values: dict[str, NDArray[Any]] = {}

    def fit(self, X: Any, y: Any) -> "Responses":
        """Do nothing; the estimator is fitted."""
        return self

    def predict(self, X: Any = None) -> NDArray[Any]:
        """Return the checked labels of the rows."""
        self._require_rows(X)
        return self.labels

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any = None) -> NDArray[Any]:
        """Return the checked decision values of the rows."""
        self._require_rows(X)
        return self._checked_values("decision_function")

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any = None) -> NDArray[Any]:
        """Return the checked probabilities of the rows."""
        self._require_rows(X)
        return self._checked_values("predict_proba")

    def _checked_values(self, method: str) -> NDArray[Any]:
        if method not in self._values:
            values = self.call_method(method)
            self._values[method] = checked_values(method, values, len(self.labels), len(self.classes))
        return self._values[method]

    def _require_rows(self, X: Any) -> None:
        if X is not None and X is not self._rows:
            raise ResponseError("expected a metric to ask about the rows that it is given, found others")

    def scores(self, metrics: Sequence[str | Metric], y: NDArray[Any], X: Any = None) -> Mapping[str, float]:
        """Return what metrics find, by their names.

        Parameters
        ----------
        metrics : sequence of str or Metric
        y : ndarray, shape (n,)
            The labels of the rows.
        X : array-like, shape (n, n_features), optional
            The rows, for metrics that look at them.

        Raises
        ------
        ResponseError
            If a response or a score is not valid.
        """
        self._rows = y if X is None else X
        found = _scorer(tuple(metrics))(self, self._rows, y) if metrics else {}
        return {name: checked_score(name, score) for name, score in found.items()}


@lru_cache(maxsize=8)
def _scorer(metrics: tuple[str | Metric, ...]) -> Any:
    names = (metric if isinstance(metric, str) else metric.name for metric in metrics)
    return check_scoring(_ANY_CLASSIFIER, scoring=dict(zip(names, map(scorer, metrics), strict=True)))


_ANY_CLASSIFIER = Responses(None, lambda method: None, np.empty(0), np.empty(0))
