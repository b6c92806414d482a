"""The page of all claims in Markdown, and the printed rows and lines of decisions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isinf, isnan

from orchestrator.analysis.findings import Findings, effort
from orchestrator.claims.decisions import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Decision
from orchestrator.claims.figures import Figure

COLUMNS = ("Test", "Figure", "90 % interval", "Claim asks for", "n", "p", "Verdict", "Note")
_SHOWN = 3
"""Largest number of figures in a line of the overview."""

CAPTION = (
    "Tests that conf/claim declares decide each claim. A test is reproduced if the 90 % interval of its "
    "figure lies in the range that the claim asks for, which is equivalent to two one-sided tests at level "
    "0.05. It is not reproduced if an interval that is adjusted for the number of tests lies outside of that "
    "range. Otherwise it is undecided. A claim is reproduced if all its tests are, and not reproduced if one "
    "of them is not. “On other terms” marks verdicts of studies whose declarations differ from the "
    "experiments of their names. These verdicts concern the datasets and settings of the studies, not those "
    "of the claim."
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
        The result of `other_terms` for each study.

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
        differing = "; ".join(other[name])
        terms = f" Its terms differ from those of its experiment: {differing}." if differing else ""
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
    """Return a line for each claim, and the terms in which the study differs from its experiment.

    Parameters
    ----------
    decisions : sequence of Decision
        The claims in the order of the lines.
    terms : sequence of str
        The terms in which the study differs from its experiment; empty if it does not.
    """
    lines = [f"Claim {each.claim.name} is {each.verdict}: {each.claim.text}" for each in decisions]
    return [*lines, *([terms_sentence(terms)] if lines and terms else [])]


def terms_sentence(terms: Sequence[str]) -> str:
    """Return a sentence with the terms in which a study differs from the experiment of its name.

    Parameters
    ----------
    terms : sequence of str
        The differing terms.
    """
    return f"The study differs from the experiment that the claims refer to: {'; '.join(terms)}."


def _not_converged(study: Findings) -> str:
    """Count refits that stopped early or whose tolerance could not be certified.

    Parameters
    ----------
    study : Findings
        A study of the page.

    Returns
    -------
    str
        A sentence after a space; empty if all refits converged.
    """
    frame = effort(study)
    count = int(frame["not_converged"].sum()) if len(frame) else 0
    return f" {count:,} of {int(frame['n_fits'].sum()):,} refits did not converge." if count else ""


def _verdict(decision: Decision, other: Mapping[str, Sequence[str]]) -> str:
    """Return a verdict, marked if its studies differ from the experiments of their names.

    Parameters
    ----------
    decision : Decision
        The decision on a claim.
    other : mapping of str to sequence of str
        The differing terms of each study.
    """
    terms = any(other.get(name) for name in decision.claim.studies)
    return f"{decision.verdict}, on other terms" if terms else decision.verdict


def _headline(decision: Decision) -> str:
    """Return the figures of a claim if they are few, else the counts of verdicts, or the reasons if none.

    Parameters
    ----------
    decision : Decision
        The decision on a claim.
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
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED))


def printed_rows(decision: Decision) -> list[tuple[str, ...]]:
    """Return the printed outcomes of a claim, a row for each.

    Parameters
    ----------
    decision : Decision
        The decision on a claim.

    Returns
    -------
    list of tuple of str
        The cells of `COLUMNS`.
    """
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
    """Return whether a figure is an estimate, whose interval may be a point, and not a count.

    Parameters
    ----------
    figure : Figure
        The figure of a test.
    """
    return figure.low < figure.high or (figure.low == figure.high and figure.wide is not None)


def _interval(low: str, high: str) -> str:
    if low == "−∞":
        return f"≤ {high}"
    return f"≥ {low}" if high == "∞" else f"{low} to {high}"


def _number(value: float | None, is_score: bool) -> str:
    """Print a number with three digits, and a difference of scores in points.

    Parameters
    ----------
    value : float or None
        The number; None or NaN if there is none.
    is_score : bool
        Whether it is a difference of scores.
    """
    if value is None or isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{100 * value:+.2f} points" if is_score else f"{value:.3g}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(_text, line))} |" for line in lines]


def _text(text: str) -> str:
    """Escape a text for a table of Markdown.

    Parameters
    ----------
    text : str
        Any text.
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
