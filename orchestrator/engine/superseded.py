"""Say before a run which stored trials its declaration no longer counts, so that they are trained again."""

from collections.abc import Iterable

from orchestrator.engine.prepare import PreparedStudy
from orchestrator.store.store import Store
from orchestrator.study.changed_meanings import OTHER_CODE
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.sample import requested_repeats
from orchestrator.study.trials import Pair
from orchestrator.study.values import for_json


def superseded_sentences(prepared: PreparedStudy, store: Store) -> list[str]:
    """Return a sentence for each reason for which stored trials no longer count with this declaration.

    Another sentence names trials of a timing sample that count, but were measured another number of times.
    Trials that do not count before are left out. So are trials of a dataset whose content has changed, which
    `changed_contents` reports.

    Parameters
    ----------
    prepared : PreparedStudy
        The study as it is about to run.
    store : Store
        The store of the study, which may be empty.
    """
    runs = store.provenance()
    before, now = (current_declaration(each) for each in (runs, [*runs, for_json(prepared.declaration())]))
    if before is None or now is None:
        return []
    repeats = _measured_otherwise(before, now, store)
    counted = {digest for pair in now.pairs.values() for digest in pair.digests}
    reasons = {
        (*names, pair.digest): now.superseded.get((*names, pair.digest), "dataset")
        for names, pair in before.pairs.items()
        if pair.digest not in counted
    }
    superseded = {key: why for key, why in reasons.items() if not why.startswith("dataset")}
    if not superseded:
        return repeats
    stored = store.trial_counts()  # reads all parts of the store
    lost: dict[str, dict[Pair, int]] = {}
    for (dataset, solver, digest), why in superseded.items():
        if number := stored.get(digest, 0):
            lost.setdefault(why, {})[dataset, solver] = number

    def effect(pairs: Iterable[Pair]) -> str:
        again = sum(stored.get(now.pairs[pair].digest, 0) for pair in pairs if pair in now.pairs)
        if again:
            return f"{again:,} trials that an earlier command stored count again"
        return "what this command names is trained again"

    return repeats + [
        f"{sum(numbers.values()):,} stored trials of {_named([' × '.join(pair) for pair in numbers])} belong "
        f"to another {why}. They are kept, but no longer count; {effect(numbers)}. {_remedy(why, store)}"
        for why, numbers in lost.items()
    ]


def _measured_otherwise(before: Declaration, now: Declaration, store: Store) -> list[str]:
    """Return a sentence if another `search.repeats` leaves the stored trials of a timing sample as they are.

    Parameters
    ----------
    before, now : Declaration
        The declaration in force, and the one after the run.
    store : Store
        The store of the study.
    """
    first, last = (requested_repeats(each.search) for each in (before, now))
    if not first or not last or first == last:
        return []
    stored = store.trial_counts()
    if not (number := sum(stored.get(digest, 0) for pair in now.pairs.values() for digest in pair.digests)):
        return []
    return [
        f"search.repeats={last}: {number:,} stored trials were measured with search.repeats={first}. They "
        "count, and are not measured again. To measure all alike, set another name with study=NAME"
    ]


def _remedy(why: str, store: Store) -> str:
    if why == OTHER_CODE:
        return f"To keep them if a sample is the same, stop and run svmbench accept study={store.folder.name}"
    return "To keep both, give this study another name with study=NAME"


def _named(pairs: list[str]) -> str:
    first = ", ".join(pairs[:3])
    return first if len(pairs) <= 3 else f"{first} and {len(pairs) - 3} more"
