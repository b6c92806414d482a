"""Datasets whose source has changed since trials on them were stored.

A run records the size and the time of change of the file that each dataset was read from. So `status` and
the report can say that a file has changed without reading it. A plan and a run read it, and compare contents.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, current_declaration

FILES = "files"
"""Key of provenance that maps a dataset to the path, size and time of change of its file."""


def file_stamp(path: Path) -> dict[str, Any] | None:
    """Return path, size in bytes and time of change of a file; None if it is not a file that can be seen.

    The stamp of a folder is that of its Parquet files: their total size and the latest time of change.

    Parameters
    ----------
    path : Path
        File or folder of a dataset.
    """
    try:
        files = list(path.rglob("*.parquet")) if path.is_dir() else [path]
        found = [file.stat() for file in files if file.is_file()]
        absolute = str(path.absolute())
    except OSError:
        return None
    if not found:
        return None
    size, changed = sum(each.st_size for each in found), max(each.st_mtime_ns for each in found)
    return {"path": absolute, "size": size, "mtime_ns": changed}


def changed_files(
    runs: Sequence[Mapping[str, Any]], declaration: Declaration | None, stored: Mapping[str, int]
) -> list[str]:
    """Say which files have changed since the newest run that read them, by their stamps alone.

    A file that is not there says nothing: the study may have come from another computer.

    Parameters
    ----------
    runs : sequence of mapping
        The provenance of every run, oldest first.
    declaration : Declaration or None
        The one in force.
    stored : mapping of str to int
        The number of stored trials that count, by dataset.
    """
    sentences = []
    for name in declaration.datasets if declaration is not None else ():
        recorded = next(
            (files[name] for run in reversed(runs) if name in (files := run.get(FILES) or {})), None
        )
        if recorded is None or not stored.get(name):
            continue
        found = file_stamp(Path(recorded["path"]))
        if found is None or found == recorded:
            continue
        file, number = Path(recorded["path"]).name, _trials(stored[name])
        if found["size"] != recorded["size"]:
            sizes = f"{recorded['size']:,} → {found['size']:,} bytes"
            sentences.append(f"{file} has changed since its {number} of {name} were stored ({sizes})")
        else:
            sentences.append(
                f"{file} was written again since its {number} of {name} were stored (still {found['size']:,} "
                "bytes); svmbench plan says whether its content differs"
            )
    return sentences


def changed_contents(
    datasets: Sequence[Mapping[str, Any]], files: Mapping[str, Mapping[str, Any]], store: Store
) -> list[str]:
    """Say which datasets of a study differ from those that its stored trials were trained on.

    Parameters
    ----------
    datasets : sequence of mapping
        What a run is to record about its datasets.
    files : mapping of str to mapping
        The stamps of the files of those that are read from one.
    store : Store
    """
    declaration = current_declaration(store.provenance())
    if declaration is None:
        return []
    pairs = [(declaration.datasets.get(facts["name"]), facts) for facts in datasets]
    changed = [(old, new) for old, new in pairs if old and old.get("fingerprint") != new["fingerprint"]]
    stored = store.trial_counts() if changed else {}
    sentences = []
    for old, new in changed:
        name = new["name"]
        identities = {pair.digest for (dataset, _), pair in declaration.pairs.items() if dataset == name}
        if number := sum(stored.get(identity, 0) for identity in identities):
            what = Path(files[name]["path"]).name if name in files else f"dataset {name}"
            sentences.append(
                f"{what} has changed since its {_trials(number)} were stored ({_difference(old, new)}). They "
                "no longer count, and all arms on it are to be trained again. To keep them, restore the "
                "data, or give this study another name with study=NAME"
            )
    return sentences


def _trials(number: int) -> str:
    return f"{number:,} trial{'s' if number > 1 else ''}"


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    counts = [f"rows {before.get('n')} → {now['n']}"]
    if before.get("d") != now["d"]:
        counts.append(f"features {before.get('d')} → {now['d']}")
    return f"{', '.join(counts)}, content differs"
