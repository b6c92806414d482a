"""Set aside what is damaged in a study's folder, so that the next run computes anew what was lost with it.

Nothing is deleted but half-written temporaries: files move to `damaged/`, so that their content is not lost.
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
    """Leave a study with nothing that is damaged, and say what was done, one sentence each.

    Raises
    ------
    StoreError
        When the study is being run, or its folder cannot be written to.
    """
    done = [_set_aside(store, path, "something else is in its place") for path in _in_the_way(store.folder)]
    with store.lock() as lock:
        if lock.removed:
            done.append(f"removed {len(lock.removed)} files that a writer left half-written")
        parts = store.damaged_parts()
        done += [f"{_set_aside(store, part.path, part.reason)}; its trials will run again" for part in parts]
        done += _repair_provenance(store)
        done += [
            f"{_set_aside(store, record.path, record.reason)}; the study's command writes it anew"
            for record in store.damaged_search_records()
        ]
        done += _derive_again(store)
    return done


def _in_the_way(folder: Path) -> list[Path]:
    """Find what is no file where svmbench writes one, and no folder where it has one."""
    found = []
    for name in FOLDERS:
        try:
            require_folder(folder, folder / name)
        except DamageError as error:
            found.append(error.path)
    files = [folder / name for name in (".lock", ".lock-holder", "outer.parquet", "selections.parquet")]
    report = [folder / "report", folder / "report/tables", folder / "report/figures"]
    for place in report:
        if place.parent in found or not lexists(place):
            continue
        if is_folder(place):
            files += sorted(place.glob("*"))
        else:
            found.append(place)
    return found + [
        path for path in files if lexists(path) and not is_plain_file(path) and path not in [*report, *found]
    ]


def _set_aside(store: Store, path: Path, reason: str) -> str:
    target = store.folder / "damaged" / path.name
    if lexists(target.parent) and not is_folder(target.parent):
        raise StoreError(
            f"{target.parent} is not a folder, and repair moves what is damaged there; rename or remove it, "
            "then repair again"
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
            f"cannot move {path} to {target}: {error.strerror}; make both folders writable, then repair again"
        ) from None
    return f"{path} is damaged ({reason}) and was moved to {target}"


def _repair_provenance(store: Store) -> list[str]:
    """Set damaged records aside, and record of runs that lost theirs that they did."""
    damages = store.provenance_records.damages()
    done = [_set_aside(store, damage.path, damage.reason) for damage in damages]
    ids = [damage.path.stem for damage in damages if _RUN_ID_OF_OURS.fullmatch(damage.path.stem)]
    lost = store.provenance_records.record_lost([*ids, *store.run_ids()])
    done += [f"what run {run_id} recorded is lost; its rows stay" for run_id in lost]
    provenance = store.provenance()
    if lost and provenance[-1].get("lost"):
        done.append("what the study declares is lost; run its command again before status or report")
    return done


def _derive_again(store: Store) -> list[str]:
    """Derive selections and outer rows from the trials, and say so if they were others."""
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
    if repr(derived) != repr(recorded):  # as text, nan equals nan
        done.append("derived outer.parquet and selections.parquet again from the trials")
    return done
