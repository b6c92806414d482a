"""Decide which stored trials count: the searches run again, and the trials that they ask for count.

Selections and outer rows are derived from these trials. So all tables follow the current declaration.
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

    If the study keeps predictions, a scored refit whose predictions are not stored is trained again.

    Parameters
    ----------
    store : Store
        The store of the study.
    study : Study
        The study to run.
    retry_failed : bool
        Whether stored trials without a score are trained again.

    Returns
    -------
    dict of str to StoredTrial
        Status and score of each trial, by key.
    """
    without_predictions = store.refits_without_predictions() if study.predictions else ()
    return final_trials(store.stored(), retry_failed, without_predictions)


class Replayed(NamedTuple):
    """Stored and missing trials of one path that a search asked for.

    Attributes
    ----------
    path : Path
        The path as the search asked for it.
    stored : dict of int to str
        Keys of the stored trials, by their positions on the path. Their scores were passed to the search.
    missing : Path or None
        The path with only its missing trials, or None if no trial has to run.
    needed : bool
        Whether the search asked for the path. Otherwise an earlier version needed its stored trials, which
        count, too.
    """

    path: Path
    stored: dict[int, str]
    missing: Path | None
    needed: bool = True


def replay(search: FoldSearch, stored: Mapping[str, StoredTrial]) -> Iterator[Replayed]:
    """Follow a search as far as the stored trials answer it.

    A trial counts if the search asks for its key, or if an older identity that counts gave it another key. A
    path with warm starts counts only if all its trials are stored under one identity.

    Parameters
    ----------
    search : FoldSearch
        The search of one outer fold. It receives the stored scores.
    stored : mapping of str to StoredTrial
        The stored trials, by key.

    Yields
    ------
    Replayed
        Stored and missing trials of each path, in the order in which the search asks.
    """
    for path in search.unneeded():
        if known := _tell_stored(search, path, stored):
            yield Replayed(path, known, None, needed=False)
    while paths := search.ask():
        for path in paths:
            known = _tell_stored(search, path, stored)
            missing = None
            if len(known) < len(path):
                missing = path.only(sorted(set(range(len(path))).difference(known)))
            yield Replayed(path, known, missing)


def _tell_stored(search: FoldSearch, path: Path, stored: Mapping[str, StoredTrial]) -> dict[int, str]:
    """Pass the stored scores of a path to its search.

    Parameters
    ----------
    search : FoldSearch
        The search of one outer fold.
    path : Path
        A path of this fold.
    stored : mapping of str to StoredTrial
        The stored trials, by key.

    Returns
    -------
    dict of int to str
        Keys of the trials that are stored and count, by their positions on the path.
    """
    known: dict[int, str] = {}
    for keys in (path.keys, *path.older_keys):
        found = {index: key for index, key in enumerate(keys) if key in stored}
        if not path.warm_starts or len(found) == len(path):
            known = found | known
        if len(known) == len(path):
            break
    known = dict(sorted(known.items()))
    for index, key in known.items():
        trial = stored[key]
        search.tell(path.candidates[index], path.inner, trial.status, trial.score)
    return known


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
        All inputs that change the results of the dataset × arm.
    search : SearchSpec
        The declared search.
    stored : mapping of str to StoredTrial
        The stored trials, by key.
    records : Records, optional
        Function that returns the proposals that a run recorded of a custom search. With it, the code of that
        search does not run.

    Returns
    -------
    PairState
        The keys, refits and selections of the dataset × arm, and whether it is complete.
    """
    state = PairState(planned_trials(identity, search))
    for outer in range(len(identity.n_inner)):
        fold = FoldSearch(identity, search, outer, records)
        for replayed in replay(fold, stored):
            keys = tuple(replayed.stored.values())
            state.keys += keys
            state.planned += 0 if replayed.needed else len(keys)
            if replayed.path.inner == REFIT and fold.selects:
                state.refits |= dict.fromkeys(keys, fold.selection_key)
        state.complete &= fold.done
        if (row := fold.selection_row()) is not None:
            state.selections.append(row)
    state.failed = sum(not stored[key].scored for key in state.keys)
    if state.complete:
        state.planned = len(state.keys)
    return state


class DerivedTables:
    """Rows of `outer.parquet` and `selections.parquet`, by dataset, arm and outer fold.

    Parameters
    ----------
    study : str
        Name of the study, which is written into each row of the selections.
    """

    def __init__(self, study: str):
        self._study = study
        self.outer: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.selections: dict[tuple[str, str, int], dict[str, Any]] = {}

    def add_refit(self, pair: Pair, row: Mapping[str, Any], selection_key: str) -> None:
        """Add a refit under the declared names, which replace those in its row.

        Parameters
        ----------
        pair : Pair
            The declared dataset and arm. A stored row may have the names of an earlier declaration.
        row : mapping of str to object
            The stored row of the trial.
        selection_key : str
            Key of the selection that asked for this refit.
        """
        names = {"dataset": pair[0], "solver": pair[1]}
        self.outer[*pair, row["outer"]] = {**row, **names, "selection_key": selection_key}

    def add_selection(self, pair: Pair, row: Mapping[str, Any]) -> None:
        """Add the selection of an outer fold under the declared names.

        Parameters
        ----------
        pair : Pair
            The declared dataset and arm.
        row : mapping of str to object
            The row of the selection.
        """
        names = {"study": self._study, "dataset": pair[0], "solver": pair[1]}
        self.selections[*pair, row["outer"]] = {**row, **names}

    def write(self, store: Store) -> None:
        """Replace the tables of a store, sorted by dataset, arm and outer fold.

        Parameters
        ----------
        store : Store
            The store of the study.
        """
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
        The store of the study. It holds the recorded proposals of custom searches.
    declaration : Declaration or None
        The current declaration. Without one, the tables are empty.
    stored : mapping of str to StoredTrial
        The stored trials, by key.
    refits : mapping of str to mapping of str to object
        Rows of the stored refits, by key.
    without : collection of Pair, default ()
        Pairs of dataset and arm to omit.

    Returns
    -------
    DerivedTables
        The rows of both tables.
    """
    tables = DerivedTables(store.folder.name)
    if declaration is None:
        return tables
    for pair, declared in declaration.pairs.items():
        if pair in without:
            continue
        if declared.identity is None:  # an older svmbench did not record what deriving these rows needs
            for row in store.outer_rows():
                if row["identity"] == declared.digest:
                    tables.add_refit(pair, row, row["selection_key"])
            for row in store.selection_rows():
                if row["identity"] == declared.digest:
                    tables.add_selection(pair, row)
            continue
        state = replay_pair(declared.identity, declaration.search, stored, store.search_records.read)
        for row in state.selections:
            tables.add_selection(pair, row)
        for key, selection_key in state.refits.items():
            tables.add_refit(pair, refits[key], selection_key)
    return tables
