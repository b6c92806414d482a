"""The verb `run`."""

import logging
import shlex
from collections.abc import Sequence

from rich.console import Console

from orchestrator.analysis.findings import analyse, dataset_answers, is_decided
from orchestrator.cli.display import display
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.opening import say_meaning
from orchestrator.cli.request import Request
from orchestrator.cli.status import print_failures
from orchestrator.cli.streams import flush
from orchestrator.cli.terminal import say
from orchestrator.config.report_settings import section_names
from orchestrator.engine import run as engine
from orchestrator.engine.load import load_study
from orchestrator.engine.runner import RunSummary
from orchestrator.report import answer_text, markdown_summary, write_report
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.errors import BudgetSpent, ConfigError, StudyStopped
from orchestrator.study.failures import arms_without_success, failure_lines
from orchestrator.study.few_datasets import has_few_datasets
from orchestrator.study.settings import Settings
from orchestrator.study.text import describe_error, format_seconds, format_share

log = logging.getLogger(__name__)


def run(request: Request, console: Console) -> Sequence[str]:
    """Run a study to its end, show its results, and return the arms without any trial of status ok.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    settings = request.settings()
    say_meaning(request, settings, console)
    try:
        summary = engine.run(settings, display(console), request.command, is_decided)
    except BudgetSpent:
        _show_answer(load_study(settings.study.name, settings.paths.results), request, console)
        raise
    try:
        return _show(settings, summary, request, console)
    except Exception as error:
        if not summary.trials_run:
            raise
        log.error("the results cannot be shown", exc_info=True)
        problem = f"all trainings are stored, but their results cannot be shown: {describe_error(error)}"
        raise StudyStopped(problem) from error


def _show(settings: Settings, summary: RunSummary, request: Request, console: Console) -> Sequence[str]:
    """Print the costs and the results of a run, and return the arms without any trial of status ok.

    Parameters
    ----------
    settings : Settings
        Checked configuration.
    summary : RunSummary
        Counts and times of the run.
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    _print_costs(summary, console, in_process=settings.cluster.in_process)
    name = settings.study.name
    results = load_study(name, settings.paths.results)
    few = has_few_datasets(len(settings.study.datasets))
    if not few:
        console.print(MarkdownText(markdown_summary(results)))
    print_failures(failure_lines(results.trials), console)
    not_started = results.provenance[-1].get("not_begun") or ()
    datasets = [dataset.name for dataset in settings.study.datasets if dataset.name not in not_started]
    trials = results.trials[results.trials["dataset"].isin(datasets)]
    arms = [arm.name for arm in settings.study.arms]
    failed = arms_without_success(arms, trials)
    for arm in failed:
        say(console, f"No training of {arm} succeeded.")
    for dataset in datasets if len(datasets) > 1 else []:
        for arm in arms_without_success(arms, trials[trials["dataset"] == dataset]):
            if arm not in failed:
                say(console, f"No training of {arm} on {dataset} succeeded.")
    if few:
        _show_answer(results, request, console)
    else:
        say(console, f"For the report: svmbench report study={shlex.quote(name)}", wrap=False)
    flush()
    return failed


def _show_answer(results: StudyResults, request: Request, console: Console) -> None:
    """Write the page of a study, if it has few datasets, and print its answer.

    Parameters
    ----------
    results : StudyResults
        The study, complete or not.
    request : Request
        Arguments of the command, which may name sections of the page.
    console : Console
        Terminal for the output.
    """
    sections = section_names(request.config(), [])  # the settings were checked before the run
    study = analyse(results)
    if dataset_answers(study):
        try:
            write_report(results, results.folder / "report", study, sections, pdf=False)
        except (StoreError, ConfigError) as error:  # the answer needs no page
            say(console, str(error))
    for line in answer_text(study).splitlines():
        say(console, line, wrap=False)


def _print_costs(summary: RunSummary, console: Console, in_process: bool) -> None:
    """Print the numbers of trials of a run, its time, and the share of trainings in it.

    Parameters
    ----------
    summary : RunSummary
        Counts and times of the run.
    console : Console
        Terminal for the output.
    in_process : bool
        Whether trainings ran in this process. Then their CPU time cannot be separated, and is not shown.
    """
    say(
        console,
        f"{summary.trials_run:,} trials run and {summary.trials_stored_before:,} found stored "
        f"in {format_seconds(summary.seconds)}; {summary.failures:,} failed.",
    )
    if summary.worker_share is None:
        return
    say(
        console,
        f"Workers spent {format_share(summary.worker_share)} of their time in preparation, fit and predict "
        f"(without {summary.compile_seconds:.1f} s of compilation).",
    )
    if in_process:  # the CPU time of trainings cannot be separated from the rest
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
