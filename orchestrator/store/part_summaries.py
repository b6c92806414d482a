"""Summarise the progress of a study, from summaries that compaction stores in parts and from a few columns.

The store keeps the summaries; the engine decides what they contain. The summary of a part is in its file, so
that it always matches the rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from orchestrator.store.arrow_arrays import arrow_array, encoded, floats, text_scalar
from orchestrator.store.arrow_tables import as_schema, as_trials
from orchestrator.store.columns import NEEDED, TRIAL_SCHEMA
from orchestrator.store.files import has_checksum
from orchestrator.store.provenance import Provenance, is_run_id
from orchestrator.store.repeated_keys import unique_rows

SUMMARY_KEY = b"svmbench_summary"
"""Key of the summary in the metadata of a Parquet file."""


Group = tuple[str, str, str]
"""Dataset, solver and identity, as in the rows."""

_FEW_ROWS = 1000
"""Number of rows up to which a part is read in place of its summary, if there are other parts."""

_TEXTS = ("identity", "dataset", "solver", "status", "message", "run_id")
"""Columns of texts that a scan reads."""

_COLUMNS_READ = ("key", "score", "fit_seconds", "predict_seconds", *_TEXTS)
"""Columns that a scan reads."""


_MAX_SECONDS = 1e9
"""Largest time of a training, in seconds.

svmbench writes no larger one. The limit keeps sums finite if another program wrote the rows.
"""


@dataclass(frozen=True)
class Rows:
    """Stored trials of one identity, one row for each key, by columns.

    Attributes
    ----------
    keys : sequence of str
        Trial keys.
    statuses : sequence of str
        Status of each trial.
    scores : sequence of float
        Scores; NaN for a failure.
    messages : sequence of str
        Message of each trial.
    datasets : sequence of str
        Name of the dataset of each trial.
    solvers : sequence of str
        Name of the arm of each trial.
    seconds : sequence of float
        Time of training and prediction, in seconds.
    """

    keys: Sequence[str] = ()
    statuses: Sequence[str] = ()
    scores: Sequence[float] = ()
    messages: Sequence[str] = ()
    datasets: Sequence[str] = ()
    solvers: Sequence[str] = ()
    seconds: Sequence[float] = ()

    def groups(self, identity: str) -> Counter[Group]:
        """Count the rows by dataset and solver.

        Parameters
        ----------
        identity : str
            Identity of the rows.

        Returns
        -------
        Counter
            Number of rows of each group.
        """
        pairs = Counter(zip(self.datasets, self.solvers, strict=True))
        return Counter({(*pair, identity): number for pair, number in pairs.items()})


@dataclass(frozen=True)
class PairSummary:
    """Progress of one dataset × arm, in terms of the trials that its search asks for.

    Attributes
    ----------
    planned : int
        Number of trials.
    stored : int
        Number of those that are stored.
    failed : int
        Number of stored ones without a score.
    complete : bool
        Whether no trial remains.
    seconds : float
        Time of all stored trainings and predictions that count, in seconds.
    counted : list of (dataset, solver, number)
        Number of trials that count, by the names in their rows.
    failures : list of (status, message, number)
        First message and number of each kind of failure.
    """

    planned: int
    stored: int = 0
    failed: int = 0
    complete: bool = False
    seconds: float = 0.0
    counted: list[tuple[str, str, int]] = field(default_factory=list)
    failures: list[tuple[str, str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class PartSummary:
    """Content of one part.

    Attributes
    ----------
    code : str
        Hash of the code that decided which trials count.
    groups : Counter of (dataset, solver, identity)
        Number of rows of each group.
    pairs : dict of str to PairSummary
        Progress of each dataset × arm, from the rows of this part only. The key is a hash of its identity and
        its search.
    runs : set of str
        Ids of the runs that wrote its rows.
    """

    code: str
    groups: Counter[Group]
    pairs: dict[str, PairSummary]
    runs: set[str]

    @property
    def identities(self) -> set[str]:
        """The identities of its rows."""
        return {identity for _, _, identity in self.groups}

    def to_json(self) -> bytes:
        """Return the summary in the format of a part's file."""
        content = {
            "code": self.code,
            "runs": sorted(self.runs),
            "groups": [[*group, number] for group, number in self.groups.items()],
            "pairs": {key: list(asdict(pair).values()) for key, pair in self.pairs.items()},
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None, n_rows: int) -> "PartSummary | None":
        """Read a summary.

        Parameters
        ----------
        text : bytes or None
            Result of `to_json`; None or other text if there is no valid summary.
        n_rows : int
            Number of rows of the part.

        Returns
        -------
        PartSummary or None
            None if the text is not a summary of `n_rows` rows.
        """
        try:
            content = json.loads(text or b"null")
            groups = Counter({row[:3]: row[3] for row in _counted(content["groups"], 3)})
            pairs = {key: _pair_summary(*values) for key, values in content["pairs"].items()}
            summary = cls(content["code"], groups, pairs, {*content["runs"]})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return summary if groups.total() == n_rows and all(map(is_run_id, summary.runs)) else None


def _pair_summary(
    planned: int, stored: int, failed: int, complete: bool, seconds: float, counted: Any, failures: Any
) -> PairSummary:
    """Return a summary after checking that its values are possible.

    Parameters
    ----------
    planned : int
        Number of trials.
    stored : int
        Number of those that are stored.
    failed : int
        Number of stored ones without a score.
    complete : bool
        Whether no trial remains.
    seconds : float
        Time of all stored trainings and predictions that count, in seconds.
    counted : list
        Rows of dataset, solver and number.
    failures : list
        Rows of status, message and number.

    Returns
    -------
    PairSummary
        Summary of one dataset × arm.

    Raises
    ------
    ValueError, TypeError
        If the values contradict each other or have other types.
    """
    pair = PairSummary(
        planned, stored, failed, complete, seconds, _counted(counted, 2), _counted(failures, 2)
    )
    is_possible = (
        [*map(type, (planned, stored, failed, complete, seconds))] == [int, int, int, bool, float]
        and 0 <= failed <= stored <= planned
        and complete == (stored == planned)
        and 0 <= seconds <= _MAX_SECONDS * stored
        and stored == sum(number for *_, number in pair.counted)
        and failed == sum(number for *_, number in pair.failures)
    )
    if not is_possible:
        raise ValueError(f"{pair} contradicts itself")
    return pair


def _counted(rows: Any, n_texts: int) -> list[tuple[Any, ...]]:
    """Return rows of texts and a number, after checking them.

    Parameters
    ----------
    rows : list
        Lists of texts and a positive number.
    n_texts : int
        Number of texts of each row.

    Returns
    -------
    list of tuple
        Tuples of texts and a number.

    Raises
    ------
    ValueError, TypeError
        If a row has another form.
    """
    for *texts, number in rows:
        "".join(texts).encode()  # raises unless all are valid texts
        if len(texts) != n_texts or type(number) is not int or number < 1:
            raise ValueError(f"expected {n_texts} texts and a number of trials, found {texts}, {number}")
    return [*map(tuple, rows)]


class Scan:
    """Summaries of some parts, and a few columns of the rows of the others.

    A column with a single value is not read. Its value is taken from the statistics, and stored once for all
    parts with the same values.

    Parameters
    ----------
    parts : sequence of Path
        Files of the parts.
    opened : callable
        Opens a part for reading.
    provenance : Provenance
        Records of the runs, which give their order.
    """

    def __init__(
        self,
        parts: Sequence[Path],
        opened: Callable[[Path], AbstractContextManager[pq.ParquetReader]],
        provenance: Provenance,
    ):
        self._parts = parts
        self._opened = opened
        self._provenance = provenance
        self._run_order = provenance.order([])
        self._summaries: dict[Path, PartSummary] = {}
        self._tables: dict[tuple[tuple[str, str], ...], list[pa.Table]] = {}

    def summaries(self, is_possible: Callable[[PartSummary], bool]) -> list[PartSummary]:
        """Return the summaries that are valid, and read the rows of the other parts.

        If there are several parts, the rows of small ones are read as well, because opening a part again
        costs more than its rows.

        Parameters
        ----------
        is_possible : callable
            Returns whether a summary can be used.

        Returns
        -------
        list of PartSummary
            Summaries of the parts whose rows were not read.
        """
        for part in self._parts:
            with self._opened(part) as reader:
                if len(self._parts) > 1 and reader.metadata.num_rows <= _FEW_ROWS:
                    self._add(reader)
                    continue
                text = (reader.metadata.metadata or {}).get(SUMMARY_KEY) if has_checksum(part) else None
                summary = PartSummary.from_json(text, reader.metadata.num_rows)
                if summary and summary.runs <= self._run_order.keys() and is_possible(summary):
                    self._summaries[part] = summary
                else:
                    self._add(reader)
        return [*self._summaries.values()]

    def has_kept(self, summary: PartSummary) -> bool:
        """Return whether a single part was scanned, and its stored summary equals a given one.

        Parameters
        ----------
        summary : PartSummary
            Summary to compare with the one that the part has.

        Returns
        -------
        bool
            False if there are several parts.
        """
        return [*self._summaries.values()] == [summary]

    def identities(self) -> set[str]:
        """Return the identities of the rows that were read."""
        return self._distinct("identity")

    def runs(self) -> set[str]:
        """Return the ids of the runs that wrote the rows."""
        return self._distinct("run_id").union(*(summary.runs for summary in self._summaries.values())) - {""}

    def rows(self, wanted: set[str]) -> Iterator[tuple[str, Rows]]:
        """Yield the rows of each identity that is wanted or was read, one row for each key.

        Parameters
        ----------
        wanted : set of str
            Identities whose rows are read from parts with a summary, too.

        Yields
        ------
        identity : str
            Identity of the dataset × arm that the rows belong to.
        rows : Rows
            Its trials.

        Raises
        ------
        DamageError
            If the record of a run that wrote rows is missing.
        """
        runs = self.runs()
        if not runs <= self._run_order.keys():
            self._run_order = self._provenance.order(runs)
        for part, summary in self._summaries.items():
            if not wanted.isdisjoint(summary.identities):
                with self._opened(part) as reader:
                    self._add(reader, wanted)
        if not self._tables:
            return
        table = self._table()
        kept = unique_rows(table, self._run_order)
        if len(kept) < table.num_rows:
            table = table.take(arrow_array(kept))
        codes, identities = encoded(pc.fill_null(table["identity"], text_scalar("")))
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(identities))).tolist()
        for identity, start, end in zip(identities.to_pylist(), [0, *ends], ends, strict=False):
            yield identity, _rows(table.take(arrow_array(order[start:end])))

    def _add(self, reader: pq.ParquetReader, wanted: set[str] | None = None) -> None:
        """Read the rows of a part.

        Parameters
        ----------
        reader : ParquetReader
            The open part.
        wanted : set of str or None
            Identities whose rows are kept; None by default, for all.

        Raises
        ------
        ValueError
            If a column is missing or has gaps.
        """
        # `metadata.schema` would create a reference cycle, which keeps the metadata in memory.
        indices = _indices(tuple(map(tuple, reader.column_paths)))
        if missing := [name for name in NEEDED if name not in indices]:
            raise ValueError(f"it has no column {missing[0]}")
        constants = _constants(reader.metadata, indices)
        names = tuple(name for name in _COLUMNS_READ if name not in constants)
        read = [indices[name] for name in names if name in indices]
        schema = _schema_of(names)
        table = reader.read_all(column_indices=read, use_threads=False)
        if not table.schema.equals(schema):
            table = as_schema(as_trials(table), schema)
        if empty := [name for name in ("key", "status") if name in names and table[name].null_count]:
            raise ValueError(f"its column {empty[0]} has gaps")
        if wanted is not None and "identity" in names:
            table = table.filter(pc.is_in(table["identity"], pa.array(sorted(wanted), pa.string())))
        if table.num_rows:
            self._tables.setdefault(tuple(constants.items()), []).append(table)

    def _distinct(self, name: str) -> set[str]:
        """Return the distinct values of a text column in the rows that were read.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        set of str
            Distinct texts; an empty text stands for a gap.
        """
        found: set[str] = set()
        for constants, tables in self._tables.items():
            if name in (known := dict(constants)):
                found.add(known[name])
            else:
                columns = pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])
                found.update(text or "" for text in pc.unique(columns).to_pylist())
        return found

    def _table(self) -> pa.Table:
        """Return all rows that were read, including the columns with a single value."""
        whole = []
        for constants, tables in self._tables.items():
            table = pa.concat_tables(tables)
            for name, value in constants:
                table = table.append_column(name, pa.repeat(text_scalar(value), table.num_rows))
            whole.append(table.select(_COLUMNS_READ))
        self._tables.clear()
        return pa.concat_tables(whole).combine_chunks()


@lru_cache(maxsize=64)
def _indices(paths: tuple[tuple[str, ...], ...]) -> Mapping[str, int]:
    """Return the indices of the columns that a scan needs.

    Parameters
    ----------
    paths : tuple of tuple of str
        Paths of all columns of a part.

    Returns
    -------
    mapping of str to int
        Index by name.
    """
    names = {*NEEDED, *_COLUMNS_READ}
    return {path[0]: index for index, path in enumerate(paths) if len(path) == 1 and path[0] in names}


def _constants(metadata: pq.FileMetaData, indices: Mapping[str, int]) -> dict[str, str]:
    """Return the text columns with a single value, and this value, as the statistics of a part state them.

    Parameters
    ----------
    metadata : FileMetaData
        Metadata of a part.
    indices : mapping of str to int
        Index of each column.

    Returns
    -------
    dict of str to str
        Value by name.
    """
    if metadata.num_row_groups != 1:
        return {}
    group = metadata.row_group(0)
    found = {}
    for name in _TEXTS:
        statistics = group.column(indices[name]).statistics if name in indices else None
        if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
            continue
        lowest = statistics.min
        if isinstance(lowest, str) and lowest == statistics.max:
            found[name] = lowest
    return found


@lru_cache(maxsize=64)
def _schema_of(names: tuple[str, ...]) -> pa.Schema:
    """Return the schema of some fixed columns.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.

    Returns
    -------
    Schema
        Their types.
    """
    return pa.schema([TRIAL_SCHEMA.field(name) for name in names])


def _rows(table: pa.Table) -> Rows:
    """Return the columns of a table as lists.

    Parameters
    ----------
    table : Table
        Rows with the columns `_COLUMNS_READ`.

    Returns
    -------
    Rows
        Lists with one entry for each row of the table.
    """
    empty = text_scalar("")
    texts = {name: pc.fill_null(table[name], empty).to_pylist() for name in ("key", *_TEXTS)}
    seconds = floats(table["fit_seconds"], 0.0) + floats(table["predict_seconds"], 0.0)
    seconds = np.nan_to_num(np.clip(seconds, 0.0, _MAX_SECONDS))
    return Rows(
        keys=texts["key"],
        statuses=texts["status"],
        scores=floats(table["score"], np.nan).tolist(),
        messages=texts["message"],
        datasets=texts["dataset"],
        solvers=texts["solver"],
        seconds=seconds.tolist(),
    )
