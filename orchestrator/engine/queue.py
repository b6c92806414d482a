"""What to run next: pure functions and small state machines that know nothing of Dask.

Trainings differ in cost by orders of magnitude. Paths are gathered into batches of about a second, so
that a task's overhead vanishes, and the most expensive work starts first, so that no long tail is left.
A decision takes a time that grows with the logarithm of the number of datasets and arms.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from orchestrator.engine.cost_model import UNIT, CostModel, units
from orchestrator.study.batch import Batch, Losses
from orchestrator.study.settings import MEMORY_DEATHS, MIN_DEATHS, DeathLimits
from orchestrator.study.trials import REFIT, Pair, Path

TARGET_SECONDS = 2.0
"""Expected work of a full batch."""

LEAST_SECONDS = 0.2
"""Expected work below which a batch is not split further, however near the end of the study is."""

BATCHES_LEFT = 8
"""How many batches a worker should still have before it, so that all workers finish together."""

PROBE_TRIALS = 4
"""Trainings in a batch of a dataset × arm of which none has finished: the guess may be off a thousandfold."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What has lost its worker, and is to be tried alone: a training, or a path of dependent ones."""

    path: Path
    attempt: int
    losses: Losses


class _Priorities:
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


class _PairQueue:
    """What waits of one dataset × arm.

    Attributes
    ----------
    pair : (str, str)
    number : int
        Its place in the order in which the queues were opened.
    paths : list of (int, int, int, Path)
        A heap: refits first, then in the order in which they came; how many trainings of the path are left.
    refits, others : int
        Trainings that wait, those that are tried again included.
    by_size : int
        What it adds to the sum of queues without known cost, in units of seconds.
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

    A dataset × arm whose cost is known is ranked by it. Those of a solver without any finished training there
    all cost their size times one factor: they are ranked by size among themselves, and together as one.
    """

    def __init__(self, costs: CostModel, limits: DeathLimits | None = None):
        self._costs = costs
        self._queues: dict[Pair, _PairQueue] = {}
        self._first = _Priorities()  # pairs whose cost is known, and solvers for all others
        self._unknown: dict[str, _Priorities] = {}
        # What waits, in units of seconds: by sizes alone for queues without known cost, and all in all.
        self._bases: dict[str, int] = {}
        self._summed: dict[Pair | str, int] = {}
        self._units = 0
        self._deaths = WorkerDeaths(limits)
        self._pieces: deque[_Piece] = deque()
        self._single_pieces: deque[_Piece] = deque()
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._waiting = 0
        costs.listen(self._cost_changed)

    def __len__(self) -> int:
        return self._waiting + len(self._pieces) + len(self._single_pieces)

    def add(self, paths: Iterable[Path]) -> None:
        """Queue paths for their first attempt."""
        queues: dict[Pair, _PairQueue] = {}
        for path in paths:
            queue = self._queue_of(path)
            rank = 0 if path.inner == REFIT else 1
            heapq.heappush(queue.paths, (rank, next(self._order), len(path), path))
            queue.count(path, len(path))
            self._waiting += 1
            queues[queue.pair] = queue
        for queue in queues.values():
            self._changed(queue)

    def finished(self, batch: Batch, seconds: float) -> None:
        """Tell that a batch has kept a worker busy for so long and has finished."""
        self._deaths.update(seconds, batch.losses)

    def retry(self, batch: Batch, seconds: float, by_memory: bool = False) -> list[Path]:
        """Queue what a batch held whose worker was lost after `seconds`, or give it up.

        A batch is divided, so that only the piece to blame is lost again. A piece is a training, or a whole
        path if its trainings start from one another. One that takes too much memory does so again: it is
        given up after `MEMORY_DEATHS`, and says nothing about the rate at which workers die.

        Returns
        -------
        list of Path
            The paths that have lost too many workers and are not queued.
        """
        pieces = [piece for path in batch.paths for piece in _pieces(path)]
        if len(pieces) > 1:
            losses = Losses() if by_memory else Losses(shared=1 / len(pieces))
            self._wait_again(self._pieces, [_Piece(piece, batch.attempt + 1, losses) for piece in pieces])
            return []
        losses = batch.losses.another_by_memory() if by_memory else batch.losses.another(seconds)
        if losses.by_memory >= MEMORY_DEATHS if by_memory else not self._deaths.may_be_chance(losses):
            return pieces
        self._wait_again(self._single_pieces, [_Piece(pieces[0], batch.attempt + 1, losses)])
        return []

    def seconds(self) -> float:
        """Return the expected seconds of everything that waits."""
        return self._units / UNIT

    def next_batch(self, slots: int) -> Batch | None:
        """Take the next batch for one of `slots` workers, or None when nothing waits.

        Towards the end batches shrink, so that all workers finish together.
        """
        if self._pieces or not self._waiting:
            alone = self._pieces or self._single_pieces
            return self._retrial(alone.popleft()) if alone else None
        queue = self._most_urgent()
        share = self.seconds() / (BATCHES_LEFT * slots)
        target = min(TARGET_SECONDS, max(LEAST_SECONDS, share))
        paths: list[Path] = []
        # Its paths are of one dataset × arm, and refits come one by one: each training of it costs as much.
        refit = queue.paths[0][3].inner == REFIT
        room = max(1, int(target / self._costs.training_seconds(*queue.pair, refit)))
        room = room if self._costs.has_factor(*queue.pair) else min(room, PROBE_TRIALS)
        while queue.paths and (not paths or queue.paths[0][2] <= room):
            paths.append(self._take(queue, room))
            room -= len(paths[-1])
        self._changed(queue)
        return self._batch(paths)

    def _take(self, queue: _PairQueue, room: int) -> Path:
        """Take the first path of a queue; of one with independent trials, no more than there is room for."""
        rank, order, left, path = queue.paths[0]
        if left <= room or path.warm_starts:
            heapq.heappop(queue.paths)
            self._waiting -= 1
            taken = path.only(range(left))
        else:
            # The most expensive trainings, those with the largest C, go first.
            heapq.heapreplace(queue.paths, (rank, order, left - room, path))
            taken = path.only(range(left - room, left))
        queue.count(path, -len(taken))
        return taken

    def _batch(self, paths: list[Path]) -> Batch:
        seconds = sum(self._costs.base_seconds(path) for path in paths)
        first = paths[0]
        return Batch(next(self._numbers), first.dataset, first.solver, tuple(paths), 1, seconds)

    def _wait_again(self, waiting: deque[_Piece], pieces: list[_Piece]) -> None:
        waiting += pieces
        queue = self._queue_of(pieces[0].path)
        for piece in pieces:
            queue.count(piece.path, len(piece.path))
        self._changed(queue)

    def _retrial(self, piece: _Piece) -> Batch:
        queue = self._queue_of(piece.path)
        queue.count(piece.path, -len(piece.path))
        self._changed(queue)
        return replace(self._batch([piece.path]), attempt=piece.attempt, losses=piece.losses)

    # -- priorities and sums ---------------------------------------------------------------------

    def _queue_of(self, path: Path) -> _PairQueue:
        pair = (path.dataset, path.solver)
        queue = self._queues.get(pair)
        if queue is None:
            queue = self._queues[pair] = _PairQueue(pair, len(self._queues))
        return queue

    def _most_urgent(self) -> _PairQueue:
        entry = self._first.first()
        if entry is not None and isinstance(entry[3], str):
            entry = self._unknown[entry[3]].first()
        assert entry is not None  # called when paths wait
        assert isinstance(entry[3], tuple)
        return self._queues[entry[3]]

    def _cost_changed(self, pair: Pair) -> None:
        """Take note that another cost is known of a dataset × arm, and so of its solver elsewhere."""
        if pair in self._queues:
            self._changed(self._queues[pair])
        elif pair[1] in self._unknown:
            self._rank_unknown(pair[1])

    def _changed(self, queue: _PairQueue) -> None:
        """Bring the priority of a queue, and what is summed up of it, up to date."""
        dataset, solver = queue.pair
        known = self._costs.has_factor(dataset, solver)
        factor = self._costs.factor(dataset, solver) if known else 1.0
        unknown = self._unknown.setdefault(solver, _Priorities())
        ranks, others = (self._first, unknown) if known else (unknown, self._first)
        others.remove(queue.pair)
        if queue.paths:
            rank, _, left, path = queue.paths[0]
            seconds = left * self._costs.base(dataset, path.inner == REFIT) * factor
            ranks.put(queue.pair, queue.number, rank == 0, seconds)
        else:
            ranks.remove(queue.pair)
        base = queue.refits * self._costs.base(dataset, True)
        base += queue.others * self._costs.base(dataset, False)
        by_size = 0 if known else units(base)
        self._bases[solver] = self._bases.get(solver, 0) + by_size - queue.by_size
        queue.by_size = by_size
        self._sum(queue.pair, units(base * factor) if known else 0)
        self._rank_unknown(solver)

    def _rank_unknown(self, solver: str) -> None:
        """Let the first queue of a solver without known cost compete with all others."""
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


UNLIKELY = 1e-5
"""A training is given up when so many deaths of its workers have a smaller probability by chance."""


class WorkerDeaths:
    """The rate at which workers die whatever they do, estimated from all work that has finished in the end.

    Nodes are preempted, hosts cut off, processes killed by hand. Where that happens often, a sound training
    can lose several workers in a row. So it is given up only once this would be next to impossible by
    chance, or once it has cost as many workers, or as much of their time, as the user allows. Deaths are
    taken for a Poisson process; its rate before any observation is one in a worker's minute.
    """

    def __init__(self, limits: DeathLimits | None = None) -> None:
        self._limits = limits or DeathLimits()
        self._deaths = 1.0
        self._seconds = 60.0

    def update(self, seconds: float, losses: Losses) -> None:
        """Learn from a piece of work that has finished in the end: its losses had other causes."""
        self._seconds += seconds + losses.seconds
        self._deaths += losses.shared + losses.alone

    def may_be_chance(self, losses: Losses) -> bool:
        """Return whether a piece of work may have lost so many workers in so short a time by chance."""
        if losses.alone < MIN_DEATHS:
            return True
        if losses.alone >= self._limits.deaths or losses.seconds >= self._limits.seconds:
            return False
        from scipy.special import gammainc  # reading a study's state needs none of scipy

        # The probability of at least `alone` events of the process.
        chance = gammainc(losses.alone, self._deaths / self._seconds * losses.seconds)
        return bool(chance >= UNLIKELY)
