"""Decide what to run next, with pure functions and small state machines that do not use Dask.

Trainings differ in cost by orders of magnitude. Paths are gathered into batches of about two seconds, so
that the overhead of a task is negligible. The most expensive work starts first, so that all workers finish
at about the same time. The time of a decision grows with the logarithm of the number of datasets and arms.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf

from orchestrator.engine.cost_model import UNIT, CostModel
from orchestrator.study.settings import MEMORY_DEATHS, MIN_DEATHS, DeathLimits
from orchestrator.study.trials import REFIT, Batch, Pair, Path, WorkerDeaths

TARGET_SECONDS = 2.0
"""Expected work of a full batch, in seconds."""

MIN_SECONDS = 0.2
"""Smallest expected work of a batch near the end of the study, in seconds."""

BATCHES_LEFT = 8
"""Number of remaining batches per worker at which batches start to shrink."""

PROBE_TRIALS = 4
"""Largest number of trainings in a batch while no training of its dataset × arm has finished. The cost
estimate may be wrong by a factor of a thousand."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A training, or a path with warm starts, that is tried again in its own batch after a worker death.

    Attributes
    ----------
    path : Path
        The path with the trainings of the piece.
    attempt : int
        Number of the attempt, from 1.
    deaths : WorkerDeaths
        Worker deaths so far.
    """

    path: Path
    attempt: int
    deaths: WorkerDeaths


class _Turn(IntEnum):
    """Turn of a solver: one batch of a solver that compiles, then all others, then the rest of it."""

    COMPILE_FIRST = 0
    USUAL = 1
    WAIT_FOR_CODE = 2


class _Priorities:
    """Priority queue with changeable priorities.

    The order is by turn, then refits, then the most expensive, then the lowest number.
    """

    def __init__(self) -> None:
        self._entries: dict[Pair | str, _Entry] = {}
        self._heap: list[_Entry] = []

    def put(
        self, item: Pair | str, number: int, refit: bool, seconds: float, turn: _Turn = _Turn.USUAL
    ) -> None:
        """Add an item or change its priority.

        Parameters
        ----------
        item : Pair or str
            A dataset × arm, or the name of a solver.
        number : int
            Rank among items of equal cost.
        refit : bool
            Whether its next training is a refit.
        seconds : float
            Expected cost of its next path, in seconds.
        turn : _Turn, default _Turn.USUAL
            Turn of the solver.
        """
        entry = (turn, not refit, -seconds, number, isinstance(item, str), item)
        if self._entries.get(item) == entry:
            return
        self._entries[item] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 64 + 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def remove(self, item: Pair | str) -> None:
        """Remove an item, if it is present.

        Parameters
        ----------
        item : Pair or str
            A dataset × arm, or the name of a solver.
        """
        self._entries.pop(item, None)

    def first(self) -> "_Entry | None":
        """Return the entry of the most urgent item.

        Returns
        -------
        _Entry or None
            The entry, or None if there is no item.
        """
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[-1]) == entry:
                return entry
            heapq.heappop(self._heap)  # outdated: its item was removed or has another priority
        return None


_Entry = tuple[_Turn, bool, float, int, bool, Pair | str]
"""Sort key and item: the turn, False for refits, the negative seconds, the number, whether the item is a
solver, and the item."""


class PairQueue:
    """Waiting trainings of one dataset × arm.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    number : int
        Rank of the queue in the order of opening.

    Attributes
    ----------
    pair : (str, str)
        Names of the dataset and the arm.
    number : int
        Rank of the queue in the order of opening.
    paths : list of (int, int, int, Path)
        Heap of paths: rank (0 for refits and 1 for others, unless the order is random), order of arrival,
        number of waiting trainings of the path, and the path.
    base : int
        Cost of all waiting trainings, including those of further attempts, before any correction by
        observations. In units of 1/UNIT seconds.
    unknown : int
        Contribution to the sum of queues without known cost, in units of 1/UNIT.
    """

    __slots__ = ("base", "number", "pair", "paths", "unknown")

    def __init__(self, pair: Pair, number: int):
        self.pair = pair
        self.number = number
        self.paths: list[tuple[int, int, int, Path]] = []
        self.base = self.unknown = 0


class WorkQueue:
    """Queue of waiting paths that hands out batches, most expensive first.

    Paths of one dataset × arm stay together, in the order of their splits. So a worker slices and scales the
    rows of a split once. Refits go first, because they end a search and free its memory. A training whose
    worker died while running nothing else waits until all other work is done, because it may kill more
    workers.

    A dataset × arm is ranked by its cost, if that is known. If none of its trainings has finished, its cost
    is its base times a factor that all such pairs of the solver share. These pairs are ranked by base among
    themselves, and compete with all others as one item. The base is the cost before any correction by
    observations.

    One worker compiles the code of a solver, and the others would wait for it. So one batch of such a solver
    goes first, and the rest of its work waits until that batch is back or nothing else is left.

    Parameters
    ----------
    costs : CostModel
        Predicts the cost of trainings. Its updates change priorities.
    limits : DeathLimits, optional
        Limits of deaths and worker time before a training is given up. By default, `DeathLimits()`.
    compiling : collection of str, default ()
        Names of the solvers whose first training compiles code.
    """

    def __init__(self, costs: CostModel, limits: DeathLimits | None = None, compiling: Collection[str] = ()):
        self._costs = costs
        self._queues: dict[Pair, PairQueue] = {}
        self._first = _Priorities()  # pairs whose cost is known, and solvers for all others
        self._unknown: dict[str, _Priorities] = {}
        self._turns = dict.fromkeys(compiling, _Turn.COMPILE_FIRST)
        # Waiting work in units of 1/UNIT: of queues without known cost, before corrections; and of each item.
        self._bases: dict[str, int] = {}
        self._summed: dict[Pair | str, int] = {}
        self._units = 0
        self._deaths = DeathRate(limits)
        self._pieces: deque[_Piece] = deque()
        self._single_pieces: deque[_Piece] = deque()
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._waiting = 0
        costs.listen(self._cost_changed)

    def __len__(self) -> int:
        return self._waiting + len(self._pieces) + len(self._single_pieces)

    def add(self, paths: Iterable[Path]) -> None:
        """Queue paths for their first attempt.

        Parameters
        ----------
        paths : iterable of Path
            Paths that a search has asked for and that are not stored.
        """
        queues: dict[Pair, PairQueue] = {}
        for path in paths:
            queue = self._queue_of(path)
            heapq.heappush(queue.paths, (self._rank(path), next(self._order), len(path), path))
            queue.base += sum(self._costs.base_units(path))
            self._waiting += 1
            queues[queue.pair] = queue
        for queue in queues.values():
            self._changed(queue)

    def finished(self, batch: Batch, seconds: float) -> None:
        """Record that a batch has finished.

        Parameters
        ----------
        batch : Batch
            Paths that a worker has run together.
        seconds : float
            Time that a worker needed for it, in seconds.
        """
        self._deaths.update(seconds, batch.deaths)
        self._set_turn(batch.solver, _Turn.USUAL)

    def retry(self, batch: Batch, seconds: float, by_memory: bool = False) -> list[Path]:
        """Queue the paths of a batch whose worker was lost, or give them up.

        A batch is divided, so that only the piece that caused the death can cause another. A piece is a
        training, or a whole path with warm starts. A piece that exceeds the memory limit would exceed it
        again. It is given up after `MEMORY_DEATHS` such deaths, which do not count towards the rate of worker
        deaths.

        Parameters
        ----------
        batch : Batch
            Paths that a worker has run together.
        seconds : float
            Time for which its worker had run it, in seconds.
        by_memory : bool, default False
            Whether the worker ended because the batch took too much memory.

        Returns
        -------
        list of Path
            The paths that are given up and not queued.
        """
        self._set_turn(batch.solver, _Turn.USUAL)
        parts = [piece for path in batch.paths for piece in pieces(path)]
        if len(parts) > 1:
            deaths = WorkerDeaths() if by_memory else WorkerDeaths(shared=1 / len(parts))
            self._wait_again(self._pieces, [_Piece(part, batch.attempt + 1, deaths) for part in parts])
            return []
        deaths = batch.deaths.another_by_memory() if by_memory else batch.deaths.another(seconds)
        if deaths.by_memory >= MEMORY_DEATHS if by_memory else not self._deaths.may_be_chance(deaths):
            return parts
        self._wait_again(self._single_pieces, [_Piece(parts[0], batch.attempt + 1, deaths)])
        return []

    def seconds(self) -> float:
        """Return the expected seconds of all waiting work.

        Returns
        -------
        float
            Seconds on one core.
        """
        return self._units / UNIT

    def next_batch(self, slots: int) -> Batch | None:
        """Take the next batch.

        Near the end, batches shrink, so that all workers finish at about the same time.

        Parameters
        ----------
        slots : int
            Number of workers.

        Returns
        -------
        Batch or None
            The batch, or None if nothing waits.
        """
        if self._pieces or not self._waiting:
            waiting = self._pieces or self._single_pieces
            return self._retrial(waiting.popleft()) if waiting else None
        queue = self._most_urgent()
        paths: list[Path] = []
        most, left = self._capacity(queue, slots)
        while queue.paths and most > 0 and (path := self._take(queue, most, left, whole=bool(paths))):
            paths.append(path)
            most -= len(path)
            left -= sum(self._costs.base_units(path))
        self._changed(queue)
        self._set_turn(queue.pair[1], _Turn.WAIT_FOR_CODE)
        return self._batch(paths)

    def _rank(self, path: Path) -> int:
        """Return the rank of a path among those of its dataset × arm; the lowest is first.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        int
            0 for refits and 1 for others.
        """
        return 0 if path.inner == REFIT else 1

    def _capacity(self, queue: PairQueue, slots: int) -> tuple[float, float]:
        """Return the largest size of the next batch.

        Parameters
        ----------
        queue : PairQueue
            Waiting trainings of the batch's dataset × arm.
        slots : int
            Number of workers.

        Returns
        -------
        trainings : float
            Number of trainings, from 1.
        cost : float
            Cost of its trainings before any correction by observations, in units of 1/UNIT seconds.
        """
        share = self.seconds() / (BATCHES_LEFT * slots)
        target = min(TARGET_SECONDS, max(MIN_SECONDS, share))
        most = inf if self._costs.has_factor(*queue.pair) else PROBE_TRIALS
        return most, target * UNIT / self._costs.factor(*queue.pair)

    def _take(self, queue: PairQueue, most: float, cost: float, whole: bool) -> Path | None:
        """Take the first path of a queue, or a part of it.

        Parameters
        ----------
        queue : PairQueue
            Waiting trainings of one dataset × arm.
        most : float
            Largest number of trainings to take.
        cost : float
            Largest cost of the trainings to take, before any correction by observations, in units of 1/UNIT
            seconds.
        whole : bool
            Whether only a whole path within these limits is taken. Otherwise at least one training is taken,
            and a path with warm starts is taken whole.

        Returns
        -------
        Path or None
            The path with the trainings that were taken; None if nothing was taken.
        """
        rank, order, left, path = queue.paths[0]
        costs = self._costs.base_units(path)[:left]
        # The trainings with the largest C are usually the most expensive and go first.
        first, sum_ = left, 0
        while first > 0 and left - first < most and sum_ + costs[first - 1] <= cost:
            first -= 1
            sum_ += costs[first]
        if first > 0 and whole:
            return None
        first = min(first, left - 1)
        if first == 0 or path.warm_starts:
            heapq.heappop(queue.paths)
            self._waiting -= 1
            taken = path.only(range(left))
            queue.base -= sum(costs)
        else:
            heapq.heapreplace(queue.paths, (rank, order, first, path))
            taken = path.only(range(first, left))
            queue.base -= sum(costs[first:])
        return taken

    def _batch(self, paths: list[Path]) -> Batch:
        """Return a numbered batch of paths for their first attempt.

        Parameters
        ----------
        paths : list of Path
            Paths of one dataset × arm.

        Returns
        -------
        Batch
            Batch with the next number and no failed attempt.
        """
        seconds = sum(self._costs.base_seconds(path) for path in paths)
        first = paths[0]
        return Batch(next(self._numbers), first.dataset, first.solver, tuple(paths), 1, seconds)

    def _wait_again(self, waiting: deque[_Piece], pieces: list[_Piece]) -> None:
        """Queue pieces of one batch for another attempt.

        Parameters
        ----------
        waiting : deque of _Piece
            The queue of pieces to extend.
        pieces : list of _Piece
            Trainings or paths that were in one batch.
        """
        waiting += pieces
        queue = self._queue_of(pieces[0].path)
        for piece in pieces:
            queue.base += sum(self._costs.base_units(piece.path))
        self._changed(queue)

    def _retrial(self, piece: _Piece) -> Batch:
        """Return the batch of a piece that is tried again.

        Parameters
        ----------
        piece : _Piece
            The piece, already removed from its queue.

        Returns
        -------
        Batch
            Batch with the next number and the attempts of its piece.
        """
        queue = self._queue_of(piece.path)
        queue.base -= sum(self._costs.base_units(piece.path))
        self._changed(queue)
        return replace(self._batch([piece.path]), attempt=piece.attempt, deaths=piece.deaths)

    # -- priorities and sums ---------------------------------------------------------------------

    def _queue_of(self, path: Path) -> PairQueue:
        """Return the queue of a path's dataset × arm; create it if it is missing.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        PairQueue
            Waiting paths of that dataset × arm.
        """
        pair = (path.dataset, path.solver)
        queue = self._queues.get(pair)
        if queue is None:
            queue = self._queues[pair] = PairQueue(pair, len(self._queues))
        return queue

    def _most_urgent(self) -> PairQueue:
        """Return the queue of the next batch; at least one path waits.

        Returns
        -------
        PairQueue
            Waiting paths of the dataset × arm that is next.
        """
        entry = self._first.first()
        if entry is not None and isinstance(entry[-1], str):
            entry = self._unknown[entry[-1]].first()
        assert entry is not None  # only called while paths wait
        assert isinstance(entry[-1], tuple)
        return self._queues[entry[-1]]

    def _set_turn(self, solver: str, turn: _Turn) -> None:
        """Change the turn of a solver that compiles, and do nothing for any other.

        Parameters
        ----------
        solver : str
            Name of the solver.
        turn : _Turn
            The new turn.
        """
        if solver not in self._turns:
            return
        self._turns[solver] = turn
        if turn is _Turn.USUAL:
            del self._turns[solver]
        if solver in self._unknown:
            self._rank_unknown(solver)

    def _cost_changed(self, pair: Pair) -> None:
        """Update priorities after a cost was observed.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        """
        if pair in self._queues:
            self._changed(self._queues[pair])
        elif pair[1] in self._unknown:
            self._rank_unknown(pair[1])

    def _changed(self, queue: PairQueue) -> None:
        """Update the priority of a queue and the sums over its trainings.

        Parameters
        ----------
        queue : PairQueue
            Waiting trainings of one dataset × arm.
        """
        dataset, solver = queue.pair
        known = self._costs.has_factor(dataset, solver)
        factor = self._costs.factor(dataset, solver) if known else 1.0
        unknown = self._unknown.setdefault(solver, _Priorities())
        ranks, others = (self._first, unknown) if known else (unknown, self._first)
        others.remove(queue.pair)
        if queue.paths:
            rank, _, left, path = queue.paths[0]
            seconds = sum(self._costs.base_units(path)[:left]) / UNIT * factor
            ranks.put(queue.pair, queue.number, rank == 0, seconds)
        else:
            ranks.remove(queue.pair)
        unknown_base = 0 if known else queue.base
        self._bases[solver] = self._bases.get(solver, 0) + unknown_base - queue.unknown
        queue.unknown = unknown_base
        self._sum(queue.pair, round(queue.base * factor) if known else 0)
        self._rank_unknown(solver)

    def _rank_unknown(self, solver: str) -> None:
        """Update the priority of a solver's pairs without known cost, which compete as one item.

        Parameters
        ----------
        solver : str
            Name of the solver.
        """
        typical = self._costs.typical(solver)
        entry = self._unknown[solver].first()
        if entry is None:
            self._first.remove(solver)
        else:
            _, not_refit, minus_seconds, number, *_ = entry
            turn = self._turns.get(solver, _Turn.USUAL)
            self._first.put(solver, number, not not_refit, -minus_seconds * typical, turn)
        self._sum(solver, round(self._bases[solver] * typical))

    def _sum(self, item: Pair | str, units: int) -> None:
        """Update the sum of all waiting work by that of one item.

        Parameters
        ----------
        item : Pair or str
            A dataset × arm, or the name of a solver.
        units : int
            Its expected work, in units of 1/UNIT.
        """
        self._units += units - self._summed.get(item, 0)
        self._summed[item] = units


def pieces(path: Path) -> list[Path]:
    """Divide a path into pieces that can be trained by themselves.

    Parameters
    ----------
    path : Path
        Trials of one split that differ only in C.

    Returns
    -------
    list of Path
        Its single trainings, or the whole path if it has warm starts.
    """
    return [path] if path.warm_starts else [path.only([index]) for index in range(len(path))]


UNLIKELY = 1e-5
"""Probability below which deaths of workers are not attributed to chance; the training is given up."""


class DeathRate:
    """Rate of worker deaths that no training causes, estimated from all work that finished.

    Nodes are preempted, hosts lose their network, users kill processes. If this is frequent, a sound training
    can lose several workers in a row. A training is therefore given up in two cases only: its deaths are
    nearly impossible by chance, or they have reached the user's limit of deaths or of minutes. Deaths are
    modelled as a Poisson process. Before any observation, its rate is one death in 60 s of work.

    Parameters
    ----------
    limits : DeathLimits, optional
        Limits of deaths and worker time before a training is given up. By default, `DeathLimits()`.
    """

    def __init__(self, limits: DeathLimits | None = None) -> None:
        self._limits = limits or DeathLimits()
        self._deaths = 1.0
        self._seconds = 60.0

    def update(self, seconds: float, deaths: WorkerDeaths) -> None:
        """Update the rate by a piece of work that finished, so that others caused its worker deaths.

        Parameters
        ----------
        seconds : float
            Time of the successful attempt, in seconds.
        deaths : WorkerDeaths
            Its worker deaths before.
        """
        self._seconds += seconds + deaths.seconds
        self._deaths += deaths.shared + deaths.alone

    def may_be_chance(self, deaths: WorkerDeaths) -> bool:
        """Return whether the worker deaths of a piece of work may be due to chance.

        Parameters
        ----------
        deaths : WorkerDeaths
            Its worker deaths and their time.

        Returns
        -------
        bool
            False if the piece must be given up.
        """
        if deaths.alone < MIN_DEATHS:
            return True
        if deaths.alone >= self._limits.deaths or deaths.seconds >= self._limits.seconds:
            return False
        from scipy.special import gammainc  # reading a study's state does not import scipy

        # Probability of at least `alone` events of the Poisson process in this time.
        chance = gammainc(deaths.alone, self._deaths / self._seconds * deaths.seconds)
        return bool(chance >= UNLIKELY)
