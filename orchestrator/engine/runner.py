"""Run the main loop: ask, schedule, submit, record, tell. Memory holds a bounded part of the study."""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields

from orchestrator.engine.cost_model import CostModel
from orchestrator.engine.interleaved import FoldQueue, InterleavedQueue
from orchestrator.engine.overview import compact
from orchestrator.engine.planning import expected_left
from orchestrator.engine.prepare import PreparedStudy
from orchestrator.engine.progress import Progress
from orchestrator.engine.queue import BATCHES_LEFT, TARGET_SECONDS, WorkQueue
from orchestrator.engine.replay import Replayed, derive, replay, replay_pair, stored_trials
from orchestrator.engine.typical_costs import typical_costs
from orchestrator.engine.work_orders import work_order
from orchestrator.execution.executor import Executor, Outcome
from orchestrator.isolation.exits import raise_if_interrupted
from orchestrator.search.expected import expected_number
from orchestrator.search.fold_search import FoldSearch
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration
from orchestrator.study.errors import BudgetSpent, StudyStopped
from orchestrator.study.failures import FirstOfEachKind, described
from orchestrator.study.records import Records
from orchestrator.study.settings import DeathLimits
from orchestrator.study.study import SAMPLE, Candidate
from orchestrator.study.trials import REFIT, Batch, Pair, Path
from orchestrator.training.unfinished_rows import lost_records, skipped_records

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
"""Longest time between the end of a trial and its row on disk, in seconds."""

COMPACT_EVERY = 200
"""Number of parts after which the small parts are merged."""

WAIT_SECONDS = 0.5
"""Longest wait for outcomes in one turn of the loop, in seconds. Between turns, progress is shown and
workers join or leave."""


@dataclass
class RunSummary:
    """Counts and times of one run.

    Attributes
    ----------
    trials_run : int
        Trials that the run stored.
    trials_stored_before : int
        Trials that earlier runs had stored.
    failures : int
        Trials of the run without a score.
    scores_stored : int
        Trials of the run with a score.
    batches : int
        Batches that were submitted.
    seconds : float
        Wall time of the run, in seconds.
    slot_seconds : float
        Number of worker slots, integrated over the wall time, in seconds.
    busy_seconds : float
        Wall time of all batches on the workers, in seconds.
    training_seconds : float
        Wall time inside preparation, fit and predict, in seconds.
    compile_seconds : float
        Wall time of compilation, in seconds.
    orchestration_cpu_seconds : float
        CPU time of the client without storing, in seconds.
    storing_cpu_seconds : float
        CPU time of writing rows, in seconds.
    """

    trials_run: int = 0
    trials_stored_before: int = 0
    failures: int = 0
    scores_stored: int = 0
    batches: int = 0
    seconds: float = 0.0
    slot_seconds: float = 0.0
    busy_seconds: float = 0.0
    training_seconds: float = 0.0
    compile_seconds: float = 0.0
    orchestration_cpu_seconds: float = 0.0
    storing_cpu_seconds: float = 0.0

    @property
    def worker_share(self) -> float | None:
        """Share of the workers' time in preparation, fit and predict, without compilation; or None."""
        working = self.busy_seconds - self.compile_seconds
        return self.training_seconds / working if working > 0 else None

    @property
    def efficiency(self) -> float | None:
        """Share of the slots' time that batches used: Σ busy ÷ (slots × makespan); None if unknown."""
        return self.busy_seconds / self.slot_seconds if self.slot_seconds > 0 else None


def total(summaries: Sequence[RunSummary]) -> RunSummary:
    """Return the summary of a run that started again because stored trials vanished.

    A trial that was trained twice counts once, so the counts agree with the store.

    Parameters
    ----------
    summaries : sequence of RunSummary
        Summaries of the attempts, in order of time.

    Returns
    -------
    RunSummary
        Their sum.
    """
    added = {
        each.name: sum(getattr(summary, each.name) for summary in summaries) for each in fields(RunSummary)
    }
    before, last = summaries[0].trials_stored_before, summaries[-1]
    found = last.trials_run + last.trials_stored_before
    return RunSummary(**added | {"trials_stored_before": before, "trials_run": max(0, found - before)})


class Runner:
    """Run a prepared study to its end, over any executor, from any state of its store.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        The store of the study. The caller holds its lock.
    executor : Executor
        Runs the batches.
    progress : Progress
        Receives the counts and notices.
    run_id : str
        Identifier of the run, which its rows carry.
    fail_fast : bool, default False
        Stop at the first training that fails.
    retry_failed : bool, default False
        Run stored trials without a score again.
    limits : DeathLimits, optional
        Largest cost of a training whose workers die, before it is given up. By default, `DeathLimits()`.
    may_end : callable, optional
        Called after each dataset. It returns whether the study may end there. With it, datasets run one after
        another, in declared order.
    deadline : float, optional
        Value of `time.monotonic` at which the run stops. With it, the cheapest dataset × arm runs first, so
        that many are complete then.
    compiling : collection of str, default ()
        Names of the arms whose first training compiles code on a worker.
    before_storing : callable, optional
        Called each time before rows are stored.

    Attributes
    ----------
    summary : RunSummary
        Counts and times of the run.
    not_started : list of str
        Names of the datasets that did not run, because the study ended before them.
    """

    def __init__(
        self,
        prepared: PreparedStudy,
        store: Store,
        executor: Executor,
        progress: Progress,
        run_id: str,
        fail_fast: bool = False,
        retry_failed: bool = False,
        limits: DeathLimits | None = None,
        may_end: Callable[[], bool] | None = None,
        deadline: float | None = None,
        compiling: Collection[str] = (),
        before_storing: Callable[[], None] = lambda: None,
    ):
        self._prepared = prepared
        self._store = store
        self._executor = executor
        self._progress = progress
        self._run_id = run_id
        self._fail_fast = fail_fast
        self._may_end = may_end
        self._deadline = deadline
        self._started: list[str] = []
        self._costs = CostModel(prepared.shapes, typical_costs(prepared.study.arms, prepared.study.protocol))
        self._compiling = compiling
        self._before_storing = before_storing
        search = prepared.study.search
        # A sample is measured in random order, so all its trainings must be known before the first one.
        self._is_sample = search.target == SAMPLE
        # Times are compared between arms, unless a budget may end the run within a dataset.
        self._takes_turns = (
            prepared.study.protocol.profile == "timing" and not self._is_sample and self._deadline is None
        )
        if self._is_sample:
            seed = int(search.options.get("seed", 0))
            self._queue: WorkQueue = InterleavedQueue(self._costs, limits, seed)
        elif self._takes_turns:
            self._queue = FoldQueue(self._costs, limits)
        else:
            self._queue = WorkQueue(self._costs, limits, compiling)
        stored = store.stored()
        self._stored = stored_trials(store, prepared.study, retry_failed)
        self._refits = store.refits() if stored else {}
        self._unopened = deque(self._in_order())
        self._folds_left = Counter(pair for pair, _ in self._unopened)
        self._n_trainings = {
            pair: (planned, expected_number(prepared.identities[pair], search))
            for pair, planned in prepared.planned_trials().items()
        }
        self._open: dict[tuple[str, str, int], FoldSearch] = {}
        self._in_flight = 0
        self._failures = FirstOfEachKind()
        self._buffer: list[Records] = []
        self._flushed_at = time.monotonic()
        self._parts = 0
        self._declaration = current_declaration(store.provenance())
        self._tables = derive(store, self._declaration, stored, self._refits, without=prepared.identities)
        self.summary = RunSummary()
        self.not_started: list[str] = []

    def run(self) -> RunSummary:
        """Run until every trial has a final status.

        Returns
        -------
        RunSummary
            Counts and times of the run.

        Raises
        ------
        KeyboardInterrupt
            If the user interrupts the run. Every finished trial is stored.
        StudyStopped
            At the first failure under `fail_fast`; `BudgetSpent` at the deadline.
        ExecutionError, StoreError
            If trainings cannot be run or stored.
        """
        started, cpu = time.perf_counter(), time.process_time()
        finished = False
        try:
            self._loop()
            finished = True
        finally:
            self.summary.orchestration_cpu_seconds = (
                time.process_time() - cpu - self.summary.storing_cpu_seconds
            )
            self._flush()
            if not finished:
                # Trials of this run may be missing, so the tables are derived from the store, as by a reader.
                trials = self._store.stored(), self._store.refits()
                self._tables = derive(self._store, self._declaration, *trials)
            self._tables.write(self._store)
            compact(self._store)
            self.summary.seconds = time.perf_counter() - started
            self._progress.show(self._seconds_left)
        return self.summary

    def _loop(self) -> None:
        """Submit batches and record their outcomes until no batch remains."""
        looked = time.perf_counter()
        while True:
            raise_if_interrupted()
            self._fill()
            if not self._in_flight:
                return
            outcomes = deque(self._executor.wait(WAIT_SECONDS))
            try:
                while outcomes:
                    self._in_flight -= 1
                    self._take(outcomes.popleft())
            finally:  # if one of them stops the study, the rows of the others are stored, too
                self._buffer += [each.result.records for each in outcomes if each.result is not None]
            if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
                self._flush()
            self._require_time()
            now = time.perf_counter()
            self.summary.slot_seconds += self._executor.slots * (now - looked)
            looked = now
            self._progress.tick(self._seconds_left)

    def _require_time(self) -> None:
        """Raise if the deadline has passed and trials remain."""
        remain = self._in_flight or self._queue.seconds() or self._unopened
        if self._deadline is not None and remain and time.monotonic() >= self._deadline:
            raise BudgetSpent("the time of this run (the key minutes) is spent; finished trials are stored")

    # -- asking and scheduling -------------------------------------------------------------------

    def _in_order(self) -> list[tuple[Pair, int]]:
        """Return the searches to open, the most expensive pairs first, or the cheapest before a deadline.

        Returns
        -------
        list of (Pair, int)
            Dataset × arm and number of the outer fold. One search of each arm that compiles comes before all
            others, and before it those whose refit is stored, because finished work that is counted late
            would make a resumed run seem to have hours left. Under `may_end`, the declared order of datasets
            comes before all. Under the profile `timing`, all arms of an outer fold follow one another.
        """

        def seconds(pair: Pair) -> float:
            return self._costs.training_seconds(*pair, True)

        pairs = sorted(self._prepared.identities, key=seconds, reverse=self._deadline is None)
        if self._may_end is not None:
            order = {dataset.name: i for i, dataset in enumerate(self._prepared.study.datasets)}
            pairs.sort(key=lambda pair: order[pair[0]])
        searches = [(pair, outer) for pair in pairs for outer in self._prepared.outer_folds(pair)]
        if self._takes_turns:
            datasets = list(dict.fromkeys(pair[0] for pair in pairs))
            searches.sort(key=lambda search: (datasets.index(search[0][0]), search[1]))
        elif self._may_end is None:
            ahead: dict[str, tuple[Pair, int]] = {}
            for search in searches:
                if (arm := search[0][1]) in self._compiling:
                    ahead.setdefault(arm, search)
            searches = list(dict.fromkeys([*ahead.values(), *searches]))
        if self._may_end is None:
            rows = (row for key, row in self._refits.items() if key in self._stored)
            ended = {(row["dataset"], row["solver"], row["outer"]) for row in rows}
            searches.sort(key=lambda search: (*search[0], search[1]) not in ended)
        return searches

    def _fill(self) -> None:
        """Keep every slot busy; open searches only when little work is queued."""
        slots = max(1, self._executor.slots)
        enough = BATCHES_LEFT * slots * TARGET_SECONDS
        while self._unopened and (
            self._is_sample or self._is_same_fold() or (self._queue.seconds() < enough and self._may_open())
        ):
            pair, outer = self._unopened.popleft()
            search = self._open[*pair, outer] = FoldSearch(
                self._prepared.identities[pair], self._prepared.study.search, outer
            )
            self._advance(search)
        while self._in_flight < slots and (batch := self._queue.next_batch(slots)):
            order = work_order(self._prepared, self._run_id, batch)
            self._progress.started((batch.dataset, batch.solver))
            self._executor.submit(order)
            self._in_flight += 1
            self.summary.batches += 1

    def _is_same_fold(self) -> bool:
        """Return whether the next search belongs to the fold that was opened last, whose arms take turns."""
        if not (self._takes_turns and self._open):
            return False
        (dataset, _), outer = self._unopened[0]
        last, _, fold = next(reversed(self._open))
        return (dataset, outer) == (last, fold)

    def _may_open(self) -> bool:
        """Return whether the next search may start.

        Returns
        -------
        bool
            Always true without `may_end` and without a deadline. Under `may_end`, all earlier datasets must
            be finished, and the study must not end after them. Before a deadline, no other dataset × arm may
            have waiting trials, so that one after another is completed.
        """
        pair = self._unopened[0][0]
        is_open = any(pair == opened[:2] for opened in self._open)
        if self._deadline is not None and len(self._queue) and not is_open:
            return False
        dataset = pair[0]
        if self._may_end is None or dataset in self._started:
            return True
        if self._open:
            return False
        self._flush()
        if self._started and not self._is_stored(dataset) and self._may_end():
            self.not_started = list(dict.fromkeys(pair[0] for pair, _ in self._unopened))
            self._unopened.clear()
            number = f"{len(self._started)} dataset{'s' if len(self._started) > 1 else ''}"
            self._progress.note(f"The study ends after {number}: every declared pair is decided.")
            return False
        self._started.append(dataset)
        return True

    def _is_stored(self, dataset: str) -> bool:
        """Return whether every trial of a dataset is stored. Such a dataset belongs to the study in any case.

        Parameters
        ----------
        dataset : str
            Name of the dataset.

        Returns
        -------
        bool
            True if no trial of it remains.
        """
        search, record = self._prepared.study.search, self._store.search_records.read
        return all(
            replay_pair(identity, search, self._stored, record).complete
            for (name, _), identity in self._prepared.identities.items()
            if name == dataset
        )

    def _seconds_left(self, pair: Pair, trials: int) -> float:
        """Return the expected seconds for trials that run on all slots.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        trials : int
            Largest number of trials. A search is expected to need fewer.

        Returns
        -------
        float
            Wall time in seconds; NaN before the first training of an arm of unknown cost.
        """
        if not self._costs.is_known(pair[1]):
            return math.nan
        planned, expected = self._n_trainings[pair]
        number = expected_left(trials, planned - trials, expected, least=self._folds_left[pair])
        return number * self._costs.training_seconds(*pair, False) / max(1, self._executor.slots)

    def _advance(self, search: FoldSearch) -> None:
        """Queue the trials that a search asks for; pass it the stored scores at once.

        Parameters
        ----------
        search : FoldSearch
            The search of one outer fold. It is closed if it is done.
        """
        missing: list[Path] = []
        skipped: list[Path] = []
        for replayed in replay(search, self._stored):
            self._count_stored(search, replayed)
            if replayed.missing is not None:
                (skipped if search.skips(replayed.missing) else missing).append(replayed.missing)
        self._queue.add(missing)
        if skipped:
            self._skip(tuple(skipped))
            return
        if self._prepared.study.search.is_custom:  # written before the trials run, so each row has its search
            self._store.write_search_record(search.record_name, search.record())
        if (row := search.selection_row()) is not None:
            self._tables.add_selection(search.pair, row)
        if search.done:
            del self._open[*search.pair, search.outer]
            self._folds_left[search.pair] -= 1
            if not self._folds_left[search.pair]:
                self._progress.complete(search.pair)

    def _count_stored(self, search: FoldSearch, replayed: Replayed) -> None:
        """Count the stored trials of a path and add its refits to the derived tables.

        Parameters
        ----------
        search : FoldSearch
            The search that asked for the path.
        replayed : Replayed
            Stored and missing trials of the path.
        """
        for key in replayed.stored.values():
            self.summary.trials_stored_before += 1
            self._progress.stored(search.pair, self._stored[key].scored, replayed.needed)
            if replayed.path.inner == REFIT and search.selects:
                self._tables.add_refit(search.pair, self._refits[key], search.selection_key)

    def _skip(self, paths: tuple[Path, ...]) -> None:
        """Record trainings that are not run, because smaller values of C took too long.

        Parameters
        ----------
        paths : tuple of Path
            Paths of one outer fold, whose search advances.
        """
        batch = Batch(0, paths[0].dataset, paths[0].solver, paths, 1, 0.0)
        self._record(paths, skipped_records(work_order(self._prepared, self._run_id, batch)))

    # -- recording -------------------------------------------------------------------

    def _take(self, outcome: Outcome) -> None:
        """Record the outcome of a batch and update the cost model.

        Parameters
        ----------
        outcome : Outcome
            Result of the batch, or the reason why its worker was lost.
        """
        if outcome.result is None:
            self._take_lost(outcome)
            return
        result, batch = outcome.result, outcome.order.batch
        self._costs.update(
            batch.dataset, batch.solver, batch.base_seconds, result.busy_seconds - result.compile_seconds
        )
        self._queue.finished(batch, result.busy_seconds)
        self.summary.busy_seconds += result.busy_seconds
        self.summary.training_seconds += result.training_seconds
        self.summary.compile_seconds += result.compile_seconds
        self._record(batch.paths, result.records)

    def _take_lost(self, outcome: Outcome) -> None:
        """Queue a batch again whose worker was lost, or record it as given up.

        Parameters
        ----------
        outcome : Outcome
            Outcome without a result.
        """
        batch = outcome.order.batch
        log.warning("batch %d of %s × %s: %s", batch.number, batch.dataset, batch.solver, outcome.lost)
        given_up = self._queue.retry(batch, outcome.seconds, outcome.by_memory)
        ending = f"given up after {batch.attempt} attempts" if given_up else "trying again"
        self._progress.note(f"{batch.dataset} × {batch.solver}: {outcome.lost}; {ending}")
        if given_up:
            message = f"{outcome.lost} in the last of {batch.attempt} attempts"
            self._record(tuple(given_up), lost_records(outcome.order, message))

    def _record(self, paths: tuple[Path, ...], records: Records) -> None:
        """Keep rows for the next flush and pass their scores to the searches.

        Parameters
        ----------
        paths : tuple of Path
            The paths of the rows, in the same order.
        records : Records
            The rows of all trials of the paths.
        """
        self._buffer.append(records)
        outcomes = enumerate(records.outcomes())
        searches: dict[FoldSearch, None] = {}
        for path in paths:
            search = self._open[path.dataset, path.solver, path.outer]
            searches[search] = None
            for candidate in path.candidates:
                index, (status, score) = next(outcomes)
                search.tell(candidate, path.inner, status, math.nan if score is None else score)
                if path.inner == REFIT and search.selects:
                    self._tables.add_refit(search.pair, records.row(index), search.selection_key)
                self._progress.finished(search.pair, score is not None)
                if score is None:
                    self._failed(search, candidate, status, str(records.row(index)["message"]))
        for search in searches:
            self._advance(search)

    def _failed(self, search: FoldSearch, candidate: Candidate, status: str, message: str) -> None:
        """Count a failed trial, show the first of each kind, and stop under `fail_fast`.

        Parameters
        ----------
        search : FoldSearch
            The search that asked for the trial.
        candidate : Candidate
            The hyper-parameters of the trial.
        status : str
            Final status of the trial.
        message : str
            Description of the failure.
        """
        self.summary.failures += 1
        dataset, solver = search.pair
        if self._failures.is_new(solver, status, message):
            self._progress.note(f"A training of {solver} failed {described(dataset, status, message)}")
        if self._fail_fast:
            raise StudyStopped(f"{' × '.join(search.pair)}, {candidate}: {message}")

    def _flush(self) -> None:
        """Write the kept rows to the store, and merge its small parts from time to time."""
        self._flushed_at = time.monotonic()
        if not self._buffer:
            return
        cpu = time.thread_time()
        self._before_storing()
        self._store.append(self._buffer)
        self.summary.storing_cpu_seconds += time.thread_time() - cpu
        number = sum(map(len, self._buffer))
        self.summary.trials_run += number
        self.summary.scores_stored += sum(
            score is not None for records in self._buffer for _, score in records.outcomes()
        )
        log.info("stored %d trials", number)
        self._buffer = []
        self._parts += 1
        if self._parts % COMPACT_EVERY == 0:
            compact(self._store, everything=False)
