"""The verb `claims`, and what a report says of the claims that its study decides."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console

from orchestrator.analysis.claim_figures import Figure
from orchestrator.analysis.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Decision,
    decide,
    read_claims,
)
from orchestrator.analysis.design import Design, read_design
from orchestrator.analysis.findings import Findings, analyse, effort
from orchestrator.cli.main import Request
from orchestrator.cli.terminal import flush, say
from orchestrator.config.compose import claim_nodes, compose_settings, known_names
from orchestrator.config.schema import folders
from orchestrator.engine.load import load_study
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.store.study_folders import study_folders
from orchestrator.study.atomic import atomic_write
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import printable_lines
from orchestrator.study.values import canonical_json, cell

if TYPE_CHECKING:
    from orchestrator.report import Section

_COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
_SHOWN = 3
"""Figures that a line of the overview has room for."""

_CAPTION = (
    "Each claim is decided by tests that conf/claim declares. A test is reproduced if the 90 % interval of "
    "its figure lies where the claim asks for, which is two one-sided tests at level 0.05, not reproduced if "
    "one that is adjusted for the number of tests lies outside, and undecided otherwise; a claim is "
    "reproduced if all its tests are, and not if one is not. “On other terms” are verdicts of studies that "
    "were declared otherwise than the experiments of their names: they speak of those datasets and settings, "
    "not of the claim's."
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
    other = {name: other_terms(study, results, request.config_dir) for name, study in found.items()}
    page = _page([decide(claim, found, absent) for claim in known], found, other)
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
    """Decide the claims that a study has a part in, with the other studies that they take."""
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
    terms : list of str
        See `other_terms`.
    """

    name = "claims"

    def __init__(self, decisions: Sequence[Decision], terms: Sequence[str]):
        self._decisions, self._terms = decisions, terms

    def __call__(self, results: StudyResults) -> "Section":
        """Return the section."""
        from orchestrator.report import Section  # which imports matplotlib

        rows = [
            {"Claim": f"{decision.claim.name}: {decision.verdict}", **dict(zip(_COLUMNS, row, strict=True))}
            for decision in self._decisions
            for row in _rows(decision)
        ]
        other = f" {_on(self._terms)}" if self._terms else ""
        return Section("Claims", f"{_CAPTION}{other}", pd.DataFrame(rows))


def brief(decisions: Sequence[Decision], terms: Sequence[str]) -> list[str]:
    """Return a line for each claim, and on which terms they are decided if not on those of the experiment."""
    lines = [f"Claim {each.claim.name} is {each.verdict}: {each.claim.text}" for each in decisions]
    return [*lines, *([_on(terms)] if lines and terms else [])]


def _on(terms: Sequence[str]) -> str:
    return f"The study is not the experiment that the claims speak of: {'; '.join(terms)}."


def _finished(names: Iterable[str], results: Path) -> tuple[dict[str, Findings], dict[str, str]]:
    """Return what the finished studies among the named ones found, and why others cannot be used."""
    stored = {path.name for path in study_folders(results)}
    found: dict[str, Findings] = {}
    absent: dict[str, str] = {}
    for name in names:
        if name in stored:
            try:
                loaded = load_study(name, results)
            except StoreError as error:  # a damaged study must not keep others from their reports
                absent[name] = f"study {name} cannot be read: {error}"
                continue
            if _is_finished(loaded):
                found[name] = analyse(loaded)
            else:
                absent[name] = _unfinished(name)
    return found, absent


def _is_finished(results: StudyResults) -> bool:
    return bool(results.states) and all(state.complete for state in results.states.values())


def _unfinished(name: str) -> str:
    return f"study {name} is not finished"


def other_terms(findings: Findings, results: Path, config_dir: Path | None) -> list[str]:
    """Say how a study was declared otherwise than the experiment of its name; empty if there is none.

    Where it takes its candidates from another study, that one's terms are its own, too.
    """
    terms = _declared_otherwise(findings.results.name, findings.design, config_dir)
    source = findings.design.search.options.get("study")
    if source in [path.name for path in study_folders(results)]:  # an option of a user's search may be a list
        try:
            selecting = read_design(load_study(source, results))
        except StoreError:  # what cannot be read says nothing of its terms
            return terms
        if _declared_otherwise(source, selecting, config_dir):
            terms.append(f"candidates selected by study {source}, which was on other terms, too")
    return terms


def _declared_otherwise(name: str, design: Design, config_dir: Path | None) -> list[str]:
    if name not in known_names("experiment", (), config_dir):
        return []
    config = compose_settings([f"experiment={name}"], config_dir)
    found = [*_other_datasets(design, config["datasets"]), *_other_settings(design, config)]
    found += dict.fromkeys(_other_makings(design, config["dataset"]))
    found += dict.fromkeys(_other_params(design, config["solver"]))
    for key in ("outer", "inner", "seed", "scaling", "metric", "profile", "max_seconds"):
        if design.protocol.get(key) != config["protocol"][key]:
            found.append(f"protocol.{key}={design.protocol.get(key)} in place of {config['protocol'][key]}")
    if design.search.target != config["search"].get("kind"):
        found.append(f"search={design.search.target} in place of {config['search'].get('kind')}")
    for key in ("study", "arm"):  # of selected candidates
        given, declared = design.search.options.get(key), config["search"].get(key)
        if given != declared:
            found.append(f"search.{key}={given} in place of {declared}")
    return found


def _other_datasets(design: Design, declared: Sequence[str]) -> Iterator[str]:
    there = {dataset.partition("[")[0] for dataset in design.datasets}
    if lacking := [dataset for dataset in declared if dataset not in there]:
        yield f"without {', '.join(lacking)}"
    if more := sorted(there.difference(declared)):
        yield f"with {', '.join(more)}"


def _other_makings(design: Design, declared: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Find datasets that were made by other numbers, such as a seed, apart from those of sweeps."""
    for name, facts in design.datasets.items():
        base, swept = name.partition("[")[0], {text.partition("=")[0] for text in _settings(name)}
        given, numbers = facts.get("params") or {}, declared.get(base, {})
        for key in sorted(given.keys() & numbers.keys() - swept):
            if given[key] != numbers[key]:
                yield f"dataset.{base}.{key}={cell(given[key])} in place of {cell(numbers[key])}"


def _other_settings(design: Design, config: Mapping[str, Any]) -> Iterator[str]:
    """Find values of sweeps that were not run, and another search space."""
    there = {text for each in (*design.arms, *design.datasets) for text in _settings(each)}
    resolutions = config["search"].get("resolution") or []
    for axis, values in {**config["sweep"], "resolution": resolutions}.items():
        if lacking := [text for value in values if (text := f"{axis}={cell(value)}") not in there]:
            yield f"without {', '.join(lacking)}"
    spaces = [facts.get("space") or {} for facts in design.arms.values()]
    for param, values in {} if resolutions else (config["search"].get("space") or {}).items():
        if any(sorted(map(cell, space.get(param, ()))) != sorted(map(cell, values)) for space in spaces):
            yield f"another search.space.{param}"


def _other_params(design: Design, solvers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Find solvers that were given another class or other parameters, apart from those of sweeps."""
    for facts in design.arms.values():
        solver, swept = facts.get("solver", ""), facts.get("sweep") or {}
        if solver not in solvers:
            continue
        declared = {key: value for key, value in solvers[solver].items() if key not in ("space", *swept)}
        given = {key: value for key, value in (facts.get("params") or {}).items() if key not in swept}
        given["_target_"] = facts.get("target")
        for key in sorted(declared.keys() | given.keys()):
            if canonical_json(given.get(key)) != canonical_json(declared.get(key)):
                yield f"another {solver}.{key}"


def _settings(name: str) -> list[str]:
    """Return the settings in the name of an arm or a dataset, such as `eta=1.3`."""
    return name.partition("[")[2].removesuffix("]").split(",")


def _page(
    decisions: Sequence[Decision], studies: Mapping[str, Findings], other: Mapping[str, Sequence[str]]
) -> str:
    number = _counted(decision.verdict for decision in decisions)
    lines = ["# Claims", "", f"{len(decisions)} claims: {number}.", "", _CAPTION, ""]
    lines += _table(
        ("Claim", "Verdict", "Published", "Here", "Studies"),
        [
            (
                f"{each.claim.name} {each.claim.text}",
                _verdict(each, other),
                each.claim.published,
                _headline(each),
                ", ".join(each.claim.studies) or "none",
            )
            for each in decisions
        ],
    )
    for name, study in studies.items():
        terms = f" Other terms than those of its experiment: {'; '.join(other[name])}." if other[name] else ""
        lines += [
            "",
            _text(f"Study {name}: {', '.join(study.design.datasets)}.{terms}{_not_converged(study)}"),
        ]
    for decision in decisions:
        claim = decision.claim
        lines += ["", f"## {claim.name}: {_verdict(decision, other)}", "", _text(claim.text), ""]
        lines += [f"Source: {_text(claim.source)}. Published: {_text(claim.published)}.", ""]
        lines += _table(_COLUMNS, list(_rows(decision)))
    return "\n".join(lines) + "\n"


def _not_converged(study: Findings) -> str:
    """Count the refits that ended before their tolerance was met, or could not be shown to have met it."""
    frame = effort(study)
    count = int(frame["not_converged"].sum()) if len(frame) else 0
    return f" {count:,} of {int(frame['n_fits'].sum()):,} refits did not converge." if count else ""


def _verdict(decision: Decision, other: Mapping[str, Sequence[str]]) -> str:
    """Return a verdict, which other terms than those of the experiments do not leave as it is."""
    terms = any(other.get(name) for name in decision.claim.studies)
    return f"{decision.verdict}, on other terms" if terms else decision.verdict


def _headline(decision: Decision) -> str:
    """Return the figures of a claim if they are few, else how many said what; without any, why."""
    figures = [
        (row, outcome)
        for row, outcome in zip(_rows(decision), decision.outcomes, strict=True)
        if outcome.figure
    ]
    if len(figures) > _SHOWN:
        return _counted(outcome.verdict for outcome in decision.outcomes)
    if figures:
        return "; ".join(
            f"{what}: {estimate}{f' ({interval})' if interval else ''}, n = {n}"
            for (what, estimate, interval, _, n, *_), _ in figures
        )
    return "; ".join(dict.fromkeys(outcome.why for outcome in decision.outcomes))


def _counted(verdicts: Iterable[str]) -> str:
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED))


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
                f"{low} to {high}" if figure and _has_interval(figure) else "",
                asked,
                f"{figure.n} {figure.unit}" if figure else "",
                "" if figure is None or isnan(figure.p) else f"{figure.p:.3g}",
                outcome.verdict,
                str(row["note"]),
            )
        )
    return rows


def _has_interval(figure: Figure) -> bool:
    """Tell estimates, whose interval may be a point, from what was counted."""
    return figure.low < figure.high or (figure.low == figure.high and figure.wide is not None)


def _interval(low: str, high: str) -> str:
    if low == "−∞":
        return f"≤ {high}"
    return f"≥ {low}" if high == "∞" else f"{low} to {high}"


def _number(value: float | None, is_score: bool) -> str:
    """Return a number with three digits; differences of scores in points."""
    if value is None or isnan(value):
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
