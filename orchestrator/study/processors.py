"""The kinds of processors that runs have recorded, of which each may compute other last digits."""

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.study.values import canonical_json

MIXED = "processors of {} kinds, whose numbers may differ in their last digits"
"""What is said of a run on several kinds of processors."""


def processor_kinds(hosts: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of kinds of processors among hosts.

    Parameters
    ----------
    hosts : iterable of mapping
        What runs have recorded of their hosts. Of older runs the processor's name is all that is known.
    """
    return len({canonical_json([host.get("cpu"), host.get("arithmetic")]) for host in hosts})


def mixed_note(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return a phrase about hosts with several kinds of processors; empty if there is one kind.

    Parameters
    ----------
    hosts : iterable of mapping
        As of `processor_kinds`.
    """
    number = processor_kinds(hosts)
    return MIXED.format(number) if number > 1 else ""
