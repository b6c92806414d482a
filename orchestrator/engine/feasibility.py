"""Find metrics and solvers that cannot work on a dataset, before any trial runs.

Each metric scores a `DummyClassifier`, and each solver is trained on about 20 rows. The study is refused if a
metric does not fit the classes, the solver or the test rows of a split. It is refused, too, if a solver
cannot be trained on columns with missing values or text, which its preparation leaves as they are. Other
failures of a solver or a preparation only cause a warning, because failed trainings are results too. A
failure that the small sample may cause, such as more neighbours than rows, is not reported.
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
from orchestrator.engine.baseline import score_dummy
from orchestrator.engine.odd_columns import OddColumns, Refusal, refusal_text
from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.isolation.process_state import ProcessState, kept_process_state
from orchestrator.resampling.splits import Splits, take_rows
from orchestrator.study.preparation import SCALINGS, STANDARD, TABLE, Preparation
from orchestrator.study.study import Arm, Candidate, Metric, Protocol, Study, axis_values
from orchestrator.study.targets import resolve
from orchestrator.study.text import MAX_QUOTED
from orchestrator.study.trials import REFIT, Pair, Path
from orchestrator.training.estimators import make_estimator
from orchestrator.training.metrics import metric_objects, metric_targets, refused_metric
from orchestrator.training.preparation import PreparationError
from orchestrator.training.responses import ResponseError, Responses, UndefinedError
from orchestrator.training.source_hash import depends_on
from orchestrator.training.split_data import Split, prepared_split
from orchestrator.training.train import PathTask, try_training

ROWS = 20
"""Number of rows on which a solver is tried. With more than ten classes, there are at least two rows of
each class."""

_CONCLUSIVE = (TypeError, AttributeError, NotImplementedError, NameError, ImportError, ResponseError)
"""Exceptions that do not depend on the number of rows. A ValueError, for example, may be raised because
there are few. Exceptions that `except Exception` does not catch, such as SystemExit, are conclusive as
well."""


def _metric_error(split: Split, metric: str | Metric, like: Any = None) -> Exception | None:
    """Return the exception that a scorer raises on the test rows, or None.

    Parameters
    ----------
    split : Split
        The rows; those for testing are scored.
    metric : str or Metric
        Name of a scorer or a custom metric.
    like : object, optional
        Estimator whose response methods the dummy classifier offers. By default, it offers all.

    Returns
    -------
    Exception or None
        The exception; None also for an `UndefinedError`, which a small number of rows may cause.
    """
    try:
        score_dummy(split, [metric], like)
    except UndefinedError:
        return None  # few rows may cause it
    except Exception as error:
        return error
    return None


_FAILURE = "expect its trainings to fail"
"""End of the warning about a solver that fails on a few rows."""

_SECONDS = 10.0
"""Time limit for trying one solver on one dataset, in seconds."""


def infeasible(
    study: Study, datasets: Mapping[str, Dataset], preparations: Mapping[Pair, Preparation]
) -> list[str]:
    """Return one sentence for each metric or solver that cannot work on a dataset.

    Parameters
    ----------
    study : Study
        The study, whose metrics and solvers are tried.
    datasets : mapping of str to Dataset
        The datasets by name.
    preparations : mapping of Pair to Preparation
        Preparation of each dataset × arm. Pairs without one are not tried.

    Returns
    -------
    list of str
        Sentences that name the datasets, the metric or solver, and the problem.

    Warns
    -----
    UserWarning
        For each solver that cannot be trained on a few rows of a dataset, or ends its process there, and for
        each preparation that fails on them.
    """
    where: dict[tuple[str, bool], list[str]] = {}
    trials: list[_Trial] = []
    for name, dataset in datasets.items():
        sample = _sample(dataset, study.protocol)
        usable, problems = _usable_metrics(study.protocol, sample)
        for problem in problems:
            where.setdefault((problem, True), []).append(name)
        first_arms = {
            (arm.solver, preparations[name, arm.name]): arm
            for arm in reversed(study.arms)
            if (name, arm.name) in preparations
        }
        columns, rows = OddColumns.of(dataset), _rows(dataset)
        trials += [
            _Trial(name, arm, study.protocol, preparation, usable, rows, columns)
            for (_, preparation), arm in reversed(first_arms.items())
        ]
    refusals: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    unprepared: dict[tuple[str, str], list[str]] = {}
    for trial, found in zip(trials, call_in_child(_Trial.problems, trials, _SECONDS), strict=True):
        if isinstance(found, ProcessEnded):
            expected = "its trainings may take long" if found.is_late else _FAILURE
            tried = f"solver {trial.arm.solver} {found.reason} when it was trained on a few rows"
            found = [(f"{tried}; {expected}", False)]
        elif isinstance(found, _Unprepared):
            unprepared.setdefault((found.error, trial.dataset), []).append(trial.arm.solver)
            continue
        elif isinstance(found, Refusal):
            key = trial.dataset, found.columns, trial.preparation.words
            refusals.setdefault(key, []).append((trial.arm.solver, found.error))
            continue
        for key_of_problem in found:
            where.setdefault(key_of_problem, []).append(trial.dataset)
    for (error, name), solvers in unprepared.items():
        where.setdefault((_unprepared_text(error, solvers), False), []).append(name)
    for (name, named, words), each in refusals.items():
        where.setdefault((refusal_text(named, words, each), True), []).append(name)
    refused = []
    for (problem, is_refused), names in where.items():
        sentence = f"dataset{'s' if len(names) > 1 else ''} {', '.join(names)}: {problem}"
        if is_refused:
            refused.append(sentence)
        else:
            warnings.warn(sentence, stacklevel=2)
    return refused


def _unprepared_text(error: str, solvers: Sequence[str]) -> str:
    """Return which trainings a preparation that fails on a few rows will make fail.

    Parameters
    ----------
    error : str
        Error of the preparation.
    solvers : sequence of str
        Names of the solvers with this preparation; may repeat.
    """
    named = list(dict.fromkeys(solvers))
    whose = f"solver{'s' if len(named) > 1 else ''} {', '.join(named)}"
    return f"on a few rows, {error}; expect the trainings of {whose} to fail"


@dataclass(frozen=True)
class _Unprepared:
    """Failure of a preparation on a few rows.

    Attributes
    ----------
    error : str
        The error, which names the preparation.
    """

    error: str


@dataclass(frozen=True)
class _Trial:
    """A solver to try on a few rows of a dataset, with the metrics that work there.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    arm : Arm
        The first arm of the solver with its preparation.
    protocol : Protocol
        The study's protocol.
    preparation : Preparation
        Preparation of the features.
    metrics : sequence of str
        Names of the metrics that score the solver.
    rows : tuple of int array
        Indices of a few rows to train on, and of others to predict.
    columns : OddColumns
        The columns that are not finite numbers, and the dataset.
    """

    dataset: str
    arm: Arm
    protocol: Protocol
    preparation: Preparation
    metrics: Sequence[str]
    rows: tuple[NDArray[np.integer], NDArray[np.integer]]
    columns: OddColumns

    def problems(self) -> list[tuple[str, bool]] | Refusal | _Unprepared:
        """Return why the solver cannot be trained or scored, and whether each reason refuses the study.

        Returns
        -------
        list of (str, bool), Refusal or _Unprepared
            Pairs of a description and True if the study must be refused, or False if a warning is enough.
            A `Refusal` names columns that the preparation leaves as they are.
        """
        name = f"solver {self.arm.solver}"
        try:
            sample = prepared_split(self.columns.dataset, *self.rows, self.preparation)
        except PreparationError as failed:
            return _Unprepared(_text(failed))
        keeps_columns = bool(self.preparation.scaling) or self.preparation.name == STANDARD
        if keeps_columns and (refusal := self.columns.refusal(self._text_of_error, sample)):
            return refusal
        if self._error(self.metrics, sample) is None:
            return []
        if (error := self._error(["accuracy"], sample)) is not None:
            return [
                (f"{name} cannot be trained on a few rows{self._hint}: {_text(error)}; {_FAILURE}", False)
            ]
        errors = {metric: self._error([metric], sample) for metric in self.metrics}
        refused = {metric: error for metric, error in errors.items() if error is not None}
        text = " and ".join(dict.fromkeys(map(_text, refused.values())))
        text = text.replace(Responses.__name__, self.arm.target)
        return [(f"{name} cannot be scored by {' or '.join(refused)}: {text}", True)]

    @property
    def _hint(self) -> str:
        """Remark that a pipeline may expect the columns themselves; empty without the preparation `table`."""
        if self.preparation.name != TABLE:
            return ""
        return (
            f", which the preparation {self.preparation.words} has made numbers (set `prepare: none` in its "
            "configuration if it handles text and missing values itself)"
        )

    def _text_of_error(self, split: Split) -> str | None:
        """Return a description of the exception that a training and its scoring by accuracy raise.

        Parameters
        ----------
        split : Split
            The rows on which the solver is trained and scored.

        Returns
        -------
        str or None
            The first sentence of the exception, or None if nothing is raised.
        """
        error = _training_error(self.arm, replace(self.protocol, metric="accuracy", also=()), split)
        return None if error is None else _text(error)

    def _error(self, metrics: Sequence[str], sample: Split) -> BaseException | None:
        """Return the exception of a training and its scoring, unless few rows may have caused it.

        Parameters
        ----------
        metrics : sequence of str
            Names of the metrics that score the solver.
        sample : Split
            A few prepared rows.

        Returns
        -------
        BaseException or None
            The exception; None if there is none, or if the small number of rows may have caused it.
        """
        protocol = replace(self.protocol, metric="accuracy", also=tuple(metrics))
        error = _any_error(self.arm, protocol, sample)
        conclusive = isinstance(error, _CONCLUSIVE) or not isinstance(error, Exception)
        return error if conclusive and not isinstance(error, UndefinedError) else None


def _usable_metrics(protocol: Protocol, sample: Split) -> tuple[list[str], list[str]]:
    """Return the metrics that work on a dataset, and a sentence for each of the others.

    Custom metrics are tried in a child process, because they may end it.

    Parameters
    ----------
    protocol : Protocol
        The protocol, with the names of the metrics.
    sample : Split
        A few rows of the dataset.

    Returns
    -------
    (list of str, list of str)
        Names of the metrics that work, and the sentences about the others.
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
    """Yield a sentence for each scorer of scikit-learn that is undefined on the test rows of a split.

    An area under a curve, for example, needs rows of two classes, and leave-one-out tests on one row.

    Parameters
    ----------
    protocol : Protocol
        The protocol, with the names of the metrics.
    name : str
        Name of the dataset.
    dataset : Dataset
        Loaded features, labels and metadata.
    splits : Splits
        The outer and inner splits of the dataset.

    Yields
    ------
    str
        One sentence for a metric, about the first level with such a split.
    """
    sample = _sample(dataset, protocol)
    for metric in dict.fromkeys((protocol.metric, *protocol.also)):
        if metric not in protocol.metrics([metric]) or not _has_value(sample, metric):
            continue
        for level in ("inner", "outer") if any(splits.n_inner) else ("outer",):
            split = min(
                splits.of_level(level == "outer"), key=lambda at: len(_test_classes(dataset, splits, at))
            )
            found = _test_classes(dataset, splits, split)
            rows = splits.train_test(*split)[1]
            tested = replace(sample, X_test=take_rows(dataset.X, rows), y_test=dataset.y[rows])
            if len(found) < len(dataset.classes) and not _has_value(tested, metric):
                absent = dataset.classes[np.setdiff1d(np.arange(len(dataset.classes)), found)[0]].item()
                yield (
                    f"dataset {name}: {metric} has no value for test rows without class {absent!r}, as "
                    f"protocol.{level} makes them; choose another metric, or test sets with all classes"
                )
                break


def _test_classes(dataset: Dataset, splits: Splits, split: tuple[int, int]) -> NDArray[Any]:
    """Return the codes of the classes of a split's test rows.

    Parameters
    ----------
    dataset : Dataset
        Loaded features, labels and metadata.
    splits : Splits
        The splits of the dataset.
    split : (int, int)
        Number of the outer and of the inner split.

    Returns
    -------
    ndarray
        Distinct class codes, in ascending order.
    """
    return np.unique(dataset.codes[splits.train_test(*split)[1]])


def _has_value(split: Split, metric: str) -> bool:
    """Return whether a metric has a value for a dummy classifier on the test rows.

    Parameters
    ----------
    split : Split
        Training and test rows of a dataset.
    metric : str
        Name of a scorer.

    Returns
    -------
    bool
        False if the scorer raises an exception.
    """
    try:
        score_dummy(split, [metric])
    except Exception:
        return False
    return True


def _targets(metric: str | Metric) -> list[str]:
    """Return the dotted paths of the classes and functions of a metric.

    Parameters
    ----------
    metric : str or Metric
        Name of a scorer or a custom metric.

    Returns
    -------
    list of str
        For a named scorer, only `sklearn.metrics`.
    """
    return ["sklearn.metrics"] if isinstance(metric, str) else metric_targets(metric)


def _metric_problem(sample: Split, metric: str | Metric) -> str:
    """Return why a metric does not work on the test rows, and which variants do.

    Parameters
    ----------
    sample : Split
        A few rows of a dataset.
    metric : str or Metric
        Name of a scorer or a custom metric.

    Returns
    -------
    str
        The problem, or an empty string.
    """
    error = _metric_error(sample, metric)
    return "" if error is None else f"{_text(error)}{_instead(metric, sample)}"


def _any_error(arm: Arm, protocol: Protocol, sample: Split) -> BaseException | None:
    """Return the exception that training and scoring raise, without compiling.

    Parameters
    ----------
    arm : Arm
        The arm whose solver is tried.
    protocol : Protocol
        The protocol, whose metrics in `also` are used.
    sample : Split
        A few rows of a dataset.

    Returns
    -------
    BaseException or None
        The exception, or None. A solver that numba compiles is made but not trained.
    """
    if not any(map(_is_compiled, arm.targets)):  # fitting a compiled class may take a minute
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
    """Train the first candidate of an arm without compiling, and return the exception.

    Classifiers that numba compiles are replaced by others with the same requirements.

    Parameters
    ----------
    arm : Arm
        The arm whose solver is trained.
    protocol : Protocol
        The protocol, whose metrics score the training.
    sample : Split
        A few rows of a dataset.

    Returns
    -------
    BaseException or None
        The exception; None if the training succeeds.
    """
    _, _, candidate, seed = _first_trial(arm, protocol)
    path = Path("", arm.name, 0, REFIT, (candidate,), ("",), seed, warm_starts=False)  # it has all metrics
    with _quiet_process(arm, protocol) as state:
        return try_training(_CheapTask(arm, protocol, path, sample, state))


class _CheapTask(PathTask):
    """A training without compilation."""

    def estimator(self, candidate: Candidate) -> Any:
        """Make the unfitted estimator of a candidate, without classifiers that numba compiles.

        Parameters
        ----------
        candidate : Candidate
            Hyper-parameters by name.

        Returns
        -------
        object
            Unfitted estimator with all parameters set.
        """
        return _without_compilation(super().estimator(candidate))


def _without_compilation(estimator: Any) -> Any:
    """Replace an estimator, or estimators nested in it, if numba compiles their class.

    Parameters
    ----------
    estimator : object
        An unfitted estimator.

    Returns
    -------
    object
        The replacement, or the same estimator with replaced parts.
    """
    if _compiles(estimator):
        return DummyClassifier() if get_tags(estimator).input_tags.allow_nan else NearestCentroid()
    parts = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if stand_ins := {name: _without_compilation(part) for name, part in parts.items() if _compiles(part)}:
        estimator.set_params(**stand_ins)
    return estimator


def _compiles(estimator: Any) -> bool:
    """Return whether an estimator is a classifier that numba compiles.

    Parameters
    ----------
    estimator : object
        An estimator, or any value of its parameters.

    Returns
    -------
    bool
        True for classifiers whose module imports numba.
    """
    kind = type(estimator)
    return isinstance(estimator, ClassifierMixin) and _is_compiled(f"{kind.__module__}.{kind.__qualname__}")


def _first_trial(arm: Arm, protocol: Protocol) -> tuple[Arm, Protocol, Candidate, int]:
    """Return the arguments that make the estimator of an arm's first candidate.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.
    protocol : Protocol
        The protocol, whose first seed is used.

    Returns
    -------
    (Arm, Protocol, Candidate, int)
        Arm, protocol, candidate and seed.
    """
    candidate = Candidate.of({name: axis_values(values)[0] for name, values in arm.space.items()})
    return arm, protocol, candidate, protocol.seeds[0] % 2**32


@contextmanager
def _quiet_process(arm: Arm, protocol: Protocol) -> Iterator[ProcessState]:
    """Ignore warnings and restore the process state after the block.

    Parameters
    ----------
    arm : Arm
        The arm, whose classes may change the state.
    protocol : Protocol
        The protocol, whose custom metrics may change the state.

    Yields
    ------
    ProcessState
        The state that is restored.
    """
    kinds = *map(resolve, arm.targets), *metric_objects(protocol.custom_metrics)
    with warnings.catch_warnings(action="ignore"), kept_process_state(*kinds) as state:
        yield state


@cache
def _is_compiled(target: str) -> bool:
    """Return whether the module of a class imports numba, directly or indirectly.

    Parameters
    ----------
    target : str
        Dotted path of the class.

    Returns
    -------
    bool
        The answer, which is cached because finding it takes 10 ms.
    """
    return depends_on(target, "numba")


def _instead(metric: str | Metric, sample: Split) -> str:
    """Return advice that names the variants of a scorer that work.

    Parameters
    ----------
    metric : str or Metric
        Name of a scorer or a custom metric.
    sample : Split
        A few rows of a dataset.

    Returns
    -------
    str
        Text that starts with a semicolon, or an empty string if there is no such variant.
    """
    if not isinstance(metric, str):
        return ""
    variants = [
        name
        for name in get_scorer_names()
        if name.startswith(f"{metric}_") and not refused_metric(name) and _metric_error(sample, name) is None
    ]
    return f"; use {' or '.join(variants)}" if variants else ""


def _text(error: BaseException) -> str:
    """Return the first sentence of an exception's text.

    Parameters
    ----------
    error : BaseException
        Exception of any class; its `__str__` may raise.

    Returns
    -------
    str
        The text, after the name of the class unless this is ValueError or AttributeError.
    """
    try:
        text = " ".join(str(error).split()).split(". ")[0].rstrip(".")[:MAX_QUOTED]
    except BaseException:  # a custom `__str__` may raise any exception
        text = "its text cannot be read"
    return text if isinstance(error, (ValueError, AttributeError)) else f"{type(error).__name__}: {text}"


def _sample(dataset: Dataset, protocol: Protocol) -> Split:
    """Return a few rows of each class to train on, and others to predict, scaled as by the protocol.

    Parameters
    ----------
    dataset : Dataset
        Loaded features, labels and metadata.
    protocol : Protocol
        The protocol, whose scaling is applied. Other preparations are not.

    Returns
    -------
    Split
        The rows.
    """
    return prepared_split(dataset, *_rows(dataset), Preparation(SCALINGS[protocol.scaling]))


def _rows(dataset: Dataset) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the indices of a few rows of each class to train on, and of others to predict.

    Parameters
    ----------
    dataset : Dataset
        Loaded features, labels and metadata.

    Returns
    -------
    train, test : int array
        Ascending indices. The training rows include one with a missing value for each column that has them.
    """
    each = max(2, ROWS // len(dataset.classes))
    members = [np.flatnonzero(dataset.codes == code) for code in range(len(dataset.classes))]
    train = np.concatenate([rows[: min(each, len(rows) // 2)] for rows in members])
    test = np.concatenate([rows[len(rows) - min(each, len(rows) // 2) :] for rows in members])
    return np.union1d(train, OddColumns.of(dataset).rows()), np.sort(test)
