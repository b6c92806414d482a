"""Section of a report with the claims that its study decides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from orchestrator.claims.decisions import Decision
from orchestrator.claims.page import CAPTION, COLUMNS, printed_rows, terms_sentence
from orchestrator.store.results import StudyResults

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
