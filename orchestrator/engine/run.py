"""Run a study: prepare it, lock its store, record its provenance, drive it on the chosen cluster.

The command line and `orchestrator.run_study` both start a run by `run`.
"""

import logging
import shlex
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.engine.changed_sources import FILES, changed_contents
from orchestrator.engine.compilation import compile_seconds
from orchestrator.engine.edited_sources import study_targets
from orchestrator.engine.load import load_study
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.progress import Display, Progress
from orchestrator.engine.replay import replay_pair, stored_trials
from orchestrator.engine.runner import Runner, RunSummary, total
from orchestrator.execution.executor import Executor
from orchestrator.execution.serial import NoExecutor, SerialExecutor
from orchestrator.execution.worker_pool import Requirements
from orchestrator.store.results import StudyResults
from orchestrator.store.run_log import run_log, warnings_shown
from orchestrator.store.store import Store, StoreError
from orchestrator.study.errors import ExecutionError, StudyStopped
from orchestrator.study.processors import mixed_note
from orchestrator.study.settings import Settings
from orchestrator.study.storable import describe_error
from orchestrator.study.study import Study
from orchestrator.study.values import canonical_json, for_json
from orchestrator.training.environment import git_state, versions
from orchestrator.training.source_hash import source_packages

log = logging.getLogger(__name__)

_EXECUTION = logging.getLogger("orchestrator.execution")

MOST_RESTARTS = 5
"""How often a run trains trials again whose parts vanished, before it ends."""

_ENDS_OF_A_RUN = (StudyStopped, KeyboardInterrupt, ExecutionError, StoreError)


def run(
    settings: Settings,
    display: Display,
    command: list[str],
    is_decided: Callable[[StudyResults], bool],
    client: Any = None,
) -> RunSummary:
    """Prepare a study and run it to its end, or as far as it gets.

    Parameters
    ----------
    settings : Settings
        Those of the study and of the run.
    display : Display
        Where the run shows its progress.
    command : list of str
        The command that started the run, for its provenance.
    is_decided : callable
        Called after each dataset if `report.sequential` is set, with the results so far. It returns whether
        the study may end there.
    client : distributed.Client, optional
        Leads to the workers, in place of the configured cluster.

    Returns
    -------
    RunSummary
        The counts and times of the run.

    Raises
    ------
    ConfigError
        If the study cannot be run; nothing was run.
    StoreError, ExecutionError, StudyStopped, KeyboardInterrupt
        See `run_session`.
    """
    prepared = prepare_study(settings)
    study = settings.study.name, settings.paths.results
    may_end = (lambda: is_decided(load_study(*study))) if settings.report.sequential else None
    return run_session(settings, prepared, display, command, client, may_end)


def run_session(
    settings: Settings,
    prepared: PreparedStudy,
    display: Display,
    command: list[str],
    client: Any = None,
    may_end: Callable[[], bool] | None = None,
) -> RunSummary:
    """Run a prepared study to its end, or as far as it gets; what finished is stored.

    No cluster is started for a study of which every trial is stored. A Dask client of the user's own, if
    given, leads to the workers in place of the configured cluster. `may_end`, if given, says after each
    dataset, from what is stored, whether the study may end there.

    Raises
    ------
    StoreError, ExecutionError
        When the store or the cluster cannot be used at all; nothing was run.
    StudyStopped, KeyboardInterrupt
        When the run ended before the study did.
    """
    store = Store(settings.paths.results / settings.study.name)
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    report = store.folder / "provenance" / f"{run_id}-dask.html"
    log_path = store.folder / "logs" / f"{run_id}.jsonl"
    with (
        _stopping(log_path) as begun,
        store.lock(),
        run_log(log_path),
        _executor(settings, prepared, store, report, client) as executor,
    ):
        facts = executor.facts()
        log.info("run %s on %d workers: %s", run_id, facts["workers"], shlex.join(command))
        if isinstance(executor, NoExecutor):
            display.say("Nothing is left to run, so no worker is started.")
        if dashboard := facts.get("dashboard"):
            display.say(f"Dask dashboard, without a password: {dashboard}")
        for sentence in changed_contents(prepared.datasets, prepared.files, store):
            display.say(sentence)
        provenance = _provenance(run_id, store.next_run_number(), prepared, facts, command)
        if mixed := mixed_note(provenance["hosts"]):
            display.say(f"The workers have {mixed}.")
        provenance["report"] = settings.report.declared()
        provenance["found_trials"] = store.holds_trials()
        provenance["found_scores"] = store.holds_scores()
        store.write_provenance(run_id, provenance)
        progress = Progress(prepared.planned_trials(), display, _compiling_arms(settings))
        with progress, warnings_shown(_EXECUTION, progress.note):

            def new_runner(retry_failed: bool) -> Runner:
                return Runner(
                    prepared,
                    store,
                    executor,
                    progress,
                    run_id,
                    fail_fast=settings.on_error == "fail_fast",
                    retry_failed=retry_failed,
                    limits=settings.cluster.give_up,
                    may_end=may_end,
                )

            runners = [new_runner(settings.retry == "failed")]
            begun.set()
            try:
                runners[0].run()
                while vanished := store.vanished_parts():
                    _tell_of_vanished(vanished, store, progress, n_before=len(runners))
                    progress.start_again(prepared.planned_trials())
                    runners.append(new_runner(retry_failed=False))
                    runners[-1].run()
                provenance["complete"] = not runners[-1].not_begun
                provenance["not_begun"] = runners[-1].not_begun
                log.info("run %s is complete: %s", run_id, asdict(total([each.summary for each in runners])))
            finally:
                summary = total([each.summary for each in runners])
                provenance |= {
                    "hosts": _with_later_hosts(provenance["hosts"], executor.facts()["hosts"]),
                    "finished_at": _now(),
                    "worker_share": summary.worker_share,
                    "summary": asdict(summary),
                }
                try:
                    store.write_provenance(run_id, provenance)
                except StoreError as error:  # what was declared is recorded, and how the run ended is known
                    log.warning("the end of the run is not recorded: %s", error)
        return summary


def _tell_of_vanished(vanished: Sequence[Path], store: Store, progress: Progress, n_before: int) -> None:
    """Say that parts are gone which this run had found or written; give up if that goes on."""
    number = f"{len(vanished):,} {'parts' if len(vanished) > 1 else 'part'}"
    what = f"{number} of the trials vanished from {store.trials_folder} while this run wrote there"
    if n_before == MOST_RESTARTS:
        raise StoreError(
            f"{what}, for the {n_before}th time; end the process that deletes its files, then run the same "
            "command to resume"
        )
    progress.note(f"{what}: {vanished[0].name}{', …' if len(vanished) > 1 else ''}. They are trained again.")


def _with_later_hosts(
    first: Sequence[Mapping[str, Any]], last: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the hosts of a run's start, and those that have joined it since.

    Parameters
    ----------
    first, last : sequence of mapping
        The hosts at the start and at the end of the run, as `host_summary` describes them.

    Returns
    -------
    list of mapping
    """
    known = {host["host"] for host in first}
    return [*first, *(host for host in last if host["host"] not in known)]


@contextmanager
def _stopping(log_path: Path) -> Iterator[threading.Event]:
    """Raise StudyStopped in place of what ends a run once the event is set, which is given to the block."""
    begun = threading.Event()
    try:
        yield begun
    except BaseException as error:
        if not begun.is_set():
            raise
        cause: BaseException | None = error  # what leaving the block has raised hides what had ended it
        while cause is not None and not isinstance(cause, _ENDS_OF_A_RUN):
            cause = cause.__context__
        cause = cause or error
        if isinstance(cause, (StudyStopped, KeyboardInterrupt)):
            raise cause from cause.__cause__
        if isinstance(cause, (ExecutionError, StoreError, OSError)):
            raise StudyStopped(str(cause)) from cause
        what = f"the run ended with {describe_error(cause)}, by a defect of this program"
        raise StudyStopped(f"{what}; what had finished is stored, and {log_path} says more") from cause


@contextmanager
def _executor(
    settings: Settings, prepared: PreparedStudy, store: Store, report: Path, client: Any
) -> Iterator[Executor]:
    stored = stored_trials(store, settings.study, settings.retry == "failed")
    search, never = prepared.study.search, _not_begun_again(settings, prepared, store)
    identities = [identity for (dataset, _), identity in prepared.identities.items() if dataset not in never]
    if all(replay_pair(identity, search, stored).complete for identity in identities):
        yield NoExecutor()
        return
    if settings.cluster.in_process:
        with closing(SerialExecutor(report.parents[1] / ".under-way")) as serial:
            yield serial
        return
    # Dask takes a second to import, and a serial run needs none of it.
    from orchestrator.execution.dask.client import cluster_executor

    study, cluster = settings.study, settings.cluster
    requirements = Requirements(tuple(_packages(study)), timing=study.protocol.profile == "timing")
    kept = report if cluster.performance_report else None
    with cluster_executor(cluster, requirements, kept, client) as executor:
        yield executor


def _not_begun_again(settings: Settings, prepared: PreparedStudy, store: Store) -> Sequence[str]:
    """Return the datasets that the newest run did not begin, and this one will not, for it is the same."""
    runs = store.provenance()
    if not settings.report.sequential or not runs:
        return ()
    declared = {**prepared.declaration(), "report": settings.report.declared(), "versions": versions()}
    recorded = {name: runs[-1].get(name) for name in declared}
    same = canonical_json(for_json(declared)) == canonical_json(recorded)
    return (runs[-1].get("not_begun") or ()) if same else ()


def _provenance(
    run_id: str, number: int, prepared: PreparedStudy, cluster: dict[str, Any], command: list[str]
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "number": number,
        "started_at": _now(),
        "finished_at": None,
        "command": command,
        **prepared.declaration(),
        FILES: dict(prepared.files),
        "versions": versions(),
        "hosts": cluster["hosts"],
        "cluster": {key: value for key, value in cluster.items() if key != "hosts"},
        "git": git_state("orchestrator"),
        "git_of": {package: git_state(package) for package in _packages(prepared.study)},
    }


def _compiling_arms(settings: Settings) -> set[str]:
    """Return the arms that will be compiled first, as far as that is known: on this host alone."""
    if not settings.cluster.on_this_host:
        return set()
    targets = compile_seconds(settings.study.arms, settings.cluster)
    return {arm.name for arm in settings.study.arms if targets.keys() & arm.targets}


def _packages(study: Study) -> list[str]:
    """Return the import names of the packages that hold the sources of a study's solvers and metrics."""
    return sorted({name for target in study_targets(study) for name in source_packages(target)})


def _now() -> str:
    return datetime.now(UTC).isoformat()
