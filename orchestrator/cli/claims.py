"""The verb `claims`, and what a report says of the claims that its study decides."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console

from orchestrator.analysis.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Decision,
    decide,
    read_claims,
)
from orchestrator.analysis.findings import Findings, analyse
from orchestrator.cli.main import Request
from orchestrator.cli.terminal import flush, say
from orchestrator.config.compose import claim_nodes
from orchestrator.config.schema import folders
from orchestrator.engine.load import load_study
from orchestrator.store.results import StudyResults
from orchestrator.store.study_folders import study_folders
from orchestrator.study.atomic import atomic_write
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import printable_lines

if TYPE_CHECKING:
    from orchestrator.report import Section

_COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
_CAPTION = (
    "Each claim is decided by tests that conf/claim declares. A test is reproduced if the 90 % interval of "
    "its figure lies where the claim asks for, which is two one-sided tests at level 0.05, not reproduced if "
    "it lies outside, and undecided otherwise; a claim is reproduced if all its tests are, and not if one is "
    "not."
)


def claims(request: Request, console: Console) -> None:
    """Write one Markdown page of all claims, to the terminal or to the file of `to=FILE`."""
    places = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    if "" in places:
        raise ConfigError(["to= names no file; expected to=FILE"])
    overrides = [text for text in request.overrides if not text.startswith("to=")]
    results = folders(request.config(overrides)).results
    known = declared_claims(overrides, request.config_dir)
    found, absent = _finished(dict.fromkeys(name for claim in known for name in claim.studies), results)
    page = _page([decide(claim, found, absent) for claim in known])
    if not places:
        sys.stdout.write(printable_lines(page))
        flush()
        return
    path = Path(places[-1]).expanduser().resolve()
    try:
        with atomic_write(path) as file:
            file.write(page.encode())
    except OSError as error:
        raise ConfigError(
            [f"cannot write {path}: {error.strerror}; name another file with to=FILE"]
        ) from None
    say(console, f"Claims: {path}", wrap=False)


def declared_claims(overrides: Sequence[str], config_dir: Path | None) -> list[Claim]:
    """Return the claims of the configuration, numbers in their names in order."""
    return sorted(read_claims(claim_nodes(overrides, config_dir)), key=lambda claim: _order(claim.name))


def _order(name: str) -> tuple[str, int, str]:
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name


def decisions_of(findings: Findings, known: Iterable[Claim], results: Path) -> list[Decision]:
    """Decide the claims that a study has a part in."""
    name = findings.results.name
    own = [claim for claim in known if name in claim.studies]
    others = dict.fromkeys(other for claim in own for other in claim.studies if other != name)
    found, absent = _finished(others, results)
    if _is_finished(findings.results):
        found[name] = findings
    else:
        absent[name] = _unfinished(name)
    return [decide(claim, found, absent) for claim in own]


class ClaimsSection:
    """A section of a report: the claims that its study decides.

    Parameters
    ----------
    decisions : list of Decision
    """

    def __init__(self, decisions: Sequence[Decision]):
        self._decisions = decisions

    def __call__(self, results: StudyResults) -> "Section":
        """Return the section."""
        from orchestrator.report import Section  # which imports matplotlib

        rows = [
            {"Claim": f"{decision.claim.name}: {decision.verdict}", **dict(zip(_COLUMNS, row, strict=True))}
            for decision in self._decisions
            for row in _rows(decision)
        ]
        return Section("Claims", _CAPTION, pd.DataFrame(rows))


def brief(decisions: Iterable[Decision]) -> list[str]:
    """Return a line for each claim."""
    return [f"Claim {each.claim.name} is {each.verdict}: {each.claim.text}" for each in decisions]


def _finished(names: Iterable[str], results: Path) -> tuple[dict[str, Findings], dict[str, str]]:
    """Return what the finished studies among the named ones found, and why others cannot be used."""
    stored = {path.name for path in study_folders(results)}
    found: dict[str, Findings] = {}
    absent: dict[str, str] = {}
    for name in names:
        if name in stored:
            loaded = load_study(name, results)
            if _is_finished(loaded):
                found[name] = analyse(loaded)
            else:
                absent[name] = _unfinished(name)
    return found, absent


def _is_finished(results: StudyResults) -> bool:
    return bool(results.states) and all(state.complete for state in results.states.values())


def _unfinished(name: str) -> str:
    return f"study {name} is not finished"


def _page(decisions: Sequence[Decision]) -> str:
    counts = Counter(decision.verdict for decision in decisions)
    number = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED))
    lines = ["# Claims", "", f"{len(decisions)} claims: {number}.", "", _CAPTION, ""]
    lines += _table(
        ("Claim", "Verdict", "Published", "Here", "Studies"),
        [
            (
                f"{each.claim.name} {each.claim.text}",
                each.verdict,
                each.claim.published,
                _headline(each),
                ", ".join(each.claim.studies) or "none",
            )
            for each in decisions
        ],
    )
    for decision in decisions:
        claim = decision.claim
        lines += ["", f"## {claim.name}: {decision.verdict}", "", _text(claim.text), ""]
        lines += [f"Source: {_text(claim.source)}. Published: {_text(claim.published)}.", ""]
        lines += _table(_COLUMNS, list(_rows(decision)))
    return "\n".join(lines) + "\n"


def _headline(decision: Decision) -> str:
    rows = [row for row, outcome in zip(_rows(decision), decision.outcomes, strict=True) if outcome.figure]
    if rows:
        return "; ".join(f"{row[1]} {row[2]}".strip() + f" (n = {row[4]})" for row in rows[:6]) + (
            "; …" if len(rows) > 6 else ""
        )
    return "; ".join(dict.fromkeys(outcome.why for outcome in decision.outcomes))


def _rows(decision: Decision) -> list[tuple[str, ...]]:
    """Return the outcomes of a claim as they are printed."""
    rows: list[tuple[str, ...]] = []
    for row, outcome in zip(decision.frame().to_dict("records"), decision.outcomes, strict=True):
        is_score = (
            outcome.part.test == "difference" and outcome.part.options.get("quantity", "score") == "score"
        )
        numbers = [_number(row[name], is_score) for name in ("estimate", "low", "high", "least", "most")]
        estimate, low, high, least, most = numbers
        figure = outcome.figure
        asked = "" if outcome.part.test == "unanswered" else _interval(least, most)
        rows.append(
            (
                str(row["what"]),
                estimate,
                f"{low} to {high}" if figure and figure.low < figure.high else "",
                asked,
                f"{figure.n} {figure.unit}" if figure else "",
                "" if figure is None or isnan(figure.p) else f"{figure.p:.3g}",
                outcome.verdict,
                str(row["note"]),
            )
        )
    return rows


def _interval(low: str, high: str) -> str:
    if low == "−∞":
        return f"≤ {high}"
    return f"≥ {low}" if high == "∞" else f"{low} to {high}"


def _number(value: float | None, is_score: bool) -> str:
    """Return a number with three digits; differences of scores in points."""
    if value is None:
        return ""
    if isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{100 * value:+.2f} points" if is_score else f"{value:.3g}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(_text, line))} |" for line in lines]


def _text(text: str) -> str:
    """Return a text that a table of Markdown takes as it is."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
