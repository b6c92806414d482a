"""What to run next: pure functions and small state machines that know nothing of Dask.

Trainings differ in cost by orders of magnitude. Paths are gathered into batches of about a second, so
that a task's overhead vanishes, and the most expensive work starts first, so that no long tail is left.
A decision takes a time that grows with the logarithm of the number of datasets and arms.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.accidents import Accidents, Bounds, Losses
from orchestrator.study import REFIT, Path

TARGET_SECONDS = 2.0
"""Expected work of a full batch."""

LEAST_SECONDS = 0.2
"""Expected work below which a batch is not split further, however near the end of the study is."""

BATCHES_LEFT = 8
"""How many batches a worker should still have before it, so that all workers finish together."""

PROBE_TRIALS = 4
"""Trainings in a batch of a dataset × arm of which none has finished: the guess may be off a thousandfold."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a dataset, for predicting costs: samples, features, classes."""

    n: int
    d: int
    classes: int


Pair = tuple[str, str]
"""The names of a dataset and of an arm."""

_UNIT = 1 << 40
"""Sums are kept in whole numbers of 1/_UNIT, which stay exact whatever is added and taken away."""


class CostModel:
    """Predict the seconds of a training; learn from the study's own finished trials.

    Seconds grow roughly as n_train^1.7 · d^0.5; one factor per dataset × arm, a running mean of
    observed ÷ predicted, corrects for everything else. Costs order and size the work; they never
    touch its results.

    Parameters
    ----------
    shapes : mapping of str to Shape
        Sizes of the datasets by name.
    """

    _SECONDS = 2e-8

    def __init__(self, shapes: Mapping[str, Shape]):
        self._shapes = shapes
        self._factors: dict[Pair, float] = {}
        self._weights: dict[Pair, float] = {}
        self._sums: dict[str, int] = {}  # of the factors of each solver, in units
        self._counts: dict[str, int] = {}
        self._bases: dict[tuple[str, bool, int, int], float] = {}
        self._listeners: list[Callable[[Pair], None]] = []

    def listen(self, listener: Callable[[Pair], None]) -> None:
        """Call a function after each observation, with the dataset and the arm that it was of."""
        self._listeners.append(listener)

    def seconds(self, path: Path, outer: int, inner: int) -> float:
        """Return the expected seconds of a path under `outer` × `inner` folds."""
        return self.base_seconds(path, outer, inner) * self.factor(path.dataset, path.solver)

    def base_seconds(self, path: Path, outer: int, inner: int) -> float:
        """Return the seconds of a path by sizes alone, before anything is learnt."""
        return len(path) * self.base(path.dataset, path.inner == REFIT, outer, inner)

    def training_seconds(self, dataset: str, solver: str, refit: bool, outer: int, inner: int) -> float:
        """Return the expected seconds of one training and its evaluation."""
        return self.base(dataset, refit, outer, inner) * self.factor(dataset, solver)

    def base(self, dataset: str, refit: bool, outer: int, inner: int) -> float:
        """Return the seconds of one training by sizes alone."""
        known = self._bases.get((dataset, refit, outer, inner))
        if known is None:
            shape = self._shapes[dataset]
            share = (1 - 1 / outer) * (1 if refit else 1 - 1 / inner)
            known = 5e-4 + self._SECONDS * (share * shape.n) ** 1.7 * shape.d**0.5
            self._bases[dataset, refit, outer, inner] = known
        return known

    def factor(self, dataset: str, solver: str) -> float:
        """Return observed ÷ predicted seconds of a dataset × arm, or of the solver elsewhere if unknown."""
        known = self._factors.get((dataset, solver))
        return self.typical(solver) if known is None else known

    def knows(self, dataset: str, solver: str) -> bool:
        """Whether a training of a dataset × arm has finished."""
        return (dataset, solver) in self._factors

    def typical(self, solver: str) -> float:
        """Return the mean factor of the solver on other datasets: a better guess than none."""
        count = self._counts.get(solver, 0)
        return self._sums[solver] / (_UNIT * count) if count else 1.0

    def observe(self, dataset: str, solver: str, base: float, observed: float) -> None:
        """Tell what a batch cost that costs `base` seconds by sizes alone."""
        if base <= 0 or observed <= 0:
            return
        pair = (dataset, solver)
        before = self._factors.get(pair)
        # Recent batches count for more, so that the model follows the search into more expensive regions.
        kept = min(self._weights.get(pair, 0.0), 20.0)
        factor = (kept * (before or 0.0) + observed / base) / (kept + 1.0)
        self._factors[pair] = factor
        self._weights[pair] = kept + 1.0
        self._counts[solver] = self._counts.get(solver, 0) + (before is None)
        self._sums[solver] = self._sums.get(solver, 0) + _units(factor) - _units(before or 0.0)
        for listener in self._listeners:
            listener(pair)


def _units(value: float) -> int:
    return round(value * _UNIT)


@dataclass(frozen=True, slots=True)
class Batch:
    """Paths that travel to a worker together; all of one dataset and one arm.

    Attributes
    ----------
    number : int
        Unique within a run.
    attempt : int
        1, and one more each time a worker was lost with the batch.
    base_seconds : float
        Its cost by sizes alone.
    losses : Losses
        The workers lost so far.
    """

    number: int
    dataset: str
    solver: str
    paths: tuple[Path, ...]
    attempt: int
    base_seconds: float
    losses: Losses = field(default_factory=Losses)

    @property
    def n_trials(self) -> int:
        """Number of trainings in the batch."""
        return sum(map(len, self.paths))


@dataclass(frozen=True, slots=True)
class _Piece:
    """What has lost its worker, and is to be tried alone: a training, or a path of dependent ones."""

    path: Path
    attempt: int
    losses: Losses


class _Largest:
    """Items by priorities that may change: refits first, then the most expensive, then the lowest number."""

    def __init__(self) -> None:
        self._entries: dict[Pair | str, _Entry] = {}
        self._heap: list[_Entry] = []

    def put(self, item: Pair | str, number: int, refit: bool, seconds: float) -> None:
        """Add an item, or give it another priority."""
        entry = (not refit, -seconds, number, item)
        if self._entries.get(item) == entry:
            return
        self._entries[item] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 64 + 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def remove(self, item: Pair | str) -> None:
        """Take an item out, if it is in."""
        self._entries.pop(item, None)

    def first(self) -> "_Entry | None":
        """Return the entry of the item that comes first, or None if there is no item."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[3]) == entry:
                return entry
            heapq.heappop(self._heap)  # its item is out, or has another priority by now
        return None


_Entry = tuple[bool, float, int, Pair | str]
"""Whether it is no refit, minus its seconds, its number, the item: in ascending order."""


class _Lane:
    """What waits of one dataset × arm.

    Attributes
    ----------
    pair : (str, str)
    number : int
        Its place in the order in which lanes were opened.
    paths : list of (int, int, int, Path)
        A heap: refits first, then in the order in which they came; how many trainings of the path are left.
    refits, others : int
        Trainings that wait, those that are tried again included.
    by_size : int
        What it adds to the sum of lanes without known cost, in units of seconds.
    """

    __slots__ = ("by_size", "number", "others", "pair", "paths", "refits")

    def __init__(self, pair: Pair, number: int):
        self.pair = pair
        self.number = number
        self.paths: list[tuple[int, int, int, Path]] = []
        self.refits = self.others = self.by_size = 0

    def count(self, path: Path, trainings: int) -> None:
        """Count trainings of a path that begin (or, if negative, end) to wait."""
        if path.inner == REFIT:
            self.refits += trainings
        else:
            self.others += trainings


class WorkQueue:
    """Waiting paths, most expensive first, handed out in batches.

    Paths of one dataset × arm stay together, in the order of their splits, so that a worker slices and
    scales a split's rows once. Refits go first: they end a search and free its memory. What has lost a
    worker of its own waits until all else is done, for it may take down more.

    Lanes whose cost is known compete by it. Those of a solver that has not finished on their dataset all cost
    their size times one factor: they are ordered among themselves by size, and compete as one.
    """

    def __init__(self, costs: CostModel, outer: int, inner: int, bounds: Bounds | None = None):
        self._costs = costs
        self._folds = (outer, inner)
        self._lanes: dict[Pair, _Lane] = {}
        self._first = _Largest()  # pairs whose cost is known, and solvers for all others
        self._unknown: dict[str, _Largest] = {}
        # What waits, in units of seconds: by sizes alone for lanes without known cost, and all in all.
        self._bases: dict[str, int] = {}
        self._summed: dict[Pair | str, int] = {}
        self._units = 0
        self._accidents = Accidents(bounds)
        self._pieces: deque[_Piece] = deque()
        self._suspects: deque[_Piece] = deque()
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._waiting = 0
        costs.listen(self._priced)

    def __len__(self) -> int:
        return self._waiting + len(self._pieces) + len(self._suspects)

    def add(self, paths: Iterable[Path]) -> None:
        """Queue paths for their first attempt."""
        for path in paths:
            lane = self._lane(path)
            rank = 0 if path.inner == REFIT else 1
            heapq.heappush(lane.paths, (rank, next(self._order), len(path), path))
            lane.count(path, len(path))
            self._waiting += 1
            self._changed(lane)

    def finished(self, batch: Batch, seconds: float) -> None:
        """Tell that a batch has kept a worker busy for so long and has finished."""
        self._accidents.observe(seconds, batch.losses)

    def retry(self, batch: Batch, seconds: float) -> list[Path]:
        """Queue what a batch held whose worker was lost after `seconds`, or give it up.

        A batch is divided, so that only the guilty piece is lost again. A piece is a training, or a whole
        path if its trainings start from one another.

        Returns
        -------
        list of Path
            The paths that have taken down too many workers and are not queued.
        """
        pieces = [piece for path in batch.paths for piece in _pieces(path)]
        if len(pieces) > 1:
            losses = Losses(shared=1 / len(pieces))
            self._wait_again(self._pieces, [_Piece(piece, batch.attempt + 1, losses) for piece in pieces])
            return []
        losses = batch.losses.another(seconds)
        if not self._accidents.explain(losses):
            return pieces
        self._wait_again(self._suspects, [_Piece(pieces[0], batch.attempt + 1, losses)])
        return []

    def seconds(self) -> float:
        """Return the expected seconds of everything that waits."""
        return self._units / _UNIT

    def next_batch(self, slots: int) -> Batch | None:
        """Take the next batch for one of `slots` workers, or None when nothing waits.

        Towards the end batches shrink, so that all workers finish together.
        """
        if self._pieces or not self._waiting:
            alone = self._pieces or self._suspects
            return self._retrial(alone.popleft()) if alone else None
        lane = self._most_urgent()
        share = self.seconds() / (BATCHES_LEFT * slots)
        target = min(TARGET_SECONDS, max(LEAST_SECONDS, share))
        paths: list[Path] = []
        # A lane is one dataset × arm, and its refits come one by one: all it holds costs as much a training.
        refit = lane.paths[0][3].inner == REFIT
        room = max(1, int(target / self._costs.training_seconds(*lane.pair, refit, *self._folds)))
        room = room if self._costs.knows(*lane.pair) else min(room, PROBE_TRIALS)
        while lane.paths and (not paths or lane.paths[0][2] <= room):
            paths.append(self._take(lane, room))
            room -= len(paths[-1])
        self._changed(lane)
        return self._batch(paths)

    def _take(self, lane: _Lane, room: int) -> Path:
        """Take the first path of a lane; of one with independent trials, no more than there is room for."""
        rank, order, left, path = lane.paths[0]
        if left <= room or path.warm_starts:
            heapq.heappop(lane.paths)
            self._waiting -= 1
            taken = path.only(range(left))
        else:
            # The most expensive trainings, those with the largest C, go first.
            heapq.heapreplace(lane.paths, (rank, order, left - room, path))
            taken = path.only(range(left - room, left))
        lane.count(path, -len(taken))
        return taken

    def _batch(self, paths: list[Path]) -> Batch:
        seconds = sum(self._costs.base_seconds(path, *self._folds) for path in paths)
        first = paths[0]
        return Batch(next(self._numbers), first.dataset, first.solver, tuple(paths), 1, seconds)

    def _wait_again(self, waiting: deque[_Piece], pieces: list[_Piece]) -> None:
        waiting += pieces
        lane = self._lane(pieces[0].path)
        for piece in pieces:
            lane.count(piece.path, len(piece.path))
        self._changed(lane)

    def _retrial(self, piece: _Piece) -> Batch:
        lane = self._lane(piece.path)
        lane.count(piece.path, -len(piece.path))
        self._changed(lane)
        return replace(self._batch([piece.path]), attempt=piece.attempt, losses=piece.losses)

    # -- priorities and sums ---------------------------------------------------------------------

    def _lane(self, path: Path) -> _Lane:
        pair = (path.dataset, path.solver)
        lane = self._lanes.get(pair)
        if lane is None:
            lane = self._lanes[pair] = _Lane(pair, len(self._lanes))
        return lane

    def _most_urgent(self) -> _Lane:
        entry = self._first.first()
        if entry is not None and isinstance(entry[3], str):
            entry = self._unknown[entry[3]].first()
        assert entry is not None  # called when paths wait
        assert isinstance(entry[3], tuple)
        return self._lanes[entry[3]]

    def _priced(self, pair: Pair) -> None:
        """Take note that another cost is known of a dataset × arm, and so of its solver elsewhere."""
        if pair in self._lanes:
            self._changed(self._lanes[pair])
        elif pair[1] in self._unknown:
            self._rank_unknown(pair[1])

    def _changed(self, lane: _Lane) -> None:
        """Bring the priority of a lane, and what is summed up of it, up to date."""
        dataset, solver = lane.pair
        known = self._costs.knows(dataset, solver)
        factor = self._costs.factor(dataset, solver) if known else 1.0
        unknown = self._unknown.setdefault(solver, _Largest())
        queue, other = (self._first, unknown) if known else (unknown, self._first)
        other.remove(lane.pair)
        if lane.paths:
            rank, _, left, path = lane.paths[0]
            seconds = left * self._costs.base(dataset, path.inner == REFIT, *self._folds) * factor
            queue.put(lane.pair, lane.number, rank == 0, seconds)
        else:
            queue.remove(lane.pair)
        base = lane.refits * self._costs.base(dataset, True, *self._folds)
        base += lane.others * self._costs.base(dataset, False, *self._folds)
        by_size = 0 if known else _units(base)
        self._bases[solver] = self._bases.get(solver, 0) + by_size - lane.by_size
        lane.by_size = by_size
        self._sum(lane.pair, _units(base * factor) if known else 0)
        self._rank_unknown(solver)

    def _rank_unknown(self, solver: str) -> None:
        """Let the first lane of a solver without known cost compete with all others."""
        typical = self._costs.typical(solver)
        entry = self._unknown[solver].first()
        if entry is None:
            self._first.remove(solver)
        else:
            not_refit, minus_seconds, number, _ = entry
            self._first.put(solver, number, not not_refit, -minus_seconds * typical)
        self._sum(solver, round(self._bases[solver] * typical))

    def _sum(self, item: Pair | str, units: int) -> None:
        self._units += units - self._summed.get(item, 0)
        self._summed[item] = units


def _pieces(path: Path) -> list[Path]:
    return [path] if path.warm_starts else [path.only([index]) for index in range(len(path))]
