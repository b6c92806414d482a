"""What each run of a study recorded of itself, one JSON file a run, where no change and no loss is missed.

A file holds a checksum of its content, and names the run before its own and the run after it. So a record
that was deleted is noticed, be it the newest: without it, an older declaration would be in force again.
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
_READINGS = 3
_RUN_ID = re.compile(r"\w[\w.-]{0,99}")
_TYPES_OF_FACTS: dict[str, type] = {
    "run_id": str,
    "number": int,
    "started_at": str,
    "finished_at": str,
    "command": list,
    "study": dict,
    "identities": dict,
    "shared_gram": dict,
    "planned": dict,
    "versions": dict,
    "hosts": list,
    "cluster": dict,
    "git": dict,
    "summary": dict,
}


@dataclass(frozen=True)
class _Record:
    """A run's facts, its file, and the ids of the runs before and after it."""

    facts: dict[str, Any]
    path: Path
    follows: str | None = None
    followed_by: str | None = None

    @property
    def run_id(self) -> str:
        return str(self.facts["run_id"])

    @property
    def place(self) -> tuple[int, str]:
        return int(self.facts.get("number") or 0), str(self.facts.get("started_at") or "")


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
        """Return the facts of every run, in the order in which the runs were recorded.

        Raises
        ------
        DamageError
            Naming the record that is damaged or missing.
        """
        for left in reversed(range(_READINGS)):
            records, missing = self._all()
            if not missing:
                break
            if not left:  # a run that begins meanwhile is named before it is listed, but only once
                raise self._missing(missing[0])
        return [record.facts for record in records]

    def order(self, run_ids: Iterable[str]) -> dict[str, int]:
        """Map the id of every recorded run to its place in their order.

        Raises
        ------
        DamageError
            When a record is damaged, or that of a run given by its id is missing.
        """
        places = {run["run_id"]: place for place, run in enumerate(self.runs())}
        for run_id in sorted({*run_ids} - places.keys() - {""}):
            raise self._missing(run_id)
        return places

    def _missing(self, run_id: str) -> DamageError:
        path = self.folder / f"{run_id}.json"
        return DamageError(self._study, path, "it is missing, though other files of the study name its run")

    def next_number(self) -> int:
        """Return a number above those of all runs recorded before, whatever clocks say."""
        return 1 + max((int(run.get("number") or 0) for run in self.runs()), default=0)

    def write(self, run_id: str, facts: Mapping[str, Any]) -> None:
        """Write or replace the record of a run; the caller holds the study's lock."""
        self.folder.mkdir(parents=True, exist_ok=True)
        records, _ = self._all()
        path = self.folder / f"{run_id}.json"
        facts = {"run_id": run_id, **facts}
        if known := next((record for record in records if record.run_id == run_id), None):
            self._write(replace(known, facts=facts, path=path))
            return
        newest = records[-1] if records else None
        self._write(_Record(facts, path, newest.run_id if newest else None))
        if newest is not None:
            self._write(replace(newest, followed_by=run_id))

    def damages(self) -> list[DamageError]:
        """Return what is wrong with the files, one error each."""
        found = []
        for path in self._paths():
            try:
                self._read(path)
            except DamageError as error:
                found.append(error)
        return found

    def record_lost(self, run_ids: Iterable[str]) -> list[str]:
        """Record for runs that other files name, and for others, that nothing else is known of them.

        Returns
        -------
        list of str
            The ids of those that had no record.
        """
        records, missing = self._all()
        known = {record.run_id for record in records}
        lost = sorted({*missing, *run_ids} - known)
        for record in records:
            if record.path.stem in lost:  # a file that was given the name of another, which is needed now
                self._write(replace(record, path=self.folder / f"{record.run_id}.json"))
        for run_id in lost:
            before = [record for record in records if record.followed_by == run_id]
            after = [record for record in records if record.follows == run_id]
            numbers = [record.place[0] + 1 for record in before] or [record.place[0] - 1 for record in after]
            highest = 1 + max((record.place[0] for record in records), default=0)
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
        return listed(self._study, self.folder, "", ".json")

    def _all(self) -> tuple[list[_Record], list[str]]:
        """Return all records in order, and the ids of runs that they name and that have none."""
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
        return sorted(found.values(), key=lambda record: record.place), missing

    def _read(self, path: Path) -> _Record:
        content = read_whole(self._study, path)
        try:
            return _parsed(content, path)
        except RecursionError:
            reason = "it is nested too deeply"
        except ValueError as error:
            reason = " ".join(str(error).split())[:200]
        raise DamageError(self._study, path, reason)

    def _write(self, record: _Record) -> None:
        links = {"follows": record.follows, "followed_by": record.followed_by}
        content = json.loads(json.dumps(for_json({"format": _FORMAT, **record.facts, **links}), default=str))
        content["checksum"] = _content_checksum(content)
        with replacing(self._study, record.path) as file:
            file.write(json.dumps(content, indent=2).encode())


def is_run_id(text: object) -> bool:
    """Whether something can be the id of a run, and so the name of its record."""
    return isinstance(text, str) and _RUN_ID.fullmatch(text) is not None


def _content_checksum(content: dict[str, Any]) -> str:
    return checksum(json.dumps(content, sort_keys=True).encode())


def _parsed(content: bytes, path: Path) -> _Record:
    """Return the record that bytes hold.

    Raises
    ------
    ValueError, RecursionError
        If they hold none, or another than was written.
    """
    plain = json.loads(content.decode())
    if not isinstance(plain, dict):
        raise ValueError(f"expected a mapping, found a {type(plain).__name__}")
    recorded = plain.pop("checksum", None)
    is_checked = recorded is not None or "format" in plain  # the record of an older svmbench has neither
    if is_checked and recorded != _content_checksum(plain):
        raise ValueError("its content does not have its checksum")
    facts = json.loads(content.decode(), object_hook=from_json)
    follows, followed_by = facts.pop("follows", None), facts.pop("followed_by", None)
    for name in ("format", "checksum"):
        facts.pop(name, None)
    facts.setdefault("run_id", path.stem)
    if wrong := [name for name in (facts["run_id"], follows, followed_by) if name and not is_run_id(name)]:
        raise ValueError(f"{str(wrong[0])[:100]!r} is no id of a run")
    if not is_checked and (problem := _problem(facts)):
        raise ValueError(problem)
    return _Record(facts, path, follows, followed_by)


def _problem(facts: Mapping[str, Any]) -> str:
    """Say what keeps facts without a checksum from being those of a run."""
    if "study" not in facts:  # it would bring an older declaration into force again
        return "it does not say what its run declared"
    for name, kind in _TYPES_OF_FACTS.items():
        value = facts.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"expected {name} to be a {kind.__name__}, found a {type(value).__name__}"
    for name in ("started_at", "finished_at"):
        if facts.get(name):
            datetime.fromisoformat(facts[name])
    if not all(isinstance(host, dict) for host in facts.get("hosts") or []):
        return "expected each of hosts to be a dict"
    try:
        current_declaration([facts])
    except Exception as error:  # whatever is missing or of another kind
        return f"its study cannot be read: {type(error).__name__}: {error}"
    return ""
