"""The verb `report`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.analysis.merged_studies import merge, merged_choices
from orchestrator.analysis.published import read_published
from orchestrator.claims.decisions import Decision
from orchestrator.claims.declared import Claim
from orchestrator.claims.finished import decisions_of
from orchestrator.claims.page import brief
from orchestrator.claims.section import ClaimsSection
from orchestrator.cli.claims import declared_claims, other_terms, stored_study
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.request import Request
from orchestrator.cli.terminal import say
from orchestrator.cli.watch import watch
from orchestrator.config.report_settings import given_choices, published_files, section_names
from orchestrator.config.schema import folders, study_name
from orchestrator.config.user_modules import find_modules
from orchestrator.engine.load import find_study, read_results
from orchestrator.report import markdown_summary, write_report
from orchestrator.report.coverage import coverage_note
from orchestrator.study.errors import ConfigError
from orchestrator.study.report_choices import report_choices


@dataclass(frozen=True)
class _Wanted:
    """What to report: studies, choices, a user's own sections, others' scores and claims, and where to."""

    studies: Sequence[str]
    results: Path
    given: Mapping[str, Any]
    sections: Sequence[str]
    published: pd.DataFrame
    claims: Sequence[Claim]
    folder: Path | None

    def findings(self) -> Findings:
        """Read the studies as they are now, and analyse them."""
        read = [read_results(find_study(name, self.results)) for name in self.studies]
        if len(read) == 1:
            return analyse(read[0], report_choices(read[0].provenance, self.given), self.published)
        merged = merge(read, self.given.get("leave_out", ()))
        return analyse(merged, merged_choices(merged, self.given), self.published)

    def write(
        self, findings: Findings, reload_seconds: int | None = None, more: Sequence[ClaimsSection] = ()
    ) -> Path:
        """Write the report, with more sections if they are given, and return the path of its page."""
        folder = self.folder or findings.results.folder / "report"
        return write_report(findings.results, folder, findings, [*self.sections, *more], reload_seconds)

    def decisions(self, findings: Findings) -> list[Decision]:
        """Decide the claims that the study, if it is one, has a part in."""
        load = partial(stored_study, self.results)
        return decisions_of(findings, self.claims, load) if len(self.studies) == 1 else []


def report(request: Request, console: Console) -> None:
    """Write the report of a study into its folder, or into that of `to=DIR`; of several there."""
    wanted = _wanted(request)
    if request.watch:
        folders_watched = [find_study(name, wanted.results).folder for name in wanted.studies]
        findings = watch(folders_watched, wanted.findings, wanted.write, partial(_tell, console))
    else:
        findings = wanted.findings()
    console.print(MarkdownText(markdown_summary(findings.results, findings)))
    decisions = wanted.decisions(findings)
    terms = other_terms(findings, wanted.results, request.config_dir) if decisions else []
    for line in brief(decisions, terms):
        say(console, line)
    for sentence in [*findings.results.lost, *findings.results.changed]:
        say(console, sentence, wrap=False)
    section = [ClaimsSection(decisions, terms)] if decisions else []
    say(console, f"Report: {wanted.write(findings, more=section)}", wrap=False)


def _tell(console: Console, findings: Findings, index: Path) -> None:
    """Say when a report was written, and of how much."""
    say(console, f"{datetime.now():%H:%M:%S} {coverage_note(findings)} {index}", wrap=False)


def _wanted(request: Request) -> _Wanted:
    places = _values(request, "to")
    if "" in places:
        raise ConfigError(["to= names no folder; expected to=DIR"])
    # Of several studies Hydra would make a sweep.
    studies = [name.strip() for name in _values(request, "study")[-1:] for name in name.split(",")]
    several = len(studies) > 1
    apart = ("to=", "study=") if several else ("to=",)
    overrides = [text for text in request.overrides if not text.startswith(apart)]
    config = request.config(overrides)
    given = given_choices(config, overrides)
    problems: list[str] = []
    sections, published = section_names(config, problems), published_files(config, problems)
    if several and "" in studies:
        problems.append("study= has an empty name between its commas; expected study=A,B")
    if several and not places:
        problems.append("a report of several studies needs a folder of its own; add to=DIR")
    if problems:
        raise ConfigError(problems)
    find_modules(request.config_dir)
    return _Wanted(
        studies if several else [study_name(config)],
        folders(config).results,
        given,
        sections,
        read_published(published),
        declared_claims(overrides, request.config_dir),
        Path(places[-1]).expanduser().resolve() if places else None,
    )


def _values(request: Request, key: str) -> list[str]:
    """Return what the arguments say of a key that is read here, and not by Hydra."""
    return [text.removeprefix(f"{key}=") for text in request.overrides if text.startswith(f"{key}=")]
