"""Find a study's folder by its name and read its tables."""

from __future__ import annotations  # so that `status` does not import pandas

import itertools
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.engine.changed_sources import changed_files
from orchestrator.engine.lost_trials import lost_trials
from orchestrator.engine.replay import replay_pair
from orchestrator.store.data_frames import selection_frame
from orchestrator.store.files import StoreError
from orchestrator.store.results import PairState, Refit, StudyResults, excluded_trials
from orchestrator.store.store import Store
from orchestrator.store.study_folders import holds_study, study_folders
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.records import StoredTrial
from orchestrator.study.study_name import name_problem
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown
from orchestrator.study.trials import REFIT, Pair
from orchestrator.study.values import cell, is_number, stored_as_numbers

if TYPE_CHECKING:
    import pandas as pd


def load_study(name: str | Path, results: str | Path = "results") -> StudyResults:
    """Read a study's tables.

    Parameters
    ----------
    name : str or Path
        Name of a study, or the path of its folder. A text with a path separator is a path.
    results : str or Path, default 'results'
        Folder that contains the folders of all studies.

    Returns
    -------
    StudyResults
        The tables and provenance of the study.

    Raises
    ------
    StoreError
        If there is no such study, or its files cannot be read.
    """
    is_path = isinstance(name, Path) or any(mark and mark in str(name) for mark in (os.sep, os.altsep))
    if not is_path and (problem := name_problem(name)):
        raise StoreError(problem)
    path = Path(str(name))
    return read_results(_store_at(path, Path(results), [Path(results) / path, path]))


def find_study(name: str, results: str | Path = "results") -> Store:
    """Return the store of a study by its name.

    Parameters
    ----------
    name : str
        Name of the study.
    results : str or Path, default 'results'
        The folder of studies. The study is looked up only there.

    Returns
    -------
    Store
        Store of the study's folder.

    Raises
    ------
    StoreError
        If the name is not valid, or there is no such study.
    """
    if problem := name_problem(name):
        raise StoreError(problem)
    return _store_at(Path(name), Path(results), [Path(results) / name])


def _store_at(name: Path, results: Path, folders: Sequence[Path]) -> Store:
    """Return the store of the first folder that holds a study.

    Parameters
    ----------
    name : Path
        Name or path of the study, for messages.
    results : Path
        Folder that contains the folders of all studies.
    folders : sequence of Path
        Candidate folders, in order of preference.

    Returns
    -------
    Store
        Store of that folder.

    Raises
    ------
    StoreError
        If no folder holds a study, or a folder cannot be read.
    """
    try:
        folder = next(filter(holds_study, folders), None)
    except OSError as error:
        raise StoreError(f"cannot read {shown(str(folders[0]), 300)}: {error.strerror}") from None
    except ValueError:  # a NUL or another character that no path may contain
        raise StoreError(f"study={shown(str(name))}: expected a name, or the path of a folder") from None
    if folder is None:
        known = [path.name for path in study_folders(results)]
        near = did_you_mean(name.name, known) or (
            f"; it contains {', '.join(known)}" if known else "; it contains no study yet"
        )
        raise StoreError(f"no study {str(name)!r} in {results}{near} (see: svmbench studies)")
    return Store(folder)


def declared_runs(store: Store) -> list[dict[str, Any]]:
    """Return the provenance of every run; the newest contains the current declaration.

    Parameters
    ----------
    store : Store
        The store of the study.

    Returns
    -------
    list of dict of str to object
        Provenance, oldest run first.

    Raises
    ------
    StoreError
        If the record of the newest run is lost.
    """
    provenance = store.provenance()
    if provenance and provenance[-1].get("lost"):
        raise StoreError(
            f"the declaration of study {store.folder.name!r} was lost with the record of its newest run. Run "
            "its command again; it finds the stored trials"
        )
    return provenance


def read_results(store: Store) -> StudyResults:
    """Read a store and separate the trials that follow the current declaration from the others.

    Selections and refits are derived from the trials. Without any recorded declaration, all rows count.

    Parameters
    ----------
    store : Store
        The store of the study.

    Returns
    -------
    StudyResults
        The tables and provenance of the study.

    Raises
    ------
    StoreError
        If the record of the newest run is lost, or a file cannot be read.
    """
    provenance = declared_runs(store)
    trials = store.trials()
    declaration = current_declaration(provenance)
    lost = lost_trials(store, provenance, declaration, Counter(trials["identity"].tolist()))
    if declaration is None:
        refits = trials[trials["inner"] == REFIT].reset_index(drop=True)
        name, selections = store.folder.name, selection_frame(store.selection_rows())
        return StudyResults(
            *(name, store.folder, trials, selections, refits, provenance),
            lost=lost,
            read_study=partial(_read_beside, store.folder.parent),
        )
    keys = trials["key"].tolist()
    states = _pair_states(declaration, trials, keys, store)
    pair_of = {key: pair for pair, state in states.items() for key in state.keys}
    selection_keys = {key: chosen for state in states.values() for key, chosen in state.refits.items()}
    pairs = list(map(pair_of.get, keys))
    counts = np.array([pair is not None for pair in pairs], dtype=bool)
    counted = trials if counts.all() else trials[counts]
    counted = _named(counted, store.folder.name, [pair for pair in pairs if pair is not None])
    counted = _as_declared(_numeric_again(counted, declaration, store.trials_folder), declaration)
    groups = Counter(
        trials.loc[~counts, ["dataset", "solver", "identity"]].itertuples(index=False, name=None)
    )
    refits = counted[counted["inner"] == REFIT]
    outer = refits[refits["key"].isin(selection_keys)]
    return StudyResults(
        name=store.folder.name,
        folder=store.folder,
        trials=counted,
        selections=_as_declared(_selections(store.folder.name, states), declaration),
        outer=outer.assign(selection_key=outer["key"].map(selection_keys)).reset_index(drop=True),
        provenance=provenance,
        excluded=excluded_trials(declaration.reasons(dict(sorted(groups.items())))),
        states=states,
        lost=lost,
        changed=changed_files(provenance, declaration, Counter(counted["dataset"].tolist())),
        declaration=declaration,
        search_all_rows=_search_all_rows,
        train_again=_train_again,
        read_study=partial(_read_beside, store.folder.parent),
    )


def _read_beside(folder: Path, name: str) -> StudyResults:
    """Return the results of a study by its name; see `find_study` and `read_results`.

    Parameters
    ----------
    folder : Path
        Folder that contains the folders of all studies.
    name : str
        Name of the study.
    """
    return read_results(find_study(name, folder))


def _search_all_rows(*arguments: Any) -> Any:
    """Call `final_estimator`, which is imported here because it imports scikit-learn.

    Parameters
    ----------
    *arguments : object
        Arguments of `final_estimator`.

    Returns
    -------
    object
        The estimator that `final_estimator` returns.
    """
    from orchestrator.engine.final_estimator import final_estimator

    return final_estimator(*arguments)


def _train_again(*arguments: Any) -> Refit:
    """Call `train_refit_again`, which is imported here because it imports scikit-learn.

    Parameters
    ----------
    *arguments : object
        Arguments of `train_refit_again`.

    Returns
    -------
    Refit
        The refit that `train_refit_again` returns.
    """
    from orchestrator.engine.refit import train_refit_again

    return train_refit_again(*arguments)


def _named(trials: pd.DataFrame, study: str, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return trials under the declared names of datasets and arms, in canonical order.

    Parameters
    ----------
    trials : DataFrame
        Stored trials, which may have names of an earlier declaration.
    study : str
        Current name of the study.
    pairs : sequence of Pair
        Declared dataset and arm of each trial.

    Returns
    -------
    DataFrame
        The same trials. They are sorted by dataset and arm if a name of these has changed.
    """
    if (trials["study"] != study).any():
        trials = trials.assign(study=study)
    now = {"dataset": [dataset for dataset, _ in pairs], "solver": [solver for _, solver in pairs]}
    if all(trials[name].tolist() == names for name, names in now.items()):
        return trials.reset_index(drop=True)
    return trials.assign(**now).sort_values(["dataset", "solver"], kind="stable", ignore_index=True)


def _numeric_again(trials: pd.DataFrame, declaration: Declaration, trials_folder: Path) -> pd.DataFrame:
    """Convert parameter columns to numbers that are text only because of other declarations.

    Parameters
    ----------
    trials : DataFrame
        Trials of the current declaration.
    declaration : Declaration
        The current declaration.
    trials_folder : Path
        Folder of the trials, for messages.

    Returns
    -------
    DataFrame
        The same trials, with float64 in these columns.

    Raises
    ------
    StoreError
        If a value of such a column is not a number.
    """
    spaces = [arm.get("space", {}) for arm in declaration.arms.values()]
    for column in (name for name in map(str, trials.columns) if name.startswith("param_")):
        axes = [space[name] for space in spaces if (name := column.removeprefix("param_")) in space]
        if axes and all(map(stored_as_numbers, axes)) and trials[column].dtype != float:
            import pandas as pd

            try:
                numbers = pd.to_numeric(trials[column]).astype(float)
            except (ValueError, TypeError) as error:
                raise StoreError(
                    f"cannot read column {column} of {trials_folder}: {error}. The study declares numbers. "
                    "Move the part that svmbench did not write to another folder"
                ) from None
            trials = trials.assign(**{column: numbers})
    return trials


def _as_declared(rows: pd.DataFrame, declaration: Declaration) -> pd.DataFrame:
    """Write numbers in columns of text as the arm of each row declares them, such as 1.0 in place of 1.

    An axis of numbers is stored as floats. If another arm or run has texts on this axis, the column becomes
    text, and a float does not tell whether 1 or 1.0 was declared.

    Parameters
    ----------
    rows : DataFrame
        Trials or selections of the current declaration.
    declaration : Declaration
        The current declaration.

    Returns
    -------
    DataFrame
        The same rows. In their columns of text, each value has the text that `cell` gives to it.
    """
    texts = [
        name for name in map(str, rows.columns) if name.startswith("param_") and rows[name].dtype != float
    ]
    for column, (arm, description) in itertools.product(texts, declaration.arms.items()):
        axis = description.get("space", {}).get(column.removeprefix("param_"), ())
        known = {} if isinstance(axis, Mapping) else {cell(value): value for value in axis}
        numbers = {text: float(value) for text, value in known.items() if is_number(value)}
        counts = Counter(numbers.values())
        declared = {number: text for text, number in numbers.items() if counts[number] == 1}
        of_arm = rows["solver"] == arm
        stored = rows.loc[of_arm, column].dropna().unique() if declared else ()
        others = {text: _as_number(text) for text in stored if text not in known}
        changed = {text: declared[number] for text, number in others.items() if number in declared}
        if changed:
            rows = rows.assign(**{column: rows[column].mask(of_arm, rows[column].replace(changed))})
    return rows


def _as_number(text: str) -> float:
    """Return the number that a text says; NaN if it says none.

    Parameters
    ----------
    text : str
        Stored value of a parameter.
    """
    try:
        return float(text)
    except ValueError:
        return math.nan


def _selections(study: str, states: Mapping[Pair, PairState]) -> pd.DataFrame:
    """Return the selections of all pairs under their declared names.

    Parameters
    ----------
    study : str
        Current name of the study.
    states : mapping of Pair to PairState
        State of each dataset × arm.

    Returns
    -------
    DataFrame
        One row for each dataset × arm × outer fold.
    """
    rows = [
        row | {"study": study, "dataset": pair[0], "solver": pair[1]}
        for pair, state in sorted(states.items())
        for row in state.selections
    ]
    return selection_frame(rows)


def _pair_states(
    declaration: Declaration, trials: pd.DataFrame, keys: Sequence[str], store: Store
) -> dict[Pair, PairState]:
    """Return the state of each declared dataset × arm.

    Parameters
    ----------
    declaration : Declaration
        The current declaration.
    trials : DataFrame
        All stored trials.
    keys : sequence of str
        Keys of the trials.
    store : Store
        The store, with the recorded proposals of custom searches.

    Returns
    -------
    dict of Pair to PairState
        States by dataset × arm.
    """
    statuses, scores = trials["status"].tolist(), trials["score"].tolist()
    stored = dict(zip(keys, map(StoredTrial, statuses, scores), strict=True))
    return {
        pair: _recorded_state(declared.digest, declared.planned, len(declared.n_inner), trials, store)
        if declared.identity is None
        else replay_pair(declared.identity, declaration.search, stored, store.search_records.read)
        for pair, declared in declaration.pairs.items()
    }


def _recorded_state(
    identity: str, planned: int | None, n_outer: int, trials: pd.DataFrame, store: Store
) -> PairState:
    """Return the progress of a dataset × arm whose declaration is missing, from its rows.

    Parameters
    ----------
    identity : str
        Identity that its rows carry.
    planned : int or None
        Declared number of trials, if it was recorded.
    n_outer : int
        Number of outer splits.
    trials : DataFrame
        All stored trials.
    store : Store
        The store, with the recorded selections.

    Returns
    -------
    PairState
        Progress of the dataset × arm, as far as its rows show it.
    """
    rows = trials[trials["identity"] == identity]
    refits = rows[rows["inner"] == REFIT]
    complete = 0 < n_outer <= len(refits)
    return PairState(
        planned=len(rows) if complete else max(len(rows), planned or 0),
        keys=rows["key"].tolist(),
        failed=int(rows["score"].isna().sum()),
        complete=complete,
        selections=[row for row in store.selection_rows() if row["identity"] == identity],
        refits=dict.fromkeys(refits["key"], ""),
    )
