"""The page of all claims in Markdown, and the rows and lines in which decisions are printed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isinf, isnan

from orchestrator.analysis.findings import Findings
from orchestrator.claims.decisions import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Decision
from orchestrator.claims.figures import Figure

COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
_SHOWN = 3
"""Figures that a line of the overview has room for."""

CAPTION = (
    "Each claim is decided by tests that conf/claim declares. A test is reproduced if the 90 % interval of "
    "its figure lies where the claim asks for, which is two one-sided tests at level 0.05, not reproduced if "
    "one that is adjusted for the number of tests lies outside, and undecided otherwise; a claim is "
    "reproduced if all its tests are, and not if one is not. “On other terms” are verdicts of studies that "
    "were declared otherwise than the experiments of their names: they speak of those datasets and settings, "
    "not of the claim's."
)


def claims_page(
    decisions: Sequence[Decision], studies: Mapping[str, Findings], other: Mapping[str, Sequence[str]]
) -> str:
    """Return the page of all claims as Markdown.

    Parameters
    ----------
    decisions : sequence of Decision
        The claims in the order of the page.
    studies : mapping of str to Findings
        The finished studies that decide them, by name.
    other : mapping of str to sequence of str
        What `other_terms` returns for each study.

    Returns
    -------
    str
        The page, with a newline at its end.
    """
    number = _counted(decision.verdict for decision in decisions)
    lines = ["# Claims", "", f"{len(decisions)} claims: {number}.", "", CAPTION, ""]
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
        lines += _table(COLUMNS, list(printed_rows(decision)))
    return "\n".join(lines) + "\n"


def brief(decisions: Sequence[Decision], terms: Sequence[str]) -> list[str]:
    """Return a line for each claim, and on which terms they are decided if not on those of the experiment."""
    lines = [f"Claim {each.claim.name} is {each.verdict}: {each.claim.text}" for each in decisions]
    return [*lines, *([terms_sentence(terms)] if lines and terms else [])]


def terms_sentence(terms: Sequence[str]) -> str:
    """Return a sentence about the terms on which a study differs from the experiment of its name."""
    return f"The study is not the experiment that the claims speak of: {'; '.join(terms)}."


def _not_converged(study: Findings) -> str:
    """Count the refits that ended before their tolerance was met, or could not be shown to have met it."""
    effort = study.effort
    count = int(effort["not_converged"].sum()) if len(effort) else 0
    return f" {count:,} of {int(effort['n_fits'].sum()):,} refits did not converge." if count else ""


def _verdict(decision: Decision, other: Mapping[str, Sequence[str]]) -> str:
    """Return a verdict, which other terms than those of the experiments do not leave as it is."""
    terms = any(other.get(name) for name in decision.claim.studies)
    return f"{decision.verdict}, on other terms" if terms else decision.verdict


def _headline(decision: Decision) -> str:
    """Return the figures of a claim if they are few, else how many said what; without any, why."""
    figures = [
        (row, outcome)
        for row, outcome in zip(printed_rows(decision), decision.outcomes, strict=True)
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


def printed_rows(decision: Decision) -> list[tuple[str, ...]]:
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
