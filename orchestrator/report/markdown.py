"""The short report for a terminal."""

from orchestrator.analysis.findings import analyse
from orchestrator.report.answer import answer, incomplete_note
from orchestrator.report.facts import apart
from orchestrator.report.printed import Table
from orchestrator.report.tables import all_tables
from orchestrator.results import StudyResults

_SHOWN = ("coverage", "scores", "tests", "apart")
_SHORT = {
    "tests": (
        "Pair, A − B",
        "Typical difference",
        "p",
        "Smallest possible p",
        "Adjusted p",
        "Verdict",
    )
}


def markdown_summary(results: StudyResults) -> str:
    """Return the answer in words and the tables behind it, as Markdown that reads well unrendered."""
    findings = analyse(results)
    tables = all_tables(findings)
    if len(results.apart):
        tables["apart"] = apart(findings)
    parts = [f"# {results.name}", answer(findings)]
    if not findings.is_empty and (note := incomplete_note(findings)):
        parts.append(note)
    parts += [_table(tables[name]) for name in _SHOWN if name in tables]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    keep = [i for i, text in enumerate(table.header) if text in _SHORT.get(table.name, table.header)]
    header = [table.header[i] for i in keep]
    rows = [[_cell(row[i].text, row[i].strong) for i in keep] for row in table.rows]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(keep))]
    text = [table.is_text(i) for i in keep]
    rule = [
        "-" * width if left else "-" * (width - 1) + ":" for width, left in zip(widths, text, strict=True)
    ]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(cells, widths, text, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    return "\n".join([f"## {table.title}", "", line(header), line(rule), *map(line, rows)])


def _cell(text: str, strong: bool) -> str:
    plain = " ".join(text.split()).replace("|", "\\|")
    return f"**{plain}**" if strong else plain
