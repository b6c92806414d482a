"""One file by HTTP: continued where it broke off, tried again, from one address after the other, checked."""

import hashlib
import http.client
import json
import os
import queue
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from orchestrator import __version__
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import one_line, shown

PIECE = 1 << 16
TIMEOUT = 30.0
"""Longest time without a byte, in seconds. A connection that waits longer is closed."""

TRANSFER_SECONDS = 24 * 3600.0
"""Longest time that one address may take for the whole file, in seconds, attempts and pauses included."""

MIN_BYTES_PER_SECOND = 100
"""Slowest transfer that goes on. A slower one has stalled; see `_pieces`."""

_ANSWER_FACTOR = 4
"""Longest time until the header of an answer is complete, in units of `timeout`: a server may redirect."""

PAUSES = (0.5, 2.0, 8.0)
"""Seconds before each further attempt at an address; they begin again whenever the file has grown."""

_COUNT = "[0-9]{1,18}"
"""A number of bytes; Python refuses to read one of thousands of digits."""

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


class _Stalled(_Transient):
    """A transfer so slow that the little which it adds does not count as progress."""


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
    transfer_seconds: float = TRANSFER_SECONDS,
) -> tuple[str, str]:
    """Complete a file, from what an earlier attempt left of it.

    Beside it lies `NAME.json`, which says where its bytes are from. An unfinished file is continued only if
    the server says that it is still the same (by its ETag or its date), or if its SHA-256 is known.

    Parameters
    ----------
    urls : sequence of str
        Tried in this order. A name and a password before the host (`https://name:password@host/…`) are sent
        to that host only, and are neither printed nor stored.
    partial : Path
        The file; nobody else may write to it meanwhile.
    sha256 : str
        In hexadecimal, if known.
    on_progress : callable
    problem_of : callable
        Says why a whole file is not what was meant; empty if it is.
    timeout : float
        Longest time without a byte, in seconds.
    pauses : sequence of float
        Seconds before each further attempt at an address.
    transfer_seconds : float
        Longest time for the whole file from one address, in seconds.

    Returns
    -------
    url, sha256 : str
        The address without a name and a password, and the digest in hexadecimal.

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
            deadline = time.monotonic() + transfer_seconds
            target = _Target(url, partial, sha256, on_progress, problem_of, timeout, deadline)
            return public_url(url), _from_address(target, pauses)
        except (_Transient, _Unusable) as error:
            problems.append(f"{public_url(url)}: {error}")
    raise DownloadError(problems)


def public_url(url: str) -> str:
    """Return an address without the name and the password that may stand before its host."""
    if not _is_address(
        url
    ):  # a "/" in a password ends the host too early: everything before "@" is taken off
        return re.sub(r"^(\w[\w+.-]*://|).*@", r"\1", url, flags=re.DOTALL)
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _is_address(url: str) -> bool:
    """Return whether a scheme and what stands for the host, its port included, can be read."""
    try:
        parts = urlsplit(url)
        return "//" in url and (parts.port is None or parts.port >= 0)
    except ValueError:
        return False


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
    deadline: float

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
        except _Transient as error:
            has_grown = target.size > furthest and not isinstance(error, _Stalled)
            failures = 0 if has_grown else failures + 1
            furthest = max(furthest, target.size)
            if failures >= len(pauses) + 1:
                raise
            if time.monotonic() >= target.deadline:
                raise _Unusable(f"{error}; the time for the whole file is over") from error
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
    known = origin.url == public_url(target.url) and origin.validator
    if not (known or target.sha256):
        start = 0
    if start and known and start == origin.total:
        return start
    headers = {"User-Agent": f"svmbench/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if known:
            headers["If-Range"] = origin.validator
    transfer = _Transfer(target, headers, start)
    response = transfer.answer()
    if response is None:
        return start
    with transfer:
        begin, total = _place(response, start)
        # Said before the first byte is written: whoever is killed leaves a file that can be judged.
        if begin == 0:
            discard(target.partial)
        _write_origin(target.partial, _Origin(public_url(target.url), _validator(response), total))
        with open(target.partial, "r+b" if begin else "wb", opener=_open_no_link) as file:
            file.seek(begin)
            file.truncate()
            here = begin
            target.on_progress(here, total)
            for piece in transfer.pieces():
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


def _open_no_link(path: str, flags: int) -> int:
    """Open a file for `open`; raise an OSError for a link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


class _Transfer:
    """A request whose answer is read in a thread, so that each wait for it ends, however slowly it drips.

    The thread is a daemon: one that waits in a system call is left behind when the transfer is given up.

    Parameters
    ----------
    target : _Target
    headers : dict of str
    start : int
        Number of bytes that are here.
    """

    def __init__(self, target: _Target, headers: dict[str, str], start: int):
        self._target, self._is_over = target, threading.Event()
        self._received: queue.Queue[Any] = queue.Queue(maxsize=16)
        threading.Thread(target=self._read, args=(headers, start), daemon=True).start()

    def __enter__(self) -> "_Transfer":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def answer(self) -> Any:
        """Return the response; None if the server says that the file is complete."""
        limit = _ANSWER_FACTOR * self._target.timeout
        answer = self._next(limit, f"no complete answer within {limit:g} s")
        if answer is None:
            self._is_over.set()
        return answer

    def pieces(self) -> Iterator[bytes]:
        """Yield what arrives until the answer ends; raise where too little arrives or the time is over."""
        least = MIN_BYTES_PER_SECOND * self._target.timeout
        started, received = time.monotonic(), 0
        while piece := self._next(self._target.timeout, "the server stopped sending"):
            yield piece
            received, now = received + len(piece), time.monotonic()
            if now >= self._target.deadline:
                raise _Stalled("the file is not complete after the longest time that a transfer may take")
            if now - started >= self._target.timeout:
                if received < least:
                    raise _Stalled(f"the server sends fewer than {MIN_BYTES_PER_SECOND} bytes a second")
                started, received = now, 0

    def _next(self, limit: float, problem: str) -> Any:
        """Return what the thread has received next, or raise what it has met."""
        try:
            received = self._received.get(timeout=limit)
        except queue.Empty:
            self._is_over.set()
            raise _Transient(problem) from None
        if isinstance(received, Exception):
            raise received
        return received

    def _read(self, headers: dict[str, str], start: int) -> None:
        """Hand over the response, its pieces and an empty one at the end; or the exception that ended it."""
        try:
            response = _open(self._target, headers, start)
            self._hand_over(response)
            if response is not None:
                with response:
                    while self._hand_over(piece := _read(response)) and piece:
                        pass
        except (_Transient, _Unusable) as error:
            self._hand_over(error)

    def _hand_over(self, received: Any) -> bool:
        """Return whether somebody still takes what is received."""
        while not self._is_over.is_set():
            try:
                self._received.put(received, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False


def _request(url: str, headers: dict[str, str]) -> urllib.request.Request:
    """Return a request in which a name and a password are a header that no redirection takes along.

    Raises
    ------
    _Unusable
        If host and port cannot be read; the messages of `urllib` would show a part of a password.
    """
    if not _is_address(url):
        raise _Unusable(
            "expected an address such as https://host/file; in a password, write / as %2F, # as %23, ? as %3F"
        )
    request = urllib.request.Request(public_url(url), headers=headers)
    parts = urlsplit(url)
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    return request


def _open(target: _Target, headers: dict[str, str], start: int) -> Any:
    """Send the request; None if the server says that the file is complete."""
    try:
        return urllib.request.urlopen(_request(target.url, headers), timeout=target.timeout)
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
    n_bytes = _announced_length(response.headers)
    if response.status == 200:
        return 0, n_bytes
    begin, total = _content_range(response.headers)
    if response.status != 206 or begin != start:
        raise _Unusable(f"asked for what follows byte {start:,}, the server answers with something else")
    if n_bytes is None:
        return start, total
    if total not in (None, start + n_bytes):
        raise _Unusable(
            f"the server announces {n_bytes:,} bytes (Content-Length) from byte {start:,} "
            f"of a file of {total:,}"
        )
    return start, start + n_bytes


def _announced_length(headers: Any) -> int | None:
    """Return the `Content-Length` of an answer, None where there is none, or raise if it is no number."""
    lengths = {text.strip() for text in headers.get_all("Content-Length", [])}
    if not lengths:
        return None
    length = lengths.pop()
    if lengths or not re.fullmatch(_COUNT, length):
        raise _Unusable(f"expected one length as Content-Length, found {shown(length)}")
    return int(length)


def _content_range(headers: Any) -> tuple[int | None, int | None]:
    """Return the first byte and the length of the whole file that a server names."""
    match = re.fullmatch(
        rf"bytes (?:({_COUNT})-{_COUNT}|\*)/({_COUNT}|\*)", headers.get("Content-Range", "").strip()
    )
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
