"""Measure the time of trainings whose solver has no known costs, before a study runs.

The cost model knows typical costs of the solvers in the published studies. For pipelines and for classes of
other packages it can only guess from the size of the data, and may be wrong by a factor of fifty.
"""

from collections.abc import Container
from time import process_time
from typing import NamedTuple

import numpy as np

from orchestrator.engine.prepare import PreparedStudy
from orchestrator.engine.typical_costs import typical_costs
from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.study.study import Arm, Candidate, Protocol, axis_values
from orchestrator.study.trials import REFIT, DataSource, Pair
from orchestrator.training.estimators import make_estimator
from orchestrator.training.split_data import open_split

_SECONDS = 30.0
"""Time limit of the probe of one dataset × arm, in seconds. A longer training counts with this time."""


class _Question(NamedTuple):
    """A dataset × arm to measure.

    Attributes
    ----------
    source : DataSource
        Location of the prepared data.
    arm : Arm
        The solver with its space.
    protocol : Protocol
        The protocol, with the preparation of the dataset × arm.
    """

    source: DataSource
    arm: Arm
    protocol: Protocol


class _Cost(NamedTuple):
    """Measured times of a dataset × arm, in seconds.

    Attributes
    ----------
    preparation : float
        Time to prepare one split.
    training : float
        Mean time of fit and predict of two candidates.

    Both are CPU seconds of all threads, so that other work on the host does not count.
    """

    preparation: float
    training: float


def probed_seconds(prepared: PreparedStudy, known: Container[Pair]) -> dict[Pair, float]:
    """Return the measured seconds of a training, with its share of the preparation, by dataset × arm.

    Two candidates are trained on one inner split, or on an outer one if the protocol has no inner splits: the
    one with the first and the one with the last value of each hyper-parameter. They are usually the cheapest
    and the dearest.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    known : container of Pair
        Each dataset × arm whose cost is known from stored trials.

    Returns
    -------
    dict of Pair to float
        Seconds. Solvers with typical costs and solvers whose probe failed are missing.
    """
    protocol = prepared.study.protocol
    typical = typical_costs(prepared.study.arms, protocol)
    arms = {arm.name: arm for arm in prepared.study.arms if arm.name not in typical}
    pairs = [pair for pair in prepared.preparations if pair[1] in arms and pair not in known]
    questions = [
        _Question(
            prepared.sources[dataset],
            arms[arm],
            protocol.for_preparation(prepared.preparations[dataset, arm]),
        )
        for dataset, arm in pairs
    ]
    answers = call_in_child(_cost, questions, _SECONDS, quiet=True)
    planned = prepared.planned_trials()
    found: dict[Pair, float] = {}
    counted = set()
    for pair, question, cost in zip(pairs, questions, answers, strict=True):
        if isinstance(cost, ProcessEnded):
            cost = _Cost(0.0, _SECONDS) if cost.is_late else None
        if cost is None:
            continue
        splits = sum(number + 1 for number in prepared.identities[pair].n_inner)
        shared = pair[0], question.protocol.prepare
        preparing = 0.0 if shared in counted else cost.preparation * splits
        counted.add(shared)
        found[pair] = cost.training + preparing / max(1, planned[pair])
    return found


def _cost(question: _Question) -> _Cost | None:
    """Return the times of one dataset × arm; None if a training fails.

    Parameters
    ----------
    question : _Question
        The dataset × arm.
    """
    source, arm, protocol = question
    try:
        started = process_time()
        split = open_split(source, protocol, 0, REFIT if protocol.inner is None else 0)
        preparation = process_time() - started
        seconds = []
        for index in (0, -1):
            params = [(name, axis_values(values)[index]) for name, values in arm.space.items()]
            estimator = make_estimator(arm, protocol, Candidate(tuple(params)), seed=0)
            started = process_time()
            estimator.fit(split.X_train, split.y_train).predict(split.X_test)
            seconds.append(process_time() - started)
    except Exception:  # the run reports it as a failed training
        return None
    return _Cost(preparation, float(np.mean(seconds)))
