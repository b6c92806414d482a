"""Estimators that publish odd values after their fit: nearest centroids in all else.

Each class of `ODD` publishes one odd value as the attribute that its name begins with. Each of `ODD_PATHS`
does so for the trainings of a path that it solves in one call.
"""

import decimal
import fractions
import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import scipy.sparse

from tests.orchestrator.hostile import MANY, Centroids


class Unreadable:
    """Raises whenever it is asked for anything."""

    def _fail(self, *arguments, **named):
        raise RuntimeError("not readable")

    __int__ = __float__ = __bool__ = __str__ = __repr__ = __len__ = __iter__ = __array__ = _fail
    __index__ = __getitem__ = __getattr__ = _fail


class Endless:
    """Has an item at every index."""

    def __getitem__(self, index):
        return 1

    def __len__(self):
        return 3


class NotANumber(int):
    """A whole number that is worth another when asked."""

    def __int__(self):
        return -(10**40)


class HugeText:
    """A text of 20 MB."""

    def __str__(self):
        return "x" * 20_000_000

    __repr__ = __str__


def endless():
    """Yield ones for ever."""
    while True:
        yield 1


def failing():
    """Yield one, then fail."""
    yield 1
    raise RuntimeError("no second one")


def cyclic():
    """Return a list that holds itself."""
    items = [1]
    items.append(items)
    return items


COUNTS = {
    "Text": lambda: "many",
    "DigitsAsText": lambda: "12",
    "Bytes": lambda: b"12",
    "Huge": lambda: 10**30,
    "HugeDigits": lambda: 10**10_000,
    "Infinite": lambda: np.inf,
    "NaN": lambda: np.nan,
    "Negative": lambda: -3,
    "NegativeArray": lambda: np.array([-1, 4]),
    "Half": lambda: 2.5,
    "Complex": lambda: 1j,
    "Truth": lambda: True,
    "Object": object,
    "Objects": lambda: np.array([object(), 1], dtype=object),
    "Generator": lambda: (number for number in (1, 2)),
    "Endless": endless,
    "Failing": failing,
    "EndlessItems": Endless,
    "Counter": itertools.count,
    "Mapping": lambda: {"rbf": 3},
    "Cyclic": cyclic,
    "Ragged": lambda: [[1, 2], [3]],
    "Times": lambda: np.array(["2020-01-01"], dtype="datetime64[s]"),
    "Structured": lambda: np.zeros(2, dtype=[("a", int)]),
    "Masked": lambda: np.ma.array([1, 2], mask=[True, False]),
    "Sparse": lambda: scipy.sparse.csr_matrix(np.ones((2, 2))),
    "Frame": lambda: pd.DataFrame({"n": ["a"]}),
    "Unreadable": Unreadable,
    "Empty": list,
    "Fraction": lambda: fractions.Fraction(3),
    "Type": lambda: int,
    "Function": lambda: len,
    "OverflowingSum": lambda: np.array([2**62] * 3),
    "HugeText": HugeText,
}
"""What `n_iter_` is published as, and none of which is a count."""

NUMBERS = {
    "Text": lambda: "low",
    "NumberAsText": lambda: "0.5",
    "Complex": lambda: 1 + 1j,
    "Generator": lambda: (number for number in (0.5, 0.5)),
    "Endless": endless,
    "Object": object,
    "Objects": lambda: np.array([None, 1.0], dtype=object),
    "Truth": lambda: True,
    "Huge": lambda: 10**400,
    "Mapping": lambda: {"dual": 1.0},
    "Cyclic": cyclic,
    "Unreadable": Unreadable,
    "Times": lambda: np.timedelta64(3, "s"),
    "Ragged": lambda: [[1.0], [1.0, 2.0]],
    "Decimal": lambda: decimal.Decimal("0.5"),
}
"""What `objective_` and `duality_gap_` are published as, and none of which is a number."""

TRUTHS = {
    "Array": lambda: np.array([True, False]),
    "Text": lambda: "no",
    "One": lambda: 1,
    "Generator": lambda: (truth for truth in (True,)),
    "Unreadable": Unreadable,
    "NaN": lambda: np.nan,
}
"""What `converged_` is published as, and none of which is a truth."""

LEFT_OUT = {
    **{f"NIter{name}": ("n_iter_", value) for name, value in COUNTS.items()},
    **{f"Objective{name}": ("objective_", value) for name, value in NUMBERS.items()},
    **{
        f"Gap{name}": ("duality_gap_", value)
        for name, value in {"Negative": lambda: -0.5, "MinusInfinite": lambda: -np.inf, **NUMBERS}.items()
    },
    **{f"Converged{name}": ("converged_", value) for name, value in TRUTHS.items()},
    "SupportText": ("n_support_", lambda: "three"),
    "SupportNegative": ("n_support_", lambda: np.array([-1, -2])),
    "SupportRows": ("n_support_", lambda: [[1, 2], [3]]),
    "EvalsHuge": ("n_kernel_evals_", lambda: 10**30),
    "EvalsInfinite": ("n_kernel_evals_", lambda: np.inf),
}
"""Names of classes, the attributes that they publish, and how to make values that no column can hold."""

DIVERGED = {
    "ObjectiveNaN": ("objective_", lambda: np.nan),
    "ObjectiveInfinite": ("objective_", lambda: -np.inf),
    "ObjectivesNaN": ("objective_", lambda: np.array([1.0, np.nan])),
}
"""The same of values that say that a training has diverged."""

STORED = {
    "StatusHugeText": ("fit_status_", HugeText),
    "StatusSurrogate": ("fit_status_", lambda: "\ud800"),
    "StoppingMapping": ("stopping_", lambda: {"by": "tol"}),
    "GapNaN": ("duality_gap_", lambda: np.nan),
    "NIterNone": ("n_iter_", lambda: None),
    "NIterSubclass": ("n_iter_", lambda: NotANumber(3)),
    "StatusUnreadable": ("fit_status_", Unreadable),
}
"""The same of values that are odd, and that columns hold."""

RAISING = ("n_iter_", "objective_", "n_support_", "converged_")
"""Attributes that raise when they are read."""


def publishing(name, attribute, value):
    """Make a class that publishes a value."""

    def harm(self, X, y):
        setattr(self, attribute, value())

    return type(name, (Centroids,), {"harm": harm, "__module__": __name__})


def raising(name, attribute):
    """Make a class of which an attribute raises when it is read."""

    def read(self):
        if len(getattr(self, "means_", ())) and self.n_rows_ > MANY:
            raise RuntimeError("not now")
        raise AttributeError(attribute)

    def learn(self, X, y):
        self.n_rows_ = len(X)
        Centroids.learn(self, X, y)

    body = {"learn": learn, attribute: property(read), "__module__": __name__}
    return type(name, (Centroids,), body)


PUBLISHED = LEFT_OUT | DIVERGED | STORED
RAISED = {f"Raises{attribute.title().replace('_', '')}": attribute for attribute in RAISING}
ODD = [*PUBLISHED, *RAISED]
globals().update({name: publishing(name, *published) for name, published in PUBLISHED.items()})
globals().update({name: raising(name, attribute) for name, attribute in RAISED.items()})


# -- paths ---------------------------------------------------------------------------------------


class CentroidsPath(Centroids):
    """Nearest centroids for each value of C, solved in one call."""

    warm_start = False

    def __init__(self, C=1.0, warm_start=False):
        super().__init__(C)
        self.warm_start = warm_start

    def fit(self, X, y):
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(X)

    def fit_path(self, X, y, Cs):
        n = len(Cs)
        self.learn(X, y)
        fitted = SimpleNamespace(fit_seconds_=np.ones(n), n_iter_=np.arange(n))
        fitted.predict_path = lambda test: self.answers([self.nearest(test) for _ in Cs])
        if len(X) > MANY:
            self.publish(fitted, n)
        return fitted

    def publish(self, fitted, n):
        pass

    def answers(self, labels):
        return labels


PATHS_LEFT_OUT = {
    "Short": lambda n: np.arange(n - 1),
    "Long": lambda n: np.arange(n + 1),
    "Scalar": lambda n: 3,
    "Empty": lambda n: [],
    "Text": lambda n: "many",
    "Generator": lambda n: (number for number in range(n)),
    "Endless": lambda n: endless(),
    "Mapping": lambda n: dict.fromkeys(range(n), 1),
    "Column": lambda n: np.ones((n, 2, 2)),
    "Object": lambda n: object(),
    "Objects": lambda n: np.array([object()] * n, dtype=object),
    "Unreadable": lambda n: Unreadable(),
    "EndlessItems": lambda n: Endless(),
    "Negative": lambda n: np.full(n, -2),
    "Huge": lambda n: [10**30] * n,
    "Complex": lambda n: np.full(n, 1j),
}
"""What a path publishes as its `n_iter_`, by the number of trainings; nothing of it is a count."""

PATHS_FAILED = {
    "SecondsNaN": lambda n: np.full(n, np.nan),
    "SecondsNegative": lambda n: np.full(n, -1.0),
    "SecondsInfinite": lambda n: np.full(n, np.inf),
    "SecondsShort": lambda n: np.ones(n - 1),
    "SecondsScalar": lambda n: 1.0,
    "SecondsText": lambda n: ["soon"] * n,
    "SecondsNone": lambda n: None,
    "SecondsGenerator": lambda n: (1.0 for _ in range(n)),
    "SecondsComplex": lambda n: np.full(n, 1j),
    "SecondsUnreadable": lambda n: Unreadable(),
}
"""What a path publishes as its `fit_seconds_`, without which its time cannot be shared out."""


def publishing_path(name, attribute, value):
    """Make a class whose paths publish a value."""

    def publish(self, fitted, n):
        setattr(fitted, attribute, value(n))

    def fit(self, X, y):
        return CentroidsPath.fit(self, X, y)

    def fit_path(self, X, y, Cs):
        return CentroidsPath.fit_path(self, X, y, Cs)

    def predict(self, X):
        return CentroidsPath.predict(self, X)

    body = {"publish": publish, "fit": fit, "fit_path": fit_path, "predict": predict}
    return type(name, (CentroidsPath,), {**body, "__module__": __name__})


PATHS_LABELS = {
    "PathLabelsGenerator": lambda labels: (each for each in labels),
    "PathLabelsNone": lambda labels: None,
    "PathLabelsShort": lambda labels: labels[:-1],
}
"""What a path predicts, in place of labels for each training."""


def answering_path(name, answers):
    """Make a class whose paths predict odd labels."""
    kind = publishing_path(name, "n_iter_", np.arange)
    kind.answers = lambda self, labels: answers(labels)
    return kind


PATHS = {f"Path{name}": ("n_iter_", value) for name, value in PATHS_LEFT_OUT.items()}
FAILED_PATHS = {f"Path{name}": ("fit_seconds_", value) for name, value in PATHS_FAILED.items()}
ODD_PATHS = [*PATHS, *FAILED_PATHS, *PATHS_LABELS]
globals().update({n: publishing_path(n, *published) for n, published in (PATHS | FAILED_PATHS).items()})
globals().update({name: answering_path(name, answers) for name, answers in PATHS_LABELS.items()})
