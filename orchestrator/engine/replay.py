"""Which stored trials count: those that the declared searches ask for, found by running the searches again.

Selections and outer rows follow from the trials in the same way, so that no table can tell of another
declaration than the one in force.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from orchestrator.search.fold_search import FoldSearch, Records, planned_trials
from orchestrator.store.results import PairState
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration
from orchestrator.study.records import StoredTrial, final_trials
from orchestrator.study.study import SearchSpec, Study
from orchestrator.study.trials import REFIT, Identity, Pair, Path


def stored_trials(store: Store, study: Study, retry_failed: bool) -> dict[str, StoredTrial]:
    """Return the stored trials that a run of a study does not train again.

    Refits with a score are trained again if the study keeps predictions and none of theirs are stored.
    """
    lacking = store.refits_without_predictions() if study.predictions else ()
    return final_trials(store.stored(), retry_failed, lacking)


class Replayed(NamedTuple):
    """What a store holds of one path that a search asked for.

    Attributes
    ----------
    path : Path
    stored : list of int
        Positions on the path of the trials whose scores the search was given.
    missing : Path or None
        What is left to run.
    """

    path: Path
    stored: list[int]
    missing: Path | None


def replay(search: FoldSearch, stored: Mapping[str, StoredTrial]) -> Iterator[Replayed]:
    """Follow a search as far as the stored trials answer it.

    A trial counts if the search asks for its key. A path of trainings that start from one another counts
    whole or not at all.
    """
    while paths := search.ask():
        for path in paths:
            trials = [stored.get(key) for key in path.keys]
            if path.warm_starts and None in trials:
                trials = []
            known = []
            for index, trial in enumerate(trials):
                if trial is not None:
                    known.append(index)
                    search.tell(path.candidates[index], path.inner, trial.status, trial.score)
            missing = None
            if len(known) < len(path):
                missing = path.only(sorted(set(range(len(path))).difference(known)))
            yield Replayed(path, known, missing)


def replay_pair(
    identity: Identity,
    search: SearchSpec,
    stored: Mapping[str, StoredTrial],
    records: Records | None = None,
) -> PairState:
    """Follow all searches of a dataset × arm as far as the stored trials answer them.

    Parameters
    ----------
    identity : Identity
    search : SearchSpec
    stored : mapping of key to StoredTrial
    records : callable, optional
        What a run recorded of a user's search, whose code is not run then.
    """
    state = PairState(planned_trials(identity, search))
    for outer in range(len(identity.n_inner)):
        fold = FoldSearch(identity, search, outer, records)
        for replayed in replay(fold, stored):
            keys = replayed.path.keys
            if replayed.missing is not None:
                keys = tuple(keys[index] for index in replayed.stored)
            state.keys += keys
            if replayed.path.inner == REFIT:
                state.refits |= dict.fromkeys(keys, fold.selection_key)
        state.complete &= fold.done
        if (row := fold.selection_row()) is not None:
            state.selections.append(row)
    state.failed = sum(not stored[key].scored for key in state.keys)
    if state.complete:
        state.planned = len(state.keys)
    return state


class DerivedTables:
    """The rows of `outer.parquet` and `selections.parquet`, by dataset, arm and outer fold.

    Parameters
    ----------
    study : str
    """

    def __init__(self, study: str):
        self._study = study
        self.outer: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.selections: dict[tuple[str, str, int], dict[str, Any]] = {}

    def add_refit(self, pair: Pair, row: Mapping[str, Any], selection_key: str) -> None:
        """Add a refit; a stored row may have the names of an earlier declaration."""
        names = {"dataset": pair[0], "solver": pair[1]}
        self.outer[*pair, row["outer"]] = {**row, **names, "selection_key": selection_key}

    def add_selection(self, pair: Pair, row: Mapping[str, Any]) -> None:
        """Add what the search of an outer fold has selected."""
        names = {"study": self._study, "dataset": pair[0], "solver": pair[1]}
        self.selections[*pair, row["outer"]] = {**row, **names}

    def write(self, store: Store) -> None:
        """Replace the tables of a store, in an order that does not depend on what finished first."""
        store.write_outer([self.outer[axes] for axes in sorted(self.outer)])
        store.write_selections([self.selections[axes] for axes in sorted(self.selections)])


def derive(
    store: Store,
    declaration: Declaration | None,
    stored: Mapping[str, StoredTrial],
    refits: Mapping[str, Mapping[str, Any]],
    without: Collection[Pair] = (),
) -> DerivedTables:
    """Derive selections and outer rows from the stored trials.

    Parameters
    ----------
    store : Store
    declaration : Declaration or None
    stored : mapping of key to StoredTrial
    refits : mapping of key to row
    without : collection of (dataset, arm)
        Those to leave out.
    """
    tables = DerivedTables(store.folder.name)
    if declaration is None:
        return tables
    for pair, declared in declaration.pairs.items():
        if pair in without:
            continue
        if declared.identity is None:  # an older svmbench recorded too little to derive its rows again
            for row in store.outer_rows():
                if row["identity"] == declared.digest:
                    tables.add_refit(pair, row, row["selection_key"])
            for row in store.selection_rows():
                if row["identity"] == declared.digest:
                    tables.add_selection(pair, row)
            continue
        state = replay_pair(declared.identity, declaration.search, stored, store.search_record)
        for row in state.selections:
            tables.add_selection(pair, row)
        for key, selection_key in state.refits.items():
            tables.add_refit(pair, refits[key], selection_key)
    return tables
