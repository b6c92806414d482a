"""Datasets by name: their files are fetched, checked, joined and put in place, once, whoever else does so."""

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
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import one_line, shown

RECORDS = "fetched.json"
"""In the folder of data: SHA-256 of every file that was fetched, enforced from then on."""

_WORK = ".fetch"


class FetchError(Exception):
    """A dataset that could not be fetched: what is wrong, and what to do, a sentence each."""

    def __init__(self, problems: Sequence[str]):
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


def fetch(
    name: str,
    about: About,
    folder: Path,
    on_progress: OnProgress = lambda here, total: None,
    on_wait: Callable[[], None] = lambda: None,
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Put a dataset's file into a folder, unless it is there, and return its path.

    What was received before an interruption is kept in `.fetch/` and continued. A file appears whole and
    checked, or not at all; of several processes one fetches it and the others wait.

    Parameters
    ----------
    name : str
    about : About
        With the files to fetch.
    folder : Path
    on_progress : callable
        As of `download`, for each file of the dataset anew.
    on_wait : callable
        Called if another process fetches the dataset at the time.
    timeout, pauses
        As of `download`.

    Raises
    ------
    FetchError
        If it cannot be fetched, or is not what it should be.
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
            try:
                found.append(
                    download(file.urls, part, sha256, on_progress, problem_of, timeout=timeout, pauses=pauses)
                )
            except DownloadError as error:
                raise FetchError([*error.problems, *_advice(name, about, file, sha256, target)]) from error
        if problem := _other_size(about, lines):
            for part in parts:
                discard(part)
            raise FetchError([f"{name}: {problem} in the files together; nothing of them was kept"])
        whole = _joined(parts, work / f"{name}.whole")
        files = [{"url": url, "sha256": sha256} for url, sha256 in found]
        # Recorded before the file is there: whoever is killed in between fetches nothing else later.
        record(folder, target.name, {"sha256": sha256_of(whole), "files": files})
        os.replace(whole, target)
        for part in parts:
            discard(part)
        return target
    finally:
        lock.release()


def work_folder(folder: Path) -> Path:
    """Return the folder of unfinished files within a folder of data; make it if it is missing.

    Raises
    ------
    FetchError
        If it is a link, or one of its files or the record of fetched files is.
    OSError
        If the folder cannot be written.
    """
    work = folder / _WORK
    _refuse_link(work)
    work.mkdir(parents=True, exist_ok=True)
    for path in (folder / RECORDS, *work.iterdir()):
        _refuse_link(path)
    return work


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise FetchError([f"{path} is a link, through which no file is fetched; remove it"])


def read_records(folder: Path) -> dict[str, Any]:
    """Return what is recorded of the files that were fetched into a folder, by their names.

    Raises
    ------
    FetchError
        If the record is damaged.
    """
    path = folder / RECORDS
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, found {shown(found)}")
        for name, facts in found.items():
            if problem := _record_problem(facts):
                raise ValueError(f"{shown(name)}: {problem}")
        return found
    except ValueError as error:
        raise FetchError(
            [f"{path} is damaged ({error}); correct it, or remove it to record the files again"]
        ) from error


def _record_problem(facts: Any) -> str:
    """Return why something is no record of a fetched file, or empty text."""
    if not isinstance(facts, dict):
        return f"expected an object, found {shown(facts)}"
    files = facts.get("files", [])
    if not isinstance(files, list) or not all(isinstance(each, dict) for each in files):
        return f"expected a list of objects as files, found {shown(files)}"
    digests = [each["sha256"] for each in (facts, *files) if "sha256" in each]
    wrong = [digest for digest in digests if not isinstance(digest, str)]
    return f"expected a SHA-256 in hexadecimal as sha256, found {shown(wrong[0])}" if wrong else ""


def changed_since_fetched(path: Path) -> list[str]:
    """Return what is wrong with a file whose SHA-256 was recorded when it was fetched.

    Raises
    ------
    FetchError
        If the record is damaged.
    """
    recorded = read_records(path.parent).get(path.name, {}).get("sha256")
    if recorded in (None, found := sha256_of(path)):
        return []
    return [
        f"{path} was changed since it was fetched: expected SHA-256 {recorded}, found {found}; remove it and "
        "fetch it again"
    ]


def how_to_get(name: str, about: About, folder: Path) -> str:
    """Say what to put where for a dataset to be found."""
    target = folder / f"{name}.libsvm{about.files[0].suffix if about.files else ''}"
    if not about.files:
        where = f"; it is published as: {about.source}" if about.source else ""
        return f"no address is known to fetch {name!r} from{where}; put it as LIBSVM text in {target}"
    urls = [public_url(file.urls[0]) for file in about.files]
    join = ", joined in this order," if len(urls) > 1 else ""
    return f"without a connection, get {' and '.join(urls)} elsewhere and put it{join} in {target}"


def _expected(files: Sequence[RemoteFile], recorded: Mapping[str, Any]) -> list[str]:
    """Return the digest of each file where it is known: the one of the configuration, else the recorded."""
    known = recorded.get("files", [])
    before = (
        [str(each.get("sha256", "")) for each in known] if len(known) == len(files) else [""] * len(files)
    )
    return [file.sha256 or digest for file, digest in zip(files, before, strict=True)]


def _advice(name: str, about: About, file: RemoteFile, sha256: str, target: Path) -> list[str]:
    advice = [how_to_get(name, about, target.parent)]
    if sha256 and not file.sha256:
        advice.append(
            f"that SHA-256 was recorded when {name} was first fetched; if the file was changed there and you "
            f"want the new one, remove {target.name!r} from {target.parent / RECORDS}"
        )
    return advice


def _text_problem(about: About, file: RemoteFile, lines: dict[Path, int], path: Path) -> str:
    """Return why a file cannot be the dataset's, or empty text; leave the number of its lines."""
    try:
        lines[path], ended = _count_lines(path, file.suffix)
    except READ_ERRORS as error:
        return f"{one_line(error)}; it holds no dataset, or was damaged on the way"
    if len(about.files) > 1:
        return "" if ended else "its last line has no end, so that no other file can follow it"
    if not (ended or file.sha256):
        return "its last line has no end, as if it was cut; if it is whole, give its sha256"
    return _other_size(about, lines)


def _other_size(about: About, lines: Mapping[Path, int]) -> str:
    rows = sum(lines.values())
    return f"expected {about.n:,} rows (about.n), found {rows:,}" if about.n not in (None, rows) else ""


def _count_lines(path: Path, suffix: str) -> tuple[int, bool]:
    """Return the number of lines of a file, and whether the last has an end; refuse what is no data."""
    with path.open("rb") as file:
        if file.read(512).lstrip()[:1] == b"<":
            raise ValueError("found a web page, expected LIBSVM text")
    lines, last = 0, b"\n"
    for number, piece in enumerate(pieces(path, suffix)):
        if b"\0" in piece:
            raise ValueError("found bytes that are no text")
        if not number and (begin := piece.lstrip()[:20])[:1] not in b"0123456789+-.#":
            raise ValueError(f"expected LIBSVM text, found {shown(begin.decode(errors='replace'))}")
        lines += piece.count(b"\n")
        last = piece[-1:]
    return lines + (last != b"\n"), last == b"\n"


def _joined(parts: Sequence[Path], whole: Path) -> Path:
    """Return the only file, or all of them as one: streams of gz, bz2 and xz may follow one another."""
    if len(parts) == 1:
        return parts[0]
    with whole.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, PIECE)
        out.flush()
        os.fsync(out.fileno())
    return whole


def record(folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Record what is known of a file that was fetched into a folder, which is enforced from then on."""
    with FileLock(folder / _WORK / f"{RECORDS}.lock"):
        records = {**read_records(folder), name: facts}
        with atomic_write(folder / RECORDS) as file:
            file.write((json.dumps(records, indent=1, sort_keys=True) + "\n").encode())
