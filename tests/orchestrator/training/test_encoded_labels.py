"""A classifier that sees label codes predicts what the same classifier predicts from the labels."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from orchestrator.training.encoded_labels import EncodedLabels


class OnlyCodes(LogisticRegression):
    """Logistic regression with the limits of XGBoost and CatBoost."""

    def fit(self, X, y):
        classes = np.unique(y)
        assert np.array_equal(classes, np.arange(len(classes)))
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(X)[:, None]


def test_predictions_are_those_from_the_labels():
    X, codes = load_wine(return_X_y=True)
    X = X / np.abs(X).max(axis=0)
    y = np.array(["red", "pink", "white"])[codes]
    encoded = EncodedLabels(OnlyCodes()).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    order = [list(encoded.classes_).index(name) for name in plain.classes_]
    assert np.array_equal(encoded.predict(X), plain.predict(X))
    assert np.allclose(encoded.predict_proba(X)[:, order], plain.predict_proba(X), atol=1e-4)


def test_it_passes_on_what_the_classifier_accepts():
    encoded = EncodedLabels(HistGradientBoostingClassifier(max_iter=2))
    assert get_tags(encoded).input_tags.allow_nan
    assert encoded.fit([[np.nan], [1.0]], ["a", "b"]).n_features_in_ == 1
    assert is_classifier(encoded)
