"""The answer of a study as a short text: the last lines of a run, and what a notebook shows."""

import os
from pathlib import Path

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report.one_dataset import answer_block, budget_note, filled
from orchestrator.report.verdict import about_report, incomplete_note, over_datasets, verdict
from orchestrator.store.results import StudyResults


def answer_text(results: StudyResults, page: Path | None = None) -> str:
    """Return the answer of a study as text of 80 columns.

    A study of one to three datasets gets a block for each dataset: its size, a line for each solver, and
    sentences. Tests over datasets follow from two datasets on. A study of more datasets gets only their
    conclusion.

    Parameters
    ----------
    results : StudyResults
        The study, complete or not. It may be prepared for a report already.
    page : Path, optional
        Page of the report, which the last line names. By default `report/index.html` of the study, if it
        exists.

    Returns
    -------
    str
        Lines without a line break at the end.
    """
    study = results if isinstance(results, Findings) else analyse(results)
    answers = findings.dataset_answers(study)
    if not answers or findings.is_empty(study):
        sentences = _without_blocks(study)
        blocks = ["\n".join(filled(" ".join(filter(None, sentences))))]
    else:
        blocks = [answer_block(study, answer) for answer in answers.values()]
        about_all = [over_datasets(study), about_report(study)]
        blocks.append("\n".join(filled(" ".join(filter(None, about_all)))))
    blocks = [block for block in blocks if block]
    own = study.folder / "report" / "index.html"
    if page is not None or own.exists():
        blocks[-1] += f"\nReport: {page or _short_path(own)}"
    return "\n\n".join(blocks)


def _without_blocks(study: Findings) -> list[str]:
    """Return the sentences about a study of many datasets, or about one without any score.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if not findings.is_empty(study):
        return [verdict(study), incomplete_note(study), budget_note(study)]
    if spent := budget_note(study):
        return [f"No outer fold of the study {study.name} has a score yet.", spent]
    return [verdict(study)]


def _short_path(path: Path) -> str:
    """Return a path relative to the working folder if it lies below it, else as it is.

    Parameters
    ----------
    path : Path
        An existing file.
    """
    absolute = path.absolute()
    try:
        return os.fspath(absolute.relative_to(Path.cwd()))
    except (ValueError, OSError):  # another folder, or the working folder was removed
        return os.fspath(absolute)
