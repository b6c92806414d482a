"""Which stored trials count: those that the declared searches ask for, found by running the searches again.

Selections and outer rows follow from the trials in the same way, so that no table can tell of another
declaration than the one in force.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.fold_search import FoldSearch, open_search, planned_trials
from orchestrator.records import StoredTrial
from orchestrator.study import REFIT, Identity, Path


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a store holds of one path that a search asked for.

    Attributes
    ----------
    path : Path
    stored : list of int
        Positions on the path of the trials that the search was told.
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
            known = [index for index, key in enumerate(path.keys) if key in stored]
            if path.warm_starts and len(known) < len(path):
                known = []
            for index in known:
                trial = stored[path.keys[index]]
                search.tell(path.candidates[index], path.inner, trial.status, trial.score)
            missing = sorted(set(range(len(path))).difference(known))
            yield Replayed(path, known, path.only(missing) if missing else None)


def lacks_nothing(identity: Identity, search: str, stored: Mapping[str, StoredTrial]) -> bool:
    """Whether every trial that the searches of a dataset × arm ask for is stored."""
    folds = (open_search(identity, search, outer) for outer in range(identity.protocol.outer))
    return all(replayed.missing is None for fold in folds for replayed in replay(fold, stored))


@dataclass
class PairState:
    """How far one dataset × arm is.

    Attributes
    ----------
    planned : int
        Its trainings; at most, while a search that decides as it goes is not done.
    keys : list of str
        Those of the stored trials that count.
    failed : int
        Those among them without a score.
    complete : bool
        Whether nothing is left to run.
    selections : list of dict
        A row for each outer fold whose search is done.
    refits : dict of str to str
        Key of each stored refit, and the selection key that goes with it.
    """

    planned: int
    keys: list[str] = field(default_factory=list)
    failed: int = 0
    complete: bool = True
    selections: list[dict[str, Any]] = field(default_factory=list)
    refits: dict[str, str] = field(default_factory=dict)


def replay_pair(identity: Identity, search: str, stored: Mapping[str, StoredTrial]) -> PairState:
    """Follow all searches of a dataset × arm as far as the stored trials answer them.

    Parameters
    ----------
    identity : Identity
    search : str
        Kind of the search.
    stored : mapping of key to StoredTrial
    """
    state = PairState(planned_trials(identity))
    for outer in range(identity.protocol.outer):
        fold = open_search(identity, search, outer)
        for replayed in replay(fold, stored):
            keys = [replayed.path.keys[index] for index in replayed.stored]
            state.keys += keys
            state.failed += sum(not stored[key].scored for key in keys)
            if replayed.path.inner == REFIT:
                state.refits |= dict.fromkeys(keys, fold.selection_key)
        state.complete &= fold.done
        if (row := fold.selection_row()) is not None:
            state.selections.append(row)
    if state.complete:
        state.planned = len(state.keys)
    return state
