"""Train a random sample of stored trials again, and compare the rows bit for bit."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orchestrator.engine.replay import replay
from orchestrator.execution.executor import Executor
from orchestrator.search.fold_search import FoldSearch, Records
from orchestrator.store.columns import RUN_COLUMNS, TRIAL_SCHEMA
from orchestrator.study.records import Records as TrialRecords
from orchestrator.study.records import Status, StoredTrial
from orchestrator.study.study import SearchSpec
from orchestrator.study.trials import REFIT, Batch, Identity, Path, WorkOrder

LEVEL = 0.95
"""Confidence of the bound on the share of trials that can differ."""

_NOT_COMPARED = RUN_COLUMNS | {
    *("key", "identity", "study", "dataset", "solver", "message", "versions"),
    # The last digits of the objective vary with the order of its terms and with the processor, and so do more
    # digits of the gap, a difference of such sums. The text `stopping` contains the gap.
    *("objective", "gap", "stopping"),
}

COMPARED = tuple(name for name in TRIAL_SCHEMA.names if name not in _NOT_COMPARED)
"""Columns in which a trial and its repetition agree bit for bit."""

_BATCH_SECONDS = 5.0
"""Training time after which a batch ends, so that progress is seen and stored, in seconds."""


@dataclass(frozen=True)
class Unit:
    """Stored trials that can only be trained together: one trial, or a path with warm starts.

    Attributes
    ----------
    path : Path
        The trials.
    keys : tuple of str
        Keys under which they are stored.
    """

    path: Path
    keys: tuple[str, ...]

    def seconds(self, rows: Mapping[str, Mapping[str, Any]]) -> float:
        """Return the CPU time that the trials took, or their wall time if that is not stored.

        Parameters
        ----------
        rows : mapping of str to mapping of str to object
            The stored rows, by key.

        Returns
        -------
        float
            Seconds of training and prediction.
        """
        return sum(
            float(next((row[name] for name in names if _is_set(row.get(name))), 0.0))
            for row in map(rows.__getitem__, self.keys)
            for names in (("fit_cpu_seconds", "fit_seconds"), ("predict_cpu_seconds", "predict_seconds"))
        )


@dataclass(frozen=True)
class Difference:
    """A trial whose repetition has another row.

    Attributes
    ----------
    path : Path
        Path of the trial.
    index : int
        Position of the trial on the path.
    before, now : dict of str to object
        Columns that differ, as stored and as trained now.
    """

    path: Path
    index: int
    before: dict[str, Any]
    now: dict[str, Any]

    def __str__(self) -> str:
        path = self.path
        split = f"outer {path.outer}, " + ("refit" if path.inner == REFIT else f"inner {path.inner}")
        columns = ", ".join(f"{name} {self.before[name]} → {self.now[name]}" for name in self.before)
        return f"{path.dataset} × {path.solver}, {path.candidates[self.index]}, {split}: {columns}"


def stored_units(
    identity: Identity,
    search: SearchSpec,
    stored: Mapping[str, StoredTrial],
    records: Records,
) -> list[Unit]:
    """Return the stored trials of a dataset × arm that count and that can be repeated.

    Trials that a time limit or the loss of a worker ended are left out.

    Parameters
    ----------
    identity : Identity
        All inputs that change the results of the dataset × arm.
    search : SearchSpec
        The declared search.
    stored : mapping of str to StoredTrial
        The stored trials, by key.
    records : Records
        Function that returns the recorded proposals of a custom search.

    Returns
    -------
    list of Unit
        Units in the order in which the searches ask for them.
    """
    units = []
    for outer in range(len(identity.n_inner)):
        for replayed in replay(FoldSearch(identity, search, outer, records), stored):
            path, found = replayed.path, list(replayed.stored)
            groups = [found] if path.warm_starts and found else [[index] for index in found]
            for group in groups:
                keys = tuple(replayed.stored[index] for index in group)
                if not {stored[key].status for key in keys} & {Status.TIMEOUT, Status.WORKER_LOST}:
                    units.append(Unit(path.only(group), keys))
    return units


def sample(units: Sequence[Unit], share: float, at_least: int, seed: int) -> list[Unit]:
    """Draw a stratified random sample without replacement.

    The units are sorted by candidate in random order within it, and every k-th is taken from a random start.
    So each candidate is drawn in proportion to its units. One refit is drawn besides if none is among them.

    Parameters
    ----------
    units : sequence of Unit
        Units of one dataset × arm.
    share : float
        Share of the units to draw, in (0, 1].
    at_least : int
        Smallest number of units to draw, if there are so many.
    seed : int
        Seed of the draw.

    Returns
    -------
    list of Unit
        Units in the order of `units`.
    """
    number = min(len(units), max(at_least, math.ceil(share * len(units))))
    if number == len(units):
        return list(units)
    random = np.random.default_rng(seed)
    ties = random.permutation(len(units))
    texts = [";".join(candidate.text for candidate in unit.path.candidates) for unit in units]
    order = sorted(range(len(units)), key=lambda i: (texts[i], ties[i]))
    places = (random.random() + np.arange(number)) * (len(units) / number)
    drawn = {order[int(place)] for place in places}
    refits = [i for i, unit in enumerate(units) if unit.path.inner == REFIT]
    if refits and drawn.isdisjoint(refits):
        drawn.add(int(random.choice(refits)))
    return [units[i] for i in sorted(drawn)]


def bound(n_units: int, n_drawn: int) -> float:
    """Return an upper bound on the share of units that differ, if none of the drawn ones does.

    It is exact for a simple random sample of a large number of units, and conservative for others.

    Parameters
    ----------
    n_units : int
        Number of units.
    n_drawn : int
        Number of drawn units, at least 1.

    Returns
    -------
    float
        Bound at the confidence `LEVEL`; 0 if every unit was drawn.
    """
    return 0.0 if n_drawn >= n_units else float(1.0 - (1.0 - LEVEL) ** (1.0 / n_drawn))


def retrain(
    units: Sequence[Unit], rows: Mapping[str, Mapping[str, Any]], order: WorkOrder, executor: Executor
) -> Iterator[tuple[list[Unit], Difference | None]]:
    """Train units again, and compare each with its stored rows.

    Parameters
    ----------
    units : sequence of Unit
        Units of one dataset × arm.
    rows : mapping of str to mapping of str to object
        The stored rows, by key.
    order : WorkOrder
        Everything that a worker needs besides the paths. Its batch is replaced.
    executor : Executor
        Runs the batches, one at a time.

    Yields
    ------
    (list of Unit, Difference or None)
        Units of a batch, and the first of their trials that differs. After a difference, nothing follows.
    """
    for number, batch in enumerate(_batches(units, rows)):
        paths = tuple(unit.path for unit in batch)
        pair = order.batch.dataset, order.batch.solver
        executor.submit(replace(order, batch=Batch(number, *pair, paths, attempt=1, base_seconds=0.0)))
        (outcome,) = executor.wait(0.0)
        if outcome.result is None:
            status = rows[batch[0].keys[0]]["status"]
            now = {"status": f"none: {outcome.lost}"}
            difference: Difference | None = Difference(paths[0], 0, {"status": status}, now)
        else:
            difference = _first_difference(batch, rows, outcome.result.records)
        yield batch, difference
        if difference is not None:
            return


def _batches(units: Sequence[Unit], rows: Mapping[str, Mapping[str, Any]]) -> Iterator[list[Unit]]:
    """Yield units of the same split together, for at most about `_BATCH_SECONDS` of training.

    Parameters
    ----------
    units : sequence of Unit
        Units in any order.
    rows : mapping of str to mapping of str to object
        Their stored rows, by key.

    Yields
    ------
    list of Unit
        Units of one batch.
    """
    batch: list[Unit] = []
    seconds = 0.0
    for unit in sorted(units, key=lambda unit: (unit.path.outer, unit.path.inner)):
        split = unit.path.outer, unit.path.inner
        same = batch and split == (batch[0].path.outer, batch[0].path.inner)
        if batch and not (same and seconds < _BATCH_SECONDS):
            yield batch
            batch, seconds = [], 0.0
        batch.append(unit)
        seconds += unit.seconds(rows)
    if batch:
        yield batch


def _first_difference(
    batch: Sequence[Unit], rows: Mapping[str, Mapping[str, Any]], records: TrialRecords
) -> Difference | None:
    """Return the first trial of a batch whose new row differs from the stored one.

    Parameters
    ----------
    batch : sequence of Unit
        The trained units.
    rows : mapping of str to mapping of str to object
        The stored rows, by key.
    records : Records
        New rows, in the order of the units.

    Returns
    -------
    Difference or None
        None if all rows are the same.
    """
    trials = [(unit, index, key) for unit in batch for index, key in enumerate(unit.keys)]
    for place, (unit, index, key) in enumerate(trials):
        before, now = rows[key], records.row(place)
        # The key of a row contains its parameters, whose columns may be text because of another arm.
        names = [name for name in now if name in COMPARED or name.startswith("score_")]
        names = [name for name in names if _is_set(before.get(name)) and not _same(before[name], now[name])]
        if names:
            return Difference(
                unit.path, index, {name: before[name] for name in names}, {name: now[name] for name in names}
            )
    return None


def _is_set(value: Any) -> bool:
    """Return whether a row has a value; older versions did not store every column.

    Parameters
    ----------
    value : object
        Value of a column.

    Returns
    -------
    bool
        False for None and NaN.
    """
    return value is not None and value == value


def _same(before: Any, now: Any) -> bool:
    """Return whether two values are equal bit for bit.

    Parameters
    ----------
    before, now : object
        Numbers or texts.

    Returns
    -------
    bool
        Whether they are equal. Zeros of different signs are not.
    """
    if isinstance(before, float) and isinstance(now, (int, float)):
        return math.copysign(1.0, before) == math.copysign(1.0, now) and before == now
    return bool(before == now)
