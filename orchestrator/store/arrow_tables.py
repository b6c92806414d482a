"""Rows as Arrow tables: records into tables with the schema's types, and tables into frames.

Parameters and metrics are columns of their own, which may be numbers in one part and text in another.
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
from orchestrator.study.records import Records, Status
from orchestrator.study.storable import TEXT_BYTES, storable_text, storable_value
from orchestrator.study.values import cell, is_number

if TYPE_CHECKING:
    import pandas as pd

FEW_ROWS = 500
"""Fewer rows are written uncompressed, for compaction will compress them."""

_ROWS_OF_A_GROUP, _BYTES_OF_A_GROUP = 20_000, 1 << 25
_VERSION_KEY = b"svmbench_schema_version"
_ORDER = ["dataset", "solver", "outer", "inner"]
_FIXED = {field.name: field.type for field in TRIAL_SCHEMA} | PREDICTION_TYPES
_FREE_TEXTS = {"message", "fit_status", "stopping"}
_MEASURED = {name for name in _FIXED if name.endswith(("seconds", "_at"))} | {"gap", "objective"}
"""Columns whose numbers seldom repeat."""


def selection_frame(rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return rows of `selections.parquet` as a frame with the file's columns."""
    return to_pandas(to_table(Records.of({}, list(rows)), SELECTION_SCHEMA))


def parquet_writer(file: BinaryIO | RawIOBase, schema: pa.Schema, n_rows: int = FEW_ROWS) -> pq.ParquetWriter:
    """Open a writer; few rows are written as they are, for compaction will compress them."""
    metadata = {_VERSION_KEY: str(SCHEMA_VERSION).encode()}
    how: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": [_path(field) for field in schema if field.name not in _MEASURED],
        "use_byte_stream_split": [
            name for name in schema.names if name in _MEASURED
        ],  # exponents beside exponents, which compress
    }
    if n_rows < FEW_ROWS:  # without the Arrow schema, which takes long to read in thousands of parts
        how = {"compression": "none", "use_dictionary": False, "store_schema": False}
    return pq.ParquetWriter(file, schema.with_metadata(metadata), write_page_checksum=True, **how)


def _path(field: pa.Field) -> str:
    """Return the name by which Parquet knows the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


def write_table(file: BinaryIO | RawIOBase, table: pa.Table) -> None:
    """Write a table as a whole file."""
    with parquet_writer(file, table.schema, table.num_rows) as writer:
        writer.write_table(table)


def in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join small tables: each that is written is a row group, with dictionaries and statistics of its own."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        waiting.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= _ROWS_OF_A_GROUP or size >= _BYTES_OF_A_GROUP:
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def as_trials(table: pa.Table) -> pa.Table:
    """Return a table that was read with the types that the schema gives to its columns.

    Raises
    ------
    ValueError, pyarrow.ArrowException
        If it holds something else than trials.
    """
    table.validate(full=True)
    schema = table.schema
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("it has two columns of one name")
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
"""What a column of a parameter or a metric may hold."""


def require_readable(table: pa.Table) -> None:
    """Refuse a part with instants that Python cannot hold, or with ids of runs that name no file.

    Raises
    ------
    ValueError, OverflowError
    """
    for name in ("started_at", "finished_at"):
        if name in table.column_names:
            pc.min_max(table[name]).as_py()
    if "run_id" in table.column_names:
        for run_id in pc.unique(table["run_id"]).to_pylist():
            if run_id and not is_run_id(run_id):
                raise ValueError(f"its column run_id holds {storable_text(run_id, 100)!r}")


def to_table(records: Records, schema: pa.Schema) -> pa.Table:
    """Return rows as a table with the fixed columns and the `param_*` and `score_*` that the rows bring."""
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
    """Hold values of one type; one that is of no such type is a gap, and keeps no other from being stored."""
    try:
        return pa.array(values, type=kind)
    except Exception:  # whatever pyarrow, or the class of a value, makes of it
        return pa.array([_fitting(value, kind) for value in values], type=kind)


def with_short_texts(table: pa.Table) -> pa.Table:
    """Return rows in which no text that an estimator may have written is too long."""
    for place, name in enumerate(table.column_names):
        if name in _FREE_TEXTS and (pc.max(pc.binary_length(table[name])).as_py() or 0) > TEXT_BYTES:
            texts = pa.array([storable_value(text) for text in table[name].to_pylist()], pa.string())
            table = table.set_column(place, name, texts)
    return table


def _fitting(value: Any, kind: pa.DataType) -> Any:
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
    """Hold numbers as numbers, and anything else as text; None is a row without the parameter."""
    values = list(values)
    try:
        return _numbers_or_texts(values)
    except Exception:  # whatever the class of a value makes of it
        return _numbers_or_texts([storable_value(value) for value in values])


def _numbers_or_texts(values: list[Any]) -> pa.Array:
    is_plain = set(map(type, values)) <= {float, NoneType}  # so that values that are equal are the same
    if all(value is None or is_number(value) for value in (set(values) if is_plain else values)):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    """Write a number as `as_schema` writes a column of them; text comes as `study.cell` wrote it."""
    if is_number(value):
        return pa.scalar(float(value)).cast(pa.string()).as_py()
    if not isinstance(value, str):
        with suppress(Exception):  # a class that no configuration can name
            value = cell(value)
    return storable_text(value, None)


def select(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the columns of these names, those without rows that it lacks included."""
    return as_schema(table, pa.schema([(name, _FIXED[name]) for name in names]))


def without_predictions(table: pa.Table) -> pa.Table:
    """Return a table without the columns that hold lists."""
    return table.drop_columns([name for name in PREDICTION_TYPES if name in table.column_names])


def unify(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables whose `param_*` and `score_*` columns may differ."""
    schema = unified_schema([table.schema for table in tables])
    return pa.concat_tables([as_schema(table, schema) for table in tables])


def unified_schema(schemas: list[pa.Schema]) -> pa.Schema:
    """Return a schema with all columns; a parameter of numbers here and text there becomes text."""
    types: dict[str, pa.DataType] = {}
    for field in itertools.chain.from_iterable(schemas):
        kind = _FIXED.get(field.name, field.type)
        if types.setdefault(field.name, kind) != kind:
            types[field.name] = pa.string()
    return pa.schema(list(types.items()))


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns and types of a schema; columns that it lacks are empty."""
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
    """Refuse a file that a newer svmbench wrote.

    Raises
    ------
    StoreError
    """
    version = int((metadata.metadata or {}).get(_VERSION_KEY, b"1"))
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this svmbench reads up to {SCHEMA_VERSION}; "
            f"upgrade svmbench, or choose another study name"
        )


def unique_rows(
    table: pa.Table,
    run_order: Mapping[str, int],
    ranks: Callable[[NDArray[np.int64]], list[NDArray[Any]]] | None = None,
) -> NDArray[np.int64]:
    """Return, ascending, the row to keep of each key: one that is `ok`, else that of the newest run.

    Of several such rows their contents decide, so that the order of the parts does not.

    Parameters
    ----------
    table : Table
    run_order : mapping of str to int
    ranks : callable, optional
        Returns `content_ranks` of some rows, if the table does not have all their columns.
    """
    codes, keys = encoded(table["key"])
    if len(keys) == table.num_rows:
        return np.arange(table.num_rows)
    status_codes, statuses = encoded(table["status"])
    scored = np.array(statuses.to_pylist())[status_codes] == Status.OK
    run_codes, runs = encoded(pc.fill_null(table["run_id"], text_scalar("")))
    places = np.array([run_order.get(run, -1) for run in runs.to_pylist()], dtype=np.int64)[run_codes]
    worst_first = np.lexsort((places, scored))
    kept = np.empty(len(keys), dtype=np.int64)
    kept[codes[worst_first]] = worst_first  # of rows with the same key, the last one stays
    best = kept[codes]
    tied = np.flatnonzero((scored == scored[best]) & (places == places[best]))
    tied = tied[np.bincount(codes[tied])[codes[tied]] > 1]
    if len(tied):
        found = content_ranks(table.take(arrow_array(tied))) if ranks is None else ranks(tied)
        worst_first = tied[np.lexsort(found[::-1])]
        kept[codes[worst_first]] = worst_first
    return np.sort(kept)


def content_ranks(table: pa.Table) -> list[NDArray[Any]]:
    """Return arrays by which rows can be sorted, the first one first, to an order of their contents alone."""
    names = [group for group in TIE_COLUMNS if {*group} <= {*table.column_names}]
    return [_row_checksums(table.select(group)) for group in [*names, sorted(table.column_names)]]


def _row_checksums(table: pa.Table) -> NDArray[Any]:
    found = []
    for start in range(0, table.num_rows, 10_000):  # the texts of all rows may not fit into memory
        rows = table.slice(start, 10_000)
        texts = [_as_text(column) for column in rows.columns]
        joined = pc.binary_join_element_wise(*texts, "\0", null_handling="replace", null_replacement="\1")
        found += [checksum(text.encode()) for text in joined.to_pylist()]
    return np.array(found)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), ",")
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).cast(pa.string())


def encoded(column: pa.ChunkedArray) -> tuple[NDArray[Any], pa.Array]:
    """Return a column as numbers of distinct values, and those values."""
    encoded = column.combine_chunks().dictionary_encode()
    return np.from_dlpack(encoded.indices), encoded.dictionary


# What follows is pyarrow's `array`, `scalar` and `to_numpy` without pandas, which those import first.


def arrow_array(numbers: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array."""
    content = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, content])


def text_scalar(text: str) -> pa.StringScalar:
    """Return a text as an Arrow scalar."""
    content = text.encode()
    ends = pa.py_buffer(np.array([0, len(content)], dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)])[0]


def floats(column: pa.ChunkedArray, null: float) -> NDArray[Any]:
    """Return a column of floats, with a number in place of null."""
    filled = pc.fill_null(column.combine_chunks(), arrow_array(np.array([null]))[0])
    return np.from_dlpack(filled)


def in_canonical_order(table: pa.Table) -> pa.Table:
    """Sort rows canonically and put `param_*` and `score_*` where a reader looks for them."""
    params = sorted(name for name in table.column_names if name.startswith("param_"))
    scores = sorted(name for name in table.column_names if name.startswith("score_"))
    names = []
    for name in (name for name in table.column_names if name not in {*params, *scores}):
        names.append(name)
        names += params if name == "inner" else scores if name == "score" else []
    order = [name for name in [*_ORDER, *params, "key"] if name in table.column_names]
    return table.select(names).sort_by([(name, "ascending") for name in order])


def to_pandas(table: pa.Table) -> "pd.DataFrame":
    """Return a table as a frame whose integers and booleans may have gaps."""
    import pandas as pd  # it takes a third of a second, which `status` does not have

    nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)
