"""Files with a checksum of each block, so that damage is found before a result depends on it.

A block's words of 64 bits are summed along both axes of a table, at about twice the speed of the fastest hash
of the standard library. The sums find every flipped bit, and words that change places. Their CRC-32 is the
checksum. Checksums are computed from what is to be written, not from what was written.
"""

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 19
"""Size of a block, in bytes: it stays in a core's cache between the sums."""

_ROW = 512
"""Words of a row of the table that is summed."""


class Sums(NamedTuple):
    """What a file must be: its size in bytes, and the checksum of each block."""

    size: int
    blocks: tuple[int, ...]


def write_bytes(path: Path, content: bytes) -> Sums:
    """Write content to a file and return its sums."""
    return _write(path, [memoryview(content)])


def write_array(path: Path, array: NDArray[Any]) -> Sums:
    """Write an array to an `.npy` file and return its sums."""
    array = np.ascontiguousarray(array)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return _write(path, [head.getbuffer(), array.reshape(-1).view(np.uint8).data])


def read_bytes(path: Path, sums: Sums) -> bytes:
    """Return the content of a file.

    Raises
    ------
    OSError, ValueError
        If it cannot be read or is damaged.
    """
    content = path.read_bytes()
    _require(path, sums, len(content), memoryview(content), range(len(sums.blocks)))
    return content


def array_of(content: bytes) -> NDArray[Any]:
    """Return the array that the bytes of an `.npy` file hold, as a read-only view of them."""
    shape, dtype, start = _layout(content[:BLOCK])
    return np.ndarray(shape, dtype, buffer=content, offset=start)


def _layout(content: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape and type of an array, and where its values start, from the first block of its file."""
    head = io.BytesIO(content)
    version = np.lib.format.read_magic(head)
    if version != (1, 0):
        raise ValueError(f"expected an array in format 1.0, found {version}")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(head)
    if in_columns or dtype.hasobject:
        raise ValueError("expected an array of plain values in the order of rows")
    return shape, dtype, head.tell()


class MappedArray:
    """An array of an `.npy` file that is mapped into memory: its values are read as they are used.

    Parameters
    ----------
    path : Path
    sums : Sums
        What the file must be.

    Attributes
    ----------
    values : array
        Read-only.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or is damaged.
    """

    def __init__(self, path: Path, sums: Sums):
        self._path, self._sums = path, sums
        with open(path, "rb") as file:  # one file, even if another takes its name
            self._content = np.asarray(np.memmap(file, np.uint8, mode="r"))
            self.require_intact()
            shape, dtype, start = _layout(self._content[:BLOCK].tobytes())
            # A plain array over the map: slices of numpy's memmap class are slower and carry the class along.
            # Its base is of its own size, for scipy copies what it takes for a small part of an array.
            self.values = np.asarray(np.memmap(file, dtype, mode="r", offset=start, shape=shape))

    def require_intact(
        self, starts: NDArray[np.integer] | None = None, stops: NDArray[np.integer] | None = None
    ) -> None:
        """Raise if a block has changed, even if that was after the file was opened.

        Parameters
        ----------
        starts, stops : arrays of int, optional
            Ranges of indices along the first axis: only blocks with values of some range are checked. By
            default all blocks are.

        Raises
        ------
        ValueError
            Naming the file and the block.
        """
        numbers: Any = range(len(self._sums.blocks))
        if starts is not None and stops is not None:
            step, head = self.values.strides[0], len(self._content) - self.values.nbytes
            some = starts < stops
            first = (starts[some].astype(np.int64) * step + head) // BLOCK
            last = (stops[some].astype(np.int64) * step + head - 1) // BLOCK
            numbers = _covered(first, last, len(self._sums.blocks))
        _require(self._path, self._sums, len(self._content), self._content.data, numbers)


def _covered(first: NDArray[np.int64], last: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return which of the numbers below `n` lie in some range, both ends of which are in it."""
    changes = np.bincount(first, minlength=n + 1) - np.bincount(last + 1, minlength=n + 1)
    return np.flatnonzero(np.cumsum(changes)[:n])


def _require(path: Path, sums: Sums, size: int, content: memoryview, numbers: Any) -> None:
    if size != sums.size:
        raise ValueError(f"{path.name} has {size:,} bytes, expected {sums.size:,}")
    for number in numbers:
        if checksum(content[number * BLOCK : (number + 1) * BLOCK]) != sums.blocks[number]:
            raise ValueError(f"block {number} of {path.name} does not have its checksum")


def checksum(block: memoryview) -> int:
    """Return the checksum of a block, or of a shorter end of a file."""
    content = np.frombuffer(block, np.uint8)
    words = content[: len(content) // (8 * _ROW) * 8 * _ROW].view(np.uint64).reshape(-1, _ROW)
    found = zlib.crc32(content[words.nbytes :].data)
    for axis in (0, 1):
        found = zlib.crc32(words.sum(axis=axis, dtype=np.uint64).data, found)
    return found


def _write(path: Path, pieces: list[memoryview]) -> Sums:
    blocks = []
    with open(path, "wb") as file:
        for block in _joined(pieces):
            blocks.append(checksum(block))
            file.write(block)
        return Sums(file.tell(), tuple(blocks))


def _joined(pieces: list[memoryview]) -> Iterator[memoryview]:
    """Yield the blocks of a file that holds some pieces, one after the other."""
    block = bytearray()
    for piece in pieces:
        while len(piece):
            part = piece[: BLOCK - len(block)]
            block += part
            piece = piece[len(part) :]
            if len(block) == BLOCK:
                yield memoryview(block)
                block = bytearray()
    if block:
        yield memoryview(block)
