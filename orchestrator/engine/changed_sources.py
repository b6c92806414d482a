"""Report datasets and solvers whose sources have changed since their trials were stored.

A run records the size and the modification time of each dataset's file. `status` and the report compare these
stamps without reading the files. A plan and a run read the files and compare the contents.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.datasets.packages import package_folder
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration, DeclaredPair, current_declaration
from orchestrator.study.equivalences import EQUIVALENCES, SameCode
from orchestrator.study.study import Arm

FILES = "files"
"""Key of provenance whose value maps a dataset to the path, size and modification time of its file."""


def file_stamp(given: str, package: str = "") -> dict[str, Any] | None:
    """Return path, size and modification time of a file, or of the Parquet files of a folder.

    The stamp of a folder has the total size of its Parquet files and their latest modification time. The path
    stays as the user gave it, so that a store of relative paths does not name the folders of one computer.

    Parameters
    ----------
    given : str
        Path of a dataset's file or folder. It may begin with `~`, and a relative one starts at the working
        folder or in the package.
    package : str, default=""
        Name of the installed package that has the file; empty for a file of the user.

    Returns
    -------
    dict of str to object or None
        Path, size in bytes, time in nanoseconds, and the package if there is one. None if it is not a regular
        file or cannot be accessed.
    """
    start = package_folder(package) if package else Path()
    if start is None:
        return None
    try:
        path = start / Path(given).expanduser()
        files = list(path.rglob("*.parquet")) if path.is_dir() else [path]
        found = [file.stat() for file in files if file.is_file()]
    except (OSError, RuntimeError):  # RuntimeError for a home folder that is not known here
        return None
    if not found:
        return None
    size, changed = sum(each.st_size for each in found), max(each.st_mtime_ns for each in found)
    return {"path": given, "size": size, "mtime_ns": changed} | ({"package": package} if package else {})


def _is_same_file(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> bool:
    """Return whether two stamps have the same size and time. Their paths may be given in different ways.

    Parameters
    ----------
    first, second : mapping of str to object or None
        Stamps; None for no file.
    """
    if first is None or second is None:
        return False
    return all(first[key] == second[key] for key in ("size", "mtime_ns"))


def changed_files(
    runs: Sequence[Mapping[str, Any]], declaration: Declaration | None, stored: Mapping[str, int]
) -> list[str]:
    """Return a sentence for each file whose stamp differs from that of the newest run that read it.

    A missing file is not reported, because the study may come from another computer.

    Parameters
    ----------
    runs : sequence of mapping of str to object
        Provenance of every run, oldest first.
    declaration : Declaration or None
        The current declaration.
    stored : mapping of str to int
        Number of stored trials that count, by dataset.

    Returns
    -------
    list of str
        Sentences about the files.
    """
    sentences = []
    for name in declaration.datasets if declaration is not None else ():
        recorded = next(
            (files[name] for run in reversed(runs) if name in (files := run.get(FILES) or {})), None
        )
        if recorded is None or not stored.get(name):
            continue
        found = file_stamp(recorded["path"], recorded.get("package", ""))
        if found is None or _is_same_file(found, recorded):
            continue
        file, number = Path(recorded["path"]).name, _trials(stored[name])
        if found["size"] != recorded["size"]:
            sizes = f"{recorded['size']:,} → {found['size']:,} bytes"
            sentences.append(f"{file} has changed since its {number} of {name} were stored ({sizes})")
        else:
            sentences.append(
                f"{file} was written again since its {number} of {name} were stored (still {found['size']:,} "
                "bytes). Run svmbench plan to compare its content"
            )
    return sentences


def changed_contents(
    datasets: Sequence[Mapping[str, Any]],
    files: Mapping[str, Mapping[str, Any]],
    store: Store,
    now: Iterable[tuple[str, str]] = (),
) -> list[str]:
    """Return a sentence for each dataset that differs from the one of the stored trials.

    Parameters
    ----------
    datasets : sequence of mapping of str to object
        Summaries of the datasets, as the run will record them.
    files : mapping of str to mapping of str to object
        Stamps of the datasets that are read from files, by name.
    store : Store
        The store of the study.
    now : iterable of (str, str)
        Name of the dataset and identity of each pair that is about to run. Trials of them may be stored, if
        the data are those of an earlier run. Default: none.

    Returns
    -------
    list of str
        Sentences with the difference and the remedy.
    """
    runs = store.provenance()
    declaration = current_declaration(runs)
    if declaration is None:
        return []
    recorded = {name: stamp for run in runs for name, stamp in (run.get(FILES) or {}).items()}
    pairs = [(declaration.datasets.get(summary["name"]), summary) for summary in datasets]
    changed = [(old, new) for old, new in pairs if old and old.get("fingerprint") != new["fingerprint"]]
    stored = store.trial_counts() if changed else {}
    sentences = []
    for old, new in changed:
        name = new["name"]
        identities = _digests(pair for (dataset, _), pair in declaration.pairs.items() if dataset == name)
        if number := sum(stored.get(identity, 0) for identity in identities):
            again = sum(stored.get(identity, 0) for dataset, identity in {*now} if dataset == name)
            sentences.append(_changed_content(old, new, files.get(name), recorded.get(name), number, again))
    return sentences


def _changed_content(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    stamp: Mapping[str, Any] | None,
    recorded: Mapping[str, Any] | None,
    number: int,
    again: int,
) -> str:
    """Return a sentence for a dataset that differs from the one of its stored trials.

    Parameters
    ----------
    before, now : mapping of str to object
        Summaries of the stored and of the current dataset.
    stamp, recorded : mapping of str to object or None
        Stamps of the file, now and when a run read it last; None if the dataset is not read from a file.
        Equal stamps mean that the file is read in another way, such as with another label.
    number : int
        Stored trials that no longer count.
    again : int
        Stored trials of the current content, which count again.
    """
    # The table of a notebook gets another file when its content changes; no file of the user has changed.
    is_its_file = stamp is not None and recorded is not None and stamp["path"] == recorded["path"]
    what = Path(stamp["path"]).name if stamp and is_its_file else f"dataset {now['name']}"
    if _is_same_file(stamp, recorded):
        change, remedy = "is read in another way than for its {}", "give label, drop and groups as before"
    else:
        change, remedy = "has changed since its {} were stored", "restore the data"
    changed = f"{change.format(_trials(number))} ({_difference(before, now)})"
    if again:
        return (
            f"{what} {changed}. They no longer count; {_trials(again)} of its present content, stored "
            "before, count again"
        )
    return (
        f"{what} {changed}. They no longer count, and all arms on it "
        f"will be trained again. To keep them, {remedy}, or give this study another name with study=NAME"
    )


def changed_code(arms: Sequence[Arm], equivalences: Sequence[Mapping[str, Any]], store: Store) -> list[str]:
    """Return a sentence for each arm whose code differs from that of its stored trials.

    Parameters
    ----------
    arms : sequence of Arm
        Arms of the configuration, with the identities of their code.
    equivalences : sequence of mapping of str to object
        Versions of code with the same numbers, besides those that the store records.
    store : Store
        The store of the study.

    Returns
    -------
    list of str
        Sentences with the number of trials that no longer count.
    """
    runs = store.provenance()
    declaration = current_declaration(runs)
    if declaration is None:
        return []
    same_code = SameCode([*runs, {EQUIVALENCES: equivalences}])
    recorded = {name: str(arm.get("identity", "")) for name, arm in declaration.arms.items()}
    pairs = [(arm, recorded.get(arm.name, arm.identity), same_code.of(arm.name)) for arm in arms]
    changed = [arm for arm, before, same in pairs if same(before) != same(arm.identity)]
    stored = store.trial_counts() if changed else {}
    sentences = []
    for arm in changed:
        identities = _digests(pair for (_, name), pair in declaration.pairs.items() if name == arm.name)
        if number := sum(stored.get(identity, 0) for identity in identities):
            sentences.append(
                f"{arm.name}: {_code_difference(recorded[arm.name], arm.identity)} since its "
                f"{_trials(number)} were stored. They no longer count, and will be trained again unless "
                "svmbench accept finds a sample of them the same"
            )
    return sentences


def _digests(pairs: Iterable[DeclaredPair]) -> set[str]:
    return {digest for pair in pairs for digest in pair.digests}


def _code_difference(before: str, now: str) -> str:
    """Return a description of how the code of an arm differs from that of its stored trials.

    Parameters
    ----------
    before, now : str
        Identities of the code, as `class_identity` returns them, joined by " + ".

    Returns
    -------
    str
        Start of a sentence with the changed versions of packages, or else the source.
    """
    old, new = (dict(zip(words[::2], words[1::2], strict=False)) for words in map(_words, (before, now)))
    both = {name: (old.get(name, "none"), new.get(name, "none")) for name in {**old, **new}}
    changed = {name: versions for name, versions in both.items() if versions[0] != versions[1]}
    sources = [name for name in changed if re.fullmatch(r"[0-9a-f]{16}", new.get(name) or old[name])]
    if sources:
        return f"the source of {', '.join(sources)}, or of a module that it imports, has changed"
    versions = (f"{name} {first} → {last}" for name, (first, last) in changed.items())
    return f"the packages that its code imports have changed ({', '.join(versions)})"


def _words(identity: str) -> list[str]:
    return identity.replace(" + ", " ").split()


def _trials(number: int) -> str:
    """Return a number of trials as text.

    Parameters
    ----------
    number : int
        Count of trials, at least 1.

    Returns
    -------
    str
        For example `1 trial` or `1,200 trials`.
    """
    return f"{number:,} trial{'s' if number > 1 else ''}"


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return a description of how a dataset differs from the stored one.

    Parameters
    ----------
    before : mapping of str to object
        Summary of the stored dataset.
    now : mapping of str to object
        Summary of the current dataset.

    Returns
    -------
    str
        Rows before and now; features too, if their number differs.
    """
    counts = [f"rows {before.get('n')} → {now['n']}"]
    if before.get("d") != now["d"]:
        counts.append(f"features {before.get('d')} → {now['d']}")
    return f"{', '.join(counts)}, content differs"
