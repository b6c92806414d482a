"""Trials that a study had and has no longer, because a part was deleted.

A stored key is never removed. So there are at least as many as each run recorded to have found and stored,
and those of the refits in `outer.parquet`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.store.store import Store


def lost_trials(store: Store, runs: Sequence[Mapping[str, Any]], stored: Mapping[str, int]) -> list[str]:
    """Say which runs stored trials that are missing, the newest first.

    Parameters
    ----------
    store : Store
    runs : sequence of mapping
        The provenance of every run, oldest first.
    stored : mapping of str to int
        The number of stored trials, one a key, by identity.
    """
    sentences = []
    named: set[str] = set()
    for run in reversed(runs):
        identities, number = _recorded(run)
        missing = number - sum(stored.get(identity, 0) for identity in identities)
        if missing > 0 and not identities <= named:
            named |= identities
            sentences.append(
                f"{missing:,} of {number:,} trials are missing from {store.trials_folder}: run "
                f"{run['run_id']} had stored them; run its command again"
            )
    refits = Counter({name: number for name, number in store.refit_counts().items() if name not in named})
    if missing := (refits - Counter(stored)).total():
        sentences.append(
            f"{missing:,} refits of outer.parquet are missing from {store.trials_folder}; run the study's "
            "command again"
        )
    return sentences


def _recorded(run: Mapping[str, Any]) -> tuple[set[str], int]:
    """Return the identities of a run's trials, and how many of them it found and stored."""
    arms = [known for known in (run.get("identities") or {}).values() if isinstance(known, dict)]
    identities = [str(identity) for known in arms for identity in known.values()]
    if len({*identities}) < len(identities):  # a key may have been counted twice
        return set(), 0
    summary = run.get("summary") or {}
    numbers = [summary.get(name) for name in ("trials_run", "trials_stored_before")]
    return {*identities}, sum(number for number in numbers if type(number) is int)
