"""Train on a few rows, so that no row of a trial includes just-in-time compilation."""

import warnings
from collections import deque
from typing import Any

import numpy as np

from orchestrator.isolation.process_state import ProcessState
from orchestrator.resampling.splits import take_rows
from orchestrator.study.study import Arm, Protocol
from orchestrator.study.targets import resolve
from orchestrator.study.trials import Path
from orchestrator.training.estimators import takes
from orchestrator.training.gram import SplitGram, gram_parameters, gram_type
from orchestrator.training.split_data import Split
from orchestrator.training.train import PathTask
from orchestrator.training.train_together import train_path


def train_few_rows(arm: Arm, protocol: Protocol, path: Path, split: Split, shared: bool) -> None:
    """Train a path on a few rows of its split.

    Parameters
    ----------
    arm : Arm
        Solver with its fixed parameters and sweep values.
    protocol : Protocol
        Metrics and limits.
    path : Path
        Trials of one split that differ only in C.
    split : Split
        Prepared rows.
    shared : bool
        Whether the path is trained on Gram matrices.
    """
    rows = _few_of_each_class(split.y_train)

    def sample() -> tuple[Split, dict[str, Any]]:
        X_train, X_test = take_rows(split.X_train, rows), split.X_test[:2]
        few = Split(X_train, split.y_train[rows], X_test, split.y_test[:2]).read_only()
        if not shared:
            return few, {}
        gram = SplitGram(few, dtype=gram_type(arm), may_shift=takes(arm, "gram_shift"))
        return gram.split(1.0), gram_parameters(gram, 1.0, arm)

    with warnings.catch_warnings(action="ignore"):  # estimators may warn of so few rows
        state = ProcessState(*map(resolve, arm.targets))
        few, override = sample()
        task = PathTask(arm, protocol, path, few, state, override)
        deque(train_path(task, lambda: sample()[0]), maxlen=0)


def _few_of_each_class(y: np.ndarray, n: int = 8) -> np.ndarray:
    """Return the ascending indices of the first rows of each class.

    Parameters
    ----------
    y : ndarray, shape (n_samples,)
        Label of each sample.
    n : int
        Largest number of rows of each class. 8 by default.

    Returns
    -------
    ndarray of int
        Indices.
    """
    _, codes = np.unique(y, return_inverse=True)
    by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return np.sort(np.concatenate([rows[:n] for rows in by_class]))
