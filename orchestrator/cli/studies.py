"""The verbs `studies`, `rename`, `delete` and `repair`."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.prompt import Confirm
from rich.table import Table

from orchestrator.cli.request import Request, check_keys, names_and_overrides
from orchestrator.cli.status import started_pairs
from orchestrator.cli.terminal import as_text, say
from orchestrator.config.schema import folders, study_name
from orchestrator.engine.damage_repair import repair as repair_study
from orchestrator.engine.load import declared_runs, find_study
from orchestrator.engine.lost_trials import lost_trials
from orchestrator.engine.overview import overview
from orchestrator.engine.planning import remaining
from orchestrator.store.files import DamageError, StoreError
from orchestrator.store.store import Store
from orchestrator.store.study_folders import delete_study, rename_study, size_and_age, study_folders
from orchestrator.study.declaration import current_declaration
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import format_seconds


def studies(request: Request, console: Console) -> None:
    """Show all stored studies with their progress, size and age.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    names = [text for text in request.overrides if "=" not in text]
    if names:
        raise ConfigError([f"studies takes no name, found {names[0]!r}; use paths.results=DIR for a folder"])
    check_keys("studies", request.overrides, "[paths.results=DIR]")
    results = folders(request.config()).results
    found = study_folders(results)
    if request.as_json:
        console.file.write(json.dumps([_for_json(folder) for folder in found], ensure_ascii=False) + "\n")
        return
    if not found:
        say(console, f"No study in {results}.", wrap=False)
        return
    table = Table(title=as_text(f"Studies in {results}"), title_justify="left")
    for name in ("study", "state"):
        table.add_column(name, overflow="fold")
    for name in ("size", "last written"):
        table.add_column(name, justify="right")
    for folder in found:
        size, written = size_and_age(folder)
        age = _age(datetime.now(UTC) - written)
        table.add_row(as_text(folder.name), as_text(_state(Store(folder))), decimal(size), f"{age} ago")
    console.print(table)


def _for_json(folder: Path) -> dict[str, object]:
    size, written = size_and_age(folder)
    return {
        "study": folder.name,
        "state": _state(Store(folder)),
        "bytes": size,
        "last_written": written.isoformat(),
    }


def rename(request: Request, console: Console) -> None:
    """Rename a study.

    Parameters
    ----------
    request : Request
        Arguments of the command: the name of the study and its new name.
    console : Console
        Terminal for the output.
    """
    names, results = _names_and_folder("rename", request)
    if len(names) != 2:
        problem = f"rename: expected two names, those of a study and its new one, found {len(names)}"
        raise ConfigError([f"{problem}. Write: svmbench rename {_USAGE['rename']}"])
    store = find_study(names[0], results)
    say(
        console,
        f"{store.folder.name} is now {rename_study(store, study_name({'study': names[1]}))}",
        wrap=False,
    )


def delete(request: Request, console: Console) -> None:
    """Delete studies with everything that is stored in their folders.

    Parameters
    ----------
    request : Request
        Arguments of the command: names of studies.
    console : Console
        Terminal for the output and the question.
    """
    names, results = _names_and_folder("delete", request)
    if not names:
        known = ", ".join(path.name for path in study_folders(results)) or "none"
        problem = f"delete: expected the name of a study (stored: {known})"
        raise ConfigError([f"{problem}. Write: svmbench delete {_USAGE['delete']}"])
    stores = [find_study(name, results) for name in dict.fromkeys(names)]
    for store in stores:
        size, _ = size_and_age(store.folder)
        say(console, f"{store.folder}: {_state(store)}, {decimal(size)}", wrap=False)
    if not request.yes and not sys.stdin.isatty():
        raise ConfigError(["delete asks for confirmation, which needs a terminal; add --yes"])
    if not request.yes and not Confirm.ask("Delete?", console=console, default=False):
        say(console, "Nothing was deleted.")
        return
    for store in stores:
        delete_study(store)
        say(console, f"{store.folder.name} is deleted")


_USAGE = {"rename": "NAME NEW_NAME", "delete": "NAME"}
"""Arguments of the verbs that take only names, for messages."""


def _names_and_folder(verb: str, request: Request) -> tuple[list[str], Path]:
    """Return the names among the arguments, and the folder of studies.

    Parameters
    ----------
    verb : str
        Name of the verb, for messages.
    request : Request
        Arguments of the command.

    Raises
    ------
    ConfigError
        If an argument is neither a name nor a folder.
    """
    names, overrides = names_and_overrides(request.overrides)
    check_keys(verb, overrides, _USAGE[verb])
    return names, folders(request.config(overrides)).results


def _state(store: Store) -> str:
    """Describe the progress of a study in a few words.

    Parameters
    ----------
    store : Store
        Store of the study.
    """
    try:
        declaration = current_declaration(runs := declared_runs(store))
        if declaration is None:
            number = len(store.stored())
            return f"{number:,} trials without a recorded declaration" if number else "no run has started"
        found, never = started_pairs(overview(store, declaration), runs)
        lines = remaining(found)
    except DamageError:
        return "damaged"
    except StoreError as error:
        return str(error)
    stored, planned, failed = (
        sum(getattr(line, count) for line in lines) for count in ("stored", "planned", "failed")
    )
    complete = all(pair.complete for pair in found.pairs.values())
    state = f"complete, {stored:,} trials" if complete else f"{stored:,} of {planned:,} trials"
    state += ", ended early" if never else ""
    return f"{state}, {failed:,} failed" if failed else state


def _age(age: timedelta) -> str:
    return f"{age.days} days" if age.days > 1 else format_seconds(max(0.0, age.total_seconds()))


def repair(request: Request, console: Console) -> None:
    """Move damaged files of a study to its folder `damaged`, so that their trials run again.

    Parameters
    ----------
    request : Request
        Arguments of the command: the name of a study.
    console : Console
        Terminal for the output.
    """
    store = find_study(*request.study())
    done = repair_study(store) or ["nothing is damaged"]
    runs = store.provenance()
    lost = lost_trials(store, runs, current_declaration(runs), store.trial_counts())
    for sentence in [*done, *lost]:
        say(console, f"{store.folder.name}: {sentence}", wrap=False)
