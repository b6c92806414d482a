"""The answer of a study as a short text: the last lines of a run, and what a notebook shows."""

import os
from pathlib import Path
from textwrap import wrap

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report.one_dataset import WIDTH, answer_block
from orchestrator.report.verdict import incomplete_note, over_datasets, verdict
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
        blocks = [_filled(" ".join(filter(None, [verdict(study), incomplete_note(study)])))]
    else:
        blocks = [answer_block(study, answer) for answer in answers.values()]
        if len(answers) > 1:
            blocks.append(_filled(over_datasets(study)))
    page = page or study.folder / "report" / "index.html"
    if page.exists():
        blocks[-1] += f"\nReport: {_short_path(page)}"
    return "\n\n".join(filter(None, blocks))


def _filled(text: str) -> str:
    return "\n".join(wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


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
