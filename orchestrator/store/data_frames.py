"""Convert Arrow tables to data frames with nullable types and a canonical order."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from orchestrator.store.arrow_tables import to_table
from orchestrator.store.columns import SELECTION_SCHEMA
from orchestrator.study.records import Records

if TYPE_CHECKING:
    import pandas as pd

_ORDER = ["dataset", "solver", "outer", "inner"]
"""First columns by which rows are sorted."""


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
