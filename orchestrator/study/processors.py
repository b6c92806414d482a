"""The kinds of processors that runs have recorded; each kind may compute other last digits."""

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.study.values import canonical_json


def processor_kinds(hosts: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of kinds of processors among hosts.

    Processors of different models are of one kind if NumPy, numba and BLAS have chosen the same code for
    them. Older runs have recorded the model only. A recorded model without its code is a kind by itself,
    unless another host of that model has its code recorded.

    Parameters
    ----------
    hosts : iterable of mapping
        Hosts as runs have recorded them. Those that say nothing of their processor are not counted.

    Returns
    -------
    int
    """
    known, models, described = set(), set(), set()
    for host in hosts:
        if host.get("arithmetic"):
            known.add(canonical_json(host["arithmetic"]))
            described.add(host.get("cpu"))
        elif host.get("cpu"):
            models.add(host["cpu"])
    return len(known) + len(models - described)


def mixed_note(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return a phrase about hosts with several kinds of processors; empty if there is one kind.

    Parameters
    ----------
    hosts : iterable of mapping
        As of `processor_kinds`.

    Returns
    -------
    str
        A noun phrase, which may continue a sentence or stand in a list.
    """
    number = processor_kinds(hosts)
    if number <= 1:
        return ""
    return f"processors of {number} kinds, whose numbers may differ in their last digits"
