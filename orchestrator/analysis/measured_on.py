"""The kinds of processors on which the trainings of an arm were measured.

The clock of one processor cannot be compared with that of another: the same trainings take half or twice as
long. So times of two arms have a ratio only where both were measured on the same kinds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from orchestrator.study.processors import processor_name

MIN_COMMON = 0.9
"""Smallest share of the trainings of two arms that must come from the same kinds of processors."""


def processor_shares(trials: pd.DataFrame, provenance: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of the trainings that each kind of processor has measured.

    Parameters
    ----------
    trials : DataFrame
        Trials, with the columns run_id and host.
    provenance : sequence of mapping
        The runs of the study, with their hosts.

    Returns
    -------
    dict of str to float
        Shares by `processor_name`; the sum is 1. A run that recorded no hosts has the name ''.
    """
    by_host, by_run = dict[tuple[str, str], str](), dict[str, str]()
    for run in provenance:
        for host in run.get("hosts") or []:
            by_run[str(run.get("run_id"))] = processor_name(host)
            by_host[str(run.get("run_id")), str(host.get("host"))] = processor_name(host)
    shares = dict[str, float]()
    counts = Counter(zip(trials["run_id"].astype(str), trials["host"].astype(str), strict=True))
    for (run_id, name), n in counts.items():
        kind = by_host.get((run_id, name), by_run.get(run_id, ""))
        shares[kind] = shares.get(kind, 0.0) + n / len(trials)
    return shares


def are_comparable(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    """Return whether times that were measured on two sets of processors can be compared.

    Parameters
    ----------
    first, second : mapping of str to float
        Shares of the kinds of processors, as `processor_shares` returns them.

    Returns
    -------
    bool
        True if at least `MIN_COMMON` of the trainings have their counterparts on the same kinds, or if there
        are no trainings.
    """
    common = sum(min(share, second.get(kind, 0.0)) for kind, share in first.items())
    return not first or not second or common >= MIN_COMMON
