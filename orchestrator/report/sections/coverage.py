"""The planned and the completed trainings of a study."""

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.summaries import STATUSES
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import matrix
from orchestrator.report.limits import arms_note
from orchestrator.report.section import Paragraph, Section, folded, titled
from orchestrator.report.table import Cell, Row, Table, print_table

TITLE = "Planned and completed trainings"

STATUS_TEXTS = {
    "timeout": "timed out",
    "diverged": "diverged",
    "error": "failed",
    "worker_lost": "lost because their worker died",
}
"""Displayed names of the statuses of trials that did not finish."""

_MAX_NAMED = 4
"""Largest number of arms that a note names."""


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        A note, the table of trainings, and the trials that do not count.
    """
    counts = table(study)
    each = folded(study, "Trainings of each dataset and arm", [] if counts is None else [counts])
    changed = [Paragraph(f"{sentence}.") for sentence in study.changed]
    parts = [Paragraph(coverage_note(study)), *changed, *each, *titled(excluded_table(study))]
    return Section(TITLE, "", parts, link="Trainings")


def table(study: Findings) -> Table | None:
    """Print the number of trainings with a score, as datasets × arms.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None if no dataset × arm is declared.
    """
    frame = findings.coverage(study)
    if frame.empty:
        return None
    known = bool(frame["planned"].notna().all())

    def cell(row: Row) -> Cell:
        planned = row["planned"] if known else None
        text = f"{row['scored']:,}" + ("" if planned is None else f" of {planned:,}")
        bad = [f"{row[status]:,} {STATUS_TEXTS[status]}" for status in STATUSES[1:] if row[status]]
        missing = 0 if planned is None else planned - row["stored"]
        if missing > 0:
            bad.append(f"{missing:,} not run yet")
        if bad:
            return Cell(f"{text} ({', '.join(bad)})", tone="bad" if row["scored"] < row["stored"] else "warn")
        return Cell(text, tone="good" if planned is not None else "")

    trainings = "(inner folds × grid points + 1 refit)" if study.design.selects else "grid points"
    planned = (
        f"Planned for each dataset and arm: outer folds × {trainings} trainings."
        if known
        else "The search determines the number of trainings while it runs, so it is not known in advance."
    )
    caption = (
        f"Number of trainings that gave a score. {planned} A training that reached its time limit but still "
        f"gave a model has a score and is counted.{arms_note(study)}"
    )
    return matrix(study, "coverage", TITLE, frame, cell, caption)


def excluded_table(study: Findings) -> Table | None:
    """Print the stored trials of declarations that are no longer in force.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None if every stored trial counts.
    """
    if study.excluded.empty:
        return None
    return print_table(
        "apart",
        "Excluded trials of former declarations",
        study.excluded,
        {
            "Dataset": lambda row: row["dataset"],
            "Arm": lambda row: row["solver"],
            "Trials": lambda row: fmt.count(row["trials"]),
            "Reason": lambda row: row["why"],
        },
        caption="This report does not use these stored trials. The newest run that names their dataset or "
        "solver, or the newest run of all, declared other settings. Run the command again with the former "
        "settings to include them.",
        text_columns=2,
        last_is_text=True,
    )


def coverage_note(study: Findings) -> str:
    """Return the number of trainings with a score, and the statuses of the others.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        One sentence.
    """
    frame = findings.coverage(study)
    if frame.empty:
        return "No training is planned."
    stored, scored = int(frame["stored"].sum()), int(frame["scored"].sum())
    bad = [
        f"{number:,} {STATUS_TEXTS[name]} ({_arms(frame, name)})"
        for name in STATUSES[1:]
        if (number := frame[name].sum())
    ]
    if frame["planned"].isna().any():
        planned = f"{fmt.plural(stored, 'training')} stored, {scored:,} with a score"
    else:
        total = int(frame["planned"].sum())
        have = "has" if scored == 1 else "have"
        planned = f"{scored:,} of {fmt.plural(total, 'planned training')} {have} a score"
        ended = sum(_not_run(frame, study, ended=True))
        still = sum(_not_run(frame, study, ended=False))
        bad += [f"{ended:,} never run because no candidate had a score"] if ended else []
        bad += [f"{still:,} not run yet"] if still else []
    return f"{planned}{'; ' if bad else ''}{', '.join(bad)}."


def _not_run(frame: pd.DataFrame, study: Findings, ended: bool) -> Iterator[int]:
    """Yield the number of trainings without a row for each dataset × arm that has ended, or has not.

    Parameters
    ----------
    frame : DataFrame
        Counts of trials, as `findings.coverage` returns them.
    study : Findings
        The study of the report.
    ended : bool
        Whether to count dataset × arm that have ended, or those that have not.

    Yields
    ------
    int
        A number of trainings.
    """
    for dataset, arm, number in zip(frame["dataset"], frame["solver"], frame["not_run"], strict=True):
        state = study.states.get((dataset, arm))
        if (state is not None and state.complete) is ended:
            yield int(number)


def _arms(frame: pd.DataFrame, status: str) -> str:
    """Name the arms with trainings of a status, or count them if there are many.

    Parameters
    ----------
    frame : DataFrame
        Counts of trials, as `findings.coverage` returns them.
    status : str
        Name of a status.
    """
    arms = list(frame.loc[frame[status] > 0, "solver"].unique())
    return ", ".join(arms) if len(arms) <= _MAX_NAMED else fmt.plural(len(arms), "arm")
