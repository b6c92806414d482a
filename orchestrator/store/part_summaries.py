"""How far a study is, by what compaction keeps in a part's own file and by few columns of the other rows.

The store keeps such summaries and gives them back; what is in them is the engine's to say. A part's summary
is in its file, so that it is never older or younger than the rows.
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

from orchestrator.store.arrow_tables import (
    arrow_array,
    as_schema,
    as_trials,
    encoded,
    floats,
    text_scalar,
    unique_rows,
)
from orchestrator.store.columns import NEEDED, TRIAL_SCHEMA
from orchestrator.store.files import has_checksum
from orchestrator.store.provenance import Provenance, is_run_id

SUMMARY_KEY = b"svmbench_summary"

Group = tuple[str, str, str]
"""Dataset, solver and identity, as rows name them."""

_FEW_ROWS = 1000
_TEXTS = ("identity", "dataset", "solver", "status", "message", "run_id")
_COLUMNS_READ = ("key", "score", "fit_seconds", "predict_seconds", *_TEXTS)


_MOST_SECONDS = 1e9
"""Of a training; svmbench writes no more, and sums of what others may write are to stay finite."""


@dataclass(frozen=True)
class Rows:
    """The stored trials of one identity, one row a key, by columns.

    Attributes
    ----------
    keys, statuses, messages, datasets, solvers : sequence of str
    scores : sequence of float
        nan for a failure.
    seconds : sequence of float
        Of training and prediction.
    """

    keys: Sequence[str] = ()
    statuses: Sequence[str] = ()
    scores: Sequence[float] = ()
    messages: Sequence[str] = ()
    datasets: Sequence[str] = ()
    solvers: Sequence[str] = ()
    seconds: Sequence[float] = ()

    def groups(self, identity: str) -> Counter[Group]:
        """Count rows by the names in them."""
        pairs = Counter(zip(self.datasets, self.solvers, strict=True))
        return Counter({(*pair, identity): number for pair, number in pairs.items()})


@dataclass(frozen=True)
class PairSummary:
    """How far one dataset × arm is, by the trials that its search asks for.

    Attributes
    ----------
    planned, stored, failed : int
    complete : bool
        Whether nothing is left to run.
    seconds : float
        Of all stored trainings and predictions that count.
    counted : list of (dataset, solver, number)
        The trials that count, by the names in their rows.
    failures : list of (status, message, number)
        The first message of each kind of failure.
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
    """What is in one part.

    Attributes
    ----------
    code : str
        Hash of the code that found which of its trials count.
    groups : Counter of (dataset, solver, identity)
        Its rows.
    pairs : dict of str to PairSummary
        How far each dataset × arm is by this part alone, by a hash of its identity and its search.
    runs : set of str
        The ids of the runs that left its rows.
    """

    code: str
    groups: Counter[Group]
    pairs: dict[str, PairSummary]
    runs: set[str]

    @property
    def identities(self) -> set[str]:
        """The identities that it has rows of."""
        return {identity for _, _, identity in self.groups}

    def to_json(self) -> bytes:
        """Return the summary as it is kept in a part's file."""
        content = {
            "code": self.code,
            "runs": sorted(self.runs),
            "groups": [[*group, number] for group, number in self.groups.items()],
            "pairs": {key: list(asdict(pair).values()) for key, pair in self.pairs.items()},
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None, n_rows: int) -> "PartSummary | None":
        """Return what `to_json` wrote of a part with so many rows; None of whatever else was written."""
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
    """Return the summary of these values, or raise ValueError or TypeError if they cannot be one's."""
    pair = PairSummary(
        planned, stored, failed, complete, seconds, _counted(counted, 2), _counted(failures, 2)
    )
    is_possible = (
        [*map(type, (planned, stored, failed, complete, seconds))] == [int, int, int, bool, float]
        and 0 <= failed <= stored <= planned
        and complete == (stored == planned)
        and 0 <= seconds <= _MOST_SECONDS * stored
        and stored == sum(number for *_, number in pair.counted)
        and failed == sum(number for *_, number in pair.failures)
    )
    if not is_possible:
        raise ValueError(f"{pair} cannot be")
    return pair


def _counted(rows: Any, n_texts: int) -> list[tuple[Any, ...]]:
    """Return rows of some texts and the number of trials that have them, or raise ValueError or TypeError."""
    for *texts, number in rows:
        "".join(texts).encode()  # fails unless all are whole texts
        if len(texts) != n_texts or type(number) is not int or number < 1:
            raise ValueError(f"{texts}, {number} is no number of trials")
    return [*map(tuple, rows)]


class Scan:
    """The summaries of some parts, and few columns of the rows of the others.

    Columns with one value are not read: what their statistics say is kept once for all parts that have the
    same values.

    Parameters
    ----------
    parts : sequence of Path
    opened : callable
        Opens a part for reading.
    provenance : Provenance
        Which run is newer than which.
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
        """Return the summaries that can be true of their parts, and read the rows of the other parts.

        Those of small parts beside others are read, too: opening a part again costs more than its rows.
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
        """Whether a summary is what the only part keeps already."""
        return [*self._summaries.values()] == [summary]

    def identities(self) -> set[str]:
        """Return the identities of the rows that were read."""
        return self._distinct("identity")

    def runs(self) -> set[str]:
        """Return the ids of the runs that left the rows."""
        return self._distinct("run_id").union(*(summary.runs for summary in self._summaries.values())) - {""}

    def rows(self, wanted: set[str]) -> Iterator[tuple[str, Rows]]:
        """Yield each identity that is wanted or has been read and its rows, one row a key.

        Raises
        ------
        DamageError
            When the record of a run that left rows is missing.
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
        """Read a part; of a part with many identities only the rows of those that are wanted."""
        # `metadata.schema` would keep the metadata in a reference cycle.
        places = _places(tuple(map(tuple, reader.column_paths)))
        if missing := [name for name in NEEDED if name not in places]:
            raise ValueError(f"it has no column {missing[0]}")
        constants = _constants(reader.metadata, places)
        names = tuple(name for name in _COLUMNS_READ if name not in constants)
        read = [places[name] for name in names if name in places]
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
        found: set[str] = set()
        for constants, tables in self._tables.items():
            if name in (known := dict(constants)):
                found.add(known[name])
            else:
                columns = pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])
                found.update(text or "" for text in pc.unique(columns).to_pylist())
        return found

    def _table(self) -> pa.Table:
        """Return all rows that were read, with the columns that were not."""
        whole = []
        for constants, tables in self._tables.items():
            table = pa.concat_tables(tables)
            for name, value in constants:
                table = table.append_column(name, pa.repeat(text_scalar(value), table.num_rows))
            whole.append(table.select(_COLUMNS_READ))
        self._tables.clear()
        return pa.concat_tables(whole).combine_chunks()


@lru_cache(maxsize=64)
def _places(paths: tuple[tuple[str, ...], ...]) -> Mapping[str, int]:
    """Return the number of each column that is looked at, of the paths of all."""
    names = {*NEEDED, *_COLUMNS_READ}
    return {path[0]: place for place, path in enumerate(paths) if len(path) == 1 and path[0] in names}


def _constants(metadata: pq.FileMetaData, places: Mapping[str, int]) -> dict[str, str]:
    """Return the text columns that hold one value, as their statistics say, and that value."""
    if metadata.num_row_groups != 1:
        return {}
    group = metadata.row_group(0)
    found = {}
    for name in _TEXTS:
        statistics = group.column(places[name]).statistics if name in places else None
        if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
            continue
        lowest = statistics.min
        if isinstance(lowest, str) and lowest == statistics.max:
            found[name] = lowest
    return found


@lru_cache(maxsize=64)
def _schema_of(names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([TRIAL_SCHEMA.field(name) for name in names])


def _rows(table: pa.Table) -> Rows:
    empty = text_scalar("")
    texts = {name: pc.fill_null(table[name], empty).to_pylist() for name in ("key", *_TEXTS)}
    seconds = floats(table["fit_seconds"], 0.0) + floats(table["predict_seconds"], 0.0)
    seconds = np.nan_to_num(np.clip(seconds, 0.0, _MOST_SECONDS))
    return Rows(
        keys=texts["key"],
        statuses=texts["status"],
        scores=floats(table["score"], np.nan).tolist(),
        messages=texts["message"],
        datasets=texts["dataset"],
        solvers=texts["solver"],
        seconds=seconds.tolist(),
    )
