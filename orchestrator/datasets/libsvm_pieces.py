"""LIBSVM text read piece by piece as a table of two columns, by Arrow's parser of CSV.

`-1 3:0.5 7:2` becomes the lines `0,-1`, `3,0.5` and `7,2`, so that index 0 stands for a label. Text that is
anything but plain is left to a slower reader, which names the line that is wrong.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from orchestrator.datasets.files import READ_ERRORS, pieces
from orchestrator.datasets.memory import gigabytes, require_room

PIECE = 1 << 22
"""Bytes of text parsed at a time."""

TAKEN = 4
"""Bytes of memory that a byte of text may take: a value of four characters becomes 12 bytes."""

_TABLE = bytes.maketrans(b" \t\r\v\f:", b"\n\n\n\n\n,")
_PARSE = pa.csv.ParseOptions(delimiter=",", quote_char=False, double_quote=False)
_TYPES = pa.csv.ConvertOptions(
    column_types={"index": pa.int32(), "value": pa.float64()}, null_values=[], strings_can_be_null=False
)


class Rows(NamedTuple):
    """Some rows, as parts of a CSR matrix, with indices from 0, and their labels.

    Attributes
    ----------
    data : float64 array
    indices : int32 array
    lengths : int32 array, shape (n,)
        Number of values of each row.
    labels : float64 array, shape (n,)
    """

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    lengths: NDArray[np.int32]
    labels: NDArray[np.float64]


def plain_rows(path: Path) -> list[Rows] | None:
    """Return the rows of a file; None if it is not plain text of that format.

    Raises
    ------
    DatasetError
        If there is no room for them.
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
    """Yield the text of a file in pieces that end where lines do, without the last end of a line."""
    total, parts = 0, []
    for piece in pieces(path):
        total += len(piece)
        require_room(TAKEN * total, f"more than {gigabytes(total)} of text in {path}")
        parts.append(piece)
        if sum(map(len, parts)) >= PIECE and b"\n" in piece:
            text, _, rest = b"".join(parts).rpartition(b"\n")
            parts = [rest]
            yield text
    if text := b"".join(parts).removesuffix(b"\n"):
        yield text


def _rows(text: bytes) -> Rows | None:
    if any(mark in text for mark in (b"#", b'"', b",")):
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
