"""Find out which metrics and solvers cannot work on a dataset, before anything runs.

Each metric is tried on a `DummyClassifier`, and each solver is trained on about twenty rows. A metric that
does not fit the classes, the solver or the test rows of a split is refused, and so is a solver that cannot be
trained on a column with missing values or text. A solver that fails otherwise is warned of only, for its
failed trainings are results too; and of a failure that the small sample may be to blame for, such as more
neighbours than rows, nothing is said.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.metrics import get_scorer_names
from sklearn.neighbors import NearestCentroid
from sklearn.utils import get_tags

from orchestrator.datasets.dataset import Dataset
from orchestrator.engine.odd_columns import OddColumns
from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.isolation.process_state import ProcessState, kept_process_state
from orchestrator.resampling.splits import Splits, take_rows
from orchestrator.study.names import resolve
from orchestrator.study.study import Arm, Candidate, Metric, Protocol, Study, axis_values
from orchestrator.study.text import MAX_QUOTED
from orchestrator.study.trials import Path
from orchestrator.training.estimators import make_estimator
from orchestrator.training.metrics import metric_objects, metric_targets, refused_metric
from orchestrator.training.responses import ResponseError, Responses, UndefinedError
from orchestrator.training.source_hash import depends_on
from orchestrator.training.split_data import Split, scaled_split
from orchestrator.training.train import PathTask, try_training

ROWS = 20
"""How many rows a solver is tried on; more only if there are more than ten classes."""

_CONCLUSIVE = (TypeError, AttributeError, NotImplementedError, NameError, ImportError, ResponseError)
"""What is raised whatever the number of rows; a ValueError, for example, may come of their being few.

So are SystemExit, KeyboardInterrupt and all else that no `except Exception` catches.
"""


def _metric_error(split: Split, metric: str | Metric, like: Any = None) -> Exception | None:
    """Return what a scorer raises for a dummy that has all methods, or those of an estimator."""
    try:
        _score_dummy(split, metric, like)
    except UndefinedError:
        return None  # of few rows
    except Exception as error:
        return error
    return None


def _score_dummy(split: Split, metric: str | Metric, like: Any = None) -> None:
    dummy = _Dummy(split)
    responses = Responses(dummy if like is None else like, dummy.answer, dummy.predict(), dummy.classes)
    with warnings.catch_warnings(action="ignore"):
        responses.scores([metric], split.y_test, split.X_test)


class _Dummy:
    """Answers about the test rows by the shares of the classes."""

    def __init__(self, split: Split):
        self._model = DummyClassifier(strategy="prior").fit(split.y_train[:, None], split.y_train)
        self._rows = split.y_test[:, None]
        self.classes = split.classes

    def answer(self, method: str) -> NDArray[Any]:
        """Return what a method given by name answers."""
        return np.asarray(getattr(self, method)())

    def predict(self) -> NDArray[Any]:
        """Return the most frequent class for each row."""
        return np.asarray(self._model.predict(self._rows))

    def predict_proba(self) -> NDArray[Any]:
        """Return the shares of the classes for each row."""
        return np.asarray(self._model.predict_proba(self._rows))

    def decision_function(self) -> NDArray[Any]:
        """Return the same as decision values."""
        shares = self.predict_proba()
        return shares[:, 1] if len(self.classes) == 2 else shares


_FAILURE = "expect its trainings to fail"

_SECONDS = 10.0
"""How long a solver is tried on a dataset."""


def infeasible(study: Study, datasets: Mapping[str, Dataset]) -> list[str]:
    """Return one sentence for each metric that cannot work on a dataset, or with a solver there.

    Parameters
    ----------
    study : Study
    datasets : mapping of str to Dataset
        By name.

    Warns
    -----
    UserWarning
        For each solver that cannot be trained on a few rows of a dataset, or ends its process there.
    """
    where: dict[tuple[str, bool], list[str]] = {}
    trials: list[_Trial] = []
    first_arms = {arm.solver: arm for arm in reversed(study.arms)}
    samples = {name: _sample(dataset, study.protocol) for name, dataset in datasets.items()}
    for name, sample in samples.items():
        usable, problems = _usable_metrics(study.protocol, sample)
        for problem in problems:
            where.setdefault((problem, True), []).append(name)
        columns = OddColumns.of(datasets[name])
        trials += [
            _Trial(name, arm, study.protocol, usable, sample, columns)
            for arm in reversed(first_arms.values())
        ]
    for trial, found in zip(trials, call_in_child(_Trial.problems, trials, _SECONDS), strict=True):
        if isinstance(found, ProcessEnded):
            expected = "its trainings may take long" if found.is_late else _FAILURE
            tried = f"solver {trial.arm.solver} {found.reason} when it was tried on a few rows"
            found = [(f"{tried}; {expected}", False)]
        for key in found:
            where.setdefault(key, []).append(trial.dataset)
    refused = []
    for (problem, is_refused), names in where.items():
        sentence = f"dataset{'s' if len(names) > 1 else ''} {', '.join(names)}: {problem}"
        if is_refused:
            refused.append(sentence)
        else:
            warnings.warn(sentence, stacklevel=2)
    return refused


@dataclass(frozen=True)
class _Trial:
    """A solver to be tried on a few rows of a dataset, and scored by the metrics that work there."""

    dataset: str
    arm: Arm
    protocol: Protocol
    metrics: Sequence[str]
    sample: Split
    columns: OddColumns

    def problems(self) -> list[tuple[str, bool]]:
        """Return why the solver cannot be trained, or else not be scored by some metrics.

        Each comes with whether it is a reason to refuse the study.
        """
        name = f"solver {self.arm.solver}"
        if refusal := self.columns.refusal(self._text_of_error, self.sample):
            return [(f"{name} cannot be trained on {refusal}", True)]
        if self._error(self.metrics) is None:
            return []
        if (error := self._error(["accuracy"])) is not None:
            return [(f"{name} cannot be trained on a few rows: {_text(error)}; {_FAILURE}", False)]
        errors = {metric: self._error([metric]) for metric in self.metrics}
        failed = {metric: error for metric, error in errors.items() if error is not None}
        text = " and ".join(dict.fromkeys(map(_text, failed.values())))
        text = text.replace(Responses.__name__, self.arm.target)
        return [(f"{name} cannot be scored by {' or '.join(failed)}: {text}", True)]

    def _text_of_error(self, split: Split) -> str | None:
        """Return what goes wrong in a training and its scoring by accuracy."""
        error = _training_error(self.arm, replace(self.protocol, metric="accuracy", also=()), split)
        return None if error is None else _text(error)

    def _error(self, metrics: Sequence[str]) -> BaseException | None:
        """Return why the solver fails, unless the rows' being few may be the reason."""
        protocol = replace(self.protocol, metric="accuracy", also=tuple(metrics))
        error = _any_error(self.arm, protocol, self.sample)
        conclusive = isinstance(error, _CONCLUSIVE) or not isinstance(error, Exception)
        return error if conclusive and not isinstance(error, UndefinedError) else None


def _usable_metrics(protocol: Protocol, sample: Split) -> tuple[list[str], list[str]]:
    """Return the metrics that work on a dataset, and a sentence for each of the others.

    Those of a user's own are tried in a child process, which they may end.
    """
    usable, problems = [], []
    names = (protocol.metric, *protocol.also)
    metrics = protocol.metrics(names)
    questions = [(most_doubtful(_targets(metric)), metric) for metric in metrics]
    found = ask_classes(lambda metric: _metric_problem(sample, metric), questions)
    for index, (name, problem) in enumerate(zip(names, found, strict=True)):
        if isinstance(problem, ProcessEnded):
            problem = f"it {problem.reason} when it was tried on a few rows"
        if problem:
            problems.append(f"protocol.{'also' if index else 'metric'}={name} does not work: {problem}")
        else:
            usable.append(name)
    return usable, problems


def without_value(protocol: Protocol, name: str, dataset: Dataset, splits: Splits) -> Iterator[str]:
    """Yield a sentence for each scorer of scikit-learn's that has no value for the test rows of some split.

    Area under a curve, for example, takes rows of two classes, and leave-one-out tests on one row.
    """
    sample = _sample(dataset, protocol)
    for metric in dict.fromkeys((protocol.metric, *protocol.also)):
        if metric not in protocol.metrics([metric]) or not _has_value(sample, metric):
            continue
        for level in ("inner", "outer"):
            split = min(
                splits.of_level(level == "outer"), key=lambda at: len(_test_classes(dataset, splits, at))
            )
            found = _test_classes(dataset, splits, split)
            rows = splits.train_test(*split)[1]
            tested = replace(sample, X_test=take_rows(dataset.X, rows), y_test=dataset.y[rows])
            if len(found) < len(dataset.classes) and not _has_value(tested, metric):
                lacking = dataset.classes[np.setdiff1d(np.arange(len(dataset.classes)), found)[0]].item()
                yield (
                    f"dataset {name}: {metric} has no value for test rows without class {lacking!r}, as "
                    f"protocol.{level} makes them; choose another metric, or test sets with all classes"
                )
                break


def _test_classes(dataset: Dataset, splits: Splits, split: tuple[int, int]) -> NDArray[Any]:
    return np.unique(dataset.codes[splits.train_test(*split)[1]])


def _has_value(split: Split, metric: str) -> bool:
    try:
        _score_dummy(split, metric)
    except Exception:
        return False
    return True


def _targets(metric: str | Metric) -> list[str]:
    return ["sklearn.metrics"] if isinstance(metric, str) else metric_targets(metric)


def _metric_problem(sample: Split, metric: str | Metric) -> str:
    error = _metric_error(sample, metric)
    return "" if error is None else f"{_text(error)}{_instead(metric, sample)}"


def _any_error(arm: Arm, protocol: Protocol, sample: Split) -> BaseException | None:
    if not any(map(_is_compiled, arm.targets)):  # fitting it may take a minute of compilation
        return _training_error(arm, protocol, sample)
    with _quiet_process(arm, protocol) as state:
        try:
            estimator = state.run(protocol.seeds[0] % 2**32, make_estimator, *_first_trial(arm, protocol))
        except BaseException as error:
            return error
        metrics = protocol.metrics(protocol.also)
        errors = (_metric_error(sample, metric, estimator) for metric in metrics)
        return next((error for error in errors if error is not None), None)


def _training_error(arm: Arm, protocol: Protocol, sample: Split) -> BaseException | None:
    """Return what a training raises; classifiers that compile are replaced by others of the same needs."""
    _, _, candidate, seed = _first_trial(arm, protocol)
    path = Path("", arm.name, 0, 0, (candidate,), ("",), seed, warm_starts=False)
    with _quiet_process(arm, protocol) as state:
        return try_training(_CheapTask(arm, protocol, path, sample, state))


class _CheapTask(PathTask):
    """A training without compilation."""

    def estimator(self, candidate: Candidate) -> Any:
        """Make the unfitted estimator of a candidate."""
        return _without_compilation(super().estimator(candidate))


def _without_compilation(estimator: Any) -> Any:
    """Replace an estimator, or what is nested in it, where its class compiles."""
    if _compiles(estimator):
        return DummyClassifier() if get_tags(estimator).input_tags.allow_nan else NearestCentroid()
    parts = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if stand_ins := {name: _without_compilation(part) for name, part in parts.items() if _compiles(part)}:
        estimator.set_params(**stand_ins)
    return estimator


def _compiles(estimator: Any) -> bool:
    kind = type(estimator)
    return isinstance(estimator, ClassifierMixin) and _is_compiled(f"{kind.__module__}.{kind.__qualname__}")


def _first_trial(arm: Arm, protocol: Protocol) -> tuple[Arm, Protocol, Candidate, int]:
    """Return the arguments that make the estimator of an arm's first candidate."""
    candidate = Candidate.of({name: axis_values(values)[0] for name, values in arm.space.items()})
    return arm, protocol, candidate, protocol.seeds[0] % 2**32


@contextmanager
def _quiet_process(arm: Arm, protocol: Protocol) -> Iterator[ProcessState]:
    kinds = *map(resolve, arm.targets), *metric_objects(protocol.own_metrics)
    with warnings.catch_warnings(action="ignore"), kept_process_state(*kinds) as state:
        yield state


@cache
def _is_compiled(target: str) -> bool:
    return depends_on(target, "numba")  # which takes ten milliseconds, for every dataset anew


def _instead(metric: str | Metric, sample: Split) -> str:
    """Name the variants of a scorer of scikit-learn's that would work."""
    if not isinstance(metric, str):
        return ""
    variants = [
        name
        for name in get_scorer_names()
        if name.startswith(f"{metric}_") and not refused_metric(name) and _metric_error(sample, name) is None
    ]
    return f"; use {' or '.join(variants)}" if variants else ""


def _text(error: BaseException) -> str:
    """Return the first sentence of an error's text."""
    try:
        text = " ".join(str(error).split()).split(". ")[0].rstrip(".")[:MAX_QUOTED]
    except BaseException:  # its class has a `__str__` of its own
        text = "its text cannot be read"
    return text if isinstance(error, (ValueError, AttributeError)) else f"{type(error).__name__}: {text}"


def _sample(dataset: Dataset, protocol: Protocol) -> Split:
    """Return rows of each class to train on, and others to predict."""
    each = max(2, ROWS // len(dataset.classes))
    members = [np.flatnonzero(dataset.codes == code) for code in range(len(dataset.classes))]
    train = np.concatenate([rows[: min(each, len(rows) // 2)] for rows in members])
    test = np.concatenate([rows[-min(each, len(rows) // 2) :] for rows in members])
    train = np.union1d(train, OddColumns.of(dataset).rows())
    return scaled_split(dataset, train, np.sort(test), protocol.scaling)
