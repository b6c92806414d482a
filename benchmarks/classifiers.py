"""Classifiers that cost nothing, or a known time, so that what is left is orchestration."""

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class IdleClassifier(ClassifierMixin, BaseEstimator):
    """Predict the first class; training sleeps for a given time."""

    def __init__(self, C=1.0, a=1.0, seconds=0.0):
        self.C = C
        self.a = a
        self.seconds = seconds

    def fit(self, X, y):
        if self.seconds:
            time.sleep(self.seconds)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])
