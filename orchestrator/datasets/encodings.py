"""Character encodings of text files: detection by the first bytes, decoding, and error messages."""

import codecs
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import READ_ERRORS, pieces
from orchestrator.study.text import shown

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # first, because the mark of UTF-16 is a prefix
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte-order marks, and the encodings that skip them."""

_HEAD = 4096
"""Number of bytes searched for NUL."""

_NOT_DECOMPRESSED = (".zip", ".zst", ".tar")
"""Suffixes of files whose first bytes are not examined."""


def encoding_of(path: Path, given: Any = None) -> str:
    """Return the encoding of a text file.

    Parameters
    ----------
    path : Path
        The file, plain or compressed with gzip, bzip2 or xz.
    given : object
        Configured encoding; None for the byte-order mark, or UTF-8 without one.

    Raises
    ------
    DatasetError
        If the encoding does not exist, or the first bytes contradict it.
    """
    name = _known(given)
    head = _head(path)
    for mark, of_mark in _MARKS:
        if head.startswith(mark):
            family = of_mark.removesuffix("-sig")
            if given is not None and not name.startswith(family):
                raise DatasetError(
                    f"{path} begins with the byte-order mark of {family.upper()}, but encoding is {given}; "
                    "leave out `encoding`"
                )
            return of_mark
    wide = name.startswith(("utf-16", "utf-32"))
    if wide and head and b"\0" not in head:
        raise DatasetError(f"{path} is not {given}: it holds no NUL byte; leave out `encoding`")
    if wide and name in ("utf-16", "utf-32"):
        raise DatasetError(
            f"{path} has no byte-order mark, so the byte order of {name} is unknown; write encoding: "
            f"{name}-le or {name}-be"
        )
    if not wide and b"\0" in head:
        raise DatasetError(f"{path} is not text in {name.upper()}: {_nul_problem(head)}")
    return given or "utf-8"


def _known(given: Any) -> str:
    """Return the canonical name of an encoding, or raise a DatasetError.

    Parameters
    ----------
    given : object
        Configured encoding; None for UTF-8.
    """
    try:
        return codecs.lookup("utf-8" if given is None else given).name
    except (LookupError, TypeError, ValueError):
        raise DatasetError(
            f"there is no encoding {shown(given)}; expected a name such as utf-8, latin-1 or utf-16"
        ) from None


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; empty if they are not examined.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.
    """
    if path.suffix in _NOT_DECOMPRESSED:
        return b""
    try:
        return next(pieces(path), b"")[:_HEAD]
    except READ_ERRORS:  # reported when the whole file is read
        return b""


def _nul_problem(head: bytes) -> str:
    """Return why a file contains NUL bytes, and the remedy.

    Parameters
    ----------
    head : bytes
        First bytes of the file.
    """
    if head.startswith(b"PK"):
        return "it is a zip archive, perhaps a spreadsheet; save it as CSV"
    even, odd = (head[start::2].count(0) for start in (0, 1))
    if max(even, odd) > len(head) // 4:
        order = "le" if odd > even else "be"
        return f"it holds NUL bytes, as UTF-16 without a byte-order mark does; write encoding: utf-16-{order}"
    return "it holds NUL bytes; set `path` to a file of text"


def undecodable(path: Path, encoding: str) -> DatasetError:
    """Return the error for a file that is not in an encoding; its message names the first such line.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.
    encoding : str
        Encoding with which it was read.
    """
    advice = "write encoding: latin-1 (or cp1252) if a spreadsheet for Western Europe has saved it"
    if not encoding.lower().replace("_", "-").startswith("utf-8"):
        advice = "correct `encoding`"
    where = ""
    for number, line in enumerate(_lines(path), start=1):
        try:
            line.decode(encoding)
        except UnicodeError as error:
            byte = f" ({line[error.start]:#x})" if isinstance(error, UnicodeDecodeError) else ""
            where = f", line {number}{byte}"
            break
    return DatasetError(f"{path}{where}: the file is not encoded in {encoding.upper()}; {advice}")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, for encodings in which a line end is a single byte.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.

    Yields
    ------
    bytes
        Line without its end.
    """
    rest = b""
    try:
        for piece in pieces(path):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
    except READ_ERRORS:
        return
    yield rest


def decoded_lines(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a text file with their ends.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.
    encoding : str
        Encoding, as `encoding_of` returns it.

    Yields
    ------
    str
        Line with its end.
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = ""
    for piece in pieces(path):
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (f"{line}\n" for line in lines)
    yield rest + decoder.decode(b"", final=True)


def first_lines(path: Path, encoding: str, count: int) -> list[str]:
    """Return the first lines of a text file without their ends; fewer if the file cannot be read.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.
    encoding : str
        Encoding, as `encoding_of` returns it.
    count : int
        Number of lines.
    """
    try:
        return [line.rstrip("\r\n") for line in islice(decoded_lines(path, encoding), count)]
    except READ_ERRORS:
        return []
