"""Share of the rows of each class that are found, and of other rows that are given to it."""

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.limits import arms_note
from orchestrator.report.section import Section, folded

TITLE = "Rates of each class"


def section(study: Findings) -> Section | None:
    """Return the section; None without stored predictions.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        A table.
    """
    frame = findings.class_rates(study)
    if frame.empty:
        return None
    table = rows_by_dataset(
        study,
        "class_rates",
        TITLE,
        frame,
        {
            "Class": lambda row: str(row["class"]),
            "Rows": lambda row: fmt.count(row["n_rows"]),
            "Found, %": lambda row: fmt.share(row["found"]),
            "Given of the others, %": lambda row: fmt.share(row["given"]),
        },
        caption="Found: share of the test rows of the class that are predicted as it. Given of the others: "
        "share of the test rows of all other classes that are predicted as it. The rows of all outer folds "
        f"count together.{arms_note(study)}",
    )
    return Section(TITLE, "", folded(study, TITLE, [table]), link="Classes", needs_scores=True)
