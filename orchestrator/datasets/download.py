"""One file by HTTP: continued where it broke off, tried again, from one address after the other, checked."""

import hashlib
import http.client
import json
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import one_line, shown

PIECE = 1 << 16
TIMEOUT = 30.0
"""Seconds without a byte after which a connection is given up."""

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before each further attempt at an address; they begin again whenever the file has grown."""

_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)

OnProgress = Callable[[int, int | None], None]
"""Is told the bytes that are here, and their number in the end where a server says it."""


class DownloadError(Exception):
    """No address gave the file; `problems` holds a sentence for each."""

    def __init__(self, problems: Sequence[str]):
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


class _Transient(Exception):
    """What another attempt at the same address may mend."""


class _Unusable(Exception):
    """What no further attempt at the same address will mend."""


def download(
    urls: Sequence[str],
    partial: Path,
    sha256: str = "",
    on_progress: OnProgress = lambda here, total: None,
    problem_of: Callable[[Path], str] = lambda path: "",
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
) -> tuple[str, str]:
    """Complete a file, from what an earlier attempt left of it.

    Beside it lies `NAME.json`, which says where its bytes are from. An unfinished file is continued only if
    the server says that it is still the same (by its ETag or its date), or if its SHA-256 is known.

    Parameters
    ----------
    urls : sequence of str
        Tried in this order.
    partial : Path
        The file; nobody else may write to it meanwhile.
    sha256 : str
        In hexadecimal, if known.
    on_progress : callable
    problem_of : callable
        Says why a whole file is not what was meant; empty if it is.
    timeout : float
    pauses : sequence of float

    Returns
    -------
    url, sha256 : str

    Raises
    ------
    DownloadError
        If no address gives the file.
    OSError
        If it cannot be written.
    """
    problems = []
    for url in urls:
        try:
            return url, _from_address(_Target(url, partial, sha256, on_progress, problem_of, timeout), pauses)
        except (_Transient, _Unusable) as error:
            problems.append(f"{url}: {error}")
    raise DownloadError(problems)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def discard(partial: Path) -> None:
    """Remove an unfinished file, and what is known of it."""
    partial.unlink(missing_ok=True)
    _origin_path(partial).unlink(missing_ok=True)


@dataclass(frozen=True)
class _Target:
    url: str
    partial: Path
    sha256: str
    on_progress: OnProgress
    problem_of: Callable[[Path], str]
    timeout: float

    @property
    def size(self) -> int:
        return self.partial.stat().st_size if self.partial.is_file() else 0


@dataclass(frozen=True)
class _Origin:
    """Where the bytes of an unfinished file are from; `validator` is the ETag or date of that version."""

    url: str = ""
    validator: str = ""
    total: int | None = None


def _from_address(target: _Target, pauses: Sequence[float]) -> str:
    furthest, failures = target.size, 0
    while True:
        try:
            return _attempt(target)
        except _Transient:
            failures = 0 if target.size > furthest else failures + 1
            furthest = max(furthest, target.size)
            if failures >= len(pauses) + 1:
                raise
            time.sleep(pauses[max(failures - 1, 0)] if pauses else 0.0)


def _attempt(target: _Target) -> str:
    """Ask once for what is missing, and return the digest of the whole file."""
    start = 0
    try:
        start = _receive(target)
        broken: _Transient | None = None
    except _Transient as error:
        broken = error
    digest = sha256_of(target.partial) if target.size else ""
    if broken is not None and digest != (target.sha256 or None):  # else it is whole, whatever was announced
        raise broken
    if target.sha256 and digest != target.sha256:
        problem = f"expected SHA-256 {target.sha256}, found {digest}"
    else:
        problem = target.problem_of(target.partial)
    if problem:
        discard(target.partial)
        raise (
            _Transient(problem) if start else _Unusable(problem)
        )  # what was continued may be of two versions
    return digest


def _receive(target: _Target) -> int:
    """Append what is missing to the file, and return how many bytes were there before."""
    origin, start = _read_origin(target.partial), target.size
    known = origin.url == target.url and origin.validator
    if not (known or target.sha256):
        start = 0
    if start and known and start == origin.total:
        return start
    headers = {"User-Agent": f"svmbench/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if known:
            headers["If-Range"] = origin.validator
    response = _open(target, headers, start)
    if response is None:
        return start
    with response:
        begin, total = _place(response, start)
        # Said before the first byte is written: whoever is killed leaves a file that can be judged.
        if begin == 0:
            discard(target.partial)
        _write_origin(target.partial, _Origin(target.url, _validator(response), total))
        with target.partial.open("r+b" if begin else "wb") as file:
            file.seek(begin)
            file.truncate()
            here = begin
            target.on_progress(here, total)
            while piece := _read(response):
                file.write(piece)
                file.flush()  # so that whoever is killed loses nothing of it
                here += len(piece)
                target.on_progress(here, total)
            os.fsync(file.fileno())
    if total is not None and here != total:
        raise _Transient(f"the connection ended after {here:,} of {total:,} bytes")
    if not here:
        raise _Unusable("the file is empty")
    return begin


def _open(target: _Target, headers: dict[str, str], start: int) -> Any:
    """Send the request; None if the server says that the file is complete."""
    try:
        request = urllib.request.Request(target.url, headers=headers)
        return urllib.request.urlopen(request, timeout=target.timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # nothing follows what is here
                _, total = _content_range(error.headers)
                if total == start:
                    return None
                discard(target.partial)
                raise _Transient("what was received before is no beginning of the file") from error
            text = f"the server answers {error.code} ({one_line(error.reason, 80)})"
            raise (_Transient(text) if error.code in _TRANSIENT else _Unusable(text)) from error
    except (OSError, http.client.HTTPException) as error:  # a URLError is an OSError
        if isinstance(getattr(error, "reason", None), socket.gaierror):  # as without a connection
            raise _Unusable(_reason(error, None)) from error
        raise _Transient(_reason(error, target.timeout)) from error
    except ValueError as error:  # an address that is none, for example after a redirection
        raise _Unusable(one_line(error)) from error


def _read(response: Any) -> bytes:
    try:
        return response.read1(PIECE)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Transient(_reason(error, None)) from error


def _reason(error: BaseException, timeout: float | None) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s" if timeout else "the server stopped sending"
    return one_line(reason, 120) or type(error).__name__


def _place(response: Any, start: int) -> tuple[int, int | None]:
    """Return where in the file an answer begins, and how long the file is in the end."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity" and not response.url.endswith((".gz", ".bz2", ".xz")):  # some call that encoded
        raise _Unusable(f"the server sends it encoded as {shown(encoding)}, which nobody asked for")
    length = response.headers.get("Content-Length", "")
    n_bytes = int(length) if length.isdecimal() else None
    if response.status == 200:
        return 0, n_bytes
    begin, total = _content_range(response.headers)
    if response.status != 206 or begin != start:
        raise _Unusable(f"asked for what follows byte {start:,}, the server answers with something else")
    return start, start + n_bytes if total is None and n_bytes is not None else total


def _content_range(headers: Any) -> tuple[int | None, int | None]:
    """Return the first byte and the length of the whole file that a server names."""
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", headers.get("Content-Range", "").strip())
    begin, total = match.groups() if match else (None, None)
    return int(begin) if begin else None, int(total) if total and total != "*" else None


def _validator(response: Any) -> str:
    """Return what `If-Range` takes: an ETag that is not weak, or a date."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _origin_path(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _read_origin(partial: Path) -> _Origin:
    try:
        return _Origin(**json.loads(_origin_path(partial).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # none, or half of one: then the file is fetched anew
        return _Origin()


def _write_origin(partial: Path, origin: _Origin) -> None:
    with atomic_write(_origin_path(partial)) as file:
        file.write(json.dumps(vars(origin)).encode())
