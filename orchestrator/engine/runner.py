"""The one loop: ask, schedule, submit, record, tell. It holds a bounded part of the study at a time."""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from orchestrator.engine.cost_model import CostModel
from orchestrator.engine.overview import compact
from orchestrator.engine.prepare import PreparedStudy
from orchestrator.engine.progress import Progress
from orchestrator.engine.queue import BATCHES_LEFT, TARGET_SECONDS, WorkQueue
from orchestrator.engine.replay import Replayed, derive, replay, replay_pair, stored_trials
from orchestrator.engine.typical_costs import typical_factors
from orchestrator.execution.executor import Executor, Outcome
from orchestrator.isolation.class_checks import is_ours
from orchestrator.search.fold_search import FoldSearch
from orchestrator.store.store import Store
from orchestrator.study.batch import WorkOrder
from orchestrator.study.declaration import current_declaration
from orchestrator.study.errors import StudyStopped
from orchestrator.study.failures import FirstOfEachKind, described
from orchestrator.study.records import Records
from orchestrator.study.settings import FOREIGN_SECONDS, DeathLimits
from orchestrator.study.study import Arm, Candidate
from orchestrator.study.trials import REFIT, Pair, Path
from orchestrator.training.run_batch import lost_records

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
"""How long a finished trial may wait for its row to be on disk."""

COMPACT_EVERY = 200
"""Merge the small parts each time so many have been written."""

WAIT_SECONDS = 0.5
"""How long the loop waits at most: progress is shown, and workers come or go, while nothing ends."""


@dataclass
class RunSummary:
    """What one run did and what it cost (seconds)."""

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
        """Share of the workers' time inside fit and predict, compilation apart."""
        working = self.busy_seconds - self.compile_seconds
        return self.training_seconds / working if working > 0 else None

    @property
    def efficiency(self) -> float | None:
        """Share of the time of all worker slots that batches took: Σ busy ÷ (slots × makespan)."""
        return self.busy_seconds / self.slot_seconds if self.slot_seconds > 0 else None


def total(summaries: Sequence[RunSummary]) -> RunSummary:
    """Return what a run did that had to start again because stored trials vanished.

    Trials that were trained twice count once, so that the numbers are those of the store.
    """
    added = {
        each.name: sum(getattr(summary, each.name) for summary in summaries) for each in fields(RunSummary)
    }
    before, last = summaries[0].trials_stored_before, summaries[-1]
    found = last.trials_run + last.trials_stored_before
    return RunSummary(**added | {"trials_stored_before": before, "trials_run": max(0, found - before)})


def _default_seconds(arm: Arm) -> float:
    """Return the time limit of an arm's trainings where the protocol has none: classes of ours need none."""
    return math.inf if all(map(is_ours, arm.targets)) else FOREIGN_SECONDS


class Runner:
    """Drive a prepared study to its end, over any executor, from any state of its store.

    Parameters
    ----------
    prepared : PreparedStudy
    store : Store
        Locked by the caller.
    executor : Executor
    progress : Progress
    run_id : str
    fail_fast : bool
        Stop at the first training that fails.
    retry_failed : bool
        Run stored trials without a score again.
    limits : DeathLimits, optional
        What a training whose workers die may cost.
    may_end : callable, optional
        Says after each dataset whether the study may end there; datasets are then run one after another, in
        declared order.
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
    ):
        self._prepared = prepared
        self._store = store
        self._executor = executor
        self._progress = progress
        self._run_id = run_id
        self._fail_fast = fail_fast
        self._may_end = may_end
        self._begun: list[str] = []
        self._costs = CostModel(
            prepared.shapes, typical_factors(prepared.study.arms, prepared.study.protocol)
        )
        self._queue = WorkQueue(self._costs, limits)
        stored = store.stored()
        self._stored = stored_trials(store, prepared.study, retry_failed)
        self._refits = store.refits() if stored else {}
        self._unopened = deque(self._most_expensive_first())
        self._folds_left = Counter(pair for pair, _ in self._unopened)
        self._open: dict[tuple[str, str, int], FoldSearch] = {}
        self._in_flight = 0
        self._failures = FirstOfEachKind()
        self._buffer: list[Records] = []
        self._flushed_at = time.monotonic()
        self._parts = 0
        self._declaration = current_declaration(store.provenance())
        self._tables = derive(store, self._declaration, stored, self._refits, without=prepared.identities)
        self.summary = RunSummary()
        self.not_begun: list[str] = []

    def run(self) -> RunSummary:
        """Run until every trial has a final status.

        Raises
        ------
        KeyboardInterrupt
            As it came; everything finished is stored.
        StudyStopped
            On the first failure under `fail_fast`.
        ExecutionError, StoreError
            When trainings cannot be run or stored at all.
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
                # What is stored decides, as for a reader: of this run some trials may be missing.
                trials = self._store.stored(), self._store.refits()
                self._tables = derive(self._store, self._declaration, *trials)
            self._tables.write(self._store)
            compact(self._store)
            self.summary.seconds = time.perf_counter() - started
            self._progress.show(self._seconds_left)
        return self.summary

    def _loop(self) -> None:
        looked = time.perf_counter()
        while True:
            self._fill()
            if not self._in_flight:
                return
            for outcome in self._executor.wait(WAIT_SECONDS):
                self._in_flight -= 1
                self._take(outcome)
            if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
                self._flush()
            now = time.perf_counter()
            self.summary.slot_seconds += self._executor.slots * (now - looked)
            looked = now
            self._progress.tick(self._seconds_left)

    # -- asking and scheduling -------------------------------------------------------------------

    def _most_expensive_first(self) -> list[tuple[Pair, int]]:
        """Return the searches still to be opened: dataset × arm, and outer fold."""

        def seconds(pair: Pair) -> float:
            return self._costs.training_seconds(*pair, True)

        pairs = sorted(self._prepared.identities, key=seconds, reverse=True)
        if self._may_end is not None:
            places = {dataset.name: i for i, dataset in enumerate(self._prepared.study.datasets)}
            pairs.sort(key=lambda pair: places[pair[0]])
        return [(pair, outer) for pair in pairs for outer in self._prepared.outer_folds(pair)]

    def _fill(self) -> None:
        """Keep every slot busy, opening searches only as the queue runs low."""
        slots = max(1, self._executor.slots)
        enough = BATCHES_LEFT * slots * TARGET_SECONDS
        while self._unopened and self._queue.seconds() < enough and self._may_open():
            pair, outer = self._unopened.popleft()
            search = self._open[*pair, outer] = FoldSearch(
                self._prepared.identities[pair], self._prepared.study.search, outer
            )
            self._advance(search)
        while self._in_flight < slots and (batch := self._queue.next_batch(slots)):
            identity = self._prepared.identities[batch.dataset, batch.solver]
            study = self._prepared.study
            source = self._prepared.sources[batch.dataset]
            order = WorkOrder(
                study.name,
                self._run_id,
                source,
                identity.arm,
                identity.digest,
                identity.shared_gram,
                study.protocol,
                batch,
                self._prepared.gram_memory,
                study.predictions,
                _default_seconds(identity.arm),
            )
            self._progress.started((batch.dataset, batch.solver))
            self._executor.submit(order)
            self._in_flight += 1
            self.summary.batches += 1

    def _may_open(self) -> bool:
        """Whether the next search may begin: anyhow, or not before the datasets before its own are done."""
        dataset = self._unopened[0][0][0]
        if self._may_end is None or dataset in self._begun:
            return True
        if self._open:
            return False
        self._flush()
        if self._begun and not self._is_stored(dataset) and self._may_end():
            self.not_begun = list(dict.fromkeys(pair[0] for pair, _ in self._unopened))
            self._unopened.clear()
            number = len(self._begun)
            self._progress.note(f"The study ends after {number} datasets: every declared pair is decided.")
            return False
        self._begun.append(dataset)
        return True

    def _is_stored(self, dataset: str) -> bool:
        """Whether nothing of a dataset is left to run, so that the study has not ended before it."""
        search, record = self._prepared.study.search, self._store.search_record
        return all(
            replay_pair(identity, search, self._stored, record).complete
            for (name, _), identity in self._prepared.identities.items()
            if name == dataset
        )

    def _seconds_left(self, pair: Pair, trials: int) -> float:
        seconds = self._costs.training_seconds(*pair, False)
        return trials * seconds / max(1, self._executor.slots)

    def _advance(self, search: FoldSearch) -> None:
        """Queue what a search asks for, telling it at once what the store knows already."""
        missing = []
        for replayed in replay(search, self._stored):
            self._count_stored(search, replayed)
            if replayed.missing is not None:
                missing.append(replayed.missing)
        self._queue.add(missing)
        if self._prepared.study.search.is_own:  # before its trials run, so that no row is without its search
            self._store.write_search_record(search.record_name, search.record())
        if (row := search.selection_row()) is not None:
            self._tables.add_selection(search.pair, row)
        if search.done:
            del self._open[*search.pair, search.outer]
            self._folds_left[search.pair] -= 1
            if not self._folds_left[search.pair]:
                self._progress.complete(search.pair)

    def _count_stored(self, search: FoldSearch, replayed: Replayed) -> None:
        for index in replayed.stored:
            key = replayed.path.keys[index]
            self.summary.trials_stored_before += 1
            self._progress.stored(search.pair, self._stored[key].status)
            if replayed.path.inner == REFIT:
                self._tables.add_refit(search.pair, self._refits[key], search.selection_key)

    # -- recording -------------------------------------------------------------------

    def _take(self, outcome: Outcome) -> None:
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
        batch = outcome.order.batch
        log.warning("batch %d of %s × %s: %s", batch.number, batch.dataset, batch.solver, outcome.lost)
        given_up = self._queue.retry(batch, outcome.seconds, outcome.by_memory)
        ending = f"given up after {batch.attempt} attempts" if given_up else "trying again"
        self._progress.note(f"{batch.dataset} × {batch.solver}: {outcome.lost}; {ending}")
        if given_up:
            message = f"{outcome.lost} in the last of {batch.attempt} attempts"
            self._record(tuple(given_up), lost_records(outcome.order, message))

    def _record(self, paths: tuple[Path, ...], records: Records) -> None:
        """Keep the rows for the next flush, then let the searches go on."""
        self._buffer.append(records)
        outcomes = enumerate(records.outcomes())
        searches: dict[FoldSearch, None] = {}
        for path in paths:
            search = self._open[path.dataset, path.solver, path.outer]
            searches[search] = None
            for candidate in path.candidates:
                index, (status, score) = next(outcomes)
                search.tell(candidate, path.inner, status, math.nan if score is None else score)
                if path.inner == REFIT:
                    self._tables.add_refit(search.pair, records.row(index), search.selection_key)
                self._progress.finished(search.pair, status)
                if score is None:
                    self._failed(search, candidate, status, str(records.row(index)["message"]))
        for search in searches:
            self._advance(search)

    def _failed(self, search: FoldSearch, candidate: Candidate, status: str, message: str) -> None:
        self.summary.failures += 1
        dataset, solver = search.pair
        if self._failures.is_new(solver, status, message):
            self._progress.note(f"A training of {solver} failed {described(dataset, status, message)}")
        if self._fail_fast:
            raise StudyStopped(f"{' × '.join(search.pair)}, {candidate}: {message}")

    def _flush(self) -> None:
        self._flushed_at = time.monotonic()
        if not self._buffer:
            return
        cpu = time.thread_time()
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
