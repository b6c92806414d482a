"""The type of a finding about a column of a table, and its kinds."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.study.column_overrides import drop_override

IDENTIFIER, GROUPED, CONSTANT, LABEL = "identifier", "repeated identifier", "constant", "label again"
GAPS, TEXTS, SPELLINGS, TOTAL = "gaps", "many texts", "spellings", "row of totals"
DATE, ORDERED = "dates", "order of time"
MIXED, COMMA, THOUSANDS = "numbers and texts", "decimal comma", "separators of thousands"
"""Kinds of findings."""

WHOLE = (LABEL, GROUPED, ORDERED, TOTAL, SPELLINGS)
"""Kinds that a short list of findings gives as whole sentences."""


@dataclass(frozen=True)
class Finding:
    """Something remarkable about a column.

    Attributes
    ----------
    kind : str
        Kind, such as "identifier".
    column : str
        Name of the column; empty for the labels and for rows.
    text : str
        The finding, which may follow the name of the column.
    advice : str
        Remedy for the user; empty if nothing needs to be done.
    short : str
        The finding in one or two words beside the column's name, such as "12 %"; empty by default.
    """

    kind: str
    column: str
    text: str
    advice: str = ""
    short: str = ""

    def sentence(self) -> str:
        """Return the finding as a sentence."""
        start = f"column {self.column!r}: " if self.column else ""
        return f"{start}{self.text}{f'; {self.advice}' if self.advice else ''}"


USELESS = (IDENTIFIER, CONSTANT, LABEL)
"""Kinds of columns that a user will want to leave out."""


def left_out(findings: Iterable[Finding]) -> str:
    """Return a sentence with the override that leaves out the useless columns; empty if there are none.

    Parameters
    ----------
    findings : iterable of Finding
        Findings about a table.
    """
    names = [each.column for each in findings if each.kind in USELESS]
    return f"to leave out such columns: {drop_override(names)}" if names else ""


READ_AS_TEXTS = (COMMA, THOUSANDS)
"""Kinds of columns whose numbers are read as texts, although an argument of the reader changes that."""

MAX_COLUMNS = 4
"""Largest number of columns of a kind that a short list names."""


def brief(findings: list[Finding]) -> str:
    """Return the findings in one line, by kind; those of `WHOLE` are left out.

    Parameters
    ----------
    findings : list of Finding
        Findings about a table.
    """
    kinds: dict[str, list[str]] = {}
    advice = {each.kind: f" ({each.advice})" for each in findings if each.kind in READ_AS_TEXTS}
    for each in findings:
        if each.kind not in WHOLE:
            kinds.setdefault(each.kind, []).append(each.column + (f" {each.short}" if each.short else ""))
    return "; ".join(f"{kind}: {_listed(columns)}{advice.get(kind, '')}" for kind, columns in kinds.items())


def _listed(columns: list[str]) -> str:
    """Return the names of columns, or the first of many.

    Parameters
    ----------
    columns : list of str
        Names to list.
    """
    more = len(columns) - MAX_COLUMNS
    return ", ".join(columns[:MAX_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")
