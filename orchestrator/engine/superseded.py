"""Say before a run which stored trials its declaration no longer counts, so that they are trained again."""

from orchestrator.engine.overview import overview
from orchestrator.engine.prepare import PreparedStudy
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration
from orchestrator.study.values import for_json


def superseded_sentences(prepared: PreparedStudy, store: Store) -> list[str]:
    """Return a sentence for each dataset × arm whose stored trials stop to count with this declaration.

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
    known = set(overview(store, before).excluded(before))
    return [
        f"{number:,} stored trials of {dataset} × {solver} belong to {why}. They are kept, but do not count; "
        "this study trains them again"
        for dataset, solver, number, why in overview(store, now).excluded(now)
        if (dataset, solver, number, why) not in known and why.startswith("another ")
    ]
