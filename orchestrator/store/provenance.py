"""Record each run of a study in a JSON file, so that changed and lost records are detected.

A file holds a checksum of its content, and the ids of the runs before and after it. So a deleted record is
detected, even the newest one. Without this, an older declaration would apply again.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestrator.store.files import DamageError, checksum, listed, read_whole, replacing
from orchestrator.study.declaration import current_declaration
from orchestrator.study.values import for_json, from_json

_FORMAT = 1
"""Version of the format of a record."""

_LINE_LENGTH = 110
"""Length up to which an object or a list of a record is written on one line."""

_READINGS = 3
"""Number of attempts to read all records while another process may add one."""

_RUN_ID = re.compile(r"\w[\w.-]{0,99}")
"""Pattern of a run id, which is a valid file name."""

_TYPES: dict[str, type] = {
    "run_id": str,
    "number": int,
    "started_at": str,
    "finished_at": str,
    "command": list,
    "study": dict,
    "identities": dict,
    "shared_gram": dict,
    "planned": dict,
    "preparations": dict,
    "prepared_columns": list,
    "baseline": dict,
    "versions": dict,
    "hosts": list,
    "cluster": dict,
    "git": dict,
    "summary": dict,
}
"""Types of the values of a record."""


@dataclass(frozen=True)
class _Record:
    """The record of a run.

    Attributes
    ----------
    values : dict
        Values that the run recorded.
    path : Path
        File of the record.
    follows : str or None
        Id of the run before.
    followed_by : str or None
        Id of the run after.
    """

    values: dict[str, Any]
    path: Path
    follows: str | None = None
    followed_by: str | None = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.values["run_id"])

    @property
    def sort_key(self) -> tuple[int, str]:
        """The sort key of the run: its number, then its start time."""
        return int(self.values.get("number") or 0), str(self.values.get("started_at") or "")


class Provenance:
    """The records of a study's runs.

    Parameters
    ----------
    study : Path
        The study's folder.
    """

    def __init__(self, study: Path):
        self._study = study
        self.folder = study / "provenance"

    def runs(self) -> list[dict[str, Any]]:
        """Return the records of all runs, in the order in which they were written.

        Raises
        ------
        DamageError
            If a record is damaged or missing; the message names it.
        """
        for attempts_left in reversed(range(_READINGS)):
            records, missing = self._all()
            if not missing:
                break
            if not attempts_left:  # a run that starts meanwhile seems to be missing only once
                raise self._missing(missing[0])
        return [record.values for record in records]

    def order(self, run_ids: Iterable[str]) -> dict[str, int]:
        """Map the id of every recorded run to its index in the order of the runs.

        Parameters
        ----------
        run_ids : iterable of str
            Ids of runs that must have a record.

        Returns
        -------
        dict of str to int
            Index by id.

        Raises
        ------
        DamageError
            If a record is damaged, or one of the given runs has none.
        """
        indices = {run["run_id"]: index for index, run in enumerate(self.runs())}
        for run_id in sorted({*run_ids} - indices.keys() - {""}):
            raise self._missing(run_id)
        return indices

    def _missing(self, run_id: str) -> DamageError:
        """Return the error for a missing record.

        Parameters
        ----------
        run_id : str
            Id of the run. Its record is the file `<run_id>.json`.

        Returns
        -------
        DamageError
            Error that names the file and the remedy.
        """
        path = self.folder / f"{run_id}.json"
        return DamageError(self._study, path, "it is missing, but other files of the study refer to its run")

    def next_number(self) -> int:
        """Return a number greater than those of all recorded runs, independent of clocks."""
        return 1 + max((int(run.get("number") or 0) for run in self.runs()), default=0)

    def write(self, run_id: str, values: Mapping[str, Any]) -> None:
        """Write or replace the record of a run. The caller holds the lock of the study.

        Parameters
        ----------
        run_id : str
            Id of the run. Its record is the file `<run_id>.json`.
        values : mapping
            Values to record.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        records, _ = self._all()
        path = self.folder / f"{run_id}.json"
        values = {"run_id": run_id, **values}
        if known := next((record for record in records if record.run_id == run_id), None):
            self._write(replace(known, values=values, path=path))
            return
        newest = records[-1] if records else None
        self._write(_Record(values, path, newest.run_id if newest else None))
        if newest is not None:
            self._write(replace(newest, followed_by=run_id))

    def damages(self) -> list[DamageError]:
        """Return one error for each damaged file."""
        found = []
        for path in self._paths():
            try:
                self._read(path)
            except DamageError as error:
                found.append(error)
        return found

    def record_lost(self, run_ids: Iterable[str]) -> list[str]:
        """Write a record for each run that other files refer to and that has none.

        The new record says that nothing else is known of the run.

        Parameters
        ----------
        run_ids : iterable of str
            Further ids of runs that must have a record.

        Returns
        -------
        list of str
            Ids of the runs that had no record.
        """
        records, missing = self._all()
        known = {record.run_id for record in records}
        lost = sorted({*missing, *run_ids} - known)
        for record in records:
            if record.path.stem in lost:  # the file has the name of another run, whose record is written now
                self._write(replace(record, path=self.folder / f"{record.run_id}.json"))
        for run_id in lost:
            before = [record for record in records if record.followed_by == run_id]
            after = [record for record in records if record.follows == run_id]
            numbers = [record.sort_key[0] + 1 for record in before] or [
                record.sort_key[0] - 1 for record in after
            ]
            highest = 1 + max((record.sort_key[0] for record in records), default=0)
            record = _Record(
                {"run_id": run_id, "number": numbers[0] if numbers else highest, "lost": True},
                self.folder / f"{run_id}.json",
                before[0].run_id if before else None,
                after[0].run_id if after else None,
            )
            self._write(record)
            records.append(record)
        return lost

    def _paths(self) -> list[Path]:
        """Return the files of all records, sorted by name."""
        return listed(self._study, self.folder, "", ".json")

    def _all(self) -> tuple[list[_Record], list[str]]:
        """Read all records.

        Returns
        -------
        records : list of _Record
            The records in order.
        missing : list of str
            Ids of runs that they refer to and that have no record.
        """
        found: dict[str, _Record] = {}
        for path in self._paths():
            try:
                record = self._read(path)
            except FileNotFoundError:
                continue
            if record.run_id not in found or path.stem == record.run_id:
                found[record.run_id] = record  # a copy under another name counts once
        named = (name for record in found.values() for name in (record.follows, record.followed_by) if name)
        missing = [name for name in dict.fromkeys(named) if name not in found]
        return sorted(found.values(), key=lambda record: record.sort_key), missing

    def _read(self, path: Path) -> _Record:
        """Read one record.

        Parameters
        ----------
        path : Path
            File of the record.

        Returns
        -------
        _Record
            The record in the file.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        DamageError
            If it is damaged.
        """
        content = read_whole(self._study, path)
        try:
            return _parsed(content, path)
        except RecursionError:
            reason = "it is nested too deeply"
        except ValueError as error:
            reason = " ".join(str(error).split())[:200]
        raise DamageError(self._study, path, reason)

    def _write(self, record: _Record) -> None:
        """Write one record.

        Parameters
        ----------
        record : _Record
            Record to write, with the path of its file.
        """
        links = {"follows": record.follows, "followed_by": record.followed_by}
        content = json.loads(json.dumps(for_json({"format": _FORMAT, **record.values, **links}), default=str))
        content["checksum"] = _content_checksum(content)
        with replacing(self._study, record.path) as file:
            file.write(_in_lines(content).encode())


def _in_lines(value: Any, indent: str = "") -> str:
    """Return JSON with one line for each object or list that fits into it.

    Parameters
    ----------
    value : object
        Value of JSON.
    indent : str, default ""
        Spaces before the line on which the value begins.
    """
    text = json.dumps(value)
    if len(indent) + len(text) <= _LINE_LENGTH or not isinstance(value, dict | list):
        return text
    inner = indent + "  "
    if isinstance(value, dict):
        ends, items = "{}", [f"{json.dumps(name)}: {_in_lines(each, inner)}" for name, each in value.items()]
    else:
        ends, items = "[]", [_in_lines(each, inner) for each in value]
    lines = f",\n{inner}".join(items)
    return f"{ends[0]}\n{inner}{lines}\n{indent}{ends[1]}"


def is_run_id(text: object) -> bool:
    """Return whether an object is a valid run id, and so the name of a record.

    Parameters
    ----------
    text : object
        Object to check, such as the name of a file.

    Returns
    -------
    bool
        False for anything but a text of 1 to 100 letters, digits, '_', '.' and '-' that does not start with
        a point or a hyphen.
    """
    return isinstance(text, str) and _RUN_ID.fullmatch(text) is not None


def _content_checksum(content: dict[str, Any]) -> str:
    """Return the checksum of a record's content.

    Parameters
    ----------
    content : dict
        The content, without its checksum.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    return checksum(json.dumps(content, sort_keys=True).encode())


def _parsed(content: bytes, path: Path) -> _Record:
    """Return the record in a file.

    Parameters
    ----------
    content : bytes
        Content of the file.
    path : Path
        The file, whose name is the run id of older records.

    Returns
    -------
    _Record
        The record. Its checksum is verified. Records of older versions have none, so their values are
        checked.

    Raises
    ------
    ValueError, RecursionError
        If the content is not a record, or was changed.
    """
    plain = json.loads(content.decode())
    if not isinstance(plain, dict):
        raise ValueError(f"expected a mapping, found a {type(plain).__name__}")
    recorded = plain.pop("checksum", None)
    is_checked = recorded is not None or "format" in plain  # records of older versions have neither
    if is_checked and recorded != _content_checksum(plain):
        raise ValueError("its content does not match its checksum")
    values = json.loads(content.decode(), object_hook=from_json)
    follows, followed_by = values.pop("follows", None), values.pop("followed_by", None)
    for name in ("format", "checksum"):
        values.pop(name, None)
    values.setdefault("run_id", path.stem)
    if wrong := [name for name in (values["run_id"], follows, followed_by) if name and not is_run_id(name)]:
        raise ValueError(f"{str(wrong[0])[:100]!r} is not a run id")
    if not is_checked and (problem := _problem(values)):
        raise ValueError(problem)
    return _Record(values, path, follows, followed_by)


def _problem(values: Mapping[str, Any]) -> str:
    """Return why values without a checksum cannot be the record of a run; empty if they can.

    Parameters
    ----------
    values : mapping
        Values of an older record.

    Returns
    -------
    str
        Description of the problem, or an empty string.
    """
    if "study" not in values:  # without it, an older declaration would apply again
        return "it lacks the declaration of its run"
    for name, kind in _TYPES.items():
        value = values.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"expected {name} to be a {kind.__name__}, found a {type(value).__name__}"
    for name in ("started_at", "finished_at"):
        if values.get(name):
            datetime.fromisoformat(values[name])
    if not all(isinstance(host, dict) for host in values.get("hosts") or []):
        return "expected each of hosts to be a dict"
    try:
        current_declaration([values])
    except Exception as error:  # values may be missing or have other types
        return f"its study cannot be read: {type(error).__name__}: {error}"
    return ""
