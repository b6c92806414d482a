"""Merge parts without repeated keys, with a few parts in memory at a time.

Each dataset × arm with more than `MANY_ROWS` rows gets its own part, and all smaller ones share a part. A
finished part is not written again. So a study that grows by a dataset adds files, and changes few of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from orchestrator.store.arrow_arrays import encoded
from orchestrator.store.arrow_tables import as_schema, in_groups, parquet_writer, unified_schema, unify
from orchestrator.store.columns import KEY_COLUMNS, TRIAL_SCHEMA
from orchestrator.store.files import new_part
from orchestrator.store.part_reading import part_schema, read_part
from orchestrator.store.part_summaries import MANY_ROWS, SUMMARY_KEY, PartSummary
from orchestrator.store.repeated_keys import content_ranks, unique_rows


def unfinished_parts(rows: Mapping[Path, Mapping[str, int]]) -> list[Path]:
    """Return the parts that a compaction has to write again.

    A part is finished if no other part has rows of its identities, and if it holds one large identity, or
    more than `MANY_ROWS` rows of small ones.

    Parameters
    ----------
    rows : mapping of Path to mapping of str to int
        Number of rows of each identity in each part.

    Returns
    -------
    list of Path
        The other parts.
    """
    parts_with = Counter(identity for counts in rows.values() for identity in counts)

    def is_finished(counts: Mapping[str, int]) -> bool:
        alone = all(parts_with[identity] == 1 for identity in counts)
        full = sum(counts.values()) > MANY_ROWS
        return alone and full and (len(counts) == 1 or max(counts.values()) <= MANY_ROWS)

    return [part for part, counts in rows.items() if not is_finished(counts)]


def write_merged(
    study: Path,
    parts: Sequence[Path],
    run_order: Mapping[str, int],
    summary: PartSummary | None,
    by_identity: bool,
) -> list[Path]:
    """Write new parts with one row for each key of some parts, which are kept.

    Parameters
    ----------
    study : Path
        The study's folder.
    parts : sequence of Path
        Files of the parts.
    run_order : mapping of str to int
        Index of each run in the order of the runs, by id.
    summary : PartSummary or None
        Summary of all rows, to store in the new parts; None for no summary.
    by_identity : bool
        Whether large identities get their own parts. Otherwise, one part is written.

    Returns
    -------
    list of Path
        Files of the new parts.
    """
    keys = {part: read_part(study, part, [*KEY_COLUMNS, "identity"]) for part in parts}
    schemas = {part: part_schema(study, part) for part in parts}
    whole = unified_schema([TRIAL_SCHEMA, *schemas.values()])
    numbered = _NumberedRows(study, {part: table.num_rows for part, table in keys.items()})
    empty = TRIAL_SCHEMA.empty_table().select([*KEY_COLUMNS, "identity"])
    table = unify([empty, *keys.values()])
    kept = unique_rows(table, run_order, lambda rows: numbered.ranks(rows, whole))
    written = []
    for identities, rows in _groups(table["identity"].take(kept), kept, by_identity):
        schema = unified_schema([schemas[part] for part in numbered.parts_of(rows)])
        with new_part(study) as file, parquet_writer(file, schema) as writer:
            for group in in_groups(numbered.read(rows, schema)):
                writer.write_table(group)
            if summary is not None:
                writer.add_key_value_metadata({SUMMARY_KEY: summary.only(identities).to_json()})
        written.append(file.path)
    return written


@dataclass(frozen=True)
class _NumberedRows:
    """Rows of several parts, numbered from 0 over all parts.

    Attributes
    ----------
    study : Path
        The study's folder.
    sizes : dict of Path to int
        Number of rows of each part, in the order of the parts.
    """

    study: Path
    sizes: dict[Path, int]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first row of each part, and of the row after the last one."""
        return np.cumsum([0, *self.sizes.values()])

    def parts_of(self, rows: NDArray[np.int64]) -> list[Path]:
        """Return the parts that hold some of the rows.

        Parameters
        ----------
        rows : int array
            Numbers of rows.

        Returns
        -------
        list of Path
            Files of the parts.
        """
        parts = [*self.sizes]
        held = np.unique(np.searchsorted(self.starts[:-1], rows, side="right") - 1)
        return [parts[index] for index in held]

    def read(self, rows: NDArray[np.int64], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the selected rows of each part.

        Parameters
        ----------
        rows : int array
            Numbers of rows.
        schema : Schema
            Columns of the result.

        Yields
        ------
        Table
            Selected rows of one part.
        """
        starts = dict(zip(self.sizes, self.starts.tolist(), strict=False))
        for part in self.parts_of(rows):
            start, size = starts[part], self.sizes[part]
            found = rows[(rows >= start) & (rows < start + size)] - start
            whole = read_part(self.study, part)
            yield as_schema(whole if len(found) == size else whole.take(found), schema)

    def ranks(self, rows: NDArray[np.int64], schema: pa.Schema) -> list[NDArray[Any]]:
        """Return the sort keys of rows by their contents.

        Parameters
        ----------
        rows : int array
            Numbers of rows.
        schema : Schema
            Columns that count.

        Returns
        -------
        list of ndarray
            See `content_ranks`.
        """
        found = [content_ranks(table) for table in self.read(rows, schema)]
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _groups(
    identities: pa.ChunkedArray, rows: NDArray[np.int64], by_identity: bool
) -> Iterator[tuple[set[str], NDArray[np.int64]]]:
    """Yield the rows of each new part.

    Parameters
    ----------
    identities : ChunkedArray
        Identity of each row; null in a row of a version that recorded none.
    rows : int array
        Indices of the rows.
    by_identity : bool
        Whether large identities get their own parts.

    Yields
    ------
    (set of str, int array)
        Identities of a part, and the indices of its rows.
    """
    codes, names = encoded(identities.fill_null(""))
    texts, counts = names.to_pylist(), np.bincount(codes, minlength=len(names))
    large = np.flatnonzero(counts > MANY_ROWS) if by_identity else np.array([], dtype=np.int64)
    for code in large.tolist():
        yield {texts[code]}, rows[codes == code]
    rest = ~np.isin(codes, large)
    if rest.any():
        yield {texts[code] for code in np.unique(codes[rest]).tolist()}, rows[rest]
