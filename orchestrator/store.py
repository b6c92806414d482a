"""The Parquet tables of a study: the only source of truth, and the only place that knows pyarrow.

A part file is written under a temporary name, synced and renamed, so that a reader sees whole files
only. A killed study leaves nothing behind but what it finished. Rows are never changed: a repeated
key is resolved on reading, and `compact` merges the parts into one. A part's name holds a checksum of
its bytes; a part that has another one is named in an error and never left out in silence.
"""

import itertools
import os
import platform
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import filelock
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from orchestrator.declaration import Declaration, current_declaration
from orchestrator.overview import Overview, PartSummary, Rows, Survey
from orchestrator.provenance import Provenance, is_run_id
from orchestrator.records import Records, StoredTrial
from orchestrator.storable import TEXT_BYTES, storable_text, storable_value
from orchestrator.store_files import (
    DamageError,
    StoreError,
    has_checksum,
    listed,
    new_part,
    read_part,
    read_whole,
    remove_temporaries,
    replacing,
)
from orchestrator.study import REFIT, cell, is_number

SCHEMA_VERSION = 1
_VERSION_KEY = b"svmbench_schema_version"
_SUMMARY_KEY = "svmbench_summary"

TRIAL_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("identity", pa.string()),
        ("study", pa.string()),
        ("dataset", pa.string()),
        ("solver", pa.string()),
        ("outer", pa.int32()),
        ("inner", pa.int32()),
        ("status", pa.string()),
        ("message", pa.string()),
        ("score", pa.float64()),
        ("n_correct", pa.int64()),
        ("n_test", pa.int64()),
        ("n_train", pa.int64()),
        ("n_features", pa.int64()),
        ("n_classes", pa.int64()),
        ("n_sv", pa.int64()),
        ("sv_share", pa.float64()),
        ("n_iter", pa.int64()),
        ("n_kernel_evals", pa.int64()),
        ("gap", pa.float64()),
        ("objective", pa.float64()),
        ("converged", pa.bool_()),
        ("fit_status", pa.string()),
        ("stopping", pa.string()),
        ("fit_seconds", pa.float64()),
        ("fit_cpu_seconds", pa.float64()),
        ("predict_seconds", pa.float64()),
        ("predict_cpu_seconds", pa.float64()),
        ("gram_seconds", pa.float64()),
        ("compile_seconds", pa.float64()),
        ("profile", pa.string()),
        ("shared_gram", pa.bool_()),
        ("warm_started", pa.bool_()),
        ("seed", pa.int64()),
        ("host", pa.string()),
        ("worker", pa.string()),
        ("attempt", pa.int32()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("finished_at", pa.timestamp("us", tz="UTC")),
        ("run_id", pa.string()),
        ("versions", pa.string()),
    ]
)
"""The fixed columns of a trial; `param_<name>` follow `inner`, `score_<metric>` follow `score`."""

OUTER_SCHEMA = TRIAL_SCHEMA.append(pa.field("selection_key", pa.string()))
"""A refit, and the key of the selection whose candidate it trained."""

SELECTION_SCHEMA = pa.schema(
    [
        ("selection_key", pa.string()),
        ("identity", pa.string()),
        ("study", pa.string()),
        ("dataset", pa.string()),
        ("solver", pa.string()),
        ("outer", pa.int32()),
        ("inner_score", pa.float64()),
        ("inner_se", pa.float64()),
        ("n_tied", pa.int64()),
        ("n_candidates", pa.int64()),
        ("n_failed", pa.int64()),
    ]
)

RUN_COLUMNS = frozenset(
    {
        "fit_seconds",
        "fit_cpu_seconds",
        "predict_seconds",
        "predict_cpu_seconds",
        "gram_seconds",
        "compile_seconds",
        "host",
        "worker",
        "attempt",
        "started_at",
        "finished_at",
        "run_id",
    }
)
"""The columns in which two runs of the same study may differ; all others are identical bit for bit."""

_ORDER = ["dataset", "solver", "outer", "inner"]
_KEY_COLUMNS = ["key", "status", "run_id"]
_NEEDED = ["key", "identity", "dataset", "solver", "outer", "inner", "status"]
_KEYED = ["key", "status"]
_FREE_TEXTS = {"message", "fit_status", "stopping"}
_SMALL_PART_BYTES = 16 << 20
_READINGS = 1000
_FEW_ROWS = 500


class StudyLock:
    """A study that is claimed, until it is released or the `with` block ends.

    Attributes
    ----------
    removed : list of Path
        What dead writers had left half-written.
    """

    def __init__(self, lock: filelock.BaseFileLock, removed: list[Path]):
        self._lock = lock
        self.removed = removed

    def release(self) -> None:
        """Let others have the study."""
        self._lock.release()

    def __enter__(self) -> "StudyLock":
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


class Store:
    """The tables of one study under one folder.

    Parameters
    ----------
    folder : Path
        `results/NAME`; made on the first write.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder).absolute()  # an estimator may change the working directory
        self.trials_folder = self.folder / "trials"
        self.provenance_records = Provenance(self.folder)

    # -- writing ---------------------------------------------------------------------------------

    def lock(self) -> "StudyLock":
        """Claim the study for one writer, and remove what writers that are dead left half-written.

        The operating system frees the lock when its holder dies, however it dies.

        Raises
        ------
        StoreError
            Naming who has the study, be it this process, or what keeps the folder from being written to.
        """
        self._make_folders()
        path, holder = self.folder / ".lock", self.folder / ".lock-holder"
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=0)
        except (filelock.Timeout, RuntimeError):  # the latter when this thread has it
            raise StoreError(
                f"study {self.folder.name!r} is being run by {_holder(holder)}; wait for it, stop it, or "
                f"choose another name with study=NAME"
            ) from None
        except OSError as error:
            raise DamageError(self.folder, path, f"{error.strerror}") from None
        try:
            with replacing(self.folder, holder) as file:
                file.write(f"process {os.getpid()} on {platform.node()}\n".encode())
            return StudyLock(lock, remove_temporaries(self.folder))
        except BaseException:
            lock.release()
            raise

    def _make_folders(self) -> None:
        try:
            self.trials_folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f".probe-{uuid.uuid4().hex}.tmp"
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StoreError(
                f"cannot write to the results folder {self.folder}: {error.strerror}; "
                f"choose a writable one with paths.results=DIR"
            ) from None

    def append(self, batches: Iterable[Records]) -> None:
        """Write the rows of finished trials as one new part, whole or not at all."""
        tables = [_to_table(records, TRIAL_SCHEMA) for records in batches]
        if tables:
            self._write_part(_with_short_texts(_unify(tables)))

    def write_outer(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace `outer.parquet`, one row per refit."""
        self._write(_to_table(Records.of({}, list(rows)), OUTER_SCHEMA), self.folder / "outer.parquet")

    def write_selections(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace `selections.parquet`, one row per dataset × arm × outer fold."""
        table = _to_table(Records.of({}, list(rows)), SELECTION_SCHEMA)
        self._write(table, self.folder / "selections.parquet")

    def next_run_number(self) -> int:
        """Return the number of the run that is about to be recorded; the caller holds the lock.

        It is above those of all runs recorded before, whatever clocks say.
        """
        return self.provenance_records.next_number()

    def write_provenance(self, run_id: str, facts: Mapping[str, Any]) -> None:
        """Replace `provenance/<run_id>.json`."""
        self.provenance_records.write(run_id, facts)

    def compact(self, everything: bool = True) -> None:
        """Merge the parts into one without repeated keys, holding one part in memory at a time.

        Killed half-way, it leaves rows twice but loses none; the next reading or compaction mends that.

        Parameters
        ----------
        everything : bool
            Merge large parts too. A running study merges its small ones only.
        """
        parts = [part for part in self._parts() if everything or part.stat().st_size < _SMALL_PART_BYTES]
        runs = self.provenance()
        declaration, run_order = current_declaration(runs), _places(runs)
        if len(parts) < 2 and not (everything and self._lacks_summary(parts, declaration)):
            return
        summary = None if declaration is None else self._survey(parts, declaration, run_order)[1]
        keys = {part: self._read_part(part, _KEY_COLUMNS) for part in parts}
        empty = TRIAL_SCHEMA.empty_table().select(_KEY_COLUMNS)
        kept = _unique_rows(_unify([empty, *keys.values()]), run_order)
        schema = _unified_schema([self._part_schema(part) for part in parts])
        with new_part(self.folder) as file, _writer(file, schema) as writer:
            start = 0
            for part, table in keys.items():
                rows = kept[(kept >= start) & (kept < start + table.num_rows)] - start
                start += table.num_rows
                writer.write_table(_as_schema(self._read_part(part).take(rows), schema))
            if summary is not None:
                writer.add_key_value_metadata({_SUMMARY_KEY: summary.to_json()})
        for part in keys:
            part.unlink()

    def _lacks_summary(self, parts: list[Path], declaration: Declaration | None) -> bool:
        """Whether the only part there is does not say how far what is declared is."""
        if not parts or declaration is None:
            return False
        with self._reader(parts[0]) as reader:
            summary = _summary(reader)
        return summary is None or not Survey(declaration, [summary], set()).wanted.isdisjoint(
            summary.identities
        )

    def _write(self, table: pa.Table, target: Path) -> None:
        with replacing(self.folder, target) as file, _writer(file, table.schema) as writer:
            writer.write_table(table)

    def _write_part(self, table: pa.Table) -> None:
        with new_part(self.folder) as file, _writer(file, table.schema, table.num_rows) as writer:
            writer.write_table(table)

    # -- reading ---------------------------------------------------------------------------------

    def _parts(self) -> list[Path]:
        return listed(self.folder, self.trials_folder, "part-", ".parquet")

    def _trials(self, columns: list[str] | None = None) -> pa.Table:
        for _ in range(_READINGS):
            try:
                tables = [self._read_part(part, columns) for part in self._parts()]
            except FileNotFoundError:
                continue  # a running study merged a part between our listing and our reading
            empty = TRIAL_SCHEMA.empty_table()
            table = _unify([empty if columns is None else empty.select(columns), *tables])
            run_order = self._run_order()
            for run_id in pc.unique(table["run_id"]).to_pylist():
                if run_id and run_id not in run_order:
                    raise self.provenance_records.missing(run_id)
            rows = _unique_rows(table.select(_KEY_COLUMNS), run_order)
            return table if len(rows) == table.num_rows else table.take(rows)
        raise StoreError(f"cannot read {self.trials_folder}: its files come and go; try again later")

    def _read_part(self, path: Path, columns: list[str] | None = None) -> pa.Table:
        """Read some columns of a part, or all; the errors are those of `_opened`."""
        with self._opened(path) as file:
            table = _as_trials(file.read(columns=columns))
            if missing := [name for name in _NEEDED if name not in file.schema_arrow.names]:
                raise ValueError(f"it has no column {missing[0]}")
            filled = _KEYED if has_checksum(path) else _NEEDED
            if empty := [name for name in filled if name in table.column_names and table[name].null_count]:
                raise ValueError(f"its column {empty[0]} has gaps")
            _require_readable(table)
            return table

    def _part_schema(self, path: Path) -> pa.Schema:
        with self._opened(path) as file:
            return _as_trials(file.schema_arrow.empty_table()).schema

    @contextmanager
    def _opened(self, path: Path) -> Iterator[pq.ParquetFile]:
        """Open a Parquet file of the study for reading.

        Raises
        ------
        FileNotFoundError
            When the file is gone.
        DamageError
            When its bytes have another checksum than its name or its pages say, or are no such table.
        StoreError
            When a newer svmbench wrote it, or it cannot be read at all.
        """
        content = read_part(self.folder, path)
        with (
            self._naming_damage(path),
            pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file,
        ):
            _require_version(path, file.metadata)
            yield file

    @contextmanager
    def _reader(self, path: Path) -> Iterator[pq.ParquetReader]:
        """Open a part as `_opened` does, in half the time: of thousands only a few columns are read."""
        content = read_part(self.folder, path)
        with self._naming_damage(path):
            reader = pq.ParquetReader()
            reader.open(pa.BufferReader(content), page_checksum_verification=True)
            _require_version(path, reader.metadata)
            yield reader

    @contextmanager
    def _naming_damage(self, path: Path) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # whatever pyarrow makes of bytes that no checksum stands for
            raise DamageError(self.folder, path, " ".join(str(error).split())[:200]) from None

    def damaged_parts(self) -> list[DamageError]:
        """Read every part, and return what is wrong with those that are damaged."""
        found = []
        for part in self._parts():
            try:
                self._read_part(part)
            except DamageError as error:
                found.append(error)
        return found

    def run_ids(self) -> set[str]:
        """Return the ids of the runs that left rows."""
        tables = [self._read_part(part, ["run_id"]) for part in self._parts()]
        columns = [table["run_id"] for table in tables if "run_id" in table.column_names]
        return {run_id for column in columns for run_id in pc.unique(column).to_pylist() if run_id}

    def overview(self, declaration: Declaration) -> Overview:
        """Tell how far each dataset × arm is, from what compaction has summed up and few columns of the rest.

        Those of which too little is recorded to tell their trials' keys are left out.
        """
        for _ in range(_READINGS):
            with suppress(FileNotFoundError):  # a running study merged a part after it was listed
                return self._survey(self._parts(), declaration, self._run_order())[0]
        raise StoreError(f"cannot read {self.trials_folder}: its files come and go; try again later")

    def _survey(
        self, parts: list[Path], declaration: Declaration, run_order: Mapping[str, int]
    ) -> tuple[Overview, PartSummary]:
        """Return what to tell of the rows of some parts, and what to keep in a part that holds them all."""
        summaries: dict[Path, PartSummary] = {}
        few = _FewColumns()
        for part in parts:
            if not has_checksum(part):  # nothing vouches for what is not read
                self._read_part(part)
            with self._reader(part) as reader:
                summary = _summary(reader)
                if summary is None:
                    few.add(reader)
                else:
                    summaries[part] = summary
        survey = Survey(declaration, [*summaries.values()], few.identities())
        for part, summary in summaries.items():
            if not survey.wanted.isdisjoint(summary.identities):
                with self._reader(part) as reader:
                    few.add(reader, survey.wanted)
        runs = few.runs().union(*(summary.runs for summary in summaries.values()))
        for run_id in sorted(runs - run_order.keys()):
            raise self.provenance_records.missing(run_id)
        overview = survey.overview(few.rows(run_order))
        return overview, survey.part_summary(overview, runs)

    def stored(self) -> dict[str, StoredTrial]:
        """Map the key of every stored trial to its status and score."""
        table = self._trials([*_KEY_COLUMNS, "score"])
        codes, statuses = _encoded(table["status"])
        names, scores = statuses.to_pylist(), table["score"].to_numpy()  # null becomes nan
        pairs = zip(codes.tolist(), scores.tolist(), strict=True)
        trials = (StoredTrial(names[code], score) for code, score in pairs)
        return dict(zip(table["key"].to_pylist(), trials, strict=True))

    def refits(self) -> dict[str, dict[str, Any]]:
        """Map the key of every stored refit to its whole row."""
        table = self._trials()
        mask = pc.equal(table["inner"], REFIT)
        return {row["key"]: row for row in table.filter(mask).to_pylist()}

    def outer_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `outer.parquet`, if there is one."""
        return self._derived("outer.parquet", OUTER_SCHEMA).to_pylist()

    def selection_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `selections.parquet`, if there is one."""
        return self._derived("selections.parquet", SELECTION_SCHEMA).to_pylist()

    def trials(self) -> pd.DataFrame:
        """Return every stored trial, one row a key, in canonical order."""
        return _to_pandas(_with_order(self._trials()))

    def provenance(self) -> list[dict[str, Any]]:
        """Return the provenance of every run, in the order in which the runs were recorded."""
        return self.provenance_records.runs()

    def _run_order(self) -> dict[str, int]:
        """Map the id of every recorded run to its place in their order."""
        return _places(self.provenance())

    def _derived(self, name: str, empty: pa.Schema) -> pa.Table:
        try:
            with self._opened(self.folder / name) as file:
                return _as_trials(file.read())
        except FileNotFoundError:
            return empty.empty_table()


def _places(runs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return {run["run_id"]: place for place, run in enumerate(runs)}


def _holder(path: Path) -> str:
    """Return who has a study, as far as that can be read."""
    try:
        text = read_whole(path.parent, path)[:200].decode("utf-8", "replace").strip()
    except (StoreError, FileNotFoundError):
        text = ""
    return text or "another process"


def selection_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of `selections.parquet` as a frame with the file's columns."""
    return _to_pandas(_to_table(Records.of({}, list(rows)), SELECTION_SCHEMA))


def _writer(file: BinaryIO, schema: pa.Schema, n_rows: int = _FEW_ROWS) -> pq.ParquetWriter:
    """Open a writer; few rows are written as they are, for compaction will compress them."""
    metadata = {_VERSION_KEY: str(SCHEMA_VERSION).encode()}
    how = {"compression": "none", "use_dictionary": False} if n_rows < _FEW_ROWS else {"compression": "zstd"}
    return pq.ParquetWriter(file, schema.with_metadata(metadata), write_page_checksum=True, **how)


def _as_trials(table: pa.Table) -> pa.Table:
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
        if field.name not in TRIAL_SCHEMA.names and not any(is_kind(field.type) for is_kind in _PLAIN):
            raise ValueError(f"its column {field.name} holds {field.type}")
    return _as_schema(table, _unified_schema([schema]))


_PLAIN = (
    pa.types.is_floating,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_null,
)
"""What a column of a parameter or a metric may hold."""


def _require_readable(table: pa.Table) -> None:
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


def _to_table(records: Records, schema: pa.Schema) -> pa.Table:
    """Return rows as a table with the fixed columns and the `param_*` and `score_*` that the rows bring."""
    columns = {name: [value] * len(records) for name, value in records.constants.items()} | records.columns
    fixed = {field.name: field.type for field in schema}
    arrays = {
        name: _array(columns[name], kind) if name in columns else pa.nulls(len(records), kind)
        for name, kind in fixed.items()
    }
    arrays |= {
        storable_text(name): _param_array(columns[name]) for name in sorted(columns.keys() - fixed.keys())
    }
    return pa.table(arrays)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Hold values of one type; one that is of no such type is a gap, and keeps no other from being stored."""
    try:
        return pa.array(values, type=kind)
    except Exception:  # whatever pyarrow, or the class of a value, makes of it
        return pa.array([_fitting(value, kind) for value in values], type=kind)


def _with_short_texts(table: pa.Table) -> pa.Table:
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
    if all(value is None or is_number(value) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    """Write a number as `_as_schema` writes a column of them; text comes as `study.cell` wrote it."""
    if is_number(value):
        return pa.scalar(float(value)).cast(pa.string()).as_py()
    if not isinstance(value, str):
        with suppress(Exception):  # a class that no configuration can name
            value = cell(value)
    return storable_text(value, None)


def _unify(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables whose `param_*` and `score_*` columns may differ."""
    schema = _unified_schema([table.schema for table in tables])
    return pa.concat_tables([_as_schema(table, schema) for table in tables])


def _unified_schema(schemas: list[pa.Schema]) -> pa.Schema:
    """Return a schema with all columns; a parameter of numbers here and text there becomes text."""
    fixed = {field.name: field.type for field in TRIAL_SCHEMA}
    types: dict[str, pa.DataType] = {}
    for field in itertools.chain.from_iterable(schemas):
        kind = fixed.get(field.name, field.type)
        if types.setdefault(field.name, kind) != kind:
            types[field.name] = pa.string()
    return pa.schema(list(types.items()))


def _as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        return table
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _require_version(path: Path, metadata: pq.FileMetaData) -> None:
    version = int((metadata.metadata or {}).get(_VERSION_KEY, b"1"))
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this svmbench reads up to {SCHEMA_VERSION}; "
            f"upgrade svmbench, or choose another study name"
        )


def _summary(reader: pq.ParquetReader) -> PartSummary | None:
    metadata = reader.metadata.metadata or {}
    return PartSummary.from_json(metadata.get(_SUMMARY_KEY.encode()))


_CONSTANTS = ("identity", "dataset", "solver", "status", "message", "run_id")
_MEASURES = ("key", "score", "fit_seconds", "predict_seconds")


class _FewColumns:
    """The columns that tell how far a study is, of many parts; those with one value are not read.

    What a column's statistics say is said once for all parts that have the same values.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[tuple[str, str], ...], list[pa.Table]] = {}

    def add(self, reader: pq.ParquetReader, wanted: set[str] | None = None) -> None:
        """Read a part; of a part with many identities only the rows of those that are wanted."""
        places = {name: place for place, name in enumerate(reader.metadata.schema.names)}
        if missing := [name for name in _NEEDED if name not in places]:
            raise ValueError(f"it has no column {missing[0]}")
        constants = _constants(reader.metadata, places)
        names = tuple(name for name in (*_MEASURES, *_CONSTANTS) if name not in constants)
        read = [places[name] for name in names if name in places]
        schema = _few_schema(names)
        table = reader.read_all(column_indices=read, use_threads=False)
        if not table.schema.equals(schema):
            table = _as_schema(_as_trials(table), schema)
        if empty := [name for name in _KEYED if name in names and table[name].null_count]:
            raise ValueError(f"its column {empty[0]} has gaps")
        if wanted is not None and "identity" in names:
            table = table.filter(pc.is_in(table["identity"], pa.array(sorted(wanted), pa.string())))
        if table.num_rows:
            self._tables.setdefault(tuple(constants.items()), []).append(table)

    def identities(self) -> set[str]:
        """Return the identities of the rows that were read."""
        return self._distinct("identity")

    def runs(self) -> set[str]:
        """Return the ids of the runs that left the rows that were read."""
        return self._distinct("run_id") - {""}

    def _distinct(self, name: str) -> set[str]:
        found: set[str] = set()
        for constants, tables in self._tables.items():
            if name in (known := dict(constants)):
                found.add(known[name])
            else:
                columns = pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])
                found.update(pc.unique(pc.fill_null(columns, "")).to_pylist())
        return found

    def rows(self, run_order: Mapping[str, int]) -> Iterator[tuple[str, Rows]]:
        """Yield each identity and its rows, one row a key."""
        names = (*_MEASURES, *_CONSTANTS)
        whole = [TRIAL_SCHEMA.empty_table().select(names)]
        for constants, tables in self._tables.items():
            table = pa.concat_tables(tables)
            for name, value in constants:
                table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
            whole.append(table.select(names))
        self._tables.clear()
        table = pa.concat_tables(whole).combine_chunks()
        kept = _unique_rows(table.select(_KEY_COLUMNS), run_order)
        if len(kept) < table.num_rows:
            table = table.take(kept)
        codes, identities = _encoded(pc.fill_null(table["identity"], ""))
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(identities))).tolist()
        for identity, start, end in zip(identities.to_pylist(), [0, *ends], ends, strict=False):
            yield identity, _rows(table.take(order[start:end]))


def _constants(metadata: pq.FileMetaData, places: Mapping[str, int]) -> dict[str, str]:
    """Return the text columns that hold one value, as their statistics say, and that value."""
    if metadata.num_row_groups != 1:
        return {}
    group = metadata.row_group(0)
    found = {}
    for name in _CONSTANTS:
        statistics = group.column(places[name]).statistics if name in places else None
        if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
            continue
        lowest = statistics.min
        if isinstance(lowest, str) and lowest == statistics.max:
            found[name] = lowest
    return found


@lru_cache(maxsize=64)
def _few_schema(names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([TRIAL_SCHEMA.field(name) for name in names])


def _rows(table: pa.Table) -> Rows:
    texts = {name: pc.fill_null(table[name], "").to_pylist() for name in ("key", *_CONSTANTS)}
    seconds = (pc.fill_null(table[name], 0.0).to_numpy() for name in ("fit_seconds", "predict_seconds"))
    return Rows(
        keys=texts["key"],
        statuses=texts["status"],
        scores=table["score"].to_numpy().tolist(),  # null becomes nan
        messages=texts["message"],
        datasets=texts["dataset"],
        solvers=texts["solver"],
        seconds=sum(seconds).tolist(),
    )


def _unique_rows(table: pa.Table, run_order: Mapping[str, int]) -> NDArray[np.int64]:
    """Return, ascending, the row to keep of each key: one that is `ok`, else that of the newest run."""
    codes, keys = _encoded(table["key"])
    if len(keys) == table.num_rows:
        return np.arange(table.num_rows)
    scored = pc.equal(table["status"], "ok").to_numpy()
    run_codes, runs = _encoded(pc.fill_null(table["run_id"], ""))
    places = np.array([run_order.get(run, -1) for run in runs.to_pylist()], dtype=np.int64)
    worst_first = np.lexsort((places[run_codes], scored))
    kept = np.empty(len(keys), dtype=np.int64)
    kept[codes[worst_first]] = worst_first  # of rows with the same key, the last one stays
    return np.sort(kept)


def _encoded(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Return a column as numbers of distinct values, and those values."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary


def _with_order(table: pa.Table) -> pa.Table:
    """Sort rows canonically and put `param_*` and `score_*` where a reader looks for them."""
    params = sorted(name for name in table.column_names if name.startswith("param_"))
    scores = sorted(name for name in table.column_names if name.startswith("score_"))
    names = []
    for name in (name for name in table.column_names if name not in {*params, *scores}):
        names.append(name)
        names += params if name == "inner" else scores if name == "score" else []
    order = [name for name in [*_ORDER, *params, "key"] if name in table.column_names]
    return table.select(names).sort_by([(name, "ascending") for name in order])


_NULLABLE = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=_NULLABLE.get)
