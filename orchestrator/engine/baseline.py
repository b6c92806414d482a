"""The baseline of a study: a classifier that always answers the most frequent class of the training rows.

It is trained and scored on every outer split of a study of few datasets. The answer compares each solver with
it: a solver that is no better has learnt nothing from the features. The baseline is not an arm. It has no
trials and no keys. No test, rank or family of tests contains it, so no other number of a study depends on it.

Its scores depend on the labels only, and take milliseconds. The client computes them at the start of each run
from the prepared labels and splits. It stores them in the provenance of the run, with the hashes of the data
and of the splits. A run that is resumed finds the same scores.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.resampling.splits import take_rows
from orchestrator.study.few_datasets import has_few_datasets
from orchestrator.study.study import Metric, Protocol, Study
from orchestrator.study.trials import DataSource
from orchestrator.training.metrics import metric_targets
from orchestrator.training.open_data import open_data
from orchestrator.training.responses import Responses
from orchestrator.training.split_data import Split

log = logging.getLogger(__name__)


def baseline_scores(study: Study, sources: Mapping[str, DataSource]) -> dict[str, dict[str, Any]]:
    """Return the scores of the baseline on every outer split of each dataset of a study of few datasets.

    Parameters
    ----------
    study : Study
        The study, with its protocol.
    sources : mapping of str to DataSource
        Location of the prepared data, by dataset.

    Returns
    -------
    dict of str to dict of str to object
        By dataset: its `fingerprint` and `split_hash`, the selecting `metric`, and its `scores`, one for each
        outer split. A dataset is left out if the metric has no value for the baseline. The dictionary is
        empty for a study of many datasets.
    """
    if not has_few_datasets(len(sources)):
        return {}
    found = {}
    for name, source in sources.items():
        scores = _scores(source, study.protocol)
        if isinstance(scores, ProcessEnded):
            log.warning("no baseline on %s: %s %s", name, study.protocol.metric, scores.reason)
            continue
        found[name] = {
            "fingerprint": source.fingerprint,
            "split_hash": source.split_hash,
            "metric": study.protocol.metric,
            "scores": scores,
        }
    return found


def _scores(source: DataSource, protocol: Protocol) -> list[float] | ProcessEnded:
    """Return the scores of the baseline on the outer splits of one dataset.

    A custom metric is called in a child process. The client never calls one in its own process.

    Parameters
    ----------
    source : DataSource
        Location of the prepared data.
    protocol : Protocol
        Declared resampling and metric.

    Returns
    -------
    list of float or ProcessEnded
        The scores, or why there are none.
    """
    (metric,) = protocol.metrics([protocol.metric])
    targets = ["sklearn.metrics"] if isinstance(metric, str) else metric_targets(metric)

    def of_splits(metric: str | Metric) -> list[float]:
        dataset, splits = open_data(source, protocol)
        scores = []
        for at in splits.of_level(refits=True):
            train, test = splits.train_test(*at)
            # The baseline needs no features. A custom metric may read the features of the test rows.
            X_test = take_rows(dataset.X, test)
            split = Split(None, dataset.y[train], X_test, dataset.y[test])
            scores.append(score_dummy(split, [metric])[protocol.metric])
        return scores

    try:
        (found,) = ask_classes(of_splits, [(most_doubtful(targets), metric)])
    except Exception as error:  # a named scorer may be undefined for constant answers
        return ProcessEnded(f"raised {type(error).__name__}")
    return found


def score_dummy(split: Split, metrics: Sequence[str | Metric], like: Any = None) -> Mapping[str, float]:
    """Return the scores of a classifier that knows only the shares of the classes; warnings are ignored.

    Parameters
    ----------
    split : Split
        Training rows, whose labels define the shares, and test rows, which are scored.
    metrics : sequence of str or Metric
        Names of scorers, and custom metrics.
    like : object, optional
        Estimator whose response methods the classifier offers. By default, it offers all.

    Returns
    -------
    mapping of str to float
        Scores by name of the metric.

    Raises
    ------
    ResponseError
        If a metric has no value for the test rows.
    """
    dummy = _PriorClassifier(split)
    responses = Responses(dummy if like is None else like, dummy.answer, dummy.predict(), dummy.classes)
    with warnings.catch_warnings(action="ignore"):
        return responses.scores(metrics, split.y_test, split.X_test)


class _PriorClassifier:
    """A classifier that answers every test row with the most frequent class, and with the shares of all.

    It is scikit-learn's `DummyClassifier(strategy="prior")`, whose labels are those of `most_frequent`.

    Parameters
    ----------
    split : Split
        Training rows, whose labels define the shares, and test rows, for which answers are returned.

    Attributes
    ----------
    classes : ndarray
        Class labels, in ascending order.
    """

    def __init__(self, split: Split):
        self._model = DummyClassifier(strategy="prior").fit(split.y_train[:, None], split.y_train)
        self._rows = split.y_test[:, None]
        self.classes = split.classes

    def answer(self, method: str) -> NDArray[Any]:
        """Return the answer of a response method.

        Parameters
        ----------
        method : str
            Name of the method, such as `predict_proba`.

        Returns
        -------
        ndarray
            One answer for each test row.
        """
        return np.asarray(getattr(self, method)())

    def predict(self) -> NDArray[Any]:
        """Return the most frequent class for each test row.

        Returns
        -------
        ndarray of shape (n,)
            Class labels.
        """
        return np.asarray(self._model.predict(self._rows))

    def predict_proba(self) -> NDArray[Any]:
        """Return the shares of the classes for each test row.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Shares, whose sum over a row is 1.
        """
        return np.asarray(self._model.predict_proba(self._rows))

    def decision_function(self) -> NDArray[Any]:
        """Return the shares of the classes as decision values.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Share of the second class if there are two classes, else the shares of all.
        """
        shares = self.predict_proba()
        return shares[:, 1] if len(self.classes) == 2 else shares
