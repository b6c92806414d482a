"""Convert rows to Arrow tables with the types of the schema, and write them.

Each parameter and each metric has its own column, whose type may be a number in one part and text in another.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from orchestrator.store.columns import PREDICTION_TYPES, SCHEMA_VERSION, TRIAL_SCHEMA
from orchestrator.store.files import StoreError
from orchestrator.store.provenance import is_run_id
from orchestrator.study.records import Records, storable_value
from orchestrator.study.text import TEXT_BYTES, storable_text
from orchestrator.study.values import cell, is_number

FEW_ROWS = 500
"""Number of rows below which a file is written uncompressed, because compaction compresses it later."""

_GROUP_ROWS, _GROUP_BYTES = 20_000, 1 << 25
"""Number of rows, and size in bytes, from which tables are written as one row group."""

_VERSION_KEY = b"svmbench_schema_version"
_FIXED = {field.name: field.type for field in TRIAL_SCHEMA} | PREDICTION_TYPES
_FREE_TEXTS = {"message", "fit_status", "stopping"}
_MEASURED = {name for name in _FIXED if name.endswith(("seconds", "_at"))} | {"gap", "objective"}
"""Columns whose numbers seldom repeat."""


def parquet_writer(file: BinaryIO | RawIOBase, schema: pa.Schema, n_rows: int = FEW_ROWS) -> pq.ParquetWriter:
    """Open a Parquet writer, without compression for few rows.

    Parameters
    ----------
    file : binary file
        Receives the content.
    schema : Schema
        Columns and their types.
    n_rows : int
        Expected number of rows. `FEW_ROWS` by default, for a compressed file.

    Returns
    -------
    ParquetWriter
        The open writer.
    """
    metadata = {_VERSION_KEY: str(SCHEMA_VERSION).encode()}
    how: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": [_path(field) for field in schema if field.name not in _MEASURED],
        # The exponents of a column are stored side by side, which compresses better.
        "use_byte_stream_split": [name for name in schema.names if name in _MEASURED],
    }
    if n_rows < FEW_ROWS:  # the Arrow schema of thousands of parts takes long to read
        how = {"compression": "none", "use_dictionary": False, "store_schema": False}
    return pq.ParquetWriter(file, schema.with_metadata(metadata), write_page_checksum=True, **how)


def _path(field: pa.Field) -> str:
    """Return the name that Parquet uses for the values of a column.

    Parameters
    ----------
    field : Field
        Column of a schema.

    Returns
    -------
    str
        Its name, or the path of the elements for a column of lists.
    """
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


def write_table(file: BinaryIO | RawIOBase, table: pa.Table) -> None:
    """Write a table as a whole file.

    Parameters
    ----------
    file : binary file
        Receives the content.
    table : Table
        Rows to write. Their schema becomes that of the file.
    """
    with parquet_writer(file, table.schema, table.num_rows) as writer:
        writer.write_table(table)


def in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join small tables to row groups, each of which has its own dictionaries and statistics.

    Parameters
    ----------
    tables : iterable of Table
        Tables of one schema.

    Yields
    ------
    Table
        Rows of one row group.
    """
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        waiting.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def as_trials(table: pa.Table) -> pa.Table:
    """Return a table of trials with the column types of the schema.

    Parameters
    ----------
    table : Table
        A table that was read from a file.

    Returns
    -------
    Table
        Table with the same rows, in the same order.

    Raises
    ------
    ValueError, pyarrow.ArrowException
        If the table does not contain trials.
    """
    table.validate(full=True)
    schema = table.schema
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two of its columns have the same name")
    for field in schema:
        if field.name not in _FIXED and not any(is_kind(field.type) for is_kind in _PLAIN):
            raise ValueError(f"its column {field.name} holds {field.type}")
    return as_schema(table, unified_schema([schema]))


_PLAIN = (
    pa.types.is_floating,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_null,
)
"""Tests of the types that a column of a parameter or a metric may have."""


def require_readable(table: pa.Table) -> None:
    """Raise if a part has times that Python cannot represent, or run ids that are not valid file names.

    Parameters
    ----------
    table : Table
        Rows of the part.

    Raises
    ------
    ValueError, OverflowError
        If there is such a value.
    """
    for name in ("started_at", "finished_at"):
        if name in table.column_names:
            pc.min_max(table[name]).as_py()
    if "run_id" in table.column_names:
        for run_id in pc.unique(table["run_id"]).to_pylist():
            if run_id and not is_run_id(run_id):
                raise ValueError(f"its column run_id holds {storable_text(run_id, 100)!r}")


def to_table(records: Records, schema: pa.Schema) -> pa.Table:
    """Return rows as a table with the fixed columns, and the `param_*` and `score_*` columns of the rows.

    Parameters
    ----------
    records : Records
        Rows of finished trials.
    schema : Schema
        Fixed columns. Those that the rows lack are empty.

    Returns
    -------
    Table
        One row for each record.
    """
    columns = {name: [value] * len(records) for name, value in records.constants.items()} | records.columns
    fixed = {field.name: field.type for field in schema}
    arrays = {
        name: _array(columns[name], kind) if name in columns else pa.nulls(len(records), kind)
        for name, kind in fixed.items()
    }
    for name in sorted(columns.keys() - fixed.keys()):
        kind, values = PREDICTION_TYPES.get(name), columns[name]
        arrays[storable_text(name)] = _param_array(values) if kind is None else _array(values, kind)
    return pa.table(arrays)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an Arrow array. A value of another type becomes a gap, and the others are stored.

    Parameters
    ----------
    values : list
        Values of a column.
    kind : DataType
        Type of the column.

    Returns
    -------
    Array
        Array of type `kind`, with as many entries as `values`.
    """
    try:
        return pa.array(values, type=kind)
    except Exception:  # pyarrow, or the class of a value, may raise anything
        return pa.array([_fitting(value, kind) for value in values], type=kind)


def with_short_texts(table: pa.Table) -> pa.Table:
    """Shorten the texts that an estimator may have written to the limit of `storable_value`.

    Parameters
    ----------
    table : Table
        Rows of trials.

    Returns
    -------
    Table
        Table with the same rows, in the same order.
    """
    for index, name in enumerate(table.column_names):
        if name in _FREE_TEXTS and (pc.max(pc.binary_length(table[name])).as_py() or 0) > TEXT_BYTES:
            texts = pa.array([storable_value(text) for text in table[name].to_pylist()], pa.string())
            table = table.set_column(index, name, texts)
    return table


def _fitting(value: Any, kind: pa.DataType) -> Any:
    """Return a value that fits a column.

    Parameters
    ----------
    value : object
        Any value.
    kind : DataType
        Type of the column.

    Returns
    -------
    object
        The converted value; None if it does not fit.
    """
    value = storable_value(value)
    if value is not None and pa.types.is_string(kind):
        return storable_text(value)
    if isinstance(value, int) and pa.types.is_floating(kind):
        value = float(value)
    try:
        return pa.scalar(value, type=kind).as_py()
    except Exception:
        return None


def _param_array(values: Iterable[Any]) -> pa.Array:
    """Return numbers as an array of numbers, and any other values as an array of texts.

    Parameters
    ----------
    values : iterable
        Values of a parameter; None for a row without it.

    Returns
    -------
    Array
        Floats or texts.
    """
    values = list(values)
    try:
        return _numbers_or_texts(values)
    except Exception:  # the class of a value may raise anything
        return _numbers_or_texts([storable_value(value) for value in values])


def _numbers_or_texts(values: list[Any]) -> pa.Array:
    """Return numbers as an array of numbers, and any other values as an array of texts.

    Parameters
    ----------
    values : list
        Numbers, texts and None.

    Returns
    -------
    Array
        Floats or texts.
    """
    is_plain = set(map(type, values)) <= {float, NoneType}  # equal values of these types are the same
    if all(value is None or is_number(value) for value in (set(values) if is_plain else values)):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    """Return a value as text, with numbers in the format that `as_schema` gives to a column of numbers.

    Parameters
    ----------
    value : object
        A number, or a text that `study.cell` has written.

    Returns
    -------
    str
        Text that UTF-8 can store.
    """
    if is_number(value):
        return pa.scalar(float(value)).cast(pa.string()).as_py()
    if not isinstance(value, str):
        with suppress(Exception):  # no configuration can name such a class
            value = cell(value)
    return storable_text(value, None)


def select(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the named columns of a table; those that it lacks are empty.

    Parameters
    ----------
    table : Table
        Rows of trials.
    names : iterable of str
        Fixed columns.

    Returns
    -------
    Table
        The columns, in the order of the names.
    """
    return as_schema(table, pa.schema([(name, _FIXED[name]) for name in names]))


def without_predictions(table: pa.Table) -> pa.Table:
    """Return a table without the columns of predictions, which hold lists.

    Parameters
    ----------
    table : Table
        Rows of trials.

    Returns
    -------
    Table
        The other columns.
    """
    return table.drop_columns([name for name in PREDICTION_TYPES if name in table.column_names])


def unify(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables whose `param_*` and `score_*` columns may differ.

    Parameters
    ----------
    tables : list of Table
        Rows of trials.

    Returns
    -------
    Table
        All rows.
    """
    schema = unified_schema([table.schema for table in tables])
    return pa.concat_tables([as_schema(table, schema) for table in tables])


def unified_schema(schemas: list[pa.Schema]) -> pa.Schema:
    """Return a schema with all columns. A parameter that is a number here and a text there becomes text.

    Parameters
    ----------
    schemas : list of Schema
        Schemas of tables of trials.

    Returns
    -------
    Schema
        All columns.
    """
    types: dict[str, pa.DataType] = {}
    for field in itertools.chain.from_iterable(schemas):
        kind = _FIXED.get(field.name, field.type)
        if types.setdefault(field.name, kind) != kind:
            types[field.name] = pa.string()
    return pa.schema(list(types.items()))


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns and types of a schema; columns that it lacks are empty.

    Parameters
    ----------
    table : Table
        Table to convert; it may have further columns.
    schema : Schema
        Columns of the result.

    Returns
    -------
    Table
        Table with the same rows, in the same order.
    """
    if table.schema.equals(schema):
        return table
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def require_version(path: Path, metadata: pq.FileMetaData) -> None:
    """Raise if a newer svmbench wrote a file.

    Parameters
    ----------
    path : Path
        The file, for the message.
    metadata : FileMetaData
        Metadata of the Parquet file, which hold the version of its writer.

    Raises
    ------
    StoreError
        If its schema version is newer.
    """
    version = int((metadata.metadata or {}).get(_VERSION_KEY, b"1"))
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: expected a schema version of at most {SCHEMA_VERSION}, found {version}; "
            f"upgrade svmbench, or choose another study name"
        )
