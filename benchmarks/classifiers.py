"""Classifiers that take no time, or a known time, to measure the cost of orchestration."""

import os
import signal
import sys
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class IdleClassifier(ClassifierMixin, BaseEstimator):
    """Predict the first class. Training sleeps for `seconds`."""

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


class LeavingClassifier(IdleClassifier):
    """Exit the interpreter in trainings with C = 2."""

    def fit(self, X, y):
        if self.C == 2:
            sys.exit(0)
        return super().fit(X, y)


class InterruptingClassifier(IdleClassifier):
    """Raise KeyboardInterrupt in predictions with C = 2."""

    def predict(self, X):
        if self.C == 2:
            raise KeyboardInterrupt("\ud800")
        return super().predict(X)


class KillingClassifier(IdleClassifier):
    """Kill the process in trainings on 120 rows, the size of an outer training set of iris in 5 folds."""

    def fit(self, X, y):
        if len(X) == 120:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)
