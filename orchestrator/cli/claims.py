"""The verb `claims`, and the data from which `claims` and `report` decide claims."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.analysis.design import Design, read_design
from orchestrator.analysis.findings import Findings
from orchestrator.claims import terms
from orchestrator.claims.decisions import NOT_REPRODUCED, UNDECIDED, Decision, decide
from orchestrator.claims.declared import Claim, read_claims
from orchestrator.claims.finished import Loader, stored_studies
from orchestrator.claims.page import claims_page, claims_text
from orchestrator.cli.claim_hours import experiment_hours
from orchestrator.cli.request import Request, check_keys, names_and_overrides
from orchestrator.cli.streams import flush
from orchestrator.cli.terminal import say
from orchestrator.config.compose import claim_nodes, compose_settings, known_names
from orchestrator.config.schema import folders
from orchestrator.engine.load import load_study
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.store.study_folders import study_folders
from orchestrator.study.atomic import atomic_write
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import printable_lines


def claims(request: Request, console: Console) -> None:
    """Print the claims with their verdicts, or write the page of all claims to the file of `to=FILE`.

    Parameters
    ----------
    request : Request
        Arguments of the command: names of claims or studies, or none for all claims.
    console : Console
        Terminal for the output.
    """
    files = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    if "" in files:
        raise ConfigError(["to= names no file; expected to=FILE"])
    arguments = [text for text in request.overrides if not text.startswith("to=")]
    names, overrides = names_and_overrides(arguments)
    check_keys("claims", overrides, "[NAME…] [to=FILE]")
    results = folders(request.config(overrides)).results
    known = _named(declared_claims(overrides, request.config_dir), names)
    load = study_loader(results)
    found, absent = stored_studies(dict.fromkeys(name for claim in known for name in claim.studies), load)
    differences = {name: other_terms(study, load, request.config_dir) for name, study in found.items()}
    decisions = [decide(claim, found, absent, differences) for claim in known]
    together = None if names else _refuted_together(decisions, found, absent, differences)
    undecided = {
        name for decision in decisions if decision.verdict == UNDECIDED for name in decision.claim.studies
    }
    hours = experiment_hours(undecided, found, differences, request.config_dir)
    if not files:
        lines = [
            *claims_text(decisions, differences, hours, together),
            *(["", *absent.values()] if absent else []),
        ]
        sys.stdout.write(printable_lines("\n".join(lines) + "\n"))
        flush()
        return
    page = claims_page(decisions, found, differences, hours, together)
    path = Path(files[-1]).expanduser().resolve()
    try:
        with atomic_write(path) as file:
            file.write(page.encode())
    except OSError as error:
        raise ConfigError(
            [f"cannot write {path}: {error.strerror}; name another file with to=FILE"]
        ) from None
    say(console, f"Claims: {path}", wrap=False)


def _refuted_together(
    decisions: Sequence[Decision],
    studies: Mapping[str, Findings],
    absent: Mapping[str, str],
    differences: Mapping[str, terms.Terms],
) -> set[str]:
    """Return the claims that are not reproduced at the level over all tested claims of their paper.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of all claims.
    studies : mapping of str to Findings
        Findings of stored studies, by name.
    absent : mapping of str to str
        Why a stored study cannot be used, by name.
    differences : mapping of str to Terms
        Differences between stored studies and their experiments, by name.
    """
    of_paper = Counter(decision.claim.paper for decision in decisions if decision.tested)
    refuted = [decision.claim for decision in decisions if decision.tested == NOT_REPRODUCED]
    strict = [decide(claim, studies, absent, differences, of_paper[claim.paper]) for claim in refuted]
    return {decision.claim.name for decision in strict if decision.tested == NOT_REPRODUCED}


def _named(known: Sequence[Claim], names: Sequence[str]) -> Sequence[Claim]:
    """Return the claims with these names, and those that studies with these names decide.

    Parameters
    ----------
    known : sequence of Claim
        All configured claims.
    names : sequence of str
        Names of claims or of studies; none means all claims.
    """
    possible = {name for claim in known for name in [claim.name, *claim.studies]}
    for name in names:
        if name not in possible:
            near = did_you_mean(name, possible)
            raise ConfigError([f"claims: no claim has the name or the study {name!r}{near}"])
    return [claim for claim in known if not names or {claim.name, *claim.studies} & {*names}]


def declared_claims(overrides: Sequence[str], config_dir: Path | None) -> list[Claim]:
    """Return the configured claims, sorted by name, with numbers in numeric order.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar. Those of its search path name further folders.
    config_dir : Path or None
        The user's folder of configurations.
    """
    return read_claims(claim_nodes(overrides, config_dir))


def study_loader(results: Path) -> Loader:
    """Return a function that reads each stored study of a folder once.

    Parameters
    ----------
    results : Path
        Folder of studies.
    """
    return cache(partial(_stored_study, results))


def _stored_study(results: Path, name: str) -> StudyResults | None:
    """Read a stored study, or return None if it does not exist.

    Parameters
    ----------
    results : Path
        Folder of studies.
    name : str
        Name of the study.
    """
    if name not in {path.name for path in study_folders(results)}:
        return None
    return load_study(name, results)


def other_terms(findings: Findings, load: Loader, config_dir: Path | None) -> terms.Terms:
    """Return the differences between a study's declaration and the experiment of the same name.

    Parameters
    ----------
    findings : Findings
        Findings of the study.
    load : Loader
        Function that reads the study that selected the candidates, by its name; see `Loader`.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    Terms
        The differences.
    """

    def experiment(name: str) -> Mapping[str, Any] | None:
        if name not in known_names("experiment", (), config_dir):
            return None
        return compose_settings([f"experiment={name}"], config_dir)

    def design(name: str) -> Design | None:
        try:
            stored = load(name)
        except StoreError:  # the terms of an unreadable study are unknown
            return None
        return None if stored is None else read_design(stored)

    return terms.other_terms(findings.results.name, findings.design, experiment, design)
