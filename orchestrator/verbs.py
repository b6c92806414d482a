"""What the verbs do; the command line parses their arguments and turns errors into exit codes."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from orchestrator import planning
from orchestrator.analysis.findings import analyse
from orchestrator.compilation import compile_seconds, seconds_it_took
from orchestrator.config import compose_settings, known_names
from orchestrator.datasets import libsvm_names
from orchestrator.failures import arms_without_success, failure_lines
from orchestrator.preparation import prepare_study
from orchestrator.progress import format_seconds
from orchestrator.records import final_trials
from orchestrator.repair import repair as repair_study
from orchestrator.report import markdown_summary, write_report
from orchestrator.request import Request
from orchestrator.resolve import did_you_mean
from orchestrator.runner import RunSummary
from orchestrator.session import run_session
from orchestrator.settings import ConfigError, folders, study_name
from orchestrator.status import print_failures, print_lines, status
from orchestrator.store import Store
from orchestrator.studies import find_study, load_study
from orchestrator.terminal import MarkdownText, as_text, say

__all__ = ["Request", "list", "plan", "repair", "report", "run", "status"]

_GROUP_OF = {"datasets": "dataset", "solvers": "solver", "experiments": "experiment", "searches": "search"}


def run(request: Request, console: Console) -> Sequence[str]:
    """Run a study to its end and show its results; return the arms none of whose trials is ok."""
    settings = request.settings()
    prepared = prepare_study(settings)
    summary = run_session(settings, prepared, console, request.command)
    _print_costs(summary, console, in_process=settings.cluster.kind == "serial")
    name = settings.study.name
    results = load_study(name, settings.paths.results)
    console.print(MarkdownText(markdown_summary(results)))
    print_failures(failure_lines(results.trials), console)
    datasets = [dataset.name for dataset in settings.study.datasets]
    trials = results.trials[results.trials["dataset"].isin(datasets)]
    arms = [arm.name for arm in settings.study.arms]
    failed = arms_without_success(arms, trials)
    for arm in failed:
        say(console, f"No training of {arm} succeeded.")
    for dataset in datasets if len(datasets) > 1 else []:
        for arm in arms_without_success(arms, trials[trials["dataset"] == dataset]):
            if arm not in failed:
                say(console, f"No training of {arm} on {dataset} succeeded.")
    say(console, f"For the report: svmbench report study={shlex.quote(name)}", wrap=False)
    return failed


def plan(request: Request, console: Console) -> None:
    """Show what a run would do."""
    settings = request.settings()
    prepared = prepare_study(settings).prepared
    store = Store(settings.paths.results / settings.study.name)
    trials = store.trials()
    means = planning.mean_seconds(trials)
    stored = final_trials(store.stored(), settings.retry == "failed")
    lines = planning.plan(prepared, stored, means)
    print_lines(f"Plan of {settings.study.name}", lines, console)
    number, seconds = sum(line.left for line in lines), sum(line.seconds_left for line in lines)
    most = "" if settings.study.search == "grid" else " at most"
    left = {line.solver for line in lines if line.left}
    arms = [arm for arm in settings.study.arms if arm.name in left]
    compiling = sum(compile_seconds(arms, settings.cluster.kind, seconds_it_took(trials)).values())
    first = f", plus up to {format_seconds(compiling)} of compilation at first" if compiling else ""
    say(console, f"{number:,} trainings to run{most}, about {format_seconds(seconds)} of one core{first}")


def report(request: Request, console: Console) -> None:
    """Write the report of a study into its folder, or into that of `to=DIR`."""
    places = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    overrides = [text for text in request.overrides if not text.startswith("to=")]
    config = compose_settings(overrides, request.config_dir)
    results = load_study(study_name(config), folders(config).results)
    findings = analyse(results)
    console.print(MarkdownText(markdown_summary(results, findings)))
    folder = results.folder / "report" if not places else Path(places[-1]).expanduser().resolve()
    index = write_report(results, folder, findings)
    say(console, f"Report: {index}", wrap=False)


def repair(request: Request, console: Console) -> None:
    """Set aside what is damaged in a study."""
    names = [text for text in request.overrides if "=" not in text]
    if len(names) > 1:
        raise ConfigError([f"repair takes one study at a time, found {', '.join(map(repr, names))}"])
    overrides = [text if "=" in text else f"study={text}" for text in request.overrides]
    config = compose_settings(overrides, request.config_dir)
    store = find_study(study_name(config), folders(config).results)
    done = repair_study(store)
    for sentence in done or ["nothing is damaged"]:
        say(console, f"{store.folder.name}: {sentence}", wrap=False)


def list(request: Request, console: Console) -> None:
    """Show the names that datasets=, solvers=, experiment= and search= take."""
    kinds = [text for text in request.overrides if "=" not in text]
    overrides = [text for text in request.overrides if "=" in text]
    unknown = [kind for kind in kinds if kind not in _GROUP_OF]
    if unknown:
        near = did_you_mean(unknown[0], _GROUP_OF)
        raise ConfigError([f"cannot list {unknown[0]!r}{near}; known: {', '.join(_GROUP_OF)}"])
    config = compose_settings(overrides, request.config_dir)
    for kind in kinds or _GROUP_OF:
        console.print(as_text(kind, "bold"))
        names = known_names(_GROUP_OF[kind], overrides, request.config_dir)
        if kind == "datasets":
            names = sorted({*names, *libsvm_names(folders(config).data)})
        for name in names:
            say(console, f"  {name}")


def _print_costs(summary: RunSummary, console: Console, in_process: bool) -> None:
    """Say what the run cost, and how much of it went into trainings."""
    say(
        console,
        f"{summary.trials_run:,} trials run and {summary.trials_stored_before:,} found stored "
        f"in {format_seconds(summary.seconds)}; {summary.failures:,} failed.",
    )
    if summary.worker_share is None:
        return
    say(
        console,
        f"Workers spent {summary.worker_share:.0%} of their time inside fit and predict "
        f"({summary.compile_seconds:.1f} s of compilation apart).",
    )
    if in_process:  # the CPU time of trainings cannot be told from the rest
        return
    orchestration, storing = (
        1000 * seconds / summary.batches
        for seconds in (summary.orchestration_cpu_seconds, summary.storing_cpu_seconds)
    )
    say(
        console,
        f"Each of {summary.batches:,} batches took {orchestration:.1f} ms of client and scheduler CPU, "
        f"and {storing:.1f} ms to store.",
    )
