"""Record the proposals of custom searches in JSON files, so that a search is replayed without its code."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.store.files import DamageError, StoreError, listed, naming_errors, read_whole, replacing
from orchestrator.study.values import digest, for_json, from_json


class SearchRecords:
    """The records of a study's custom searches, one file `searches/<name>.json` each.

    Parameters
    ----------
    study : Path
        The study's folder.
    """

    def __init__(self, study: Path):
        self._study = study
        self.folder = study / "searches"

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Replace the record of a search.

        A file with the same content is not written again.

        Parameters
        ----------
        name : str
            Name of the record.
        record : mapping
            Rounds of proposals, and whether the search has ended.
        """
        record = {**record, "name": name}
        content = json.dumps(for_json(record | {"checksum": digest(for_json(record))})).encode()
        path = self._record_path(name)
        with suppress(OSError, StoreError):
            if read_whole(self._study, path) == content:
                return
        with naming_errors(self._study, path):
            path.parent.mkdir(exist_ok=True)
        with replacing(self._study, path) as file:
            file.write(content)

    def read(self, name: str) -> Mapping[str, Any]:
        """Return the recorded proposals of a custom search.

        Parameters
        ----------
        name : str
            Name of the record.

        Returns
        -------
        mapping
            The record; one without proposals if no run wrote it.

        Raises
        ------
        DamageError
            If the file is damaged.
        """
        path = self._record_path(name)
        try:
            return self._read(path)
        except FileNotFoundError:
            return {"rounds": [], "ended": False}

    def _read(self, path: Path) -> Mapping[str, Any]:
        """Read a search record.

        Parameters
        ----------
        path : Path
            File of the record.

        Returns
        -------
        mapping
            The record.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        DamageError
            If it is damaged.
        """
        content = read_whole(self._study, path)
        try:
            stored = json.loads(content)
            if stored.pop("checksum") == digest(stored) and stored["name"] == path.stem:
                record: Mapping[str, Any] = json.loads(json.dumps(stored), object_hook=from_json)
                return record
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise DamageError(self._study, path, "its content does not match its checksum or its name")

    def exists(self, name: str) -> bool:
        """Return whether a record exists.

        Parameters
        ----------
        name : str
            Name of the record.

        Returns
        -------
        bool
            True also for a damaged record.
        """
        return os.path.lexists(self._record_path(name))

    def damaged(self) -> list[DamageError]:
        """Return one error for each damaged record."""
        found = []
        for path in listed(self._study, self.folder, "", ".json"):
            try:
                self._read(path)
            except DamageError as error:
                found.append(error)
        return found

    def _record_path(self, name: str) -> Path:
        """Return the file of a search record.

        Parameters
        ----------
        name : str
            Name of the record.

        Returns
        -------
        Path
            Its path. The file may not exist.
        """
        return self.folder / f"{name}.json"
