"""Print decisions of claims for readers: the page of all claims, and lines for a terminal."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape

from orchestrator.analysis.findings import Findings, effort
from orchestrator.claims.decisions import (
    NOT_REPRODUCED,
    OTHER_TERMS,
    REASONS,
    REPRODUCED,
    UNDECIDED,
    Decision,
    Outcome,
)
from orchestrator.claims.drawings import drawing
from orchestrator.claims.figures import LEVEL, counted
from orchestrator.claims.needs import Hours, hours_text, needs_of
from orchestrator.claims.picture import MAX_LINES, drawn, picture
from orchestrator.claims.rows import COLUMNS, printed_rows, verdict_text
from orchestrator.claims.section import CAPTION
from orchestrator.claims.terms import Terms
from orchestrator.study.schemes import in_words

_LEGEND = (
    "The picture has a line for each test with a figure: the band is the region of the claim, the dot our "
    "figure with its 90 % interval, on a logarithmic scale for ratios. A hollow dot is a figure on other "
    "terms, which does not count."
)


def claims_page(
    decisions: Sequence[Decision],
    studies: Mapping[str, Findings],
    terms: Mapping[str, Terms],
    hours: Mapping[str, Hours],
    together: Collection[str] | None = None,
) -> str:
    """Return the page of all claims: Markdown whose tables are HTML.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims, in the order of the page.
    studies : mapping of str to Findings
        Findings of the studies that decide them, by name.
    terms : mapping of str to Terms
        Differences between each study and its experiment, by name.
    hours : mapping of str to Hours
        Core hours of experiments, by name.
    together : collection of str, optional
        Names of the claims that are not reproduced at the level over all claims of their paper. None, the
        default, if the decisions are those of some claims only, whose common level says nothing.

    Returns
    -------
    str
        The page, with a newline at its end.
    """
    lines = ["# Claims", "", *_summaries(decisions), "", _counts(decisions), "", _LEGEND, ""]
    lines.append('<table class="claims">')
    lines.append("<thead><tr>" + "".join(f"<th>{name}</th>" for name in _HEADER) + "</tr></thead><tbody>")
    lines += [_row(decision, studies, terms, hours) for decision in decisions]
    lines += ["</tbody></table>", ""]
    if sentences := paper_sentences(decisions, together):
        lines += ["## Level over all claims of a paper", "", *(f"- {sentence}" for sentence in sentences), ""]
    lines += ["## Tests, terms and figures", "", CAPTION, ""]
    lines += [_details(decision, studies) for decision in decisions]
    lines += ["", "## Studies", ""]
    lines += [_study(name, study, terms.get(name, Terms())) for name, study in studies.items()]
    return "\n".join(lines) + "\n"


_HEADER = ("Claim", "Verdict", "Theirs", "Ours", "n", "Study")


def summary(decisions: Sequence[Decision]) -> str:
    """Return the number of claims and which of them hold, in two sentences.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.

    Returns
    -------
    str
        Text that names the claims that are decided.
    """
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED)}
    for decision in decisions:
        by_verdict[decision.verdict].append(decision.claim.name)
    sentences = [
        f"{len(names)} {verdict}{': ' + ', '.join(names) if names and verdict != UNDECIDED else ''}"
        for verdict, names in by_verdict.items()
    ]
    return f"{len(decisions)} claims. {'; '.join(sentences)}."


def _summaries(decisions: Sequence[Decision]) -> list[str]:
    """Return which claims of each paper hold, as a Markdown list.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.

    Returns
    -------
    list of str
        One line for each paper, in the order of the claims.
    """
    return [f"- **{escape(paper)}**: {summary(each)}" for paper, each in _by_paper(decisions).items()]


def _by_paper(decisions: Sequence[Decision]) -> dict[str, list[Decision]]:
    """Return the decisions of each paper.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.

    Returns
    -------
    dict of str to list of Decision
        Decisions by paper, in the order of the claims.
    """
    found: dict[str, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(decision.claim.paper, []).append(decision)
    return found


def paper_sentences(decisions: Sequence[Decision], together: Collection[str] | None) -> list[str]:
    """State the level over all tested claims of each paper, and which refutations hold at it.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    together : collection of str or None
        Names of the claims that are not reproduced at the level over all tested claims of their paper. None
        if the decisions are those of some claims only: then there are no sentences.
    """
    sentences: list[str] = []
    if together is None:
        return sentences
    for paper, of_paper in _by_paper(decisions).items():
        number = sum(bool(each.tested) for each in of_paper)
        if others := len(of_paper) - number:
            have, them = ("has", "it") if others == 1 else ("have", "them")
            sentences.append(
                f"{counted(others, 'claims')} of {paper} {have} no level: no test of {them} has an interval."
            )
        if number < 2:
            continue
        refuted = [each.claim.name for each in of_paper if each.tested == NOT_REPRODUCED]
        kept = [name for name in refuted if name in together]
        remain = (
            f"{len(kept)} of {len(refuted)} {'remains' if len(refuted) == 1 else 'remain'} not reproduced"
            f"{': ' + ', '.join(kept) if kept else ''}"
            if refuted
            else "as at the level of each, all claims may be true"
        )
        sentences.append(
            f"Each tested claim has level {LEVEL:g}. If all {number} tested claims of {paper} were true, up "
            f"to {LEVEL * number:.3g} of them would be called not reproduced by chance. At level {LEVEL:g} "
            f"over all {number} claims together (Bonferroni), {remain}."
        )
    return sentences


def claims_text(
    decisions: Sequence[Decision],
    terms: Mapping[str, Terms],
    hours: Mapping[str, Hours],
    together: Collection[str] | None = None,
) -> list[str]:
    """Return a summary and a few lines for each claim, for a terminal.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    terms : mapping of str to Terms
        Differences between each study and its experiment, by name.
    hours : mapping of str to Hours
        Core hours of experiments, by name.
    together : collection of str, optional
        Names of the claims that are not reproduced at the level over all claims of their paper. None, the
        default, if the decisions are those of some claims only, whose common level says nothing.

    Returns
    -------
    list of str
        Lines of text, which begin with the summary.
    """
    lines = [summary(decisions), *paper_sentences(decisions, together)]
    for decision in decisions:
        claim, word = decision.claim, verdict_text(decision.verdict, decision.reason, decision.elsewhere)
        lines += ["", f"{claim.name} {word}", f"  {claim.text}", f"  theirs: {claim.published}"]
        ours, n = _ours(decision)
        lines += [f"  ours: {ours}{f', n = {n}' if n else ''}"] if ours else []
        lines += [f"  would decide it: {needed}" for needed in [_needs(decision, terms, hours)] if needed]
    return lines


def _counts(decisions: Sequence[Decision]) -> str:
    """Return the table of verdicts, with a row for each paper.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.

    Returns
    -------
    str
        HTML of the table.
    """
    kinds = [(verdict, verdict) for verdict in (REPRODUCED, NOT_REPRODUCED)]
    kinds += [(f"{UNDECIDED}: {reason}", UNDECIDED) for reason in REASONS]
    rows = ["<th>Claims of</th>" + "".join(f"<th>{_badge(kind, text)}</th>" for text, kind in kinds)]
    for paper, each in _by_paper(decisions).items():
        counts = Counter(one.reason or one.verdict for one in each)
        numbers = [counts[word] for word in (REPRODUCED, NOT_REPRODUCED, *REASONS)]
        rows.append(f"<td>{escape(paper)}</td>" + "".join(f"<td>{number}</td>" for number in numbers))
    return '<table class="verdicts">' + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def _badge(verdict: str, text: str) -> str:
    """Return a verdict as a coloured word.

    Parameters
    ----------
    verdict : str
        Verdict that gives the colour.
    text : str
        Text of the badge.

    Returns
    -------
    str
        HTML with a sign, which is shown also where colours are not.
    """
    sign = {REPRODUCED: "✔", NOT_REPRODUCED: "✘"}.get(verdict, "○")
    return f'<span class="verdict {verdict.replace(" ", "-")}">{sign} {escape(text)}</span>'


def _row(
    decision: Decision, studies: Collection[str], terms: Mapping[str, Terms], hours: Mapping[str, Hours]
) -> str:
    """Return the row of a claim.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    studies : collection of str
        Names of the studies that the page describes. A study that has not been run has no link.
    terms : mapping of str to Terms
        Differences between each study and its experiment, by name.
    hours : mapping of str to Hours
        Core hours of experiments, by name.

    Returns
    -------
    str
        HTML of the row, on one line.
    """
    claim = decision.claim
    name = escape(claim.name)
    text, n = _ours(decision)
    verdict = _badge(decision.verdict, decision.verdict)
    if decision.reason:
        word = decision.reason
        if decision.elsewhere and decision.elsewhere != UNDECIDED:
            word = f"{OTHER_TERMS}: {decision.elsewhere}, not counted"
        verdict += f"<br><small>{escape(word)}</small>"
    ours = [picture(decision.outcomes), escape(text)]
    if needed := _needs(decision, terms, hours):
        ours.append(f"<small>Would decide it: {escape(needed)}.</small>")
    links = ", ".join(
        f'<a href="#study-{escape(study)}">{escape(study)}</a>' if study in studies else escape(study)
        for study in claim.studies
    )
    cells = (
        f'<a href="#{name}"><b>{name}</b></a> {escape(claim.text)}',
        verdict,
        escape(claim.published),
        "<br>".join(filter(None, ours)),
        escape(n),
        links or "none",
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _ours(decision: Decision) -> tuple[str, str]:
    """Return the figure of the test that matters most, and its n.

    A refuting test comes first, then one that is undecided with a figure, then any other.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.

    Returns
    -------
    text, n : str
        Both empty if no test has a figure.
    """
    pairs = [
        (outcome, row)
        for outcome, row in zip(decision.outcomes, printed_rows(decision), strict=True)
        if outcome.figure is not None and row[1] != "–"
    ]
    if not pairs:
        return "", ""
    order = (NOT_REPRODUCED, UNDECIDED, REPRODUCED)
    _, row = min(pairs, key=lambda pair: order.index(pair[0].found))
    text = f"{row[1]} ({row[2]})" if row[2] else row[1]
    if len(decision.outcomes) > 1:
        found = Counter(_word(outcome) for outcome in decision.outcomes)
        several = ", ".join(f"{count} {word}" for word, count in found.items())
        text += f"; {len(decision.outcomes)} tests: {several}"
    return text, row[4]


def _word(outcome: Outcome) -> str:
    """Return the verdict of a test, as counted in a row.

    Parameters
    ----------
    outcome : Outcome
        Outcome of the test.

    Returns
    -------
    str
        The verdict, or the reason why it is undecided.
    """
    return outcome.reason or outcome.found


def _needs(decision: Decision, terms: Mapping[str, Terms], hours: Mapping[str, Hours]) -> str:
    """Return what would decide a claim.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    terms : mapping of str to Terms
        Differences between each study and its experiment, by name.
    hours : mapping of str to Hours
        Core hours of experiments, by name.

    Returns
    -------
    str
        Text without a full stop; empty if the claim is decided.
    """
    return "; ".join(
        f"{need.text}{f', {cost}' if (cost := hours_text(need.hours)) else ''}"
        for need in needs_of(decision, terms, hours)
    )


def _details(decision: Decision, studies: Mapping[str, Findings]) -> str:
    """Return the folded tests, notes and figures of a claim.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    studies : mapping of str to Findings
        Findings of the studies, by name.

    Returns
    -------
    str
        HTML without empty lines, which would end it for a Markdown reader.
    """
    claim = decision.claim
    word = verdict_text(decision.verdict, decision.reason, decision.elsewhere)
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in printed_rows(decision)
    )
    is_whole = len(drawn(decision.outcomes)) <= MAX_LINES
    more = "" if is_whole else f" The picture shows the first {MAX_LINES} tests with a figure."
    return (
        f'<details id="{escape(claim.name)}"><summary>{escape(claim.name)}: {escape(word)}</summary>'
        f"<p>{escape(claim.text)}. Source: {escape(claim.source)}. "
        f"Published: {escape(claim.published)}.{more}"
        f"</p><table><tr>{head}</tr>{rows}</table>{drawing(claim, studies)}</details>"
    )


def _study(name: str, study: Findings, terms: Terms) -> str:
    """Return the folded description of a study: datasets, protocol, and differences from its experiment.

    Parameters
    ----------
    name : str
        Name of the study.
    study : Findings
        Findings of the study.
    terms : Terms
        Differences between the study and its experiment.

    Returns
    -------
    str
        HTML without empty lines.
    """
    protocol = study.design.protocol
    levels = [protocol.get("outer"), *([inner] if (inner := protocol.get("inner")) is not None else [])]
    kinds = " × ".join(str(each) if isinstance(each, int) else in_words(each) for each in levels)
    unit = " folds" if isinstance(levels[-1], int) else ""
    folds = f"{kinds}{unit}, profile {protocol.get('profile')}"
    differences = f" Differences from its experiment: {'; '.join(terms.phrases)}." if terms.phrases else ""
    text = f"{', '.join(study.design.datasets)}. {folds}.{differences}{_not_converged(study)}"
    return (
        f'<details id="study-{escape(name)}"><summary>{escape(name)}</summary><p>{escape(text)}</p></details>'
    )


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
