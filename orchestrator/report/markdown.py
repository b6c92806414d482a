"""The short report for a terminal."""

import re

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO
from orchestrator.report.coverage import coverage_note
from orchestrator.report.standings import standings_in_brief
from orchestrator.report.table import Table
from orchestrator.report.tables import all_tables
from orchestrator.report.verdict import answers, incomplete_note, verdict
from orchestrator.store.results import StudyResults
from orchestrator.study.text import printable

_SHOWN = ("coverage", "scores", "tests", "apart")
_SHOWN_OF_MANY = ("apart",)
_NOTES = {
    "scores": "±: standard error, corrected for the training rows that folds share; in parentheses the "
    "descriptive one."
}
_LEFT_OUT = {"tests": {"Datasets", "A higher / same / lower"}}
"""Columns for which a terminal has no room."""


def markdown_summary(results: StudyResults, findings: Findings | None = None) -> str:
    """Return the verdict and the tables behind it, as Markdown that reads well unrendered."""
    findings = findings or analyse(results)
    note = "" if findings.is_empty else incomplete_note(findings)
    many = len(findings.design.arms) > ALL_PAIRS_UP_TO and not findings.is_empty
    parts = [f"# {escape(results.name)}"]
    if many:
        said = [f"**{escape(answer.question)}** {escape(answer.text)}" for answer in answers(findings)]
        table = standings_in_brief(findings)
        parts += [*said, escape(note), escape(coverage_note(findings)), _table(table, table.caption)]
    else:
        parts += [escape(verdict(findings)), escape(note)]
    tables = all_tables(findings)
    shown = _SHOWN_OF_MANY if many else _SHOWN
    parts += [_table(tables[name], _NOTES.get(name, "")) for name in shown if name in tables]
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
    """Escape what Markdown would not print as it stands, and no more, so that it reads well unrendered."""
    line = _SPACES.sub(" ", printable(text, keep="\n\t")).strip()
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
