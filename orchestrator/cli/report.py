"""The verb `report`."""

from pathlib import Path

from rich.console import Console

from orchestrator.analysis.findings import analyse
from orchestrator.cli.claims import ClaimsSection, brief, decisions_of, declared_claims, other_terms
from orchestrator.cli.main import Request
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.terminal import say
from orchestrator.config.compose import find_modules
from orchestrator.config.report_settings import given_choices, section_names
from orchestrator.config.schema import folders, study_name
from orchestrator.engine.load import load_study
from orchestrator.report import markdown_summary, write_report
from orchestrator.study.errors import ConfigError
from orchestrator.study.report_choices import report_choices


def report(request: Request, console: Console) -> None:
    """Write the report of a study into its folder, or into that of `to=DIR`."""
    places = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    if "" in places:
        raise ConfigError(["to= names no folder; expected to=DIR"])
    overrides = [text for text in request.overrides if not text.startswith("to=")]
    config = request.config(overrides)
    given = given_choices(config, overrides)
    problems: list[str] = []
    sections = section_names(config, problems)
    if problems:
        raise ConfigError(problems)
    find_modules(request.config_dir)
    results = load_study(study_name(config), folders(config).results)
    findings = analyse(results, report_choices(results.provenance, given))
    console.print(MarkdownText(markdown_summary(results, findings)))
    decisions = decisions_of(
        findings, declared_claims(overrides, request.config_dir), folders(config).results
    )
    terms = other_terms(findings, request.config_dir) if decisions else []
    for line in brief(decisions, terms):
        say(console, line)
    folder = results.folder / "report" if not places else Path(places[-1]).expanduser().resolve()
    for sentence in results.lost:
        say(console, sentence, wrap=False)
    own: list[str | ClaimsSection] = [*sections, *([ClaimsSection(decisions, terms)] if decisions else [])]
    index = write_report(results, folder, findings, own)
    say(console, f"Report: {index}", wrap=False)
