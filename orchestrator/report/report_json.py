"""The report as JSON, for programs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report.format import reproducible
from orchestrator.report.printed import PrintedSection
from orchestrator.report.section import Drawn
from orchestrator.report.sections.methods import methods
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.table import Table, records
from orchestrator.report.verdict import answers, answers_on_datasets, incomplete_note, verdict
from orchestrator.study.text import json_text

_AS_RECORDED = ("protocol", "provenance")
"""Entries of `report.json` that repeat what was declared or recorded, with all digits."""


def report_json(
    study: Findings,
    tables: Mapping[str, Table],
    files: Sequence[str] = (),
    sections: Sequence[PrintedSection] = (),
    figures: Mapping[str, Drawn] | None = None,
) -> str:
    """Return every number of the report as JSON; a number that does not exist is null.

    Numbers that the report computes have `DIGITS` significant digits. Those that were declared or recorded,
    in the entries `_AS_RECORDED`, have all their digits.

    Parameters
    ----------
    study : Findings
        The study of the report.
    tables : mapping of str to Table
        All tables by name.
    files : sequence of str, default=()
        The files of the report, which the next one may overwrite or remove.
    sections : sequence of PrintedSection, default=()
        Those of users.
    figures : mapping of str to Drawn, optional
        All figures by name; none by default.

    Returns
    -------
    str
        A JSON object with a line for each entry of an entry.
    """
    content = {
        "study": study.name,
        "answer": verdict(study),
        "answers": [asdict(answer) for answer in answers(study)],
        "answers_on_datasets": [asdict(answer) for answer in answers_on_datasets(study)],
        "incomplete": incomplete_note(study),
        "complete": findings.is_complete(study),
        "protocol": study.design.protocol,
        "protocol_in_words": protocol(study),
        "tables": {
            name: {"title": table.title, "caption": table.caption, "rows": records(table.data)}
            for name, table in tables.items()
        },
        "figures": {
            name: records(figure.data) for name, figure in (figures or {}).items() if figure.data is not None
        },
        "sections": {
            section.name: {"title": section.title, "caption": section.caption, "text": section.paragraphs}
            for section in sections
        },
        "methods": methods(study),
        "friedman": None if (test := findings.friedman_test(study)) is None else asdict(test),
        "provenance": study.provenance,
        "files": files,
    }
    entries = (
        f"{json_text(key)}: {_lines(_plain(item, key in _AS_RECORDED))}" for key, item in content.items()
    )
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(value: Any) -> str:
    """Return JSON with a line for each entry; `json` itself takes ten times as long to indent.

    Parameters
    ----------
    value : any
        A value of JSON.
    """
    if isinstance(value, dict):
        entries = (f"  {json_text(key)}: {json_text(item)}" for key, item in value.items())
        return "{\n" + ",\n".join(entries) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json_text(item)}" for item in value) + "\n]"
    return json_text(value)


def _plain(value: Any, as_recorded: bool) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item, as_recorded) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, as_recorded) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, float) and not as_recorded:
        return reproducible(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
