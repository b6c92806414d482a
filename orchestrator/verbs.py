"""What the verbs do; the command line parses their arguments and turns errors into exit codes."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from orchestrator import planning
from orchestrator.config import compose_settings, known_names, load_settings
from orchestrator.datasets import libsvm_names
from orchestrator.failures import arms_without_success, failure_lines
from orchestrator.planning import PlanLine
from orchestrator.preparation import prepare_study
from orchestrator.progress import format_seconds
from orchestrator.records import final_trials
from orchestrator.repair import repair as repair_study
from orchestrator.report import markdown_summary, write_report
from orchestrator.resolve import did_you_mean
from orchestrator.runner import RunSummary
from orchestrator.session import run_session
from orchestrator.settings import ConfigError, Settings, folders, study_name
from orchestrator.store import Store
from orchestrator.studies import find_study, load_study
from orchestrator.terminal import MarkdownText, as_text, say

_GROUP_OF = {"datasets": "dataset", "solvers": "solver", "experiments": "experiment", "searches": "search"}


@dataclass(frozen=True)
class Request:
    """What the command line was told."""

    overrides: Sequence[str]
    config_dir: Path | None
    command: list[str]

    def compose(self) -> dict:
        """Compose the configuration."""
        return compose_settings(self.overrides, self.config_dir)

    def settings(self) -> Settings:
        """Compose and check the configuration; a user's folder may hold their Python modules too."""
        if self.config_dir is not None:
            sys.path.insert(0, str(self.config_dir.resolve()))
        return load_settings(self.overrides, self.config_dir)


def run(request: Request, console: Console) -> Sequence[str]:
    """Run a study to its end and show its results; return the arms none of whose trials is ok."""
    settings = request.settings()
    prepared = prepare_study(settings)
    summary = run_session(settings, prepared, console, request.command)
    _print_costs(summary, console, in_process=settings.cluster.kind == "serial")
    name = settings.study.name
    results = load_study(name, settings.paths.results)
    console.print(MarkdownText(markdown_summary(results)))
    _print_failures(results.trials, console)
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
    means = planning.mean_seconds(store.trials())
    stored = final_trials(store.stored(), settings.retry == "failed")
    lines = planning.plan(prepared, stored, means)
    _print_lines(f"Plan of {settings.study.name}", lines, console)
    number, seconds = sum(line.left for line in lines), sum(line.seconds_left for line in lines)
    most = "" if settings.study.search == "grid" else " at most"
    say(console, f"{number:,} trainings to run{most}, about {format_seconds(seconds)} of one core")


def status(request: Request, console: Console) -> None:
    """Show how far a study is."""
    config = request.compose()
    results = load_study(study_name(config), folders(config).results)
    if not results.states:
        say(console, f"{results.name}: no run has begun")
        return
    lines = planning.remaining(results.states, results.trials)
    _print_lines(f"Study {results.name}", lines, console)
    workers = max(1, int(results.provenance[-1].get("cluster", {}).get("workers", 1)))
    left = sum(line.seconds_left for line in lines)
    ending = f"about {format_seconds(left / workers)} left on {workers} worker{'s' if workers > 1 else ''}"
    if results.trials.empty:
        ending = "time left unknown: none has finished yet"
    if all(state.complete for state in results.states.values()):
        ending = "complete"
    done, planned = sum(line.stored for line in lines), sum(line.planned for line in lines)
    failed = sum(line.failed for line in lines)
    say(console, f"{done:,} of {planned:,} trials, {failed:,} failed, {ending}")
    for row in results.apart.itertuples():
        say(console, f"Not counted: {row.trials:,} trials of {row.dataset} × {row.solver} ({row.why})")
    _print_failures(results.trials, console)


def report(request: Request, console: Console) -> None:
    """Write the report of a study into its folder, or into that of `to=DIR`."""
    places = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    overrides = [text for text in request.overrides if not text.startswith("to=")]
    config = compose_settings(overrides, request.config_dir)
    results = load_study(study_name(config), folders(config).results)
    console.print(MarkdownText(markdown_summary(results)))
    folder = results.folder / "report" if not places else Path(places[-1]).expanduser().resolve()
    index = write_report(results, folder)
    say(console, f"Report: {index}", wrap=False)


def repair(request: Request, console: Console) -> None:
    """Set aside what is damaged in a study."""
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


def _print_lines(title: str, lines: Sequence[PlanLine], console: Console) -> None:
    table = Table(title=as_text(title), title_justify="left")
    for heading, justify in {
        "dataset": "left",
        "solver": "left",
        "trials": "right",
        "stored": "right",
        "failed": "right",
        "left": "right",
        "core time": "right",
    }.items():
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in lines:
        counts = (line.planned, line.stored, line.failed, line.left)
        unknown = "unknown" if line.left else "–"
        time = format_seconds(line.seconds_left) if line.seconds_left else unknown
        names = (as_text(line.dataset), as_text(line.solver))
        table.add_row(*names, *(f"{count:,}" for count in counts), time)
    console.print(table)


def _print_failures(trials: pd.DataFrame, console: Console) -> None:
    if lines := failure_lines(trials):
        say(console, "Failed trainings, the first of each kind:")
    for line in lines:
        say(console, f"  {line}")


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
