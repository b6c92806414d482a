"""Columns of texts that are numbers in another form, or numbers and other texts."""

import re
import shlex
from collections.abc import Callable
from functools import partial

import pandas as pd

from orchestrator.datasets.finding import COMMA, MIXED, THOUSANDS, Finding
from orchestrator.study.text import shown

_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?P<mark>[,.' \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?\s*")
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+\s*")

_WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥]?)\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*(?P<after>[^\W\d_]+[/\w²³]*|[%°$€£¥]\w*)?"
)
"""Number with a currency before it or a unit behind it."""

_MARKS = ",.' \u00a0\u202f"
"""Marks between thousands."""

_MIN_SHARE = 0.95
"""Smallest share of texts of one form for which the column has this form."""

_MIXED = 0.5
"""Smallest share of numbers in a column at which its other texts are reported."""

_MAX_UNITS = 1000
"""Largest number of different texts of which each must have the same unit."""

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

    def share(fits: Callable[[str], object]) -> float:
        return int(counts.to_numpy()[[bool(fits(text)) for text in texts]].sum()) / total

    plain, comma = share(_PLAIN.fullmatch), share(_may_have_comma)
    # A point in one number is the decimal sign of the column, and so no mark between thousands in another.
    marks = _MARKS.replace(".", "") if any(map(_has_decimal_point, texts)) else _MARKS
    shares = {mark: share(partial(_may_have_mark, mark)) for mark in marks}
    mark = max(shares, key=shares.__getitem__)
    grouped = shares[mark]
    if grouped >= _MIN_SHARE and grouped > plain and grouped >= comma:
        example = next(text for text in texts if _mark_of(text) == mark)
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
        used = ({*map(_mark_of, texts)} & {*marks}) - {","}
        thousands = f" {_override(dataset, 'thousands', [min(used)])}" if used else ""
        return Finding(
            *(COMMA, name, f"numbers with a comma as decimal sign ({shown(example)}), read as texts"),
            f"write a point{' and nothing between thousands' if thousands else ''}, or set "
            f"{_override(dataset, 'decimal', [','])}{thousands} for a CSV file",
        )
    found = [_WITH_UNIT.fullmatch(text.strip()) for text in texts[:_MAX_UNITS]]
    units = {(each["before"], each["after"]) if each else ("", None) for each in found}
    if len(units) == 1 and (unit := next(filter(None, units.pop()), None)):
        return Finding(
            *(MIXED, name, f"numbers with {shown(unit)} ({shown(texts[0])}), read as texts"),
            "write the numbers without it",
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


def _mark_of(text: str) -> str:
    """Return the mark between the thousands of a number; empty if it has none.

    Parameters
    ----------
    text : str
        Text of a cell.
    """
    found = _GROUPED.fullmatch(text)
    return found["mark"] if found else ""


def _has_decimal_point(text: str) -> bool:
    """Return whether a text is a number with a decimal point, which is no mark between thousands.

    Parameters
    ----------
    text : str
        Text of a cell, such as `0.054`. In `1.234` the point may also stand between thousands.
    """
    return "." in text and bool(_PLAIN.fullmatch(text)) and not _mark_of(text)


def _may_have_mark(mark: str, text: str) -> bool:
    """Return whether a text may be a number of a column with a mark between thousands.

    Parameters
    ----------
    mark : str
        Mark between thousands.
    text : str
        Text of a cell.
    """
    return _mark_of(text) == mark or bool(_PLAIN.fullmatch(text))


def _may_have_comma(text: str) -> bool:
    """Return whether a text may be a number of a column with a comma as decimal sign.

    Parameters
    ----------
    text : str
        Text of a cell.
    """
    return bool(_COMMA.fullmatch(text)) or bool(_PLAIN.fullmatch(text) and not _has_decimal_point(text))


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
