"""Move damaged files of a study aside, so that the next run computes their content again.

Nothing is deleted except half-written temporary files. Damaged files move to `damaged/` and keep their
content.
"""

import re
from os.path import lexists
from pathlib import Path

from orchestrator.engine.replay import derive
from orchestrator.store.files import (
    FOLDERS,
    DamageError,
    StoreError,
    is_folder,
    is_plain_file,
    require_folder,
)
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration

_RUN_ID_OF_OURS = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}")


def repair(store: Store) -> list[str]:
    """Repair a study's folder and return one sentence for each change.

    Parameters
    ----------
    store : Store
        The store of the study.

    Returns
    -------
    list of str
        Sentences that name the files and what happened to them.

    Raises
    ------
    StoreError
        If the study is running, or its folder is not writable.
    """
    done = [
        _set_aside(store, path, "it is of another type than expected") for path in _in_the_way(store.folder)
    ]
    with store.lock() as lock:
        if lock.removed:
            done.append(f"removed {len(lock.removed)} files that a writer left half-written")
        parts = store.damaged_parts()
        done += [f"{_set_aside(store, part.path, part.reason)}; its trials will run again" for part in parts]
        done += _repair_provenance(store)
        done += [
            f"{_set_aside(store, record.path, record.reason)}; the study's command writes it again"
            for record in store.search_records.damaged()
        ]
        done += _derive_again(store)
    return done


def _in_the_way(folder: Path) -> list[Path]:
    """Return the paths where svmbench expects a file or a folder and finds something else.

    Parameters
    ----------
    folder : Path
        Folder of the study.

    Returns
    -------
    list of Path
        Files and folders that have to move.
    """
    found = []
    for name in FOLDERS:
        try:
            require_folder(folder, folder / name)
        except DamageError as error:
            found.append(error.path)
    files = [folder / name for name in (".lock", ".lock-holder", "outer.parquet", "selections.parquet")]
    report = [folder / "report", folder / "report/tables", folder / "report/figures"]
    for part in report:
        if part.parent in found or not lexists(part):
            continue
        if is_folder(part):
            files += sorted(part.glob("*"))
        else:
            found.append(part)
    return found + [
        path for path in files if lexists(path) and not is_plain_file(path) and path not in [*report, *found]
    ]


def _set_aside(store: Store, path: Path, reason: str) -> str:
    """Move a file or folder to `damaged/` under a free name.

    Parameters
    ----------
    store : Store
        The store of the study.
    path : Path
        The file or folder.
    reason : str
        Description of the damage.

    Returns
    -------
    str
        A sentence about the move.

    Raises
    ------
    StoreError
        If it cannot be moved.
    """
    target = store.folder / "damaged" / path.name
    if lexists(target.parent) and not is_folder(target.parent):
        raise StoreError(
            f"{target.parent}: expected a folder for damaged files, found something else. Rename or "
            "remove it, then repair again"
        )
    number = 1
    try:
        target.parent.mkdir(exist_ok=True)
        while lexists(target):
            number += 1
            target = target.with_name(f"{path.name}.{number}")
        path.rename(target)
    except OSError as error:
        raise StoreError(
            f"cannot move {path} to {target}: {error.strerror}. Make both folders writable, then repair again"
        ) from None
    return f"{path} is damaged ({reason}) and was moved to {target}"


def _repair_provenance(store: Store) -> list[str]:
    """Move damaged run records to `damaged/` and note the runs without a record.

    Parameters
    ----------
    store : Store
        The store of the study.

    Returns
    -------
    list of str
        One sentence for each record and run.
    """
    damages = store.provenance_records.damages()
    done = [_set_aside(store, damage.path, damage.reason) for damage in damages]
    ids = [damage.path.stem for damage in damages if _RUN_ID_OF_OURS.fullmatch(damage.path.stem)]
    lost = store.provenance_records.record_lost([*ids, *store.run_ids()])
    done += [f"the record of run {run_id} is lost; its rows remain" for run_id in lost]
    provenance = store.provenance()
    if lost and provenance[-1].get("lost"):
        done.append("the study's declaration is lost. Run its command again before status or report")
    return done


def _derive_again(store: Store) -> list[str]:
    """Derive selections and outer rows from the trials, and report whether they changed.

    Parameters
    ----------
    store : Store
        The store of the study.

    Returns
    -------
    list of str
        One sentence for each change.
    """
    provenance = store.provenance()
    declaration = current_declaration(provenance)
    if declaration is None or provenance[-1].get("lost"):
        return []
    recorded, done = [], []
    for read in (store.outer_rows, store.selection_rows):
        try:
            recorded.append(read())
        except DamageError as error:
            done.append(_set_aside(store, error.path, error.reason))
            recorded.append([])
    stored = store.stored()
    tables = derive(store, declaration, stored, store.refits())
    known = stored.keys() | {row["key"] for row in tables.outer.values()}
    if lost := sum(row["key"] not in known for row in recorded[0]):
        paths = [store.folder / name for name in ("outer.parquet", "selections.parquet")]
        reason = f"trials of {lost:,} refits are missing"
        done += [_set_aside(store, path, reason) for path in paths if lexists(path)]
    tables.write(store)
    derived = [store.outer_rows(), store.selection_rows()]
    if repr(derived) != repr(recorded):  # as text, because nan is not equal to itself
        done.append("derived outer.parquet and selections.parquet again from the trials")
    return done
