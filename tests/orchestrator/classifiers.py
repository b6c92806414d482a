"""Classifiers that misbehave on purpose, and the orders a worker gets to train them."""

import ctypes
import os
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orchestrator.config.arms import build_arms
from orchestrator.isolation.process_settings import outputs
from orchestrator.study.study import Candidate, DatasetSpec, Protocol, SearchSpec
from orchestrator.study.trials import Batch, Identity, WorkOrder
from orchestrator.study.values import canonical_json
from orchestrator.training.open_data import prepare_data
from orchestrator.training.run_batch import run_batch


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


class Setting(Constant):
    """Takes any setting; only with the one whose canonical text is `best` it looks at the features."""

    def __init__(self, C=1.0, setting=None, best=None):
        super().__init__(C)
        self.setting, self.best = setting, best

    def fit(self, X, y):
        super().fit(X, y)
        self.centres_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        if self.best not in (None, canonical_json(self.setting)):
            return super().predict(X)
        distances = ((X[:, None] - self.centres_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


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


class OutOfTimeAtOnce(OutOfTime):
    """Says that its time limit ended it before it had a model."""

    objective_ = float("nan")


class OutOfTimeForLargeC(Slow):
    """Says that its time limit ended it for the values of C from 4 on, and for 1/4 if gamma is 1."""

    def fit(self, X, y):
        self.converged_ = not (self.C >= 4 or (self.C == 0.25 and self.gamma == 1))
        self.fit_status_ = 0 if self.converged_ else 2
        return Constant.fit(self, X, y)


class Kernels:
    """Compiles as many kernels as it is asked for, slowly, and each once in a process."""

    def __init__(self):
        self.compiled = 0

    def call(self, number):
        if self.compiled <= number:
            self.compiled += 1
            time.sleep(0.1)


class Warm(Constant):
    """Counts the fits that its solution comes from; only its first two are slow, as if compiled."""

    kernels = Kernels()

    def __init__(self, C=1.0, gamma=1.0, warm_start=False):
        super().__init__(C, gamma)
        self.warm_start = warm_start

    def fit(self, X, y):
        warm = self.warm_start and hasattr(self, "n_iter_")
        self.kernels.call(warm)
        self.n_iter_ = self.n_iter_ + 1 if warm else 1
        return super().fit(X, y)


class DivergingOnce(Constant):
    """Counts in its objective the fits it comes from; one value of C, and whatever starts there, diverges."""

    def __init__(self, C=1.0, gamma=1.0, warm_start=False, diverges_at=None):
        super().__init__(C, gamma)
        self.warm_start, self.diverges_at = warm_start, diverges_at

    def fit(self, X, y):
        before = getattr(self, "objective_", 0.0) if self.warm_start else 0.0
        self.objective_ = np.nan if self.diverges_at == self.C else before + 1.0
        return super().fit(X, y)


class DivergingPath(DivergingOnce):
    """The same, all values of C in one call."""

    def fit_path(self, X, y, Cs):
        fitted = type(self)().fit(X, y)
        steps = np.where(np.asarray(Cs) == self.diverges_at, np.nan, 1.0)
        fitted.objective_ = np.cumsum(steps)
        fitted.fit_seconds_ = np.ones(len(Cs))
        return fitted

    def predict_path(self, X):
        return [self.predict(X) for _ in self.objective_]


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


class Reduced(Warm):
    """Publishes which part of its time went to a reduction of the rows."""

    seconds = 1e-7

    def fit(self, X, y):
        super().fit(X, y)
        self.reduction_seconds_ = self.seconds
        self.n_representatives_ = 17
        return self


class Misread(Reduced):
    """Publishes a time that is none."""

    seconds = -1.0


class ReducedPath(WholePath):
    """The same for a path in one call: its trainings share a reduction and a certificate."""

    def fit_path(self, X, y, Cs):
        super().fit_path(X, y, Cs)
        self.objective_ = np.ones(len(Cs))
        self.reduction_seconds_, self.certificate_seconds_ = 3e-7, np.float64(6e-8)
        self.n_representatives_ = 19
        return self


class MisreadPath(ReducedPath):
    """The same, with a time that is none."""

    def fit_path(self, X, y, Cs):
        super().fit_path(X, y, Cs)
        self.reduction_seconds_ = "long"
        return self


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


class Fussy(Constant):
    """Cannot be made with some values of C."""

    def __init__(self, C=1.0, gamma=1.0):
        if C * gamma == 8:
            raise ValueError("these two do not go together")
        super().__init__(C, gamma)


class Unpublished(WholePath):
    """Trains whole paths, and does not say how long each training took."""

    def fit_path(self, X, y, Cs):
        super().fit_path(X, y, Cs)
        self.fit_seconds_ = self.fit_seconds_[:1]
        return self


class OddPath(WholePath):
    """Trains whole paths; its second answer is none, and its third training failed by itself."""

    def predict_path(self, X):
        first, _, third = super().predict_path(X)
        return [first, first[:, None], third]


class ScalesInPlace(ClassifierMixin, BaseEstimator):
    """Scales what it is given in place, when fitted and whenever it is asked."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.scaler_ = StandardScaler(copy=False)
        X -= X.mean(axis=0)
        self.model_ = LogisticRegression(C=self.C).fit(self.scaler_.fit_transform(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        X -= 1.0
        return self.model_.predict(X)

    def predict_proba(self, X):
        X -= 1.0
        return self.model_.predict_proba(X)


class ScalesItsOwn(ScalesInPlace):
    """Scales copies."""

    def fit(self, X, y):
        return super().fit(X.copy(), y)

    def predict(self, X):
        return super().predict(X.copy())

    def predict_proba(self, X):
        return super().predict_proba(X.copy())


class ScalesStoredValues(Constant):
    """Scales the stored values of a sparse matrix in place, and replaces its parts."""

    def fit(self, X, y):
        X.data = X.data.copy()
        X.data /= 2
        X.indices[...] = 0
        self.objective_ = float(X.sum())
        return self.fit_labels(y)

    def fit_labels(self, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.answer_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.answer_)


class SpoilsGram(SVC):
    """Halves kernel values in place after it is fitted."""

    def fit(self, X, y):
        super().fit(X, y)
        if self.kernel == "precomputed":
            X *= 0.5
        return self


class SpoilsGramForGood(SVC):
    """Halves kernel values in place, through a pointer, after it is fitted."""

    def fit(self, X, y):
        super().fit(X, y)
        if self.kernel == "precomputed" and len(X) > 25:
            ctypes.memset(X.ctypes.data, 0, X.nbytes // 2)
        return self


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
        {"arm": {"_target_": target, **(params or {})}}, {}, SearchSpec("grid"), space, protocol.profile
    )
    assert not problems
    spec = dataset or DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True})
    source, *_ = prepare_data(spec, protocol, cache)
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


class ComplainsAtLength(Constant):
    """Fails with a message of 50 MB."""

    def fit(self, X, y):
        raise ValueError("x" * 50_000_000)


def close_what_the_batch_opened():
    """Do the part of `os.closerange(3, 1000)` that the process of a test survives."""
    for copy, *_ in outputs._copies.values():
        os.close(copy)


class ClosesFiles(Constant):
    """Closes descriptors that are not its own: all, or those that its batch has opened."""

    def __init__(self, C=1.0, every=False):
        self.C, self.every = C, every

    def fit(self, X, y):
        if len(X) > 60:  # not when compiling
            if self.every:
                os.closerange(3, 1000)
            else:
                close_what_the_batch_opened()
        return super().fit(X, y)
