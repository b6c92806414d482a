"""Read parts and other tables of a study, with an error for damaged and newer files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.store.arrow_tables import as_trials, require_readable, require_version
from orchestrator.store.columns import NEEDED
from orchestrator.store.files import DamageError, StoreError, has_checksum, opened_part


@contextmanager
def opened_table(study: Path, path: Path) -> Iterator[pq.ParquetReader]:
    """Return a context with an open Parquet file; `ParquetFile` takes twice as long.

    The file is read without threads. A thread of Arrow may still hold Python's bytes after the reading,
    and aborts the process if it releases them while the interpreter ends.

    Parameters
    ----------
    study : Path
        The study's folder, for messages.
    path : Path
        Parquet file of the study.

    Yields
    ------
    ParquetReader
        The open file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DamageError
        If its bytes do not match the checksum in its name or pages, or are not such a table.
    StoreError
        If a newer svmbench wrote it, or it cannot be read.
    """
    with opened_part(study, path) as content:
        try:
            reader = pq.ParquetReader()
            source = pa.BufferReader(content) if isinstance(content, bytes) else content
            reader.open(source, page_checksum_verification=True)
            require_version(path, reader.metadata)
            yield reader
        except StoreError:
            raise
        except Exception as error:  # pyarrow may raise anything for damaged bytes
            reason = " ".join(str(error).split())[:200]
            if isinstance(error, MemoryError) or type(error) is pa.lib.ArrowException:
                # The process has a problem, such as a lack of memory. Damaged bytes raise other errors.
                raise StoreError(f"cannot read {path}: {reason}") from None
            raise DamageError(study, path, reason) from None


def read_part(study: Path, path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read columns of a part; see `opened_table` for its errors.

    Parameters
    ----------
    study : Path
        The study's folder, for messages.
    path : Path
        File of the part.
    columns : list of str or None
        Columns to read. None by default, for all.

    Returns
    -------
    Table
        Rows of the part, with the column types of the schema.
    """
    with opened_table(study, path) as reader:
        names = [path[0] for path in reader.column_paths]
        read = None if columns is None else [names.index(name) for name in columns if name in names]
        table = as_trials(reader.read_all(column_indices=read, use_threads=False))
        if missing := [name for name in NEEDED if name not in names]:
            raise ValueError(f"it has no column {missing[0]}")
        filled = ["key", "status"] if has_checksum(path) else NEEDED
        if empty := [name for name in filled if name in table.column_names and table[name].null_count]:
            raise ValueError(f"its column {empty[0]} has gaps")
        require_readable(table)
        return table


def part_schema(study: Path, path: Path) -> pa.Schema:
    """Return the schema of a part.

    Parameters
    ----------
    study : Path
        The study's folder, for messages.
    path : Path
        File of the part.

    Returns
    -------
    Schema
        Columns of the part, with the types in which trials are read.
    """
    with opened_table(study, path) as reader:
        return as_trials(reader.schema_arrow.empty_table()).schema
