"""Columns of texts that are numbers in another form, or numbers and other texts."""

import re
import shlex

import pandas as pd

from orchestrator.datasets.finding import COMMA, MIXED, THOUSANDS, Finding
from orchestrator.study.text import shown

_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?P<mark>[,.' \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?\s*")
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+\s*")

_MIN_SHARE = 0.95
"""Smallest share of texts of one form for which the column has this form."""

_MIXED = 0.5
"""Smallest share of numbers in a column at which its other texts are reported."""

_MAX_SHOWN = 3
"""Largest number of other texts that a message shows."""


def number_finding(name: str, present: pd.Series, dataset: str) -> Finding | None:
    """Return the finding that a column of texts holds numbers; None if it does not.

    Parameters
    ----------
    name : str
        Name of the column.
    present : Series
        Its texts, without gaps.
    dataset : str
        Name of the dataset, for the advice.
    """
    counts = present.value_counts()
    texts = list(map(str, counts.index))
    total = int(counts.sum())

    def share(*patterns: re.Pattern[str]) -> float:
        fits = [any(pattern.fullmatch(text) for pattern in patterns) for text in texts]
        return int(counts.to_numpy()[fits].sum()) / total

    plain, grouped, comma = share(_PLAIN), share(_PLAIN, _GROUPED), share(_PLAIN, _COMMA)
    if grouped >= _MIN_SHARE and grouped > plain and grouped >= comma:
        example = next(text for text in texts if _GROUPED.fullmatch(text))
        mark = _GROUPED.fullmatch(example)["mark"]  # type: ignore[index]
        decimal = f" {_override(dataset, 'decimal', [','])}" if mark != "," and comma > plain else ""
        return Finding(
            *(
                THOUSANDS,
                name,
                f"numbers with {shown(mark)} between thousands ({shown(example)}), read as texts",
            ),
            f"write them without it{' and with a decimal point' if decimal else ''}, or set "
            f"{_override(dataset, 'thousands', [mark])}{decimal} for a CSV file",
        )
    if comma >= _MIN_SHARE and comma > plain:
        example = next(text for text in texts if _COMMA.fullmatch(text))
        marks = {found["mark"] for found in map(_GROUPED.fullmatch, texts) if found} - {","}
        thousands = f" {_override(dataset, 'thousands', [min(marks)])}" if marks else ""
        return Finding(
            *(COMMA, name, f"numbers with a comma as decimal sign ({shown(example)}), read as texts"),
            f"write a point{' and nothing between thousands' if thousands else ''}, or set "
            f"{_override(dataset, 'decimal', [','])}{thousands} for a CSV file",
        )
    if not _MIXED <= plain < 1:
        return None
    others = [text for text in texts if not _PLAIN.fullmatch(text)]
    number = int(counts[others].sum())
    listed = ", ".join(map(shown, others[:_MAX_SHOWN])) + (", …" if len(others) > _MAX_SHOWN else "")
    rows = f"{number:,} row{'s' if number > 1 else ''}"
    advice = f"if they are gaps, set {_override(dataset, 'na_values', others)} for a CSV file"
    return Finding(
        *(MIXED, name, f"numbers and other texts ({listed} in {rows}), read as texts"),
        advice if len(others) <= _MAX_SHOWN else "correct them, or make them gaps",
    )


def _override(dataset: str, key: str, texts: list[str]) -> str:
    """Return an override of an argument of a dataset's reader, as it is typed in a shell.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    key : str
        Argument of the reader.
    texts : list of str
        Its value; only `na_values` takes a list.
    """
    value = ",".join(f'"{text}"' for text in texts)
    return shlex.quote(f"dataset.{dataset}.{key}={f'[{value}]' if key == 'na_values' else value}")
