"""Orders of trainings whose times are compared, so that a slow drift of the machine meets all arms alike.

The trainings of a sample come in random order, with all arms of a cell one after another. Other trainings of
the profile `timing` come by outer fold, and the arms of a fold take turns.
"""

from collections import Counter
from collections.abc import Iterable
from math import inf

from orchestrator.engine.cost_model import CostModel
from orchestrator.engine.queue import PairQueue, WorkQueue, pieces
from orchestrator.study.settings import DeathLimits
from orchestrator.study.trials import REFIT, Path
from orchestrator.study.values import digest


class InterleavedQueue(WorkQueue):
    """Queue that hands out single trainings in random order, those of all arms on the same cell together.

    A cell is a dataset, split and candidate. The arms of a cell are in random order, too. So a slow drift of
    the machine has the same effect on the times of all arms. The order is a function of the seed, and a
    resumed run keeps it.

    Parameters
    ----------
    costs : CostModel
        Predicts the cost of trainings.
    limits : DeathLimits, optional
        Limits of deaths and worker time before a training is given up. By default, `DeathLimits()`.
    seed : int, default 0
        Seed of the order.
    """

    def __init__(self, costs: CostModel, limits: DeathLimits | None = None, seed: int = 0) -> None:
        super().__init__(costs, limits)
        self._seed = seed

    def add(self, paths: Iterable[Path]) -> None:
        """Queue each training of some paths for its first attempt.

        Parameters
        ----------
        paths : iterable of Path
            Paths that a search has asked for and that are not stored.
        """
        super().add(piece for path in paths for piece in pieces(path))

    def _rank(self, path: Path) -> int:
        """Return a random number whose leading digits belong to the cell, and the others to the arm.

        Parameters
        ----------
        path : Path
            A training, or a path with warm starts.

        Returns
        -------
        int
            Rank of the path.
        """
        refit = path.inner == REFIT  # arms may refit different candidates on one cell
        candidate = "" if refit else path.candidates[0].text
        cell = digest([self._seed, path.dataset, path.outer, path.inner, candidate])
        return int(cell + digest([self._seed, cell, path.solver]), 16)

    def _capacity(self, queue: PairQueue, slots: int) -> tuple[float, float]:
        """Return the size of a single training, because the next one may belong to another arm.

        Parameters
        ----------
        queue : PairQueue
            Not used.
        slots : int
            Not used.

        Returns
        -------
        trainings : float
            The number 1.
        cost : float
            Infinity.
        """
        return 1, inf

    def _most_urgent(self) -> PairQueue:
        """Return the queue with the lowest rank; at least one path waits.

        Returns
        -------
        PairQueue
            Waiting paths of the dataset × arm that is next.
        """
        return min(
            (queue for queue in self._queues.values() if queue.paths), key=lambda queue: queue.paths[0]
        )


class FoldQueue(WorkQueue):
    """Queue that hands out the batches of one outer fold after another; the arms of a fold take turns.

    All arms of a fold are trained within a short time, and their refits, whose times a report compares, one
    after another at the end of the fold. So a slow drift of the machine has the same effect on all of them.
    The order changes no trial, and a resumed run goes on with the trainings that are missing.

    Parameters
    ----------
    costs : CostModel
        Predicts the cost of trainings.
    limits : DeathLimits, optional
        Limits of deaths and worker time before a training is given up. By default, `DeathLimits()`.
    """

    def __init__(self, costs: CostModel, limits: DeathLimits | None = None) -> None:
        super().__init__(costs, limits)
        self._folds: dict[tuple[str, int], int] = {}
        self._served: Counter[tuple[int, str]] = Counter()
        self._current = 0

    def _rank(self, path: Path) -> int:
        """Return the rank of the path's fold in the order of opening; its refits follow its other trainings.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        int
            Even for inner splits, odd for refits.
        """
        fold = self._folds.setdefault((path.dataset, path.outer), len(self._folds))
        return 2 * fold + (path.inner == REFIT)

    def _most_urgent(self) -> PairQueue:
        """Return the queue of the first fold whose arm has had the fewest batches of it.

        Returns
        -------
        PairQueue
            Waiting paths of the dataset × arm that is next; at least one path waits.
        """

        def turn(queue: PairQueue) -> tuple[int, int, int]:
            rank = queue.paths[0][0]
            return rank, self._served[rank, queue.pair[1]], queue.number

        found = min((queue for queue in self._queues.values() if queue.paths), key=turn)
        self._current = found.paths[0][0]
        self._served[self._current, found.pair[1]] += 1
        return found

    def _take(self, queue: PairQueue, most: float, cost: float, whole: bool) -> Path | None:
        """Take the first path of a queue, or a part of it; a batch has paths of one fold only.

        Parameters
        ----------
        queue : PairQueue
            Waiting trainings of one dataset × arm.
        most : float
            Largest number of trainings to take.
        cost : float
            Largest cost of the trainings to take, in the unit of `WorkQueue._take`.
        whole : bool
            Whether the batch has a path already, and only a whole path within these limits is taken.

        Returns
        -------
        Path or None
            The path with the trainings that were taken; None if nothing was taken.
        """
        if whole and queue.paths[0][0] != self._current:
            return None
        return super()._take(queue, most, cost, whole)
