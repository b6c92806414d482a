"""Estimators that do harm, one kind each: to their data, to their process, or by what they answer.

Each is a nearest-centroid classifier apart from that, so its row is right if it is the row of `Centroids`. On
the few rows on which solvers are tried and compiled they behave.
"""

import asyncio
import builtins
import ctypes
import decimal
import gc
import itertools
import locale
import logging
import os
import random
import re
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_limits

MANY = 25
"""Harm is done to more rows than this."""

REMEMBERED = {}
N_FITS = 0


class Centroids(ClassifierMixin, BaseEstimator):
    """Predicts the class whose mean is nearest, and does no harm."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.learn(X, y)
        if len(X) > MANY:
            self.harm(X, y)
        return self

    def learn(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])

    def harm(self, X, y):
        pass

    def predict(self, X):
        labels = self.nearest(X)
        return self.answer(labels) if len(X) > MANY else labels

    def nearest(self, X):
        distances = ((X[:, None] - self.means_[None]) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]

    def answer(self, labels):
        return labels


# -- writers -------------------------------------------------------------------------------------


class CentresX(Centroids):
    def learn(self, X, y):
        self.centre_ = X.mean(axis=0)
        X -= self.centre_
        super().learn(X, y)

    def nearest(self, X):
        return super().nearest(X - self.centre_)


class CentresTestRows(Centroids):
    def learn(self, X, y):
        self.centre_ = X.mean(axis=0)
        super().learn(X - self.centre_, y)

    def nearest(self, X):
        X -= self.centre_
        return super().nearest(X)


class EncodesLabels(Centroids):
    def learn(self, X, y):
        y += 7
        super().learn(X, y)
        self.classes_ = self.classes_ - 7


class ClearsX(Centroids):
    def harm(self, X, y):
        X[...] = 0


class ClearsLabels(Centroids):
    def harm(self, X, y):
        y[...] = 0


class ClearsQuietly(Centroids):
    def harm(self, X, y):
        with suppress(ValueError):
            X[...] = 0
        with suppress(ValueError):
            y[...] = 0


class ReplacesNumbersInPlace(Centroids):
    def harm(self, X, y):
        np.nan_to_num(X, copy=False)
        X.partition(1, axis=0)


class ShufflesRows(Centroids):
    def harm(self, X, y):
        np.random.default_rng(0).shuffle(X)


class SetsFlags(Centroids):
    def harm(self, X, y):
        X.flags.writeable = True
        X[...] = 0


class SetsFlagsQuietly(Centroids):
    def harm(self, X, y):
        for array in (X, y):
            with suppress(ValueError):
                array.setflags(write=True)
            with suppress(ValueError):
                array[...] = 0


class WritesThroughTheBase(Centroids):
    def harm(self, X, y):
        for array in (X, y):
            base = array
            while base is not None:
                with suppress(ValueError, TypeError, AttributeError):
                    base.flags.writeable = True
                with suppress(ValueError, TypeError):
                    np.asarray(base)[...] = 0
                base = (
                    getattr(base, "base", None)
                    if isinstance(base, np.ndarray)
                    else getattr(base, "obj", None)
                )


class WritesThroughMemoryviews(Centroids):
    def harm(self, X, y):
        memoryview(X)[0, 0] = 0


class WritesThroughTheInterface(Centroids):
    def harm(self, X, y):
        interface = {**X.__array_interface__, "data": (X.__array_interface__["data"][0], False)}
        np.asarray(SimpleNamespace(__array_interface__=interface))[...] = 0


class WritesThroughPointers(Centroids):
    def harm(self, X, y):
        ctypes.memset(X.ctypes.data, 0, X.nbytes)


class WritesLabelsThroughPointers(Centroids):
    def harm(self, X, y):
        ctypes.memset(y.ctypes.data, 0, y.nbytes)


class ShufflesThroughPointers(Centroids):
    def harm(self, X, y):
        ctypes.memmove(X.ctypes.data, X[::-1].tobytes(), X.nbytes)


class WritesTestRowsThroughPointers(Centroids):
    def predict(self, X):
        labels = super().predict(X)
        if len(X) > MANY:
            ctypes.memset(X.ctypes.data, 0, X.nbytes)
        return labels


class Reshapes(Centroids):
    def harm(self, X, y):
        with warnings.catch_warnings(action="ignore"):
            X.shape = X.shape[::-1]
            y.shape = (len(y), 1)


class Retypes(Centroids):
    def harm(self, X, y):
        with warnings.catch_warnings(action="ignore"):
            X.dtype = np.int64
            y.dtype = np.uint64


class WritesLater(Centroids):
    kept: ClassVar = []

    def harm(self, X, y):
        for array in self.kept:
            with suppress(ValueError):
                array[...] = 0
        self.kept.append(X)


class ChangesItsParameters(Centroids):
    def __init__(self, C=1.0, weights=(1.0,)):
        super().__init__(C)
        self.weights = weights

    def harm(self, X, y):
        self.means_ = self.means_ * sum(self.weights)
        self.weights.append(2.0)


# -- answers -------------------------------------------------------------------------------------


class Equal:
    """Equals everything."""

    __hash__ = None

    def __eq__(self, other):
        return True


class EqualArray(np.ndarray):
    """Equals everything, element by element."""

    __hash__ = None

    def __eq__(self, other):
        return np.ones(self.shape, dtype=bool)


class EqualNumber(int):
    """Equals everything."""

    __hash__ = None

    def __eq__(self, other):
        return True


class AnswersAColumn(Centroids):
    def answer(self, labels):
        return labels[:, None]


class AnswersARow(Centroids):
    def answer(self, labels):
        return labels[None]


class AnswersOnce(Centroids):
    def answer(self, labels):
        return labels[:1]


class AnswersOneNumber(Centroids):
    def answer(self, labels):
        return labels[0]


class AnswersTooMuch(Centroids):
    def answer(self, labels):
        return np.append(labels, labels)


class AnswersNothing(Centroids):
    def answer(self, labels):
        return None


class AnswersNaN(Centroids):
    def answer(self, labels):
        return np.full(len(labels), np.nan)


class AnswersHalves(Centroids):
    def answer(self, labels):
        return labels + 0.5


class AnswersText(Centroids):
    def answer(self, labels):
        return labels.astype(str)


class AnswersOneText(Centroids):
    def answer(self, labels):
        return "setosa"


class AnswersObjects(Centroids):
    def answer(self, labels):
        return np.array([Equal() for _ in labels], dtype=object)


class AnswersAnObject(Centroids):
    def answer(self, labels):
        return Equal()


class AnswersASubclass(Centroids):
    def answer(self, labels):
        return (labels + 99).view(EqualArray)


class AnswersNumbersThatLie(Centroids):
    def answer(self, labels):
        return [EqualNumber(99) for _ in labels]


class AnswersAGenerator(Centroids):
    def answer(self, labels):
        return (label for label in labels)


class AnswersASparseMatrix(Centroids):
    def answer(self, labels):
        return scipy.sparse.csr_matrix(labels)


class AnswersMasked(Centroids):
    def answer(self, labels):
        return np.ma.array(labels, mask=labels == 1)


class AnswersAnotherLabel(Centroids):
    def answer(self, labels):
        return np.where(labels == 2, 3, labels)


class AnswersComplex(Centroids):
    def answer(self, labels):
        return labels + 0j


class AnswersAFrame(Centroids):
    def answer(self, labels):
        return pd.DataFrame({"label": labels})


class AnswersOneHot(Centroids):
    def answer(self, labels):
        return np.eye(3)[labels]


class AnswersAMapping(Centroids):
    def answer(self, labels):
        return dict(enumerate(labels))


class AnswersAList(Centroids):
    def answer(self, labels):
        return labels.tolist()


class AnswersASeries(Centroids):
    def answer(self, labels):
        return pd.Series(labels, index=range(100, 100 + len(labels)))


class AnswersFloats(Centroids):
    def answer(self, labels):
        return labels.astype(np.float32)


class FitsWithoutAnAnswer(Centroids):
    def fit(self, X, y):
        super().fit(X, y)


# -- what they publish, and how they fail --------------------------------------------------------


class PublishesTooMuch(Centroids):
    def harm(self, X, y):
        self.n_iter_ = 10**30
        self.n_kernel_evals_ = np.inf


class PublishesNonsense(Centroids):
    def harm(self, X, y):
        self.n_iter_ = "many"
        self.n_support_ = object()
        self.duality_gap_ = 1j
        self.converged_ = np.array([True, False])
        self.fit_status_ = "\ud800"


class FailsToPublish(Centroids):
    @property
    def n_iter_(self):
        raise RuntimeError("not now")


class FailsInNoEncoding(Centroids):
    def harm(self, X, y):
        raise RuntimeError("\ud800")


class FailsUnspeakably(Centroids):
    class Error(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def harm(self, X, y):
        raise self.Error

    def __repr__(self):
        raise RuntimeError("no text")


# -- changed processes ---------------------------------------------------------------------------


class ChangesTheDirectory(Centroids):
    def harm(self, X, y):
        os.chdir("/")


class ChangesTheEnvironment(Centroids):
    def harm(self, X, y):
        os.environ.clear()
        os.environ["OMP_NUM_THREADS"] = "7"


class ReplacesTheEnvironment(Centroids):
    def harm(self, X, y):
        os.environ = {}  # noqa: B003


class ChangesThePath(Centroids):
    def harm(self, X, y):
        sys.path = []


class TurnsWarningsIntoErrors(Centroids):
    def learn(self, X, y):
        warnings.warn("harmless", DeprecationWarning, stacklevel=1)
        super().learn(X, y)

    def harm(self, X, y):
        warnings.simplefilter("error")


class TakesThreads(Centroids):
    def harm(self, X, y):
        threadpool_limits(4)


class ChangesTheLocale(Centroids):
    def harm(self, X, y):
        locale.setlocale(locale.LC_ALL, "C")


class ChangesDecimals(Centroids):
    def learn(self, X, y):
        super().learn(X, y)
        self.means_ = self.means_ * float(1 / decimal.Decimal(3)) * 3

    def harm(self, X, y):
        decimal.getcontext().prec = 1


class RaisesOnRounding(Centroids):
    def learn(self, X, y):
        super().learn(X, y)
        np.exp(-1000.0 * np.ones(3))

    def harm(self, X, y):
        np.seterr(all="raise")


class ReplacesOutput(Centroids):
    def harm(self, X, y):
        sys.stdout = sys.stderr = None


class ConfiguresScikitLearn(Centroids):
    def harm(self, X, y):
        sklearn.set_config(assume_finite=True, transform_output="pandas", enable_metadata_routing=True)


class StopsCollectingGarbage(Centroids):
    def harm(self, X, y):
        gc.disable()
        gc.set_threshold(1, 1, 1)


class ForbidsRecursion(Centroids):
    def harm(self, X, y):
        sys.setrecursionlimit(sys.getrecursionlimit() // 4)


class ReplacesNumpy(Centroids):
    def harm(self, X, y):
        np.count_nonzero = lambda *arguments: 0
        np.unique = np.sort
        del np.argmin


class ReplacesBuiltins(Centroids):
    def harm(self, X, y):
        builtins.sorted = builtins.min


class ReplacesClocks(Centroids):
    def harm(self, X, y):
        time.perf_counter = time.process_time = time.monotonic = lambda: 0.0


class SilencesLogging(Centroids):
    def harm(self, X, y):
        logging.disable()
        logging.getLogger().handlers.clear()
        logging.getLogger("orchestrator").disabled = True


class HandlesSignals(Centroids):
    def harm(self, X, y):
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)


class SetsAnAlarm(Centroids):
    def harm(self, X, y):
        signal.setitimer(signal.ITIMER_REAL, 60.0)


class HidesNewFiles(Centroids):
    def harm(self, X, y):
        os.umask(0o777)


class TracesCalls(Centroids):
    def harm(self, X, y):
        sys.settrace(lambda *arguments: None)
        sys.setprofile(lambda *arguments: None)


class ReplacesTheGenerator(Centroids):
    def harm(self, X, y):
        np.random.set_bit_generator(np.random.PCG64(int(time.time())))


class ReseedsFromTheClock(Centroids):
    def harm(self, X, y):
        np.random.seed(None)  # noqa: NPY002
        random.seed()


class CountsFits(Centroids):
    n_fits = 0

    def learn(self, X, y):
        super().learn(X, y)
        self.means_ = self.means_ * (1 + type(self).n_fits)

    def harm(self, X, y):
        type(self).n_fits += 1


class CountsFitsInItsModule(Centroids):
    def learn(self, X, y):
        super().learn(X, y)
        self.means_ = self.means_ * (1 + N_FITS)

    def harm(self, X, y):
        global N_FITS
        N_FITS += 1


class RemembersMeans(Centroids):
    def learn(self, X, y):
        super().learn(X, y)
        self.means_ = REMEMBERED.setdefault("means", self.means_)

    def harm(self, X, y):
        REMEMBERED["means"] = self.means_[::-1]


class ReplacesWhatItInherits(Centroids):
    def harm(self, X, y):
        BaseEstimator.get_params = BaseEstimator.set_params = None
        Centroids.learn = lambda self, X, y: None


# -- randomness ----------------------------------------------------------------------------------


class Guesses(Centroids):
    """Not right, but the same in every run."""

    def answer(self, labels):
        return np.random.permutation(labels)  # noqa: NPY002


class GuessesInPython(Centroids):
    """Not right, but the same in every run."""

    def answer(self, labels):
        return random.sample(labels.tolist(), len(labels))


RANDOM = [Guesses, GuessesInPython]
HOSTILE = [kind for kind in vars().copy().values() if isinstance(kind, type) and issubclass(kind, Centroids)]
HOSTILE.remove(Centroids)


# -- every kind of exit in every place -----------------------------------------------------------


class LastStraw(BaseException):
    """No `except Exception` catches it, and it has no text."""

    def __str__(self):
        sys.exit(5)


def recurse():
    recurse()


def raising(error, *arguments):
    def act():
        raise error(*arguments)

    return act


def ignore_and_loop():
    while True:
        with suppress(BaseException):
            time.sleep(0.01)


RAISED = {
    "SystemExit": sys.exit,
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "GeneratorExit": raising(GeneratorExit),
    "StopIteration": raising(StopIteration, 1),
    "Cancelled": raising(asyncio.CancelledError),
    "MemoryError": raising(MemoryError),
    "Recursion": recurse,
    "OsExit0": lambda: os._exit(0),
    "OsExit1": lambda: os._exit(1),
    "NoText": raising(LastStraw),
    "Surrogate": raising(RuntimeError, "\ud800"),
    "LongText": lambda: exec("raise RuntimeError('x' * 10_000_000)"),
}
"""What a process survives."""

KILLING = {
    "Segfault": lambda: ctypes.string_at(0),
    "Sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "ExitOfC": lambda: ctypes.CDLL(None)._exit(0),
    "ClosedFiles": lambda: os.closerange(3, 1000),
}
"""What no process survives."""

ENDLESS = {
    "Sleep": lambda: time.sleep(1e6),
    "IgnoreAndLoop": ignore_and_loop,
    "Compiled": lambda: re.match("(a+)+$", "a" * 60 + "b"),  # never leaves C, nor frees the interpreter
}
"""What ends only with its process."""


class ExitsLater(Centroids):
    """Ends its process during another's training."""

    def harm(self, X, y):
        threading.Timer(0.3, ctypes.CDLL(None)._exit, [7]).start()


class Naps(Centroids):
    """Takes as long as it takes others to end its process."""

    def harm(self, X, y):
        time.sleep(0.1)


class Scorable(Centroids):
    """Nearest centroids with decision values for two classes; harm is done in one place."""

    place = "nowhere"
    many = MANY

    @staticmethod
    def act():
        pass

    def __init__(self, C=1.0):
        super().__init__(C)
        self._do("init", self.many + 1)

    def _do(self, place, n):
        if place == self.place and n > self.many:
            type(self).act()

    def fit(self, X, y):
        self.learn(X, y)
        self.n_rows_ = len(X)
        self._do("fit", len(X))
        return self

    def predict(self, X):
        self._do("predict", self.n_rows_)
        return self.nearest(X)

    def decision_function(self, X):
        self._do("decision_function", self.n_rows_)
        distances = ((X[:, None] - self.means_[None]) ** 2).sum(axis=2)
        return distances[:, 0] - distances[:, 1]

    @property
    def n_iter_(self):
        self._do("attribute", self.n_rows_)
        return 1


class Asked(Scorable):
    """Has the methods that are asked before anything runs."""

    def __init__(self, C=1.0, kernel="rbf", gamma=1.0):
        super().__init__(C)
        self.kernel, self.gamma = kernel, gamma

    def _validate_params(self):
        self._do("validate", self.many + 1)
        return self._parameter_constraints

    @property
    def _parameter_constraints(self):
        self._do("constraints", self.many + 1)
        return {}

    def __sklearn_tags__(self):
        self._do("tags", self.many + 1)
        return super().__sklearn_tags__()

    def prefers_gram(self, n_samples, n_features):
        self._do("prefers_gram", self.many + 1)
        return True


def generated(kinds, places, many=MANY, base=Scorable):
    """Make a class for every kind of exit in every place."""
    made = []
    for (kind, act), place in itertools.product(kinds.items(), places):
        name = f"{kind}In{place.title().replace('_', '')}"
        globals()[name] = type(
            name,
            (base,),
            {"act": staticmethod(act), "place": place, "many": many, "__module__": __name__},
        )
        made.append(name)
    return made


PLACES = ("fit", "predict", "decision_function", "attribute")
REFITS = 200
"""Of breast_cancer in two by two folds only refits train on more rows: what recovers slowly is rare."""

RAISING = generated(RAISED, PLACES)
KILLERS = generated(KILLING, ("fit", "predict"), REFITS)
HANGING = generated(ENDLESS, ("fit", "predict"), REFITS)
ENDING = {**KILLING, "Exit": lambda: os._exit(0), "Endless": ENDLESS["Sleep"]}
REFUSED = generated({**RAISED, **ENDING}, ("init",), 0)
REFUSED += generated(ENDING, ("validate", "constraints", "tags"), 0, Asked)
REFUSED_BY_DATASET = generated(ENDING, ("prefers_gram",), 0, Asked)

MODULES = {
    "exits": ("import sys; sys.exit(3)", "importing 'exits' failed: SystemExit: 3"),
    "exits_at_once": (
        "import os; os._exit(0)",
        "importing exits_at_once ended its process with exit status 0",
    ),
    "interrupts": ("raise KeyboardInterrupt", "importing interrupts raised KeyboardInterrupt"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "importing crashes ended its process by SIGSEGV"),
    "waits": ("import time; time.sleep(1e6)", "importing waits did not end within 1 s"),
}
"""Modules that do harm when they are imported, and what is said of them."""
