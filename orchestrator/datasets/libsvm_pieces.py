"""Fast reader of LIBSVM text: pieces are rewritten as a table of two columns for Arrow's CSV parser.

`-1 3:0.5 7:2` becomes the lines `0,-1`, `3,0.5` and `7,2`, in which index 0 marks a label. Text with any
other syntax is left to a slower reader, which can name a malformed line.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from orchestrator.datasets.files import READ_ERRORS, pieces
from orchestrator.datasets.memory import require_memory
from orchestrator.study.text import format_memory

PIECE = 1 << 22
"""Number of bytes of text parsed at a time."""

MEMORY_PER_BYTE = 4
"""Memory needed to parse one byte of text, in bytes: a value of four characters becomes 12 bytes."""

_TABLE = bytes.maketrans(b" \t\r\v\f:", b"\n\n\n\n\n,")
_PARSE = pa.csv.ParseOptions(delimiter=",", quote_char=False, double_quote=False)
_TYPES = pa.csv.ConvertOptions(
    column_types={"index": pa.int32(), "value": pa.float64()}, null_values=[], strings_can_be_null=False
)


class Rows(NamedTuple):
    """Rows as parts of a CSR matrix, and their labels.

    Attributes
    ----------
    data : float64 array
        Non-zero values.
    indices : int32 array
        Feature of each value, from 0.
    lengths : int32 array, shape (n,)
        Number of values of each row.
    labels : float64 array, shape (n,)
        Label of each row, as the file gives it.
    """

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    lengths: NDArray[np.int32]
    labels: NDArray[np.float64]


def plain_rows(path: Path) -> list[Rows] | None:
    """Return the rows of a file; None if its syntax needs the slower reader.

    Parameters
    ----------
    path : Path
        LIBSVM file, plain or compressed.

    Raises
    ------
    DatasetError
        If the rows exceed the memory limit.
    """
    found = []
    try:
        for text in _whole_lines(path):
            if (rows := _rows(text)) is None:
                return None
            found.append(rows)
    except (*READ_ERRORS, pa.ArrowException):
        return None
    return found or None


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the text of a file in pieces of whole lines, without the last line end of each piece.

    Parameters
    ----------
    path : Path
        LIBSVM file, plain or compressed.

    Yields
    ------
    bytes
        Text of at least one line.
    """
    total, parts = 0, []
    for piece in pieces(path):
        total += len(piece)
        require_memory(MEMORY_PER_BYTE * total, f"more than {format_memory(total)} of text in {path}")
        parts.append(piece)
        if sum(map(len, parts)) >= PIECE and b"\n" in piece:
            text, _, rest = b"".join(parts).rpartition(b"\n")
            parts = [rest]
            yield text
    if text := b"".join(parts).removesuffix(b"\n"):
        yield text


def _rows(text: bytes) -> Rows | None:
    """Parse lines; return None if their syntax needs the slower reader.

    Parameters
    ----------
    text : bytes
        Whole lines, without the last line end.
    """
    if any(mark in text for mark in (b"#", b'"', b",", b"x", b"X")):  # Arrow reads 0x3 as an integer
        return None
    lines = text.count(b"\n") + 1
    csv = (b"0:" + text.replace(b"\n", b"\n0:")).translate(_TABLE)
    table = pa.csv.read_csv(
        pa.BufferReader(csv),
        read_options=pa.csv.ReadOptions(
            column_names=["index", "value"], use_threads=False, block_size=1 << 20
        ),
        parse_options=_PARSE,
        convert_options=_TYPES,
    )
    del csv
    index, values = (column.combine_chunks().to_numpy() for column in table.columns)
    is_label = index == 0
    starts = np.flatnonzero(is_label)
    ascending = (index[1:] > index[:-1]) | is_label[1:]
    if len(starts) != lines or not (ascending.all() and np.isfinite(values).all()):
        return None
    lengths = np.diff(np.append(starts, len(index))) - 1
    kept = ~is_label
    return Rows(values[kept], index[kept] - np.int32(1), lengths.astype(np.int32), values[starts])
