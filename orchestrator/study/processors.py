"""Kinds of processors that runs have recorded. Results of different kinds may differ in the last digits."""

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.study.values import canonical_json


def processor_name(host: Mapping[str, Any]) -> str:
    """Return the model of a host's processor and, if it is recorded, the one for which numba compiles there.

    Providers name processors of several generations alike.

    Parameters
    ----------
    host : mapping
        Host as a run has recorded it.

    Returns
    -------
    str
        A name such as `AMD EPYC (znver4)`.
    """
    model = str(host.get("cpu", "unknown processor"))
    compiled_for = (host.get("arithmetic") or {}).get("numba")
    return f"{model} ({compiled_for})" if compiled_for else model


def processor_kinds(hosts: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of kinds of processors among hosts.

    Processors of different models are of one kind if NumPy, numba and BLAS choose the same code for them.
    Older runs recorded only the model. Such a model is a kind by itself, unless the code of another host of
    that model is recorded.

    Parameters
    ----------
    hosts : iterable of mapping
        Hosts as runs have recorded them. Hosts without a recorded processor are not counted.
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
        Hosts as runs have recorded them.

    Returns
    -------
    str
        Noun phrase, which can end a sentence or be an item of a list.
    """
    number = processor_kinds(hosts)
    if number <= 1:
        return ""
    return f"processors of {number} kinds, whose numbers may differ in their last digits"
