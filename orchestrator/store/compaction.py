"""Merge parts into one without repeated keys, with a few parts in memory at a time."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from orchestrator.store.arrow_tables import as_schema, in_groups, parquet_writer, unified_schema, unify
from orchestrator.store.columns import KEY_COLUMNS, TRIAL_SCHEMA
from orchestrator.store.files import new_part
from orchestrator.store.part_reading import part_schema, read_part
from orchestrator.store.part_summaries import SUMMARY_KEY, PartSummary
from orchestrator.store.repeated_keys import content_ranks, unique_rows


def write_merged(
    study: Path, parts: Sequence[Path], run_order: Mapping[str, int], summary: PartSummary | None
) -> Path:
    """Write a new part with one row for each key of some parts, which are kept.

    Parameters
    ----------
    study : Path
        The study's folder.
    parts : sequence of Path
        Files of the parts.
    run_order : mapping of str to int
        Index of each run in the order of the runs, by id.
    summary : PartSummary or None
        Summary to store in the new part; None for no summary.

    Returns
    -------
    Path
        File of the new part.
    """
    keys = {part: read_part(study, part, KEY_COLUMNS) for part in parts}
    schemas = [part_schema(study, part) for part in parts]
    schema, whole = (unified_schema(found) for found in (schemas, [TRIAL_SCHEMA, *schemas]))

    def read(rows: NDArray[np.int64], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the selected rows of each part.

        Parameters
        ----------
        rows : int array
            Indices of rows, counted over all parts.
        schema : Schema
            Columns of the result.

        Yields
        ------
        Table
            Selected rows of one part.
        """
        start = 0
        for part, table in keys.items():
            found = rows[(rows >= start) & (rows < start + table.num_rows)] - start
            start += table.num_rows
            whole = read_part(study, part)
            rows_kept = whole if len(found) == whole.num_rows else whole.take(found)
            yield as_schema(rows_kept, schema)

    def ranks(rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Return the sort keys of rows by their contents.

        Parameters
        ----------
        rows : int array
            Indices of rows, counted over all parts.

        Returns
        -------
        list of ndarray
            See `content_ranks`.
        """
        found = [content_ranks(table) for table in read(rows, whole) if table.num_rows]
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    empty = TRIAL_SCHEMA.empty_table().select(KEY_COLUMNS)
    kept = unique_rows(unify([empty, *keys.values()]), run_order, ranks)
    with new_part(study) as file, parquet_writer(file, schema) as writer:
        for table in in_groups(read(kept, schema)):
            writer.write_table(table)
        if summary is not None:
            writer.add_key_value_metadata({SUMMARY_KEY: summary.to_json()})
    return file.path
