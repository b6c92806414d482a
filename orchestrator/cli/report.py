"""The verb `report`."""

from pathlib import Path

from rich.console import Console

from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import Request
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.terminal import say
from orchestrator.engine.load import load_study
from orchestrator.report import markdown_summary, write_report
from orchestrator.study.errors import ConfigError


def report(request: Request, console: Console) -> None:
    """Write the report of a study into its folder, or into that of `to=DIR`."""
    places = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    if "" in places:
        raise ConfigError(["to= names no folder; expected to=DIR"])
    overrides = [text for text in request.overrides if not text.startswith("to=")]
    sections = request.sections(overrides)
    results = load_study(*request.study(overrides))
    findings = analyse(results)
    console.print(MarkdownText(markdown_summary(results, findings)))
    folder = results.folder / "report" if not places else Path(places[-1]).expanduser().resolve()
    for sentence in results.lost:
        say(console, sentence, wrap=False)
    index = write_report(results, folder, findings, sections)
    say(console, f"Report: {index}", wrap=False)
