"""The section of a report that shows the claims which its study decides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from orchestrator.claims.decisions import Decision
from orchestrator.claims.page import CAPTION, COLUMNS, printed_rows, terms_sentence
from orchestrator.store.results import StudyResults

if TYPE_CHECKING:
    from orchestrator.report import Section


class ClaimsSection:
    """A section of a report: the claims that its study decides.

    Parameters
    ----------
    decisions : list of Decision
    terms : list of str
        See `other_terms`.
    """

    name = "claims"
    """The section's name in `report.json` and in names of files."""

    def __init__(self, decisions: Sequence[Decision], terms: Sequence[str]):
        self._decisions, self._terms = decisions, terms

    def __call__(self, results: StudyResults) -> "Section":
        """Return the section."""
        from orchestrator.report import Section  # which imports matplotlib

        rows = [
            {"Claim": f"{decision.claim.name}: {decision.verdict}", **dict(zip(COLUMNS, row, strict=True))}
            for decision in self._decisions
            for row in printed_rows(decision)
        ]
        other = f" {terms_sentence(self._terms)}" if self._terms else ""
        return Section("Claims", f"{CAPTION}{other}", pd.DataFrame(rows))
