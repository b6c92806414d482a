"""Datasets of OpenML by number: the ARFF file and OpenML's description are downloaded once."""

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
    """Read a dataset of OpenML that `svmbench data fetch NAME` has downloaded.

    Columns that OpenML marks as ignored or as row identifiers are not features.

    Parameters
    ----------
    id : int
        Number of the dataset on OpenML.
    folder : path
        Folder with `openml-ID.arff` and `openml-ID.json`.
    label : str
        Column of labels; by default OpenML's target.
    drop : sequence of str
        Additional columns that are not features.
    one_hot : bool
        Whether to replace nominal columns by indicator columns; see `arff_file`.
    complete_rows : bool
        Whether to drop rows with a missing value.
    server : str
        Address of the OpenML server.
    label_type : {"auto", "number", "text"}
        Type of labels; see `arff_file`.

    Returns
    -------
    X : DataFrame, shape (n, d)
        Features, with the column names of the file; `one_hot` names its columns `NAME=VALUE`.
    y : array or Series, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the dataset is not downloaded, its files are malformed, or a column does not exist.
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
    summary = _description(path.with_suffix(".json"))
    ignored = [*_names(summary.get("ignore_attribute")), *_names(summary.get("row_id_attribute")), *drop]
    if label and label in drop:
        raise DatasetError(f"drop names the label {label!r}; remove it, or correct `label`")
    target = label or str(summary.get("default_target_attribute") or "")
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
    on_progress: OnProgress = lambda received, total: None,
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Download a dataset of OpenML into a folder unless it is there, and return the path of its ARFF file.

    Parameters
    ----------
    id : int
        Number of the dataset on OpenML.
    folder : Path
        Data folder.
    server : str
        Address of the OpenML server.
    on_progress : callable
        Called with the bytes received and the total; see `OnProgress`.
    timeout : float
        Longest time without a byte, in seconds.
    pauses : sequence of float
        Pauses before each further attempt, in seconds.

    Raises
    ------
    FetchError
        If the dataset cannot be downloaded, or does not match OpenML's or an earlier record.
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
            staged = work / description.name
            urls = [_description_url(id, server)]
            download(urls, staged, problem_of=_description_problem, timeout=timeout, pauses=pauses)
            if path.is_file():  # the user has copied the ARFF file into the folder
                os.replace(staged, description)
                return path
            summary = _description(staged)
            url, md5 = str(summary.get("url")), str(summary.get("md5_checksum") or "").lower()
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
        os.replace(staged, description)
        os.replace(part, path)
        return path


def _description_url(id: int, server: str) -> str:
    """Return the address of OpenML's description of a dataset.

    Parameters
    ----------
    id : int
        Number of the dataset.
    server : str
        Address of the OpenML server.
    """
    return f"{server}/api/v1/json/data/{id}"


def _description(path: Path) -> Mapping[str, Any]:
    """Return OpenML's description of a dataset.

    Parameters
    ----------
    path : Path
        JSON file.

    Raises
    ------
    DatasetError
        If the file is not such a description.
    """
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))["data_set_description"]
        if not isinstance(summary, Mapping):
            raise TypeError("expected an object")
        return summary
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"{path} is not a description of OpenML ({one_line(error)}); "
            "remove it, and fetch the dataset again"
        ) from error


def _description_problem(path: Path) -> str:
    """Return why a downloaded file is not a description of OpenML; empty if it is one.

    Parameters
    ----------
    path : Path
        JSON file.
    """
    try:
        _description(path)
    except DatasetError:
        return "the server did not send a description of OpenML"
    return ""


def _names(value: Any) -> list[str]:
    """Return column names, which OpenML gives as a list or as text with commas.

    Parameters
    ----------
    value : object
        Value in a description.
    """
    return (
        [str(name) for name in value]
        if isinstance(value, list)
        else list(filter(None, str(value or "").split(",")))
    )


def _problem(path: Path, md5: str) -> str:
    """Return why a downloaded file is not the ARFF file; empty if it is.

    Parameters
    ----------
    path : Path
        Downloaded file.
    md5 : str
        MD5 in OpenML's description, in hexadecimal; empty if unknown.
    """
    with path.open("rb") as file:
        if file.read(512).lstrip()[:1] == b"<":
            return "found a web page, expected an ARFF file"
        file.seek(0)
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return f"expected the MD5 that OpenML gives, {md5}, found {found}" if md5 not in ("", found) else ""
