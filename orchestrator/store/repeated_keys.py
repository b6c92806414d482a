"""Select one of several stored rows with the same key."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from orchestrator.store.arrow_arrays import arrow_array, encoded, text_scalar
from orchestrator.store.columns import TIE_COLUMNS
from orchestrator.store.files import checksum
from orchestrator.study.records import Status


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
