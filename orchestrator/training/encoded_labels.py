"""Classifiers that accept only the labels 0, …, n_classes − 1, used with labels of any kind."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data


class EncodedLabels(ClassifierMixin, BaseEstimator):
    """Classifier that trains another classifier on label codes.

    XGBoost accepts no other labels, and CatBoost returns its predictions as a column.

    Parameters
    ----------
    estimator : classifier
        Classifier that receives the index of each label among the sorted different labels. It is cloned
        before it is fitted.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Different labels of the training rows, ascending.
    estimator_ : classifier
        The fitted clone.
    n_features_in_ : int
        Number of features of the training rows.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> EncodedLabels(DecisionTreeClassifier()).fit([[0.0], [1.0]], ["no", "yes"]).predict([[0.9]])
    array(['yes'], dtype='<U3')
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a clone of the classifier to the codes of the labels.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame, shape (n, d)
            Training rows, passed on unchanged.
        y : array-like, shape (n,)
            Labels of any kind that can be sorted.
        """
        validate_data(self, X, skip_check_array=True)  # sets n_features_in_
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted label of each row, shape (n,).

        Parameters
        ----------
        X : array, CSR matrix or DataFrame, shape (n, d)
            Rows with the features of the training rows.
        """
        check_is_fitted(self)
        codes = np.ravel(self.estimator_.predict(X)).astype(np.intp)
        return np.asarray(self.classes_)[codes]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (n, n_classes), in the order of `classes_`.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame, shape (n, d)
            Rows with the features of the training rows.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
