"""The section of a report with the claims that its study decides, and their lines."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from orchestrator.claims.decisions import NO_POWER, Decision
from orchestrator.claims.needs import needs_of
from orchestrator.claims.rows import COLUMNS, printed_rows, verdict_text
from orchestrator.store.results import StudyResults

if TYPE_CHECKING:
    from orchestrator.report import Section

CAPTION = (
    "Each claim is decided by the tests in conf/claim. A test is reproduced if the 90 % interval of its "
    "figure lies inside the region of the claim, which is two one-sided tests at level 0.05. It is not "
    "reproduced if the interval at the adjusted level lies outside; that level accounts for the number of "
    "tests. All other tests are undecided. A claim is reproduced if all its tests are, and not reproduced if "
    "one is not. A figure “on other terms” comes from a study whose protocol, solvers or datasets differ "
    "from those of the claim; it is shown and does not count. Ratios "
    "of times have two digits, because another processor would change the others; verdicts use all digits."
)


def brief(decisions: Sequence[Decision], terms: Sequence[str]) -> list[str]:
    """Return one line for each claim, and one for differences between the study and its experiment.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    terms : sequence of str
        Differences, as `Terms.phrases` lists them.

    Returns
    -------
    list of str
        Lines of text.
    """
    lines = [
        f"Claim {each.claim.name} is {verdict_text(each.verdict, each.reason, each.elsewhere)}: "
        f"{each.claim.text}{_needed(each)}"
        for each in decisions
    ]
    return [*lines, *([terms_sentence(terms)] if lines and terms else [])]


def _needed(decision: Decision) -> str:
    """Return which numbers of datasets, folds or seeds would decide a claim without power; else empty.

    Parameters
    ----------
    decision : Decision
        Decision of the claim.
    """
    if decision.reason != NO_POWER:
        return ""
    needs = [need.text for need in needs_of(decision, {}, {})]
    return f" (would decide it: {'; '.join(needs)})" if needs else ""


def terms_sentence(terms: Sequence[str]) -> str:
    """Return a sentence about the differences between a study and the experiment of its name.

    Parameters
    ----------
    terms : sequence of str
        Differences, as `Terms.phrases` lists them.

    Returns
    -------
    str
        Sentence that lists the differences.
    """
    return f"The study differs from the experiment of the claims: {'; '.join(terms)}."


class ClaimsSection:
    """A section of a report with the claims that its study decides.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions of the claims.
    terms : sequence of str
        Differences between the study and its experiment, as `Terms.phrases` lists them.
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
            {
                "Claim": f"{decision.claim.name}: {decision.verdict}",
                **dict(zip(COLUMNS, row, strict=True)),
            }
            for decision in self._decisions
            for row in printed_rows(decision)
        ]
        other = f" {terms_sentence(self._terms)}" if self._terms else ""
        return Section("Claims", f"{CAPTION}{other}", pd.DataFrame(rows))
