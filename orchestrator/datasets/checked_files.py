"""Files with a checksum for each block, so that damage is found before a result depends on it.

Each block is viewed as a table of 64-bit words. The words are summed along both axes, at about twice the
speed of the fastest hash of the standard library. The sums detect every flipped bit and every exchange of
words. The checksum is the CRC-32 of the sums. Checksums are computed from the data in memory, not from the
written file.
"""

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 19
"""Size of a block, in bytes. It stays in a core's cache between the two sums."""

_ROW = 512
"""Number of words in a row of the table."""


class Sums(NamedTuple):
    """Expected size and checksums of a file.

    Attributes
    ----------
    size : int
        Size, in bytes.
    blocks : tuple of int
        Checksum of each block.
    """

    size: int
    blocks: tuple[int, ...]


def write_bytes(path: Path, content: bytes) -> Sums:
    """Write content to a file and return its sums.

    Parameters
    ----------
    path : Path
        File to write.
    content : bytes
        Bytes to write.
    """
    return _write(path, [memoryview(content)])


def write_array(path: Path, array: NDArray[Any]) -> Sums:
    """Write an array to an `.npy` file and return the file's sums.

    Parameters
    ----------
    path : Path
        File to write.
    array : array
        Array without Python objects.
    """
    array = np.ascontiguousarray(array)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return _write(path, [head.getbuffer(), array.reshape(-1).view(np.uint8).data])


def read_bytes(path: Path, sums: Sums) -> bytes:
    """Read a file, check it, and return its content.

    Parameters
    ----------
    path : Path
        File to read.
    sums : Sums
        Expected size and checksums.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or is damaged.
    """
    content = path.read_bytes()
    _require(path, sums, len(content), memoryview(content), range(len(sums.blocks)))
    return content


def array_of(content: bytes) -> NDArray[Any]:
    """Return the array in the content of an `.npy` file, as a read-only view.

    Parameters
    ----------
    content : bytes
        Content of the file.
    """
    shape, dtype, start = _layout(content[:BLOCK])
    return np.ndarray(shape, dtype, buffer=content, offset=start)


def _layout(content: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return the shape and type of an array, and the offset of its values in bytes.

    Parameters
    ----------
    content : bytes
        First block of an `.npy` file.
    """
    head = io.BytesIO(content)
    version = np.lib.format.read_magic(head)
    if version != (1, 0):
        raise ValueError(f"expected an array in format 1.0, found {version}")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(head)
    if in_columns or dtype.hasobject:
        raise ValueError("expected an array of plain values in the order of rows")
    return shape, dtype, head.tell()


class MappedArray:
    """Array of an `.npy` file that is mapped into memory; values are read on access.

    Parameters
    ----------
    path : Path
        The `.npy` file.
    sums : Sums
        Expected size and checksums.

    Attributes
    ----------
    values : array
        Values, read-only.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or is damaged.
    """

    def __init__(self, path: Path, sums: Sums):
        self._path, self._sums = path, sums
        with open(path, "rb") as file:  # both maps are of one file, even if another process replaces it
            self._content = np.asarray(np.memmap(file, np.uint8, mode="r"))
            self.require_intact()
            shape, dtype, start = _layout(self._content[:BLOCK].tobytes())
            # Slices of a plain array over the map are faster than slices of numpy's memmap class. The map
            # starts at the values, because scipy copies an array that is a small part of its base.
            self.values = np.asarray(np.memmap(file, dtype, mode="r", offset=start, shape=shape))

    def require_intact(
        self, starts: NDArray[np.integer] | None = None, stops: NDArray[np.integer] | None = None
    ) -> None:
        """Raise if a block has changed, even if it changed after the file was opened.

        Parameters
        ----------
        starts, stops : arrays of int, optional
            Ranges of indices along the first axis. Only blocks with values of some range are checked; by
            default, all blocks.

        Raises
        ------
        ValueError
            If a block does not have its checksum; the message names the file and the block.
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
    """Return the numbers below `n` that lie in at least one range.

    Parameters
    ----------
    first, last : int64 arrays
        Ends of the ranges, both inclusive.
    n : int
        Upper limit, exclusive.
    """
    changes = np.bincount(first, minlength=n + 1) - np.bincount(last + 1, minlength=n + 1)
    return np.flatnonzero(np.cumsum(changes)[:n])


def _require(path: Path, sums: Sums, size: int, content: memoryview, numbers: Any) -> None:
    """Raise a ValueError if a file does not have the expected size and checksums.

    Parameters
    ----------
    path : Path
        The file, for messages.
    sums : Sums
        Expected size and checksums.
    size : int
        Actual size, in bytes.
    content : memoryview
        Content of the whole file.
    numbers : iterable of int
        Blocks to check.
    """
    if size != sums.size:
        raise ValueError(f"{path.name} has {size:,} bytes, expected {sums.size:,}")
    for number in numbers:
        if checksum(content[number * BLOCK : (number + 1) * BLOCK]) != sums.blocks[number]:
            raise ValueError(f"block {number} of {path.name} does not have its checksum")


def checksum(block: memoryview) -> int:
    """Return the checksum of a block.

    Parameters
    ----------
    block : memoryview
        At most `BLOCK` bytes; the last block of a file may be shorter.
    """
    content = np.frombuffer(block, np.uint8)
    words = content[: len(content) // (8 * _ROW) * 8 * _ROW].view(np.uint64).reshape(-1, _ROW)
    found = zlib.crc32(content[words.nbytes :].data)
    for axis in (0, 1):
        found = zlib.crc32(words.sum(axis=axis, dtype=np.uint64).data, found)
    return found


def _write(path: Path, pieces: list[memoryview]) -> Sums:
    """Write pieces to a file and return its sums.

    Parameters
    ----------
    path : Path
        File to write.
    pieces : list of memoryview
        Content, in order.
    """
    blocks = []
    with open(path, "wb") as file:
        for block in _joined(pieces):
            blocks.append(checksum(block))
            file.write(block)
        return Sums(file.tell(), tuple(blocks))


def _joined(pieces: list[memoryview]) -> Iterator[memoryview]:
    """Yield the blocks of a file that contains some pieces.

    Parameters
    ----------
    pieces : list of memoryview
        Content, in order.

    Yields
    ------
    memoryview
        Block of `BLOCK` bytes; the last one may be shorter.
    """
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
