"""A notebook's cell with a classifier, and how a kernel runs it."""

import linecache
import sys
import types

CELL = '''
import numpy as np
import scipy.special as special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

SHIFT = 2.0


def shifted(values):
    """Recursive functions are no problem."""
    if hasattr(values, "toarray"):
        return shifted(values.toarray())
    return values + SHIFT


class Base(ClassifierMixin, BaseEstimator):
    pass


class Nearest(Base):
    def __init__(self, power=2):
        self.power = power

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.centres_ = np.array([shifted(X[y == label]).mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        distances = np.abs(shifted(X)[:, None] - self.centres_) ** self.power
        return self.classes_[special.softmax(-distances.sum(axis=2), axis=1).argmax(axis=1)]


class Tuned(SVC):
    pass


def linear(a, b):
    return a @ b.T
'''


def run_cell(text, monkeypatch, name="<cell 1>"):
    """Run a notebook's cell: its source is known only by its name."""
    notebook = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    exec(compile(text, name, "exec"), notebook.__dict__)
    return notebook
