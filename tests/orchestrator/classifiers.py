"""Classifiers that misbehave on purpose, and the orders a worker gets to train them."""

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from orchestrator.arms import build_arms
from orchestrator.scheduling import Batch
from orchestrator.sources import prepare_source
from orchestrator.study import Candidate, DatasetSpec, Identity, Protocol
from orchestrator.worker import WorkOrder, run_batch


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class."""

    def __init__(self, C=1.0, gamma=1.0):
        self.C, self.gamma = C, gamma

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.answer_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


class Failing(Constant):
    """Refuses to be fitted with some values of C."""

    def __init__(self, C=1.0, gamma=1.0, fails_at=None):
        super().__init__(C, gamma)
        self.fails_at = fails_at

    def fit(self, X, y):
        if self.fails_at is None or self.fails_at == self.C:
            raise FloatingPointError("the matrix\n  is   singular")
        return super().fit(X, y)


class Diverging(Constant):
    """Publishes an objective that is not a number."""

    def fit(self, X, y):
        self.objective_ = np.nan
        return super().fit(X, y)


class Mute(Constant):
    """Cannot predict."""

    def predict(self, X):
        raise RuntimeError("nothing to say")


class Slow(Constant):
    """Obeys a time limit."""

    def __init__(self, C=1.0, gamma=1.0, max_seconds=None):
        super().__init__(C, gamma)
        self.max_seconds = max_seconds

    def fit(self, X, y):
        time.sleep(self.max_seconds)
        self.converged_ = False
        return super().fit(X, y)


class OutOfTime(Slow):
    """Says that its time limit ended it, before the limit."""

    def fit(self, X, y):
        self.converged_ = False
        self.fit_status_ = 2
        return Constant.fit(self, X, y)


class Warm(Constant):
    """Counts the fits that its solution comes from; only its first two are slow, as if compiled."""

    compiled = 0

    def __init__(self, C=1.0, gamma=1.0, warm_start=False):
        super().__init__(C, gamma)
        self.warm_start = warm_start

    def fit(self, X, y):
        warm = self.warm_start and hasattr(self, "n_iter_")
        if type(self).compiled <= warm:
            type(self).compiled += 1
            time.sleep(0.1)
        self.n_iter_ = self.n_iter_ + 1 if warm else 1
        return super().fit(X, y)


class WholePath(Warm):
    """Trains all values of C in one call; the objective of the last is not a number."""

    def fit_path(self, X, y, Cs):
        self.fit(X, y)
        self.n_iter_ = np.full(len(Cs), self.n_iter_)
        self.fit_seconds_ = np.arange(1, len(Cs) + 1)
        self.objective_ = np.append(np.ones(len(Cs) - 1), np.nan)
        return self

    def predict_path(self, X):
        return [self.predict(X) for _ in self.objective_]


class BrokenPath(WholePath):
    """Promises to train whole paths, and cannot."""

    def fit_path(self, X, y, Cs):
        raise FloatingPointError("no path here")


class Seeded(Constant):
    """Publishes the random state it was given."""

    def __init__(self, C=1.0, gamma=1.0, random_state=None):
        super().__init__(C, gamma)
        self.random_state = random_state

    def fit(self, X, y):
        self.objective_ = self.random_state
        return super().fit(X, y)


class Range(Constant):
    """Publishes the smallest and the largest feature it was fitted on."""

    def fit(self, X, y):
        self.objective_ = float(X.min())
        self.duality_gap_ = float(X.max())
        return super().fit(X, y)


def here(name):
    """Dotted path of a class of this module."""
    return f"{__name__}.{name}"


def order_for(target, cache, C=(1, 4), params=None, dataset=None, folds=((0, 0),), gamma=None, **protocol):
    """Return the order to train all values of C on some folds of a dataset, iris by default."""
    protocol = Protocol(**protocol)
    space = {"C": C} if gamma is None else {"C": C, "gamma": gamma}
    arms, problems = build_arms(
        {"arm": {"_target_": target, **(params or {})}}, {}, "grid", space, protocol.profile
    )
    assert not problems
    spec = dataset or DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True})
    source, _ = prepare_source(spec, protocol, cache)
    identity = Identity(spec.name, source.fingerprint, source.split_hash, arms[0], protocol)
    points = [
        Candidate.of({"C": c} if gamma is None else {"C": c, "gamma": g}) for c in C for g in gamma or [0]
    ]
    paths = [path for outer, inner in folds for path in identity.paths(outer, inner, points)]
    batch = Batch(1, spec.name, "arm", tuple(paths), attempt=1, base_seconds=1.0)
    return WorkOrder("study", "run", source, arms[0], identity.digest, False, protocol, batch)


def rows_of(order):
    """Run an order and return its rows as mappings."""
    records = run_batch(order).records
    return [records.row(index) for index in range(len(records))]


def train(target, cache, **choices):
    """Return the rows of an order."""
    return rows_of(order_for(here(target), cache, **choices))
