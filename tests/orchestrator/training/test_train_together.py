"""The paths of a split, trained together, leave the rows of paths that are trained one by one."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.isolation.exits import interrupt, recorded_interrupts
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.study import Candidate, DatasetSpec, Protocol
from orchestrator.study.trials import REFIT
from orchestrator.training import run_batch as batches
from orchestrator.training import train_together
from orchestrator.training.gram import forget_gram
from solvers import SMOSVC
from solvers.estimators.path_grid import PathGrid
from tests.orchestrator.classifiers import order_for, rows_of

FOLDS = ((0, 0), (0, 1), (2, 3), (0, REFIT))
WINE = DatasetSpec("wine", "sklearn.datasets.load_wine", {"return_X_y": True})


def shared(target, cache, **choices):
    order = order_for(
        target, cache, C=(0.25, 4.0, 64.0), gamma=(0.1, 1.0, 8.0), folds=FOLDS, dataset=WINE, **choices
    )
    return replace(order, shared_gram=True)


def one_by_one(order, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(train_together, "MAX_WEIGHTS", 0)
        return rows_of(order)


def numbers(rows):
    return [{name: value for name, value in row.items() if name not in RUN_COLUMNS} for row in rows]


@pytest.fixture
def calls(monkeypatch):
    """Collect how many paths are trained together each time, and one by one."""
    together, alone = [], []
    grid, path = batches.train_grid, batches.train_path
    monkeypatch.setattr(batches, "train_grid", lambda task: together.append(len(task.paths)) or grid(task))
    monkeypatch.setattr(batches, "train_path", lambda task, again: alone.append(task) or path(task, again))
    return together, alone


@pytest.mark.parametrize("target", ["SMOSVC", "NewtonSVC", "MNSVC", "SphereSVC"])
def test_rows_are_the_same_bit_for_bit(tmp_path, monkeypatch, target):
    order = shared(f"solvers.{target}", tmp_path)
    rows = rows_of(order)
    assert numbers(rows) == numbers(one_by_one(order, monkeypatch))
    assert [row["key"] for row in rows] == [key for path in order.batch.paths for key in path.keys]
    for row in rows:
        assert row["fit_seconds"] > 0
        assert row["predict_seconds"] > 0
        assert (row["gram_seconds"] > 0) == (row["inner"] != REFIT)


def test_a_split_is_one_call_and_refits_are_on_their_own(tmp_path, calls):
    together, alone = calls
    rows_of(shared("solvers.SMOSVC", tmp_path))
    assert together == [3, 3, 3]
    assert {task.path.inner for task in alone if not task.split.X_train.shape[0] < 40} == {REFIT}


@pytest.mark.parametrize(
    "change",
    [
        lambda order: replace(order, shared_gram=False),
        lambda order: replace(order, protocol=replace(order.protocol, metric="balanced_accuracy")),
        lambda order: replace(order, protocol=replace(order.protocol, max_seconds=100.0)),
    ],
)
def test_where_trainings_are_needed_one_by_one_they_are(tmp_path, calls, change):
    together, _ = calls
    rows_of(change(shared("solvers.SMOSVC", tmp_path)))
    assert not together


class OtherPath(SMOSVC):
    """Predicts a single class by paths, and says so in the rows."""

    has_no_side_effects = True

    def fit_path(self, X, y, Cs):
        fitted = super().fit_path(X, y, Cs)
        fitted.stopping_ = ["otherwise"] * len(fitted.stopping_)
        return fitted


def test_a_class_that_fits_paths_otherwise_is_not_bypassed(tmp_path, calls):
    together, _ = calls
    rows = rows_of(shared(f"{__name__}.OtherPath", tmp_path))
    assert not together
    assert {row["stopping"] for row in rows if row["inner"] != REFIT} == {"otherwise"}


class OtherPrediction(SMOSVC):
    """Predicts one class, whatever it was fitted on."""

    has_no_side_effects = True

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_class_that_predicts_otherwise_is_not_bypassed_by_paths_that_it_inherits(tmp_path, calls):
    together, _ = calls
    rows = rows_of(shared(f"{__name__}.OtherPrediction", tmp_path))
    assert not together
    assert max(row["score"] for row in rows) < 0.5


def test_paths_that_differ_in_more_than_gamma_are_apart(tmp_path):
    order = shared("solvers.SMOSVC", tmp_path)
    first, second, third = order.batch.paths[:3]
    tol = [Candidate.of({**candidate.as_dict(), "tol": 0.01}) for candidate in second.candidates]
    paths = [first, replace(second, candidates=tuple(tol)), third, third.only([0, 1])]
    grids = train_together.grids(order.arm, Protocol(), paths, n_rows=178, n_classes=3)
    assert [len(group) for group in grids] == [1, 1, 1, 1]
    grids = train_together.grids(order.arm, Protocol(), [first, second, third], n_rows=178, n_classes=3)
    assert [len(group) for group in grids] == [3]
    most = train_together.MAX_WEIGHTS // (3 * 3)
    grids = train_together.grids(order.arm, Protocol(), [first, second, third], n_rows=most + 1, n_classes=2)
    assert [len(group) for group in grids] == [1, 1, 1]


@pytest.mark.parametrize(
    ("bytes_at_once", "failing", "n_expected"),
    [
        (0, 5, 3 + 2 + 3),  # of the second split, the second of three matrices fails
        (1 << 22, 2, 1 + 1 + 1),  # all of the second split
    ],
)
def test_after_a_failure_each_path_is_on_its_own(bytes_at_once, failing, n_expected, tmp_path, monkeypatch):
    order = shared("solvers.SMOSVC", tmp_path)
    expected = numbers(one_by_one(order, monkeypatch))
    fit, n_calls = PathGrid.fit, [0]

    def fails_once(self, Ks):
        n_calls[0] += 1
        if n_calls[0] == failing:
            raise MemoryError("no room")
        return fit(self, Ks)

    monkeypatch.setattr("orchestrator.training.gram._STACK_BYTES", bytes_at_once)
    monkeypatch.setattr(PathGrid, "fit", fails_once)
    forget_gram()
    assert numbers(rows_of(order)) == expected
    assert n_calls[0] == n_expected


def test_a_path_that_fails_is_a_failure_of_its_own_rows(tmp_path, monkeypatch):
    order = shared("solvers.SMOSVC", tmp_path)
    bad = replace(order.arm, params={**order.arm.params, "tol": -1.0})
    rows = rows_of(replace(order, arm=bad))
    assert {row["status"] for row in rows} == {"error"}
    assert all("tol" in row["message"] for row in rows)


def test_a_ctrl_c_is_the_users(tmp_path, monkeypatch):
    order = shared("solvers.SMOSVC", tmp_path)

    monkeypatch.setattr(PathGrid, "fit", lambda self, Ks: interrupt())
    with suppress(KeyboardInterrupt), recorded_interrupts(), pytest.raises(KeyboardInterrupt):
        rows_of(order)
