"""Datasets of OpenML by their number: fetched once as ARFF, with what OpenML says of the columns."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from orchestrator.datasets.arff import arff_file
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.download import PAUSES, TIMEOUT, DownloadError, OnProgress, download, public_url
from orchestrator.datasets.fetch import FetchError, read_records, record, work_folder
from orchestrator.datasets.openml_files import SERVER, openml_path
from orchestrator.datasets.table import require_lists
from orchestrator.study.text import one_line, shown


def openml_file(
    id: int,
    folder: str | Path,
    label: str = "",
    drop: Sequence[str] = (),
    one_hot: bool = False,
    complete_rows: bool = False,
    server: str = SERVER,
    label_type: str = "auto",
) -> tuple[pd.DataFrame, Any]:
    """Read a dataset of OpenML that was fetched by `svmbench data fetch NAME`.

    What OpenML says to ignore, and numbers of rows, are no features.

    Parameters
    ----------
    id : int
        Its number there.
    folder : path
        Where `openml-ID.arff` and `openml-ID.json` are.
    label : str
        The column of labels; by default the target of OpenML.
    drop : sequence of str
        Further columns that are no features.
    one_hot, complete_rows : bool
        As of `arff_file`.
    server : str
        Where it is fetched.
    label_type : {"auto", "number", "text"}
        As of `arff_file`.

    Raises
    ------
    DatasetError
        If it was not fetched, its files are broken, or there is no such column.
    """
    if type(id) is not int or id < 1:
        raise DatasetError(f"expected the number of a dataset of OpenML as `id`, found {shown(id)}")
    path = openml_path(id, folder)
    if missing := next((file for file in (path, path.with_suffix(".json")) if not file.is_file()), None):
        address = public_url(_description_url(id, server))
        raise DatasetError(
            f"expected {missing}, found no such file; get it with `svmbench data fetch NAME`, "
            f"or put the ARFF file and the description ({address}) of OpenML {id} there"
        )
    require_lists(drop=drop)
    facts = _facts(path.with_suffix(".json"))
    ignored = [*_names(facts.get("ignore_attribute")), *_names(facts.get("row_id_attribute")), *drop]
    if label and label in drop:
        raise DatasetError(f"drop names the label {label!r}; take it off, or correct `label`")
    target = label or str(facts.get("default_target_attribute") or "")
    if not target or "," in target:
        raise DatasetError(f"OpenML {id} names no single target ({shown(target)}); set `label` to a column")
    ignored = [name for name in dict.fromkeys(ignored) if name != target]
    return arff_file(
        str(path), target, ignored, one_hot=one_hot, complete_rows=complete_rows, label_type=label_type
    )


def fetch_openml(
    id: int,
    folder: Path,
    server: str = SERVER,
    on_progress: OnProgress = lambda here, total: None,
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Put a dataset of OpenML into a folder, unless it is there, and return the path of its ARFF file.

    Raises
    ------
    FetchError
        If it cannot be fetched, or is not what OpenML or an earlier fetch says.
    OSError
        If the folder cannot be written.
    """
    path = openml_path(id, folder)
    work = work_folder(folder)
    with FileLock(work / f"{path.name}.lock"):
        description = path.with_suffix(".json")
        if path.is_file() and description.is_file():
            return path
        try:
            said = work / description.name
            urls = [_description_url(id, server)]
            download(urls, said, problem_of=_description_problem, timeout=timeout, pauses=pauses)
            if path.is_file():  # as somebody has put it there
                os.replace(said, description)
                return path
            facts = _facts(said)
            url, md5 = str(facts.get("url")), str(facts.get("md5_checksum") or "").lower()
            known = str(read_records(folder).get(path.name, {}).get("sha256") or "")
            part = work / path.name
            _, sha256 = download(
                [url],
                part,
                known,
                on_progress,
                lambda file: _problem(file, md5),
                timeout=timeout,
                pauses=pauses,
            )
        except DownloadError as error:
            advice = f"without a connection, put the ARFF file of OpenML {id} and its description in {folder}"
            raise FetchError([*error.problems, advice]) from error
        record(folder, path.name, {"sha256": sha256, "files": [{"url": public_url(url), "sha256": sha256}]})
        os.replace(said, description)
        os.replace(part, path)
        return path


def _description_url(id: int, server: str) -> str:
    return f"{server}/api/v1/json/data/{id}"


def _facts(path: Path) -> Mapping[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))["data_set_description"]
        if not isinstance(facts, Mapping):
            raise TypeError("expected an object")
        return facts
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"{path} is no description of OpenML ({one_line(error)}); remove it, and fetch the dataset again"
        ) from error


def _description_problem(path: Path) -> str:
    try:
        _facts(path)
    except DatasetError:
        return "what the server sends is no description of OpenML"
    return ""


def _names(value: Any) -> list[str]:
    """Return names of columns, which OpenML gives as a list, or as a text with commas."""
    return (
        [str(name) for name in value]
        if isinstance(value, list)
        else list(filter(None, str(value or "").split(",")))
    )


def _problem(path: Path, md5: str) -> str:
    with path.open("rb") as file:
        if file.read(512).lstrip()[:1] == b"<":
            return "found a web page, expected an ARFF file"
        file.seek(0)
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return f"expected the MD5 that OpenML gives, {md5}, found {found}" if md5 not in ("", found) else ""
