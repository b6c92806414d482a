"""Print decisions of claims: the Markdown page of all claims, the section of a report, and lines."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isinf, isnan
from typing import TYPE_CHECKING

import pandas as pd

from orchestrator.analysis.findings import Findings, effort
from orchestrator.claims.decisions import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Decision
from orchestrator.claims.figures import Figure
from orchestrator.store.results import StudyResults

COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
"""Header of the printed outcomes."""
_SHOWN = 3
"""Largest number of figures that a row of the overview shows."""

CAPTION = (
    "Each claim is decided by the tests in conf/claim. A test is reproduced if the 90 % interval of its "
    "figure lies inside the region of the claim, which is two one-sided tests at level 0.05. It is not "
    "reproduced if the interval at the adjusted level lies outside; that level accounts for the number of "
    "tests. All other tests are undecided. A claim is reproduced if all its tests are, and not reproduced if "
    "one is not. “With other settings” marks verdicts of studies that differ from the experiment of the same "
    "name. They hold for the datasets and settings of the study, which are not those of the claim."
)


def claims_page(
    decisions: Sequence[Decision], studies: Mapping[str, Findings], other: Mapping[str, Sequence[str]]
) -> str:
    """Return the page of all claims as Markdown.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims, in the order of the page.
    studies : mapping of str to Findings
        Findings of the finished studies that decide them, by name.
    other : mapping of str to sequence of str
        Differences between each study and its experiment, by name, as `other_terms` returns them.

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
        terms = f" Differences from its experiment: {'; '.join(other[name])}." if other[name] else ""
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
    """Return one line for each claim, and one for differences between the study and its experiment.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    terms : sequence of str
        Differences, as `other_terms` returns them.

    Returns
    -------
    list of str
        Lines of text.
    """
    lines = [f"Claim {each.claim.name} is {each.verdict}: {each.claim.text}" for each in decisions]
    return [*lines, *([terms_sentence(terms)] if lines and terms else [])]


def terms_sentence(terms: Sequence[str]) -> str:
    """Return a sentence about the differences between a study and the experiment of its name.

    Parameters
    ----------
    terms : sequence of str
        Differences, as `other_terms` returns them.

    Returns
    -------
    str
        Sentence that lists the differences.
    """
    return f"The study differs from the experiment of the claims: {'; '.join(terms)}."


def _not_converged(study: Findings) -> str:
    """Return a sentence on refits that stopped early or whose tolerance could not be certified.

    Parameters
    ----------
    study : Findings
        Analysed study, with its refits and its design.

    Returns
    -------
    str
        The sentence with a leading space, or an empty string if there are none.
    """
    frame = effort(study)
    count = int(frame["not_converged"].sum()) if len(frame) else 0
    return f" {count:,} of {int(frame['n_fits'].sum()):,} refits did not converge." if count else ""


def _verdict(decision: Decision, other: Mapping[str, Sequence[str]]) -> str:
    """Return the verdict of a claim, marked if a study differs from its experiment.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    other : mapping of str to sequence of str
        Differences between each study and its experiment, by name.

    Returns
    -------
    str
        Verdict, followed by `, with other settings` if a study differs.
    """
    terms = any(other.get(name) for name in decision.claim.studies)
    return f"{decision.verdict}, with other settings" if terms else decision.verdict


def _headline(decision: Decision) -> str:
    """Return a summary of a claim's figures.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.

    Returns
    -------
    str
        The figures, or the numbers of verdicts if there are more than `_SHOWN` figures. Without figures, the
        reasons.
    """
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
    """Return the numbers of verdicts as text.

    Parameters
    ----------
    verdicts : iterable of str
        Verdict of each claim or outcome.

    Returns
    -------
    str
        For example `1 reproduced, 0 not reproduced, 2 undecided`.
    """
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED))


def printed_rows(decision: Decision) -> list[tuple[str, ...]]:
    """Return the outcomes of a claim as printed cells.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.

    Returns
    -------
    list of tuple of str
        One row for each outcome, with the columns of `COLUMNS`.
    """
    rows: list[tuple[str, ...]] = []
    for row, outcome in zip(decision.frame().to_dict("records"), decision.outcomes, strict=True):
        is_score = (
            outcome.part.test == "difference" and outcome.part.options.get("quantity", "score") == "score"
        )
        numbers = [_number(row[name], is_score) for name in ("estimate", "low", "high", "least", "most")]
        estimate, low, high, lower, upper = numbers
        figure = outcome.figure
        asked = "" if outcome.part.test == "unanswered" else _interval(lower, upper)
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
    """Return whether a figure is an estimate with an interval, which may be a point, and not a count.

    Parameters
    ----------
    figure : Figure
        Number with its intervals.

    Returns
    -------
    bool
        False for counts and for figures without an interval.
    """
    return figure.low < figure.high or (figure.low == figure.high and figure.wide is not None)


def _interval(low: str, high: str) -> str:
    """Return an interval as text.

    Parameters
    ----------
    low : str
        Printed lower end.
    high : str
        Printed upper end.

    Returns
    -------
    str
        For example `≤ 3` or `1 to 3`.
    """
    if low == "−∞":
        return f"≤ {high}"
    return f"≥ {low}" if high == "∞" else f"{low} to {high}"


def _number(value: float | None, is_score: bool) -> str:
    """Return a number with three significant digits, or a difference of scores in percentage points.

    Parameters
    ----------
    value : float or None
        The number. None and NaN are printed as a dash.
    is_score : bool
        Whether it is a difference of scores.

    Returns
    -------
    str
        The number; a dash for None and NaN.
    """
    if value is None or isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{100 * value:+.2f} points" if is_score else f"{value:.3g}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table.

    Parameters
    ----------
    header : sequence of str
        Header of each column.
    rows : iterable of sequence of str
        Cells of each row.

    Returns
    -------
    list of str
        Header, separator and one line for each row.
    """
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(_text, line))} |" for line in lines]


def _text(text: str) -> str:
    """Return text with Markdown's table characters escaped.

    Parameters
    ----------
    text : str
        Any text; whitespace is normalised.

    Returns
    -------
    str
        The text in one line.
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


if TYPE_CHECKING:
    from orchestrator.report import Section


class ClaimsSection:
    """A section of a report with the claims that its study decides.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    terms : sequence of str
        Differences between the study and its experiment, as `other_terms` returns them.
    """

    name = "claims"
    """The section's name in `report.json` and in names of files."""

    def __init__(self, decisions: Sequence[Decision], terms: Sequence[str]):
        self._decisions, self._terms = decisions, terms

    def __call__(self, results: StudyResults) -> "Section":
        """Return the section.

        Parameters
        ----------
        results : StudyResults
            Not used: the decisions contain the results.

        Returns
        -------
        Section
            Title, caption and table of the section.
        """
        from orchestrator.report import Section  # imports matplotlib

        rows = [
            {"Claim": f"{decision.claim.name}: {decision.verdict}", **dict(zip(COLUMNS, row, strict=True))}
            for decision in self._decisions
            for row in printed_rows(decision)
        ]
        other = f" {terms_sentence(self._terms)}" if self._terms else ""
        return Section("Claims", f"{CAPTION}{other}", pd.DataFrame(rows))
