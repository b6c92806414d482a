"""Put together everything that a worker needs to run a batch of a prepared study."""

import math

from orchestrator.engine.prepare import PreparedStudy
from orchestrator.isolation.class_checks import is_ours
from orchestrator.study.sample import requested_repeats
from orchestrator.study.settings import FOREIGN_SECONDS
from orchestrator.study.study import Arm
from orchestrator.study.trials import Batch, WorkOrder


def work_order(prepared: PreparedStudy, run_id: str, batch: Batch) -> WorkOrder:
    """Return the order to run a batch.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    run_id : str
        Identifier of the run, which its rows carry.
    batch : Batch
        Paths of one dataset and one arm.

    Returns
    -------
    WorkOrder
        The batch with its dataset, arm, protocol and limits.
    """
    identity = prepared.identities[batch.dataset, batch.solver]
    return WorkOrder(
        prepared.study.name,
        run_id,
        prepared.sources[batch.dataset],
        identity.arm,
        identity.digest,
        identity.shared_gram,
        identity.protocol,
        batch,
        prepared.gram_memory,
        prepared.study.predictions,
        _default_seconds(identity.arm),
        requested_repeats(prepared.study.search),
    )


def _default_seconds(arm: Arm) -> float:
    """Return the time limit of an arm's trainings for protocols that set none.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.

    Returns
    -------
    float
        Seconds: infinite if all classes are ours, else `FOREIGN_SECONDS`.
    """
    return math.inf if all(map(is_ours, arm.targets)) else FOREIGN_SECONDS
