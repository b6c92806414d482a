"""Check the predictions of a fitted estimator on the test rows, and score them by scikit-learn.

Each method of the estimator is called once.
"""

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
"""Largest difference of the sum of a row's probabilities from 1, which allows for single precision."""


class ResponseError(ValueError):
    """An estimator returned a value that cannot be scored. The message describes the expected value."""


class UndefinedError(ResponseError):
    """An estimator returned a valid array whose values are not numbers, which too few rows may cause."""


def checked_labels(predicted: Any, classes: NDArray[Any], n: int) -> NDArray[Any]:
    """Return predicted labels in the type of the classes.

    Parameters
    ----------
    predicted : array-like
        The result of `predict`: an array, a list or a pandas Series.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows, ascending.
    n : int
        Number of rows to be predicted.

    Returns
    -------
    ndarray, shape (n,)
        One of the classes for each row.

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
        Predicted labels of each training.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows, ascending.
    n : int
        Number of rows to be predicted.

    Returns
    -------
    labels : ndarray, shape (n_trainings, n)
        Predicted classes; arbitrary classes for a training with an error.
    errors : dict of int to ResponseError
        Errors by index of the training.
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
    """Return labels as numbers or text, like the classes.

    Parameters
    ----------
    array : ndarray
        Predicted labels.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows.

    Returns
    -------
    ndarray
        Labels that can be compared with the classes.

    Raises
    ------
    ResponseError
        If a label has another type than the classes.
    """
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
    """Return the error for a predicted label that is not a class.

    Parameters
    ----------
    value : object
        Label that `predict` returned.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows.

    Returns
    -------
    ResponseError
        Error that quotes the label and the known classes.
    """
    known = ", ".join(repr(label) for label in classes[:5].tolist()) + (", …" if len(classes) > 5 else "")
    found = value.item() if isinstance(value, np.generic) else value
    return ResponseError(
        f"expected labels of the training classes ({known}) from predict, found {_short(found)}"
    )


def checked_values(method: str, values: Any, n: int, n_classes: int) -> NDArray[Any]:
    """Return decision values or probabilities after checking that they are real numbers of the right shape.

    Parameters
    ----------
    method : str
        "decision_function" or "predict_proba".
    values : array-like
        The result of that method.
    n : int
        Number of rows.
    n_classes : int
        Number of distinct labels of the training rows.

    Returns
    -------
    ndarray
        The values. Two classes have one column of decision values; more classes may have one for each pair.

    Raises
    ------
    ResponseError
        If the values are of another type or shape, or not numbers.
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
    """Raise unless `classes_` holds the classes in ascending order, to which columns and signs refer.

    Parameters
    ----------
    estimator : fitted classifier
        With the attribute `classes_`.
    classes : ndarray, shape (n_classes,)
        The labels of the training rows, ascending.

    Raises
    ------
    ResponseError
        If `classes_` differs.
    """
    found = _plain_array("classes_", estimator.classes_)
    if found.shape != classes.shape or not np.all(found == classes):
        raise ResponseError("classes_: expected the training classes in ascending order, found others")


def checked_score(metric: str, score: Any) -> float:
    """Return a score after checking that it is a finite real number.

    Parameters
    ----------
    metric : str
        Name of the metric.
    score : object
        Result of the metric.

    Returns
    -------
    float
        Score as a float of Python.

    Raises
    ------
    ResponseError
        If it is not such a number.
    """
    real = isinstance(score, numbers.Real) and not isinstance(score, (bool, np.bool_))
    if real and np.isfinite(number := float(score)):
        return number
    kind = UndefinedError if real else ResponseError
    raise kind(f"expected a finite number as the score {metric}, found {_short(score)}")


def _plain_array(method: str, values: Any) -> NDArray[Any]:
    """Return an array-like as a plain array, because a subclass may compare or index differently.

    Parameters
    ----------
    method : str
        Name of the method that returned the values, for messages.
    values : object
        Result of the method.

    Returns
    -------
    ndarray
        Array of NumPy's own class.

    Raises
    ------
    ResponseError
        If they are not an array, or are masked.
    """
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
    """Describe a value of any class in a few words.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    str
        At most 60 characters of a text or number, or the name of another type.
    """
    if isinstance(value, (str, bytes, numbers.Number)) or value is None:
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:59]}…"
    return f"an object of type {type(value).__name__}"


class Responses(ClassifierMixin, BaseEstimator):
    """A fitted classifier and its predictions of some rows, in the form that scikit-learn's scorers use.

    Each method of the classifier is called once, even if several scorers use it.

    Parameters
    ----------
    estimator : fitted classifier
        Classifier that was fitted on the training rows.
    call_method : callable
        Calls a method of the classifier, given by name, with the rows.
    labels : ndarray, shape (n,)
        Checked predictions.
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
        """Return this object unchanged; the classifier is fitted already.

        Parameters
        ----------
        X : object
            Ignored.
        y : object
            Ignored.

        Returns
        -------
        Responses
            This object.
        """
        return self

    def predict(self, X: Any = None) -> NDArray[Any]:
        """Return the checked labels of the rows.

        Parameters
        ----------
        X : object
            The rows; None by default. Other rows are refused.

        Returns
        -------
        ndarray, shape (n,)
            Labels.
        """
        self._require_rows(X)
        return self.labels

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any = None) -> NDArray[Any]:
        """Return the checked decision values of the rows.

        Parameters
        ----------
        X : object
            The rows; None by default. Other rows are refused.

        Returns
        -------
        ndarray
            Decision values; see `checked_values`.
        """
        self._require_rows(X)
        return self._checked_values("decision_function")

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any = None) -> NDArray[Any]:
        """Return the checked probabilities of the rows.

        Parameters
        ----------
        X : object
            The rows; None by default. Other rows are refused.

        Returns
        -------
        ndarray, shape (n, n_classes)
            Probabilities.
        """
        self._require_rows(X)
        return self._checked_values("predict_proba")

    def _checked_values(self, method: str) -> NDArray[Any]:
        """Return the checked result of a method, which is called once.

        Parameters
        ----------
        method : str
            "decision_function" or "predict_proba".

        Returns
        -------
        ndarray
            Decision values or probabilities of the rows.
        """
        if method not in self._values:
            values = self.call_method(method)
            self._values[method] = checked_values(method, values, len(self.labels), len(self.classes))
        return self._values[method]

    def _require_rows(self, X: Any) -> None:
        """Raise if a metric asks for predictions of other rows.

        Parameters
        ----------
        X : object
            The rows of the question; None for the rows of this object.

        Raises
        ------
        ResponseError
            If they are other rows.
        """
        if X is not None and X is not self._rows:
            raise ResponseError(
                "expected the metric to predict the rows that it receives, found other rows; "
                "pass the argument X on unchanged"
            )

    def scores(self, metrics: Sequence[str | Metric], y: NDArray[Any], X: Any = None) -> Mapping[str, float]:
        """Return the scores of metrics, by name.

        Parameters
        ----------
        metrics : sequence of str or Metric
            Names of scikit-learn's scorers, and custom metrics.
        y : ndarray, shape (n,)
            The labels of the rows.
        X : array-like, shape (n, n_features), optional
            The rows, for metrics that read them. None by default.

        Returns
        -------
        mapping of str to float
            Scores by name of the metric.

        Raises
        ------
        ResponseError
            If a prediction or a score is not valid.
        """
        self._rows = y if X is None else X
        found = _scorer(tuple(metrics))(self, self._rows, y) if metrics else {}
        return {name: checked_score(name, score) for name, score in found.items()}


@lru_cache(maxsize=8)
def _scorer(metrics: tuple[str | Metric, ...]) -> Any:
    """Return one scorer for several metrics.

    Parameters
    ----------
    metrics : tuple of str or Metric
        Names of scikit-learn's scorers, and custom metrics.

    Returns
    -------
    callable
        f(estimator, X, y), which returns the scores by name.
    """
    names = (metric if isinstance(metric, str) else metric.name for metric in metrics)
    return check_scoring(_ANY_CLASSIFIER, scoring=dict(zip(names, map(scorer, metrics), strict=True)))


_ANY_CLASSIFIER = Responses(None, lambda method: None, np.empty(0), np.empty(0))
"""Classifier for which scikit-learn's scorers are made; they accept any other."""
