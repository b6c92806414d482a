"""What to run next: pure functions and small state machines that know nothing of Dask.

Trainings differ in cost by orders of magnitude. Paths are gathered into batches of about a second, so
that a task's overhead vanishes, and the dearest work starts first, so that no long tail is left.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Mapping
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
        self._factors: dict[tuple[str, str], float] = {}
        self._weights: dict[tuple[str, str], float] = {}

    def seconds(self, path: Path, outer: int, inner: int) -> float:
        """Return the expected seconds of a path under `outer` × `inner` folds."""
        return self.base_seconds(path, outer, inner) * self._factor(path.dataset, path.solver)

    def base_seconds(self, path: Path, outer: int, inner: int) -> float:
        """Return the seconds of a path by sizes alone, before anything is learnt."""
        return len(path) * self._base(path.dataset, path.inner == REFIT, outer, inner)

    def training_seconds(self, dataset: str, solver: str, refit: bool, outer: int, inner: int) -> float:
        """Return the expected seconds of one training and its evaluation."""
        return self._base(dataset, refit, outer, inner) * self._factor(dataset, solver)

    def _base(self, dataset: str, refit: bool, outer: int, inner: int) -> float:
        shape = self._shapes[dataset]
        share = (1 - 1 / outer) * (1 if refit else 1 - 1 / inner)
        return 5e-4 + self._SECONDS * (share * shape.n) ** 1.7 * shape.d**0.5

    def _factor(self, dataset: str, solver: str) -> float:
        known = self._factors.get((dataset, solver))
        return self._typical(solver) if known is None else known

    def knows(self, dataset: str, solver: str) -> bool:
        """Whether a training of a dataset × arm has finished."""
        return (dataset, solver) in self._factors

    def _typical(self, solver: str) -> float:
        """Return the mean factor of the solver on other datasets: a better guess than none."""
        known = [factor for (_, name), factor in self._factors.items() if name == solver]
        return sum(known) / len(known) if known else 1.0

    def observe(self, dataset: str, solver: str, base: float, observed: float) -> None:
        """Tell what a batch cost that costs `base` seconds by sizes alone."""
        if base <= 0 or observed <= 0:
            return
        pair = (dataset, solver)
        # Recent batches count for more, so that the model follows the search into dearer regions.
        kept = min(self._weights.get(pair, 0.0), 20.0)
        self._factors[pair] = (kept * self._factors.get(pair, 0.0) + observed / base) / (kept + 1.0)
        self._weights[pair] = kept + 1.0


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


class WorkQueue:
    """Waiting paths, dearest first, handed out in batches.

    Paths of one dataset × arm stay together, in the order of their splits, so that a worker slices and
    scales a split's rows once. Refits go first: they end a search and free its memory. What has lost a
    worker of its own waits until all else is done, for it may take down more.
    """

    def __init__(self, costs: CostModel, outer: int, inner: int, bounds: Bounds | None = None):
        self._costs = costs
        self._folds = (outer, inner)
        self._lanes: dict[tuple[str, str], list[tuple[int, int, Path]]] = {}
        self._accidents = Accidents(bounds)
        self._pieces: deque[_Piece] = deque()
        self._suspects: deque[_Piece] = deque()
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting + len(self._pieces) + len(self._suspects)

    def add(self, paths: Iterable[Path]) -> None:
        """Queue paths for their first attempt."""
        for path in paths:
            lane = self._lanes.setdefault((path.dataset, path.solver), [])
            heapq.heappush(lane, (0 if path.inner == REFIT else 1, next(self._order), path))
            self._waiting += 1

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
            self._pieces += [_Piece(piece, batch.attempt + 1, losses) for piece in pieces]
            return []
        losses = batch.losses.another(seconds)
        if not self._accidents.explain(losses):
            return pieces
        self._suspects.append(_Piece(pieces[0], batch.attempt + 1, losses))
        return []

    def seconds(self) -> float:
        """Return the expected seconds of everything that waits."""
        lanes = sum(
            len(lane) * self._costs.seconds(lane[-1][2], *self._folds)
            for lane in self._lanes.values()
            if lane
        )
        pieces = itertools.chain(self._pieces, self._suspects)
        return lanes + sum(self._costs.seconds(piece.path, *self._folds) for piece in pieces)

    def next_batch(self, slots: int) -> Batch | None:
        """Take the next batch for one of `slots` workers, or None when nothing waits.

        Towards the end batches shrink, so that all workers finish together.
        """
        lanes = [lane for lane in self._lanes.values() if lane]
        if self._pieces or not lanes:
            alone = self._pieces or self._suspects
            return self._retrial(alone.popleft()) if alone else None
        lane = max(lanes, key=self._urgency)
        share = self.seconds() / (BATCHES_LEFT * slots)
        target = min(TARGET_SECONDS, max(LEAST_SECONDS, share))
        paths: list[Path] = []
        # A lane is one dataset × arm, and its refits come one by one: all it holds costs as much a training.
        first = lane[0][2]
        room = max(1, int(target / self._training_seconds(first)))
        room = room if self._costs.knows(first.dataset, first.solver) else min(room, PROBE_TRIALS)
        while lane and (not paths or len(lane[0][2]) <= room):
            paths.append(self._take(lane, room))
            room -= len(paths[-1])
        return self._batch(paths)

    def _training_seconds(self, path: Path) -> float:
        return self._costs.seconds(path, *self._folds) / len(path)

    def _take(self, lane: list[tuple[int, int, Path]], room: int) -> Path:
        """Take the first path of a lane; of one with independent trials, no more than there is room for."""
        rank, order, path = heapq.heappop(lane)
        if len(path) <= room or path.warm_starts:
            self._waiting -= 1
            return path
        # The dearest trainings, those with the largest C, go first.
        heapq.heappush(lane, (rank, order, path.only(range(len(path) - room))))
        return path.only(range(len(path) - room, len(path)))

    def _urgency(self, lane: list[tuple[int, int, Path]]) -> tuple[bool, float]:
        refit, _, path = lane[0]
        return refit == 0, self._costs.seconds(path, *self._folds)

    def _batch(self, paths: list[Path]) -> Batch:
        seconds = sum(self._costs.base_seconds(path, *self._folds) for path in paths)
        first = paths[0]
        return Batch(next(self._numbers), first.dataset, first.solver, tuple(paths), 1, seconds)

    def _retrial(self, piece: _Piece) -> Batch:
        return replace(self._batch([piece.path]), attempt=piece.attempt, losses=piece.losses)


def _pieces(path: Path) -> list[Path]:
    return [path] if path.warm_starts else [path.only([index]) for index in range(len(path))]
