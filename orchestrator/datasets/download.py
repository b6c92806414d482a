"""Download of one file by HTTP, with resumption, retries, alternative addresses and checks."""

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
"""Largest number of bytes read from a response at a time."""

TIMEOUT = 30.0
"""Longest time without a byte, in seconds. A connection that waits longer is closed."""

TRANSFER_SECONDS = 24 * 3600.0
"""Longest time for the whole file from one address, including attempts and pauses, in seconds."""

MIN_BYTES_PER_SECOND = 100
"""Smallest transfer rate, in bytes per second. A slower transfer counts as stalled."""

_ANSWER_FACTOR = 4
"""Longest time until the header of a response is complete, in units of `timeout`. It covers redirections."""

PAUSES = (0.5, 2.0, 8.0)
"""Pauses before further attempts at an address, in seconds. The sequence restarts if the file has grown."""

_COUNT = "[0-9]{1,18}"
"""Pattern of a number of bytes, limited because Python rejects integers with thousands of digits."""

_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
"""Status codes after which another attempt may succeed."""

OnProgress = Callable[[int, int | None], None]
"""Callback with the number of bytes received and the size of the whole file, or None if it is unknown."""


class DownloadError(Exception):
    """Error if no address provides the file.

    Parameters
    ----------
    problems : sequence of str
        A sentence for each address.
    """

    def __init__(self, problems: Sequence[str]):
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


class _Transient(Exception):
    """Failure after which another attempt at the same address may succeed."""


class _Stalled(_Transient):
    """Transfer below the smallest rate; the few bytes it adds do not count as progress."""


class _Unusable(Exception):
    """Failure after which no attempt at the same address can succeed."""


def download(
    urls: Sequence[str],
    partial: Path,
    sha256: str = "",
    on_progress: OnProgress = lambda received, total: None,
    problem_of: Callable[[Path], str] = lambda path: "",
    *,
    timeout: float = TIMEOUT,
    pauses: Sequence[float] = PAUSES,
    transfer_seconds: float = TRANSFER_SECONDS,
) -> tuple[str, str]:
    """Download a file, or complete a partial one.

    `NAME.json` beside the file records the origin of its bytes. A partial file is continued only if the
    server reports the same version (by its ETag or its date), or if the SHA-256 is known.

    Parameters
    ----------
    urls : sequence of str
        Addresses, tried in this order. A user name and password (`https://name:password@host/…`) are sent
        only to that host, and are neither printed nor stored.
    partial : Path
        Destination; no other process may write to it at the same time.
    sha256 : str
        Expected SHA-256 in hexadecimal; empty if unknown.
    on_progress : callable
        Called with the number of bytes received and the total size; see `OnProgress`.
    problem_of : callable
        Function that returns the problem of a complete file; an empty text accepts it.
    timeout : float
        Longest time without a byte, in seconds.
    pauses : sequence of float
        Pauses before each further attempt at an address, in seconds.
    transfer_seconds : float
        Longest time for the whole file from one address, in seconds.

    Returns
    -------
    url, sha256 : str
        Address without user name and password, and the SHA-256 in hexadecimal.

    Raises
    ------
    DownloadError
        If no address provides the file.
    OSError
        If the file cannot be written.
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
    """Return an address without its user name and password, for messages and records.

    Parameters
    ----------
    url : str
        Address that may contain a user name and a password.
    """
    # A "/" in a password ends the host too early, so all before "@" is removed. Digits before the "/" may be
    # part of a password, too, where they look like a port.
    if not _is_address(url) or re.match(r"[\w+.-]*://[^/?#@]*:\d+[/?#].*@", url, re.DOTALL):
        return re.sub(r"^(\w[\w+.-]*://|).*@", r"\1", url, flags=re.DOTALL)
    return _without_user(url)


def _without_user(url: str) -> str:
    """Return a valid address without its user name and password.

    Parameters
    ----------
    url : str
        Address that may contain a user name and a password.
    """
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _is_address(url: str) -> bool:
    """Return whether the scheme, host and port of an address can be parsed.

    Parameters
    ----------
    url : str
        Text that may be an address.
    """
    try:
        parts = urlsplit(url)
        return "//" in url and (parts.port is None or parts.port >= 0)
    except ValueError:
        return False


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    Parameters
    ----------
    path : Path
        File to hash.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def discard(partial: Path) -> None:
    """Remove a partial file and the record of its origin.

    Parameters
    ----------
    partial : Path
        File with the bytes that were received so far.
    """
    partial.unlink(missing_ok=True)
    _origin_path(partial).unlink(missing_ok=True)


@dataclass(frozen=True)
class _Target:
    """Arguments of one download from one address; see `download`.

    Attributes
    ----------
    url, partial, sha256, on_progress, problem_of, timeout
        As in `download`.
    deadline : float
        Time at which the transfer is given up, on the clock of `time.monotonic`, in seconds.
    """

    url: str
    partial: Path
    sha256: str
    on_progress: OnProgress
    problem_of: Callable[[Path], str]
    timeout: float
    deadline: float

    @property
    def size(self) -> int:
        """Size of the partial file, in bytes; 0 if it does not exist."""
        return self.partial.stat().st_size if self.partial.is_file() else 0


@dataclass(frozen=True)
class _Origin:
    """Origin of the bytes of a partial file.

    Attributes
    ----------
    url : str
        Public address.
    validator : str
        ETag or date of the version.
    total : int or None
        Size of the whole file, in bytes; None if unknown.
    """

    url: str = ""
    validator: str = ""
    total: int | None = None


def _from_address(target: _Target, pauses: Sequence[float]) -> str:
    """Download from one address, with further attempts after transient failures, and return the SHA-256.

    Parameters
    ----------
    target : _Target
        Address of the file, path of the partial file, and limits of the download.
    pauses : sequence of float
        Pauses before each further attempt, in seconds.
    """
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
                raise _Unusable(f"{error}; the time limit for the whole file is exceeded") from error
            time.sleep(pauses[max(failures - 1, 0)] if pauses else 0.0)


def _attempt(target: _Target) -> str:
    """Request the missing bytes once and return the SHA-256 of the whole file.

    Parameters
    ----------
    target : _Target
        Address of the file, path of the partial file, and limits of the download.
    """
    start = 0
    try:
        start = _receive(target)
        broken: _Transient | None = None
    except _Transient as error:
        broken = error
    digest = sha256_of(target.partial) if target.size else ""
    if broken is not None and digest != (target.sha256 or None):  # a file with the right hash is complete
        raise broken
    if target.sha256 and digest != target.sha256:
        problem = f"expected SHA-256 {target.sha256}, found {digest}"
    else:
        problem = target.problem_of(target.partial)
    if problem:
        discard(target.partial)
        raise _Transient(problem) if start else _Unusable(problem)  # a resumed file may mix two versions
    return digest


def _receive(target: _Target) -> int:
    """Append the missing bytes to the file and return the number of bytes that were there before.

    Parameters
    ----------
    target : _Target
        Address of the file, path of the partial file, and limits of the download.
    """
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
        begin, total = _content_position(response, start)
        # The origin is written before the first byte, so that a killed process leaves a usable partial file.
        if begin == 0:
            discard(target.partial)
        _write_origin(target.partial, _Origin(public_url(target.url), _validator(response), total))
        with open(target.partial, "r+b" if begin else "wb", opener=_open_no_link) as file:
            file.seek(begin)
            file.truncate()
            received = begin
            target.on_progress(received, total)
            for piece in transfer.pieces():
                file.write(piece)
                file.flush()  # a killed process loses no received byte
                received += len(piece)
                target.on_progress(received, total)
            os.fsync(file.fileno())
    if total is not None and received != total:
        raise _Transient(f"the connection ended after {received:,} of {total:,} bytes")
    if not received:
        raise _Unusable("the file is empty")
    return begin


def _open_no_link(path: str, flags: int) -> int:
    """Open a file for the built-in `open`; raise an OSError for a symbolic link.

    Parameters
    ----------
    path : str
        File to open.
    flags : int
        Flags of `os.open`.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


class _Transfer:
    """Request whose response is read in a thread, so that every wait has a limit even if bytes arrive slowly.

    The thread is a daemon. If it blocks in a system call, it is abandoned when the transfer is given up.

    Parameters
    ----------
    target : _Target
        Address of the file, path of the partial file, and limits of the download.
    headers : dict of str
        Headers of the request.
    start : int
        Number of bytes received before.
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
        """Return the response; None if the server reports that the file is complete."""
        limit = _ANSWER_FACTOR * self._target.timeout
        answer = self._next(limit, f"no complete answer within {limit:g} s")
        if answer is None:
            self._is_over.set()
        return answer

    def pieces(self) -> Iterator[bytes]:
        """Yield the received bytes until the response ends; raise if the transfer stalls or takes too long.

        Yields
        ------
        bytes
            Received bytes.
        """
        least = MIN_BYTES_PER_SECOND * self._target.timeout
        started, received = time.monotonic(), 0
        while piece := self._next(self._target.timeout, "the server stopped sending"):
            yield piece
            received, now = received + len(piece), time.monotonic()
            if now >= self._target.deadline:
                raise _Stalled("the transfer reached its time limit before the file was complete")
            if now - started >= self._target.timeout:
                if received < least:
                    raise _Stalled(f"the server sends fewer than {MIN_BYTES_PER_SECOND} bytes a second")
                started, received = now, 0

    def _next(self, limit: float, problem: str) -> Any:
        """Return the next object of the thread, or raise the exception that it has caught.

        Parameters
        ----------
        limit : float
            Longest time to wait, in seconds.
        problem : str
            Message if the time is exceeded.
        """
        try:
            received = self._received.get(timeout=limit)
        except queue.Empty:
            self._is_over.set()
            raise _Transient(problem) from None
        if isinstance(received, Exception):
            raise received
        return received

    def _read(self, headers: dict[str, str], start: int) -> None:
        """Put the response, its pieces and an empty piece into the queue, or the exception that ended it.

        Parameters
        ----------
        headers : dict of str
            Headers of the request.
        start : int
            Number of bytes received before.
        """
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
        """Put an object into the queue and return whether the transfer is still active.

        Parameters
        ----------
        received : object
            Response, piece or exception.
        """
        while not self._is_over.is_set():
            try:
                self._received.put(received, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False


def _request(url: str, headers: dict[str, str]) -> urllib.request.Request:
    """Return a request whose user name and password are in a header that redirections do not repeat.

    Parameters
    ----------
    url : str
        Address to request, with user name and password if it needs them.
    headers : dict of str
        Headers of the request.

    Raises
    ------
    _Unusable
        If host and port cannot be parsed; the messages of `urllib` would show a part of a password.
    """
    if not _is_address(url):
        raise _Unusable(
            "expected an address such as https://host/file; in a password, write / as %2F, # as %23, ? as %3F"
        )
    request = urllib.request.Request(_without_user(url), headers=headers)
    parts = urlsplit(url)
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    return request


def _open(target: _Target, headers: dict[str, str], start: int) -> Any:
    """Send the request and return the response; None if the server reports that the file is complete.

    Parameters
    ----------
    target : _Target
        Address of the file, path of the partial file, and limits of the download.
    headers : dict of str
        Headers of the request.
    start : int
        Number of bytes received before.
    """
    try:
        return urllib.request.urlopen(_request(target.url, headers), timeout=target.timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # range not satisfiable: no byte follows the received ones
                _, total = _content_range(error.headers)
                if total == start:
                    return None
                discard(target.partial)
                raise _Transient("the file on the server has changed since the earlier bytes") from error
            text = f"the server answers {error.code} ({one_line(error.reason, 80)})"
            raise (_Transient(text) if error.code in _TRANSIENT else _Unusable(text)) from error
    except (OSError, http.client.HTTPException) as error:  # a URLError is an OSError
        if isinstance(getattr(error, "reason", None), socket.gaierror):  # the host has no known address
            raise _Unusable(_reason(error, None)) from error
        raise _Transient(_reason(error, target.timeout)) from error
    except ValueError as error:  # an invalid address, for example after a redirection
        raise _Unusable(one_line(error)) from error


def _read(response: Any) -> bytes:
    """Return the next bytes of a response; empty at its end.

    Parameters
    ----------
    response : HTTPResponse
        Answer of the server, not yet read to its end.
    """
    try:
        return response.read1(PIECE)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Transient(_reason(error, None)) from error


def _reason(error: BaseException, timeout: float | None) -> str:
    """Return the reason for a failed request, as one line.

    Parameters
    ----------
    error : BaseException
        Exception of the request.
    timeout : float or None
        Longest time without a byte, in seconds; None if the response had started.
    """
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s" if timeout else "the server stopped sending"
    return one_line(reason, 120) or type(error).__name__


def _content_position(response: Any, start: int) -> tuple[int, int | None]:
    """Return the position of a response's first byte in the file, and the size of the file if it is known.

    Parameters
    ----------
    response : HTTPResponse
        Answer of the server, with its headers.
    start : int
        Position that was requested.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    # Some servers report the compression of the file itself as an encoding.
    if encoding != "identity" and not response.url.endswith((".gz", ".bz2", ".xz")):
        raise _Unusable(f"the server sends it encoded as {shown(encoding)}, which was not requested")
    n_bytes = _announced_length(response.headers)
    if response.status == 200:
        return 0, n_bytes
    begin, total = _content_range(response.headers)
    if response.status != 206 or begin != start:
        raise _Unusable(f"the server did not send the requested bytes from byte {start:,}")
    if n_bytes is None:
        return start, total
    if total not in (None, start + n_bytes):
        raise _Unusable(
            f"the server announces {n_bytes:,} bytes (Content-Length) from byte {start:,} "
            f"of a file of {total:,}"
        )
    return start, start + n_bytes


def _announced_length(headers: Any) -> int | None:
    """Return the `Content-Length` of a response, None if there is none; raise if it is not a number.

    Parameters
    ----------
    headers : Message
        Headers of the response.
    """
    lengths = {text.strip() for text in headers.get_all("Content-Length", [])}
    if not lengths:
        return None
    length = lengths.pop()
    if lengths or not re.fullmatch(_COUNT, length):
        raise _Unusable(f"expected one length as Content-Length, found {shown(length)}")
    return int(length)


def _content_range(headers: Any) -> tuple[int | None, int | None]:
    """Return the first byte and the size of the whole file in `Content-Range`; None for each unknown value.

    Parameters
    ----------
    headers : Message
        Headers of the response.
    """
    match = re.fullmatch(
        rf"bytes (?:({_COUNT})-{_COUNT}|\*)/({_COUNT}|\*)", headers.get("Content-Range", "").strip()
    )
    begin, total = match.groups() if match else (None, None)
    return int(begin) if begin else None, int(total) if total and total != "*" else None


def _validator(response: Any) -> str:
    """Return the value for `If-Range`: a strong ETag, or a date; empty if there is neither.

    Parameters
    ----------
    response : HTTPResponse
        Answer of the server, with its headers.
    """
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _origin_path(partial: Path) -> Path:
    """Return the path of the record of a partial file's origin.

    Parameters
    ----------
    partial : Path
        File with the bytes that were received so far.
    """
    return partial.with_name(f"{partial.name}.json")


def _read_origin(partial: Path) -> _Origin:
    """Return the recorded origin of a partial file; an empty one if the record is missing or damaged.

    Parameters
    ----------
    partial : Path
        File with the bytes that were received so far.
    """
    try:
        return _Origin(**json.loads(_origin_path(partial).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # without an intact record the file is downloaded again
        return _Origin()


def _write_origin(partial: Path, origin: _Origin) -> None:
    """Record the origin of a partial file.

    Parameters
    ----------
    partial : Path
        File with the bytes that were received so far.
    origin : _Origin
        Origin of its bytes.
    """
    with atomic_write(_origin_path(partial)) as file:
        file.write(json.dumps(vars(origin)).encode())
