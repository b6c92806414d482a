"""The kinds of failures, each with its first message."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.section import Paragraph, Section
from orchestrator.report.sections.coverage import STATUS_TEXTS
from orchestrator.report.table import print_table

TITLE = "Failures"


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        One table, or a sentence if nothing failed.
    """
    frame = findings.failures(study)
    if frame.empty:
        return Section(TITLE, "", [Paragraph("No stored training failed or timed out.")])
    printed = print_table(
        "failures",
        TITLE,
        frame,
        {
            "Kind": lambda row: STATUS_TEXTS.get(row["status"]) or row["status"],
            "Arms": lambda row: row["solvers"],
            "Datasets": lambda row: row["datasets"],
            "Trials": lambda row: fmt.count(row["count"]),
            "With a score": lambda row: fmt.count(row["scored"]),
            "First occurrence and message": lambda row: f"{row['first']}: {row['message']}",
        },
        caption="One row for each kind of failure. Messages that differ only in numbers are of one kind. "
        "With a score: trials that nevertheless gave a usable model and are counted.",
        text_columns=3,
        last_is_text=True,
    )
    return Section(TITLE, "", [printed])
