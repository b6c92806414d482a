"""Convert rows to Arrow tables with the types of the schema, and tables to data frames.

Each parameter and each metric has its own column, whose type may be a number in one part and text in another.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from orchestrator.store.columns import (
    PREDICTION_TYPES,
    SCHEMA_VERSION,
    SELECTION_SCHEMA,
    TIE_COLUMNS,
    TRIAL_SCHEMA,
)
from orchestrator.store.files import StoreError, checksum
from orchestrator.store.provenance import is_run_id
from orchestrator.study.records import Records, Status, storable_value
from orchestrator.study.text import TEXT_BYTES, storable_text
from orchestrator.study.values import cell, is_number

if TYPE_CHECKING:
    import pandas as pd

FEW_ROWS = 500
"""Number of rows below which a file is written uncompressed, because compaction compresses it later."""

_GROUP_ROWS, _GROUP_BYTES = 20_000, 1 << 25
"""Number of rows, and size in bytes, from which tables are written as one row group."""

_VERSION_KEY = b"svmbench_schema_version"
_ORDER = ["dataset", "solver", "outer", "inner"]
_FIXED = {field.name: field.type for field in TRIAL_SCHEMA} | PREDICTION_TYPES
_FREE_TEXTS = {"message", "fit_status", "stopping"}
_MEASURED = {name for name in _FIXED if name.endswith(("seconds", "_at"))} | {"gap", "objective"}
"""Columns whose numbers seldom repeat."""


def selection_frame(rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return rows of `selections.parquet` as a frame with the file's columns.

    Parameters
    ----------
    rows : iterable of mapping
        Values by column.

    Returns
    -------
    DataFrame
        One row for each mapping.
    """
    return to_pandas(to_table(Records.of({}, list(rows)), SELECTION_SCHEMA))


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


def unique_rows(
    table: pa.Table,
    run_order: Mapping[str, int],
    ranks: Callable[[NDArray[np.int64]], list[NDArray[Any]]] | None = None,
) -> NDArray[np.int64]:
    """Return the index of the row to keep for each key, ascending.

    A row with the status `ok` is preferred, then a row of the newest run. Among equals, the content decides,
    so that the order of the parts does not matter.

    Parameters
    ----------
    table : Table
        Rows with the columns `KEY_COLUMNS`.
    run_order : mapping of str to int
        Index of each run in the order of the runs, by id.
    ranks : callable, optional
        Returns `content_ranks` of the rows with given indices. None by default, for a table with all columns.

    Returns
    -------
    int64 array
        Indices of rows.
    """
    codes, keys = encoded(table["key"])
    if len(keys) == table.num_rows:
        return np.arange(table.num_rows)
    status_codes, statuses = encoded(table["status"])
    scored = np.array(statuses.to_pylist())[status_codes] == Status.OK
    run_codes, runs = encoded(pc.fill_null(table["run_id"], text_scalar("")))
    order = np.array([run_order.get(run, -1) for run in runs.to_pylist()], dtype=np.int64)[run_codes]
    worst_first = np.lexsort((order, scored))
    kept = np.empty(len(keys), dtype=np.int64)
    kept[codes[worst_first]] = worst_first  # the last row of each key stays
    best = kept[codes]
    tied = np.flatnonzero((scored == scored[best]) & (order == order[best]))
    tied = tied[np.bincount(codes[tied])[codes[tied]] > 1]
    if len(tied):
        found = content_ranks(table.take(arrow_array(tied))) if ranks is None else ranks(tied)
        worst_first = tied[np.lexsort(found[::-1])]
        kept[codes[worst_first]] = worst_first
    return np.sort(kept)


def content_ranks(table: pa.Table) -> list[NDArray[Any]]:
    """Return arrays by which rows are sorted in an order that depends on their contents only.

    Parameters
    ----------
    table : Table
        Rows with all columns.

    Returns
    -------
    list of ndarray
        Sort keys, the most important one first.
    """
    names = [group for group in TIE_COLUMNS if {*group} <= {*table.column_names}]
    return [_row_checksums(table.select(group)) for group in [*names, sorted(table.column_names)]]


def _row_checksums(table: pa.Table) -> NDArray[Any]:
    """Return a checksum of each row.

    Parameters
    ----------
    table : Table
        Columns that enter the checksums.

    Returns
    -------
    ndarray of str
        Checksums.
    """
    found = []
    for start in range(0, table.num_rows, 10_000):  # the texts of all rows may not fit into memory
        rows = table.slice(start, 10_000)
        texts = [_as_text(column) for column in rows.columns]
        joined = pc.binary_join_element_wise(*texts, "\0", null_handling="replace", null_replacement="\1")
        found += [checksum(text.encode()) for text in joined.to_pylist()]
    return np.array(found)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as texts.

    Parameters
    ----------
    column : ChunkedArray
        Column of any type.

    Returns
    -------
    ChunkedArray
        Texts; the elements of a list are separated by commas.
    """
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), ",")
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).cast(pa.string())


def encoded(column: pa.ChunkedArray) -> tuple[NDArray[Any], pa.Array]:
    """Encode a column as integers: equal values get equal codes.

    Parameters
    ----------
    column : ChunkedArray
        Column of any type.

    Returns
    -------
    codes : int array
        Code of each row.
    values : Array
        The value of each code.
    """
    encoded = column.combine_chunks().dictionary_encode()
    return np.from_dlpack(encoded.indices), encoded.dictionary


# These functions replace pyarrow's `array`, `scalar` and `to_numpy`, which import pandas first.


def arrow_array(numbers: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array.

    Parameters
    ----------
    numbers : ndarray
        One-dimensional array of a numeric type.

    Returns
    -------
    Array
        The same numbers.
    """
    content = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, content])


def text_scalar(text: str) -> pa.StringScalar:
    """Return a text as an Arrow scalar.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    StringScalar
        The same text.
    """
    content = text.encode()
    ends = pa.py_buffer(np.array([0, len(content)], dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)])[0]


def floats(column: pa.ChunkedArray, null: float) -> NDArray[Any]:
    """Return a column of floats as an array, with a number in place of gaps.

    Parameters
    ----------
    column : ChunkedArray
        Floats, among which may be nulls.
    null : float
        Value for a gap.

    Returns
    -------
    float64 array
        Values of the column, with `null` in place of gaps.
    """
    filled = pc.fill_null(column.combine_chunks(), arrow_array(np.array([null]))[0])
    return np.from_dlpack(filled)


def in_canonical_order(table: pa.Table) -> pa.Table:
    """Sort rows canonically, with `param_*` after `inner` and `score_*` after `score`.

    Parameters
    ----------
    table : Table
        Rows of trials.

    Returns
    -------
    Table
        Table with the same rows in canonical order, and with the columns rearranged.
    """
    params = sorted(name for name in table.column_names if name.startswith("param_"))
    scores = sorted(name for name in table.column_names if name.startswith("score_"))
    names = []
    for name in (name for name in table.column_names if name not in {*params, *scores}):
        names.append(name)
        names += params if name == "inner" else scores if name == "score" else []
    order = [name for name in [*_ORDER, *params, "key"] if name in table.column_names]
    return table.select(names).sort_by([(name, "ascending") for name in order])


def to_pandas(table: pa.Table) -> "pd.DataFrame":
    """Return a table as a data frame whose integers and booleans may have gaps.

    Parameters
    ----------
    table : Table
        Table to convert.

    Returns
    -------
    DataFrame
        The same rows.
    """
    import pandas as pd  # takes 0.3 s, which is too slow for `status`

    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)
