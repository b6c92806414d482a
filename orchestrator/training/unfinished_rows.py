"""Rows of trainings that did not finish: they were stopped from outside, or their workers died."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from orchestrator.study.records import Columns, Records, Status
from orchestrator.study.trials import Path, WorkOrder
from orchestrator.training.run_batch import axis_columns, common_columns, limit_message, shares_gram
from orchestrator.training.train import repeated
from orchestrator.training.train_together import takes_whole_path


def overtime_row(order: WorkOrder, n_done: int, row: dict[str, Any], seconds: float) -> Columns:
    """Return the row of a training that was stopped from outside, after `n_done` finished ones.

    A path that is fitted in one call has a row for each of its trainings.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    n_done : int
        Number of trainings of the batch that have finished.
    row : dict
        Columns that are known.
    seconds : float
        Elapsed time of its fit, or of its call of another method, in seconds.

    Returns
    -------
    dict
        Columns with one value for each training.
    """
    path = paths_after(order.batch.paths, n_done)[0]
    if not takes_whole_path(order.arm, order.protocol, path):
        path = path.only([0])
    n = len(path)
    under_way = "predict_seconds" if "fit_seconds" in row else "fit_seconds"
    outcome = {
        "status": Status.TIMEOUT,
        "score": None,
        "finished_at": datetime.now(UTC),
        "shared_gram": shares_gram(order, path),
    }
    known = {under_way: seconds / n, "message": limit_message(order, seconds, n)} | row | outcome
    return axis_columns(order.arm, path) | repeated(known, n)


def lost_records(order: WorkOrder, message: str) -> Records:
    """Return the records of a batch that has reached the limit of worker deaths.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    message : str
        Message of each row.

    Returns
    -------
    Records
        One row with the status `worker_lost` for each trial.
    """
    return _unrun_records(order, Status.WORKER_LOST, message)


def skipped_records(order: WorkOrder) -> Records:
    """Return the records of trainings that are not run, because smaller values of C reached the time limit.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.

    Returns
    -------
    Records
        One row with the status `timeout` and without seconds for each trial.
    """
    limit = order.protocol.max_seconds or 0.0
    message = (
        f"not run: trainings with smaller C and equal other parameters reached the limit of {limit:g} s twice"
    )
    return _unrun_records(order, Status.TIMEOUT, message)


def _unrun_records(order: WorkOrder, status: str, message: str) -> Records:
    """Return the records of a batch without results.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    status : str
        Status of each row.
    message : str
        Message of each row.
    """
    now = datetime.now(UTC)
    ending = {"status": status, "message": message, "score": None, "started_at": now, "finished_at": now}
    parts = [
        axis_columns(order.arm, path) | {name: [value] * len(path) for name, value in ending.items()}
        for path in order.batch.paths
    ]
    return Records.joined(common_columns(order, worker=""), parts)


def paths_after(paths: Iterable[Path], n_done: int) -> tuple[Path, ...]:
    """Return the remaining paths after some of their trainings have finished.

    Parameters
    ----------
    paths : iterable of Path
        All paths, in order.
    n_done : int
        Number of finished trainings, counted from the first.

    Returns
    -------
    tuple of Path
        Paths without the finished trainings.
    """
    remaining = []
    for path in paths:
        if n_done < len(path):
            remaining.append(path.only(range(n_done, len(path))) if n_done else path)
        n_done = max(0, n_done - len(path))
    return tuple(remaining)
