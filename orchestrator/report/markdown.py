"""The short report for a terminal."""

import re

from orchestrator.analysis.findings import Findings, analyse, is_empty
from orchestrator.analysis.pairwise import all_pairs
from orchestrator.report.sections import against_reference, coverage, scores, standings, tests
from orchestrator.report.table import Table
from orchestrator.report.verdict import answers, incomplete_note, verdict
from orchestrator.store.results import StudyResults
from orchestrator.study.text import printable

_NOTES = {
    "scores": "±: standard error, corrected for the training rows that folds share. In parentheses: the "
    "descriptive standard error."
}
_LEFT_OUT = {"tests": {"Datasets", "A higher / same / lower"}}
"""Columns that are left out because a terminal is too narrow."""


def markdown_summary(results: StudyResults, findings: Findings | None = None) -> str:
    """Return the verdict and its tables, as Markdown that is also readable as plain text.

    Parameters
    ----------
    results : StudyResults
        The study, complete or not.
    findings : Findings, optional
        The study as `analyse` returns it; by default with the choices of its newest run.

    Returns
    -------
    str
        A heading, sentences and tables.
    """
    study = findings or analyse(results)
    empty = is_empty(study)
    note = "" if empty else incomplete_note(study)
    parts = [f"# {escape(study.name)}"]
    if not all_pairs(len(study.design.arms), study.design.adjustment) and not empty:
        parts += [f"**{escape(answer.question)}** {escape(answer.text)}" for answer in answers(study)]
        table = standings.brief_table(study)
        parts += [escape(note), escape(coverage.coverage_note(study)), _table(table, table.caption)]
        tables: list[Table | None] = []
    else:
        parts += [escape(verdict(study)), escape(note)]
        tables = [coverage.table(study), None if empty else scores.table(study), tests.table(study)]
    tables += [*against_reference.tables(study), coverage.excluded_table(study)]
    parts += [_table(table, _NOTES.get(table.name, "")) for table in tables if table is not None]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(table: Table, note: str = "") -> str:
    keep = [i for i, text in enumerate(table.header) if text not in _LEFT_OUT.get(table.name, ())]
    header = [escape(table.header[i]) for i in keep]
    rows = [[_cell(row[i].text, row[i].strong) for i in keep] for row in table.rows]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(keep))]
    text = [table.is_text(i) for i in keep]

    def line(cells: list[str], fill: str = " ") -> str:
        sides = zip(cells, widths, text, strict=True)
        padded = (cell.ljust(width, fill) if left else cell.rjust(width, fill) for cell, width, left in sides)
        return f"| {' | '.join(padded)} |"

    rule = line(["" if left else ":" for left in text], "-")
    lines = [f"## {escape(table.title)}", "", line(header), rule, *map(line, rows)]
    if note:
        lines += ["", escape(note)]
    return "\n".join(lines)


def _cell(text: str, strong: bool) -> str:
    return f"**{escape(text)}**" if strong else escape(text)


_SPECIAL = re.compile(
    r"""
    [\\`*|~]                                # anywhere
    | (?<![^\W_])_ | _(?![^\W_])             # not between two letters or digits
    | \](?=[(\[:])                          # what would make a link of the brackets before it
    | <(?=[A-Za-z/!?])                      # tags and autolinks
    | &(?=[A-Za-z#])                        # entities
    | (?:(?<=^)|(?<=\s))\#                  # headings, and the end of one
    | ^[-+>=]                               # lists, quotations, rules
    """,
    re.VERBOSE,
)
_SPACES = re.compile(r"[ \t\n]+")
_NUMBERED = re.compile(r"^([0-9]{1,9})([.)])(?=\s|$)")


def escape(text: str) -> str:
    """Escape only the characters that Markdown interprets, so that the text is readable unrendered.

    Parameters
    ----------
    text : str
        Any text.
    """
    line = _SPACES.sub(" ", printable(text, keep="\n\t")).strip()
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
