"""The verb `report`."""

import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from orchestrator.analysis.findings import Findings, analyse, dataset_answers
from orchestrator.analysis.merged_studies import merge, merged_choices
from orchestrator.analysis.published import read_published
from orchestrator.claims.decisions import Decision
from orchestrator.claims.declared import Claim
from orchestrator.claims.finished import Loader, decisions_of
from orchestrator.claims.section import ClaimsSection, brief
from orchestrator.cli.claims import declared_claims, other_terms, study_loader
from orchestrator.cli.markdown_text import MarkdownText
from orchestrator.cli.request import Request, named_study
from orchestrator.cli.terminal import say
from orchestrator.cli.watch import watch
from orchestrator.config.report_settings import given_choices, published_files, section_names
from orchestrator.config.schema import folders
from orchestrator.config.user_modules import find_modules
from orchestrator.engine.load import find_study, read_results
from orchestrator.report import answer_text, markdown_summary, write_report
from orchestrator.report.sections.coverage import coverage_note
from orchestrator.study.errors import ConfigError
from orchestrator.study.recorded_choices import report_choices


@dataclass(frozen=True)
class _Wanted:
    """Inputs of a report.

    Attributes
    ----------
    studies : sequence of str
        Names of the studies.
    results : Path
        Folder of studies.
    given : mapping
        Choices of the report that replace recorded ones, by name.
    sections : sequence of str
        Dotted paths of the user's sections.
    published : DataFrame
        Published scores.
    claims : sequence of Claim
        Configured claims.
    folder : Path or None
        Folder for the report; None means the folder `report` of the study.
    """

    studies: Sequence[str]
    results: Path
    given: Mapping[str, Any]
    sections: Sequence[str]
    published: pd.DataFrame
    claims: Sequence[Claim]
    folder: Path | None

    @cached_property
    def load(self) -> Loader:
        """Function that reads further studies of the folder."""
        return study_loader(self.results)

    def findings(self) -> Findings:
        """Read the studies in their current state, and analyse them.

        Raises
        ------
        StoreError
            If a study does not exist, or this command names an earlier study that does not. An earlier study
            that only a run named may have been deleted since; then the report omits its sentence.
        """
        if earlier := self.given.get("earlier"):
            find_study(earlier, self.results)
        read = [read_results(find_study(name, self.results)) for name in self.studies]
        if len(read) == 1:
            choices = report_choices(read[0].provenance, self.given)
            return analyse(read[0], choices, self.published)
        merged = merge(read, self.given.get("leave_out", ()))
        return analyse(merged, merged_choices(merged, self.given), self.published)

    def write(
        self, findings: Findings, reload_seconds: int | None = None, more: Sequence[ClaimsSection] = ()
    ) -> Path:
        """Write the report, and return the path of its page.

        Parameters
        ----------
        findings : Findings
            Findings of the studies.
        reload_seconds : int, optional
            Time after which the page reloads itself, in seconds. By default it does not.
        more : sequence of ClaimsSection
            Further sections. Default: none.
        """
        folder = self.folder or findings.results.folder / "report"
        pdf = reload_seconds is None
        return write_report(findings.results, folder, findings, [*self.sections, *more], reload_seconds, pdf)

    def decisions(self, findings: Findings, config_dir: Path | None) -> list[Decision]:
        """Decide the claims that concern the study; empty for a report of several studies.

        Parameters
        ----------
        findings : Findings
            Findings of the study.
        config_dir : Path or None
            The user's folder of configurations.
        """
        if len(self.studies) > 1:
            return []
        terms_of = partial(other_terms, load=self.load, config_dir=config_dir)
        return decisions_of(findings, self.claims, self.load, terms_of)


def report(request: Request, console: Console) -> None:
    """Write the report of a study to its folder or to `to=DIR`, or of several studies to `to=DIR`.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    wanted = _wanted(request)
    stored_in = [find_study(name, wanted.results).folder for name in wanted.studies]
    if wanted.folder is not None:
        _make(wanted.folder, _values(request, "to")[-1])
    if request.watch:
        findings = watch(stored_in, wanted.findings, wanted.write, partial(_say_written, console))
    else:
        findings = wanted.findings()
    few = bool(dataset_answers(findings))
    if not few:
        console.print(MarkdownText(markdown_summary(findings.results, findings)))
    decisions = wanted.decisions(findings, request.config_dir)
    terms = other_terms(findings, wanted.load, request.config_dir).phrases if decisions else []
    for line in brief(decisions, terms):
        say(console, line)
    for sentence in [*findings.results.lost, *findings.results.changed]:
        say(console, sentence, wrap=False)
    section = [ClaimsSection(decisions, terms)] if decisions else []
    page = wanted.write(findings, more=section)
    lines = answer_text(findings, page).splitlines() if few else [f"Report: {page}"]
    for line in lines:
        say(console, line, wrap=False)
    if request.open_page and not webbrowser.open(page.as_uri()):
        say(console, "No browser was found.")


def _say_written(console: Console, findings: Findings, index: Path) -> None:
    """Print the time of a report, the amount of data in it, and its path.

    Parameters
    ----------
    console : Console
        Terminal for the output.
    findings : Findings
        Findings of the report.
    index : Path
        Page of the report.
    """
    say(console, f"{datetime.now():%H:%M:%S} {coverage_note(findings)} {index}", wrap=False)


def _wanted(request: Request) -> _Wanted:
    targets = _values(request, "to")
    if "" in targets:
        raise ConfigError(["to= names no folder; expected to=DIR"])
    # Hydra would read several studies as a sweep.
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
    elif several and not targets:
        problems.append("a report of several studies needs a folder; add to=DIR")
    if problems:
        raise ConfigError(problems)
    if not several:
        studies = [named_study(config, "report")]
    find_modules(request.config_dir)
    return _Wanted(
        studies,
        folders(config).results,
        given,
        sections,
        read_published(published),
        declared_claims(overrides, request.config_dir),
        Path(targets[-1]).expanduser().resolve() if targets else None,
    )


def _make(folder: Path, typed: str) -> None:
    """Make a folder for a report, before anything is computed for it.

    Parameters
    ----------
    folder : Path
        Folder for the report.
    typed : str
        Folder as typed, for the message.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            [f"to={typed}: cannot make this folder: {error.strerror}. Choose another one with to=DIR"]
        ) from None


def _values(request: Request, key: str) -> list[str]:
    """Return the values of a key that this verb reads itself, instead of Hydra.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    key : str
        The key, without `=`.
    """
    return [text.removeprefix(f"{key}=") for text in request.overrides if text.startswith(f"{key}=")]
