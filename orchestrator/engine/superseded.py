"""Say before a run which stored trials its declaration no longer counts, so that they are trained again."""

from orchestrator.engine.prepare import PreparedStudy
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration
from orchestrator.study.values import for_json


def superseded_sentences(prepared: PreparedStudy, store: Store) -> list[str]:
    """Return a sentence for each reason for which stored trials stop to count with this declaration.

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
    stored, counted = store.trial_counts(), {pair.digest for pair in now.pairs.values()}
    lost: dict[str, dict[str, int]] = {}
    for (dataset, solver), pair in before.pairs.items():
        why = now.superseded.get((dataset, solver, pair.digest), "dataset")
        number = 0 if pair.digest in counted or why.startswith("dataset") else stored.get(pair.digest, 0)
        if number:
            lost.setdefault(why, {})[f"{dataset} × {solver}"] = number
    return [
        f"{sum(numbers.values()):,} stored trials of {_named([*numbers])} belong to another {why}. They are "
        "kept, but no longer count; what this command names is trained again. To keep both, give this study "
        "another name with study=NAME"
        for why, numbers in lost.items()
    ]


def _named(pairs: list[str]) -> str:
    first = ", ".join(pairs[:3])
    return first if len(pairs) <= 3 else f"{first} and {len(pairs) - 3} more"
