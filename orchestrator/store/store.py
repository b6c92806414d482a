"""Store a study in Parquet tables, which are the only source of truth.

A part file is written under a temporary name, synced and renamed, so that readers see only whole files. After
a kill, all finished parts remain. Rows are never changed. If several rows have one key, reading selects one
of them. `compact` merges the parts into one. The name of a part contains a checksum of its bytes. A part with
another checksum raises an error that names it; it is never skipped silently.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from orchestrator.store import arrow_tables
from orchestrator.store.arrow_arrays import encoded
from orchestrator.store.columns import (
    KEY_COLUMNS,
    OUTER_SCHEMA,
    PREDICTION_TYPES,
    SELECTION_SCHEMA,
    TRIAL_SCHEMA,
)
from orchestrator.store.compaction import write_merged
from orchestrator.store.data_frames import in_canonical_order, to_pandas
from orchestrator.store.files import (
    DamageError,
    StoreError,
    has_checksum,
    identity_of,
    listed,
    new_part,
    replacing,
    require_folder,
)
from orchestrator.store.part_reading import opened_table, read_part
from orchestrator.store.part_summaries import PartSummary, Scan
from orchestrator.store.provenance import Provenance
from orchestrator.store.repeated_keys import unique_rows
from orchestrator.store.search_records import SearchRecords
from orchestrator.store.study_lock import StudyLock, lock_study
from orchestrator.study.records import Records, StoredTrial, merged
from orchestrator.study.trials import REFIT

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_SMALL_PART_BYTES = 16 << 20
"""Size below which a running study merges its parts, in bytes."""

_SUMMARISED_FROM_BYTES = 1 << 18
"""Size from which a single part is written again to add its summary, in bytes.

The rows of a smaller part are read in hundredths of a second.
"""
_MAX_ATTEMPTS = 1000
"""Largest number of attempts to read parts that another process merges meanwhile."""


class Store:
    """The tables of one study in one folder.

    Parameters
    ----------
    folder : Path
        `results/NAME`; created by the first write.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder).absolute()  # an estimator may change the working directory
        self.trials_folder = self.folder / "trials"
        self.provenance_records = Provenance(self.folder)
        self.search_records = SearchRecords(self.folder)
        self._claimed: dict[Path, tuple[int, int] | None] = {}
        self._known_parts: set[Path] = set()

    # -- writing ---------------------------------------------------------------------------------

    def lock(self) -> StudyLock:
        """Lock the study for one writer; see `lock_study`.

        Returns
        -------
        StudyLock
            Acquired lock, with the files that it removed.
        """
        lock = lock_study(self.folder)
        try:
            self._claimed = {path: identity_of(path) for path in (self.folder, self.trials_folder)}
            self._known_parts = {*self._parts()}
            return lock
        except BaseException:
            lock.release()
            raise

    def require_in_place(self) -> None:
        """Raise if the study's folders are not those that were locked.

        Raises
        ------
        StoreError
            If the study's folder or that of its trials was moved, removed or replaced since `lock`.
        """
        for path, identity in self._claimed.items():
            require_folder(self.folder, path)
            if identity_of(path) != identity:
                raise StoreError(
                    f"{path} was moved, removed or replaced while this run was writing to it; put it back, "
                    "then run the same command to resume"
                )

    def vanished_parts(self) -> list[Path]:
        """Return the parts that have disappeared since the study was locked.

        Parts that were written since then are included. Each part is returned once.

        Returns
        -------
        list of Path
            Their former paths, sorted.
        """
        vanished = self._known_parts - {*self._parts()}
        self._known_parts -= vanished
        return sorted(vanished)

    def append(self, batches: Iterable[Records]) -> None:
        """Write the rows of finished trials as one new part, as a whole or not at all.

        Parameters
        ----------
        batches : iterable of Records
            Rows of finished trials, batch by batch.
        """
        found = [arrow_tables.to_table(records, TRIAL_SCHEMA) for records in merged(batches)]
        if found:
            self._write_part(arrow_tables.with_short_texts(arrow_tables.unify(found)))

    def _write_part(self, table: pa.Table) -> None:
        """Write a new part.

        Parameters
        ----------
        table : Table
            Rows of the new part.
        """
        self.require_in_place()
        with new_part(self.folder) as file:
            arrow_tables.write_table(file, table)
        self._known_parts.add(file.path)

    def write_outer(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace `outer.parquet`.

        Parameters
        ----------
        rows : iterable of mapping
            One row per refit. Predictions are omitted.
        """
        names = [*PREDICTION_TYPES]
        rows = ({name: row[name] for name in row if name not in names} for row in rows)
        self._replace("outer.parquet", rows, OUTER_SCHEMA)

    def write_selections(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace `selections.parquet`.

        Parameters
        ----------
        rows : iterable of mapping
            One row per dataset × arm × outer fold.
        """
        self._replace("selections.parquet", rows, SELECTION_SCHEMA)

    def _replace(self, name: str, rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> None:
        """Replace a derived table.

        Parameters
        ----------
        name : str
            Name of the file.
        rows : iterable of mapping
            Rows of the new table, as mappings of column names to values.
        schema : Schema
            Its fixed columns.
        """
        table = arrow_tables.to_table(Records.of({}, list(rows)), schema)
        self.require_in_place()
        with replacing(self.folder, self.folder / name) as file:
            arrow_tables.write_table(file, table)

    def next_run_number(self) -> int:
        """Return the number of the next run to be recorded. The caller holds the lock.

        It is greater than those of all recorded runs, independent of clocks.

        Returns
        -------
        int
            Number of the run.
        """
        return self.provenance_records.next_number()

    def write_provenance(self, run_id: str, values: Mapping[str, Any]) -> None:
        """Replace `provenance/<run_id>.json`.

        Parameters
        ----------
        run_id : str
            Id of the run, which becomes the name of the file.
        values : mapping
            Values to record.
        """
        self.require_in_place()
        self.provenance_records.write(run_id, values)

    def write_search_record(self, name: str, record: Mapping[str, Any]) -> None:
        """Replace `searches/<name>.json`, which holds the proposals of a custom search.

        Parameters
        ----------
        name : str
            Name of the record.
        record : mapping
            Rounds of proposals, and whether the search has ended.
        """
        self.require_in_place()
        self.search_records.write(name, record)

    def compact(
        self, everything: bool = True, summarise: Callable[[Scan], PartSummary] | None = None
    ) -> None:
        """Merge the parts into one without repeated keys, with a few parts in memory at a time.

        A single small part is not changed. A kill during the merge may leave rows twice, but loses none. The
        next reading or compaction resolves this.

        Parameters
        ----------
        everything : bool
            Whether to merge large parts, too. True by default; a running study merges only small ones.
        summarise : callable, optional
            Returns the summary to store in the merged part. None by default, for no summary.
        """
        sizes = {part: part.lstat().st_size for part in self._parts()}
        parts = [part for part, size in sizes.items() if everything or size < _SMALL_PART_BYTES]
        is_worth_it = everything and summarise and sum(sizes.values()) >= _SUMMARISED_FROM_BYTES
        if not parts or (len(parts) == 1 and not is_worth_it):
            return
        summary = None
        if summarise is not None:
            scan = self._scan(parts)
            summary = summarise(scan)
            if len(parts) == 1 and scan.has_kept(summary):
                return
        self.require_in_place()
        merged = write_merged(self.folder, parts, self.provenance_records.order([]), summary)
        self._known_parts = (self._known_parts | {merged}) - {*parts}
        for part in parts:
            part.unlink(missing_ok=True)

    # -- reading ---------------------------------------------------------------------------------

    def holds_trials(self) -> bool:
        """Return whether any trial is stored."""
        return bool(self._parts())

    def holds_scores(self) -> bool:
        """Return whether any stored trial has a score."""

        def read() -> bool:
            parts = (read_part(self.folder, part, ["score"])["score"] for part in self._parts())
            return any(pc.any(pc.invert(pc.is_null(part, nan_is_null=True))).as_py() for part in parts)

        return self._retried(read)

    def _parts(self) -> list[Path]:
        """Return the files of all parts, sorted by name."""
        return listed(self.folder, self.trials_folder, "part-", ".parquet")

    def _retried(self, read: Callable[[], T]) -> T:
        """Call a reading function until no part is merged between its listing and its reading.

        Parameters
        ----------
        read : callable
            Lists and reads parts.

        Returns
        -------
        object
            Result of `read`.

        Raises
        ------
        StoreError
            If a part is missing in every attempt.
        """
        for _ in range(_MAX_ATTEMPTS):
            with suppress(FileNotFoundError):
                return read()
        raise StoreError(f"cannot read {self.trials_folder}: its files keep changing; try again later")

    def _trials(
        self, columns: list[str] | None = None, only: Callable[[pa.Table], pa.ChunkedArray] | None = None
    ) -> pa.Table:
        """Return the trials of all parts, one row for each key.

        Parameters
        ----------
        columns : list of str, optional
            Columns to read. None by default, for all.
        only : callable, optional
            Returns the mask of the rows to keep, given a table. None by default, for all rows.

        Returns
        -------
        Table
            One row for each key.
        """

        def read() -> list[pa.Table]:
            parts = (read_part(self.folder, part, columns) for part in self._parts())
            return [*parts] if only is None else [part.filter(only(part)) for part in parts]

        empty = TRIAL_SCHEMA.empty_table()
        table = arrow_tables.unify(
            [empty if columns is None else arrow_tables.select(empty, columns), *self._retried(read)]
        )
        run_order = self.provenance_records.order(pc.unique(pc.fill_null(table["run_id"], "")).to_pylist())
        rows = unique_rows(table, run_order)
        return table if len(rows) == table.num_rows else table.take(rows)

    def scan(self, use: Callable[[Scan], T]) -> T:
        """Call a function with a scan of all parts.

        Parameters
        ----------
        use : callable
            Function of a scan. It may be called several times.

        Returns
        -------
        object
            Result of `use`.
        """
        return self._retried(lambda: use(self._scan(self._parts())))

    def _scan(self, parts: list[Path]) -> Scan:
        """Return a scan of some parts.

        Parameters
        ----------
        parts : list of Path
            Files of the parts.

        Returns
        -------
        Scan
            Scan of the rows of these parts.
        """

        def opened(path: Path) -> AbstractContextManager[pq.ParquetReader]:
            if not has_checksum(path):  # only a full reading finds damage in other columns
                read_part(self.folder, path)
            return opened_table(self.folder, path)

        return Scan(parts, opened, self.provenance_records)

    def damaged_parts(self) -> list[DamageError]:
        """Read every part, and return one error for each damaged part."""
        found = []
        for part in self._parts():
            try:
                read_part(self.folder, part)
            except DamageError as error:
                found.append(error)
        return found

    def run_ids(self) -> set[str]:
        """Return the ids of the runs that wrote rows."""
        parts = [read_part(self.folder, part, ["run_id"]) for part in self._parts()]
        columns = [table["run_id"] for table in parts if "run_id" in table.column_names]
        return {run_id for column in columns for run_id in pc.unique(column).to_pylist() if run_id}

    def stored(self) -> dict[str, StoredTrial]:
        """Return the status and score of every stored trial, by key."""
        table = self._trials([*KEY_COLUMNS, "score"])
        codes, statuses = encoded(table["status"])
        names, scores = statuses.to_pylist(), table["score"].to_numpy()  # null becomes nan
        pairs = zip(codes.tolist(), scores.tolist(), strict=True)
        trials = (StoredTrial(names[code], score) for code, score in pairs)
        return dict(zip(table["key"].to_pylist(), trials, strict=True))

    def refits(self) -> dict[str, dict[str, Any]]:
        """Return the row of every stored refit, without predictions, by key."""
        table = arrow_tables.without_predictions(self._trials(only=_is_refit))
        return {row["key"]: row for row in table.to_pylist()}

    def predictions(self) -> pa.Table:
        """Return key and predictions of every refit with a score; nulls where no predictions were stored."""
        columns = [*KEY_COLUMNS, "inner", "score", *PREDICTION_TYPES]
        return self._trials(columns, lambda part: pc.and_(_is_refit(part), pc.is_valid(part["score"])))

    def refits_without_predictions(self) -> set[str]:
        """Return the keys of the refits with a score and without predictions."""
        table = self.predictions()
        return set(table.filter(pc.is_null(table["predicted_class"]))["key"].to_pylist())

    def outer_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `outer.parquet`; none if it does not exist."""
        return self._derived("outer.parquet", OUTER_SCHEMA).to_pylist()

    def selection_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `selections.parquet`; none if it does not exist."""
        return self._derived("selections.parquet", SELECTION_SCHEMA).to_pylist()

    def trial_counts(self) -> Counter[str]:
        """Return the number of stored trials of each identity, counting each key once."""
        return Counter(self._trials([*KEY_COLUMNS, "identity"])["identity"].to_pylist())

    def refit_counts(self) -> Counter[str]:
        """Return the number of rows of `outer.parquet` of each identity.

        A damaged file counts as empty, because it is written again.

        Returns
        -------
        Counter
            Number of rows by identity.
        """
        with suppress(DamageError):
            return Counter(self._derived("outer.parquet", OUTER_SCHEMA)["identity"].to_pylist())
        return Counter()

    def trials(self) -> "pd.DataFrame":
        """Return every stored trial in canonical order, one row for each key."""
        trials = arrow_tables.without_predictions(self._trials())
        return to_pandas(in_canonical_order(trials))

    def provenance(self) -> list[dict[str, Any]]:
        """Return the records of all runs, in the order in which they were written."""
        return self.provenance_records.runs()

    def _derived(self, name: str, empty: pa.Schema) -> pa.Table:
        """Read a derived table.

        Parameters
        ----------
        name : str
            Name of the file.
        empty : Schema
            Columns of the result if the file does not exist.

        Returns
        -------
        Table
            Rows of the table; none if its file does not exist.
        """
        try:
            with opened_table(self.folder, self.folder / name) as reader:
                return arrow_tables.as_trials(reader.read_all(use_threads=False))
        except FileNotFoundError:
            return pa.Table.from_batches([], empty)  # `empty_table` imports pandas


def _is_refit(part: pa.Table) -> pa.ChunkedArray:
    """Return the mask of the refits.

    Parameters
    ----------
    part : Table
        Rows of trials.

    Returns
    -------
    ChunkedArray
        True for a refit.
    """
    return pc.equal(part["inner"], REFIT)
