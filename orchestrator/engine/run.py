"""Run a study: prepare it, lock its store, record its provenance, and run it on the configured cluster.

The command line and `orchestrator.run_study` both call `run`.
"""

import logging
import shlex
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.engine.baseline import baseline_scores
from orchestrator.engine.changed_sources import FILES, changed_contents
from orchestrator.engine.compilation import compile_seconds
from orchestrator.engine.edited_sources import study_targets
from orchestrator.engine.load import load_study
from orchestrator.engine.older_trials import counting_older_trials
from orchestrator.engine.preparations import prepared_columns
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.progress import Display, Progress
from orchestrator.engine.replay import replay_pair, stored_trials
from orchestrator.engine.runner import Runner, RunSummary, total
from orchestrator.engine.superseded import superseded_sentences
from orchestrator.execution.executor import Executor
from orchestrator.execution.serial import NoExecutor, SerialExecutor
from orchestrator.execution.worker_pool import Requirements
from orchestrator.store.results import StudyResults
from orchestrator.store.run_log import run_log, warnings_shown
from orchestrator.store.store import Store, StoreError
from orchestrator.study.errors import BudgetSpent, ExecutionError, StudyStopped
from orchestrator.study.processors import mixed_note
from orchestrator.study.settings import Settings
from orchestrator.study.study import Study
from orchestrator.study.text import describe_error
from orchestrator.study.values import canonical_json, for_json
from orchestrator.training.environment import git_state, versions
from orchestrator.training.source_hash import source_packages

log = logging.getLogger(__name__)

_EXECUTION = logging.getLogger("orchestrator.execution")

MAX_RESTARTS = 5
"""Largest number of times that a run starts again because stored trials vanished."""

_ENDS_OF_A_RUN = (StudyStopped, KeyboardInterrupt, ExecutionError, StoreError)


def run(
    settings: Settings,
    display: Display,
    command: list[str],
    is_decided: Callable[[StudyResults], bool],
    client: Any = None,
) -> RunSummary:
    """Prepare a study and run it until it ends or stops.

    Parameters
    ----------
    settings : Settings
        Settings of the study and of the run.
    display : Display
        Shows the progress of the run.
    command : list of str
        The command that started the run, for its provenance.
    is_decided : callable
        Called after each dataset if `report.sequential` is set, with the results so far. It returns whether
        the study may end there.
    client : distributed.Client, optional
        Connection to workers that are used in place of the configured cluster.

    Returns
    -------
    RunSummary
        Counts and times of the run.

    Raises
    ------
    ConfigError
        If the study cannot be run. No trial ran.
    StoreError, ExecutionError, StudyStopped, KeyboardInterrupt
        See `run_session`.
    """
    deadline = None if settings.minutes is None else time.monotonic() + 60 * settings.minutes
    prepared = prepare_study(settings)
    study = settings.study.name, settings.paths.results
    may_end = (lambda: is_decided(load_study(*study))) if settings.report.sequential else None
    return run_session(settings, prepared, display, command, client, may_end, deadline)


def run_session(
    settings: Settings,
    prepared: PreparedStudy,
    display: Display,
    command: list[str],
    client: Any = None,
    may_end: Callable[[], bool] | None = None,
    deadline: float | None = None,
) -> RunSummary:
    """Run a prepared study until it ends or stops; finished trials are stored.

    If every trial is stored already, no cluster is started.

    Parameters
    ----------
    settings : Settings
        Settings of the study and of the run.
    prepared : PreparedStudy
        The study with its datasets and identities.
    display : Display
        Shows the progress of the run.
    command : list of str
        The command that started the run, for its provenance.
    client : distributed.Client, optional
        Connection to workers that are used in place of the configured cluster.
    may_end : callable, optional
        Called after each dataset. It returns whether the study may end there.
    deadline : float, optional
        Value of `time.monotonic` at which the run stops. By default, it runs to its end.

    Returns
    -------
    RunSummary
        Counts and times of the run.

    Raises
    ------
    StoreError, ExecutionError
        If the store or the cluster cannot be used. No trial ran.
    StudyStopped, KeyboardInterrupt
        If the run ended before the study did; `BudgetSpent` if it stopped at the deadline.
    """
    store = Store(settings.paths.results / settings.study.name)
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    report = store.folder / "provenance" / f"{run_id}-dask.html"
    log_path = store.folder / "logs" / f"{run_id}.jsonl"
    with (
        _stopping(log_path) as started,
        store.lock(),
        nullcontext(counting_older_trials(prepared, store.provenance())) as prepared,
        run_log(log_path),
        nullcontext(_about_the_data(prepared, store)) as about_the_data,
        _executor(settings, prepared, store, report, client) as executor,
    ):
        description = executor.describe()
        log.info("run %s on %d workers: %s", run_id, description["workers"], shlex.join(command))
        if dashboard := description.get("dashboard"):
            display.say(f"Dask dashboard, without a password: {dashboard}")
        _say_what_runs(prepared, store, display, is_complete=isinstance(executor, NoExecutor))
        provenance = _provenance(run_id, store.next_run_number(), prepared, description, command)
        if mixed := mixed_note(provenance["hosts"]):
            display.say(f"The workers have {mixed}.")
        provenance |= about_the_data
        provenance["report"] = settings.report.declared()
        provenance["minutes"] = settings.minutes
        provenance["found_trials"] = store.holds_trials()
        provenance["found_scores"] = store.holds_scores()
        store.write_provenance(run_id, provenance)
        compiling = _compiling_arms(settings)
        progress = Progress(prepared.planned_trials(), display, compiling)
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
                    deadline=deadline,
                    compiling=() if settings.cluster.in_process else compiling,
                    before_storing=partial(_record_new_hosts, run_id, provenance, executor, store),
                )

            runners = [new_runner(settings.retry == "failed")]
            started.set()
            try:
                _run_all(runners, new_runner, prepared, store, progress)
                provenance["complete"] = not runners[-1].not_started
                provenance["not_begun"] = runners[-1].not_started
                log.info("run %s is complete: %s", run_id, asdict(total([each.summary for each in runners])))
            except BudgetSpent:
                provenance["budget_spent"] = True
                raise
            finally:
                summary = total([each.summary for each in runners])
                _record_end(run_id, provenance, summary, executor, store)
        return summary


def _say_what_runs(prepared: PreparedStudy, store: Store, display: Display, is_complete: bool) -> None:
    """Say whether anything remains to run, what has changed since the stored trials, and what was found.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        Store of the study.
    display : Display
        Shows the progress of the run.
    is_complete : bool
        Whether every trial is stored.
    """
    if is_complete:
        display.say("Every trial is stored already, so no worker is started.")
    superseded = superseded_sentences(prepared, store)
    changed = changed_contents(prepared.datasets, prepared.files, store, prepared.identity_digests())
    for sentence in [*changed, *superseded, *([] if is_complete else prepared.table_notes)]:
        display.say(sentence)


def _run_all(
    runners: list[Runner],
    new_runner: Callable[[bool], Runner],
    prepared: PreparedStudy,
    store: Store,
    progress: Progress,
) -> None:
    """Run a study, and again what has vanished from its store in the meantime.

    Parameters
    ----------
    runners : list of Runner
        The first runner. Each further one is appended before it runs.
    new_runner : callable
        Returns a runner; its argument is whether it trains failed trials again.
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        Store of the study.
    progress : Progress
        Progress of the run.
    """
    runners[0].run()
    while vanished := store.vanished_parts():
        _report_vanished(vanished, store, progress, n_before=len(runners))
        progress.start_again(prepared.planned_trials())
        runners.append(new_runner(False))
        runners[-1].run()


def _record_new_hosts(run_id: str, provenance: dict[str, Any], executor: Executor, store: Store) -> None:
    """Add hosts that have joined to the provenance of a run, and store it; a killed run has no end.

    Parameters
    ----------
    run_id : str
        Name of the run.
    provenance : dict of str to object
        Provenance of the run, which is changed.
    executor : Executor
        Computes the trials.
    store : Store
        Store of the study.
    """
    hosts = _with_later_hosts(provenance["hosts"], executor.describe()["hosts"])
    if len(hosts) > len(provenance["hosts"]):
        provenance["hosts"] = hosts
        store.write_provenance(run_id, provenance)


def _record_end(
    run_id: str, provenance: dict[str, Any], summary: RunSummary, executor: Executor, store: Store
) -> None:
    """Add the end of a run to its provenance, and store it.

    Parameters
    ----------
    run_id : str
        Name of the run.
    provenance : dict of str to object
        Provenance of the run, which is changed.
    summary : RunSummary
        Counts and times of the run.
    executor : Executor
        Computed the trials.
    store : Store
        Store of the study.
    """
    provenance |= {
        "hosts": _with_later_hosts(provenance["hosts"], executor.describe()["hosts"]),
        "finished_at": _now(),
        "worker_share": summary.worker_share,
        "summary": asdict(summary),
    }
    try:
        store.write_provenance(run_id, provenance)
    except StoreError as error:  # the start is recorded, and another exception may be propagating
        log.warning("the end of the run is not recorded: %s", error)


def _about_the_data(prepared: PreparedStudy, store: Store) -> dict[str, Any]:
    """Return the provenance that child processes compute, which must start before threads do.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        The store of the study.

    Returns
    -------
    dict of str to object
        `prepared_columns`, the effect of each preparation on the columns, and `baseline`, the scores of the
        most frequent class.
    """
    preparations = prepared.study.protocol, prepared.sources, prepared.preparations
    return {
        "prepared_columns": prepared_columns(*preparations, store.provenance()),
        "baseline": baseline_scores(prepared.study, prepared.sources),
    }


def _report_vanished(vanished: Sequence[Path], store: Store, progress: Progress, n_before: int) -> None:
    """Show that parts are missing that this run had found or written; raise if this continues.

    Parameters
    ----------
    vanished : sequence of Path
        Paths of the missing parts.
    store : Store
        The store of the study.
    progress : Progress
        Shows the notice.
    n_before : int
        Number of attempts so far.

    Raises
    ------
    StoreError
        After `MAX_RESTARTS` restarts.
    """
    number = f"{len(vanished):,} {'parts' if len(vanished) > 1 else 'part'}"
    what = f"{number} of the trials vanished from {store.trials_folder} while this run wrote there"
    if n_before > MAX_RESTARTS:
        raise StoreError(
            f"{what}, for the {n_before}th time. End the process that deletes its files, then run the same "
            "command to resume"
        )
    progress.note(f"{what}: {vanished[0].name}{', …' if len(vanished) > 1 else ''}. They are trained again.")


def _with_later_hosts(
    first: Sequence[Mapping[str, Any]], last: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the hosts of a run's start, and those that joined it later.

    Parameters
    ----------
    first, last : sequence of mapping of str to object
        Descriptions of the hosts at the start and at the end of the run, as `host_summary` returns them.

    Returns
    -------
    list of mapping of str to object
        The descriptions, one for each host.
    """
    known = {host["host"] for host in first}
    return [*first, *(host for host in last if host["host"] not in known)]


@contextmanager
def _stopping(log_path: Path) -> Iterator[threading.Event]:
    """Raise StudyStopped in place of the exception that ends a run after its start.

    Parameters
    ----------
    log_path : Path
        Path of the log, for messages.

    Yields
    ------
    threading.Event
        Event for the block to set once the run has started.

    Raises
    ------
    StudyStopped
        If the block raises ExecutionError, StoreError, OSError or an unexpected exception after the start.
    """
    started = threading.Event()
    try:
        yield started
    except BaseException as error:
        if not started.is_set():
            raise
        cause: BaseException | None = error  # leaving the block may raise another exception
        while cause is not None and not isinstance(cause, _ENDS_OF_A_RUN):
            cause = cause.__context__
        cause = cause or error
        if isinstance(cause, (StudyStopped, KeyboardInterrupt)):
            raise cause from cause.__cause__
        if isinstance(cause, (ExecutionError, StoreError, OSError)):
            raise StudyStopped(str(cause)) from cause
        what = f"a defect of this program ended the run with {describe_error(cause)}"
        raise StudyStopped(f"{what}. Finished trials are stored. Details are in {log_path}") from cause


@contextmanager
def _executor(
    settings: Settings, prepared: PreparedStudy, store: Store, report: Path, client: Any
) -> Iterator[Executor]:
    """Start the executor of a run and close it after the block.

    Parameters
    ----------
    settings : Settings
        Settings of the run, with its cluster.
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        The store of the study.
    report : Path
        Path of Dask's performance report.
    client : object
        Client of the user, or None for the configured cluster.

    Yields
    ------
    Executor
        A `NoExecutor` if every trial is stored.
    """
    stored = stored_trials(store, settings.study, settings.retry == "failed")
    search, never = prepared.study.search, _not_started_again(settings, prepared, store)
    identities = [identity for (dataset, _), identity in prepared.identities.items() if dataset not in never]
    if all(replay_pair(identity, search, stored).complete for identity in identities):
        yield NoExecutor()
        return
    if settings.cluster.in_process:
        with closing(SerialExecutor(report.parents[1] / ".under-way")) as serial:
            yield serial
        return
    # Importing Dask takes a second, and a serial run does not need it.
    from orchestrator.execution.dask.client import cluster_executor

    study, cluster = settings.study, settings.cluster
    requirements = Requirements(
        tuple(_packages(study)),
        timing=study.protocol.profile == "timing",
        compiling=frozenset(_arms_to_compile(settings)),
    )
    report_path = report if cluster.performance_report else None
    with cluster_executor(cluster, requirements, report_path, client) as executor:
        yield executor


def _not_started_again(settings: Settings, prepared: PreparedStudy, store: Store) -> Sequence[str]:
    """Return the datasets that the newest run did not start, if this run repeats it.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    prepared : PreparedStudy
        The study with its datasets and identities.
    store : Store
        The store of the study.

    Returns
    -------
    sequence of str
        Names of datasets.
    """
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
    """Return the record of a run at its start.

    Parameters
    ----------
    run_id : str
        Identifier of the run.
    number : int
        Number of the run in its study.
    prepared : PreparedStudy
        The study with its datasets and identities.
    cluster : dict of str to object
        Description of the executor.
    command : list of str
        The command that started the run.

    Returns
    -------
    dict of str to object
        Values that can be stored as JSON.
    """
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
    """Return the arms that will be compiled first, which is known only for workers on this host.

    Parameters
    ----------
    settings : Settings
        Settings of the run.

    Returns
    -------
    set of str
        Names of the arms.
    """
    return _arms_to_compile(settings) if settings.cluster.on_this_host else set()


def _arms_to_compile(settings: Settings) -> set[str]:
    """Return the arms with functions for numba that are not known to be in the cache of every worker.

    Parameters
    ----------
    settings : Settings
        Settings of the run.

    Returns
    -------
    set of str
        Names of the arms.
    """
    targets = compile_seconds(settings.study.arms, settings.cluster)
    return {arm.name for arm in settings.study.arms if targets.keys() & arm.targets}


def _packages(study: Study) -> list[str]:
    """Return the import names of the packages with the sources of a study's solvers and metrics.

    Parameters
    ----------
    study : Study
        Declared datasets, arms, search and protocol.

    Returns
    -------
    list of str
        Distinct names, sorted.
    """
    return sorted({name for target in study_targets(study) for name in source_packages(target)})


def _now() -> str:
    """Return the current time in UTC, in ISO 8601 format.

    Returns
    -------
    str
        For example `2024-05-01T12:00:00+00:00`.
    """
    return datetime.now(UTC).isoformat()
