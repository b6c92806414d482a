"""Report trials and search records that a study has lost, because files were deleted.

Stored keys are never removed. So a store has at least as many trials as each run recorded, and all refits of
`outer.parquet`. A complete run with a custom search has written a record for each outer split.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.search.fold_search import record_name, selection_key
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration


def lost_trials(
    store: Store,
    runs: Sequence[Mapping[str, Any]],
    declaration: Declaration | None,
    stored: Mapping[str, int],
) -> list[str]:
    """Return sentences about runs with missing trials, newest run first, and about missing search records.

    Parameters
    ----------
    store : Store
        The store of the study.
    runs : sequence of mapping of str to object
        Provenance of every run, oldest first.
    declaration : Declaration or None
        The current declaration.
    stored : mapping of str to int
        Number of stored trials by identity; each key counts once.

    Returns
    -------
    list of str
        Sentences with the numbers, the folder and the remedy.
    """
    sentences = []
    named: set[str] = set()
    older = _older_digests(declaration)
    for index, run in reversed([*enumerate(runs)]):
        identities, number = _recorded(run)
        missing = number - _n_stored(identities, older, stored)
        if missing > 0:  # later code may have replaced the code for which older trials counted in this run
            then = _older_digests(current_declaration(runs[: index + 1]))
            missing = min(missing, number - _n_stored(identities, then, stored))
        if missing > 0 and not identities <= named:
            named |= identities
            sentences.append(
                f"{missing:,} of {number:,} trials are missing from {store.trials_folder}: run "
                f"{run['run_id']} had stored them. Run its command again"
            )
    refits = Counter({name: number for name, number in store.refit_counts().items() if name not in named})
    if missing := (refits - Counter(stored)).total():
        sentences.append(
            f"{missing:,} refits of outer.parquet are missing from {store.trials_folder}. Run the study's "
            "command again"
        )
    if missing := _missing_search_records(store, runs, declaration):
        sentences.append(
            f"{missing:,} records of searches are missing from {store.search_records.folder}, so the trials "
            "of these searches do not count. Run the study's command again to write the records"
        )
    return sentences


def _older_digests(declaration: Declaration | None) -> dict[str, tuple[str, ...]]:
    """Return the accepted older identities by each identity that counts, whose trials a run finds as its own.

    Parameters
    ----------
    declaration : Declaration or None
        The current declaration.

    Returns
    -------
    dict of str to tuple of str
        Identities.
    """
    pairs = () if declaration is None else declaration.pairs.values()
    every = (declared.digests for declared in pairs)
    return {digest: digests[place + 1 :] for digests in every for place, digest in enumerate(digests)}


def _n_stored(identities: set[str], older: Mapping[str, Sequence[str]], stored: Mapping[str, int]) -> int:
    """Return the number of stored trials that count for some identities.

    Parameters
    ----------
    identities : set of str
        Identities that a run declared.
    older : mapping of str to sequence of str
        Older identities whose trials count, by identity.
    stored : mapping of str to int
        Number of stored trials by identity.

    Returns
    -------
    int
        Number of trials.
    """
    counted = identities.union(*(older.get(identity, ()) for identity in identities))
    return sum(stored.get(identity, 0) for identity in counted)


def _missing_search_records(
    store: Store, runs: Sequence[Mapping[str, Any]], declaration: Declaration | None
) -> int:
    """Return the number of search records that complete runs wrote and that are missing.

    Parameters
    ----------
    store : Store
        The store of the study.
    runs : sequence of mapping of str to object
        Provenance of every run.
    declaration : Declaration or None
        The current declaration.

    Returns
    -------
    int
        0 unless the declared search is custom.
    """
    if declaration is None or not declaration.search.is_custom:
        return 0
    complete = {
        (dataset, arm, digest)
        for run in runs
        if run.get("complete") and run["study"].get("search") == declaration.search.to_record()
        for dataset, digests in run["identities"].items()
        for arm, digest in digests.items()
    }
    names = (
        record_name(selection_key(declared.identity, declaration.search), outer)
        for pair, declared in declaration.pairs.items()
        if declared.identity is not None and (*pair, declared.digest) in complete
        for outer in range(len(declared.n_inner))
    )
    return sum(not store.search_records.exists(name) for name in names)


def _recorded(run: Mapping[str, Any]) -> tuple[set[str], int]:
    """Return the identities of a run's trials, and how many trials the run found and stored.

    Parameters
    ----------
    run : mapping of str to object
        Provenance of the run.

    Returns
    -------
    (set of str, int)
        The identities and the number. They are an empty set and 0 if two pairs share an identity, because a
        key may then be counted twice.
    """
    arms = [known for known in (run.get("identities") or {}).values() if isinstance(known, dict)]
    identities = [str(identity) for known in arms for identity in known.values()]
    if len({*identities}) < len(identities):  # a key may be counted twice
        return set(), 0
    summary = run.get("summary") or {}
    numbers = [summary.get(name) for name in ("trials_run", "trials_stored_before")]
    return {*identities}, sum(number for number in numbers if type(number) is int)
