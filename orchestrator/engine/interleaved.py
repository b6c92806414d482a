"""Order of the trainings of a timing sample: random, with all arms of a cell one after another."""

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
