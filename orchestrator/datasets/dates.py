"""Columns of dates: their recognition, and whether the rows are in order of time."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.datasets.finding import DATE, ORDERED, Finding
from orchestrator.study.text import shown

_SAMPLE = 200
"""Number of different values that decide whether a column holds dates."""

_MIN_SHARE = 0.95
"""Smallest share of dates among these values."""

_CLOCK = r"([T ]+\d{1,2}:\d{2}.*)?"
_NUMERIC = re.compile(rf"\d{{1,2}}([-/.])\d{{1,2}}\1(\d{{4}}|\d{{2}}){_CLOCK}")
_PATTERNS = (
    re.compile(rf"\d{{4}}([-/.])\d{{1,2}}(\1\d{{1,2}})?{_CLOCK}"),
    _NUMERIC,
    re.compile(rf"\d{{1,2}}\.?[ -]?[A-Za-z]{{3,9}}\.?,?[ -]\d{{2,4}}{_CLOCK}"),
    re.compile(rf"[A-Za-z]{{3,9}}\.? \d{{1,2}},? \d{{4}}{_CLOCK}"),
)
"""Forms of dates: 2024-01-31, 31.1.2024 or 1/31/24, 31 Jan 2024, and Jan 31, 2024; with or without a time."""

_DECADES = 19000101.0, 20991231.0
"""Smallest and largest whole number that is a date such as 20240131."""

_MIN_DISTINCT = 0.1
"""Smallest ratio of different dates to rows for which their order is remarkable."""

SPLITTER = "'protocol.outer={_target_: sklearn.model_selection.TimeSeriesSplit, n_splits: 5}'"
"""Override that tests on rows that follow the training rows."""


def date_finding(name: str, column: pd.Series, metadata: Mapping[str, Any]) -> Finding | None:
    """Return the finding that a column holds dates, and whether its rows are in order of time; or None.

    Parameters
    ----------
    name : str
        Name of the column.
    column : Series, shape (n,)
        Texts or float64, and NaN for gaps.
    metadata : mapping
        Values of the rows for splitters. A table with a given split needs no other one.
    """
    values = column.dropna().unique()
    sample = values[:: max(1, len(values) // _SAMPLE)]
    if len(values) < 2 or np.mean([_is_date(value) for value in sample]) < _MIN_SHARE:
        return None
    what = f"dates such as {shown(_written(sample[0]))}"
    is_number = isinstance(sample[0], float)
    advice = (
        "they are read as numbers; write them as 2024-01-31 to have them read as dates" if is_number else ""
    )
    order = "" if "test_fold" in metadata else _order(column, len(values))
    if not order:
        return Finding(DATE, name, what, advice)
    sort = "" if order == "ascending" else "sort the rows by it, and "
    return Finding(
        *(ORDERED, name, f"{what}, and the rows are in their order ({order})"),
        f"to test on later rows than those of the training, {sort}use {SPLITTER}",
    )


def _is_date(value: Any) -> bool:
    """Return whether a value has the form of a date.

    Parameters
    ----------
    value : object
        Text or number.
    """
    if isinstance(value, str):
        return any(pattern.fullmatch(value.strip()) for pattern in _PATTERNS)
    if not (isinstance(value, float) and _DECADES[0] <= value <= _DECADES[1] and value == int(value)):
        return False
    month, day = divmod(int(value) % 10_000, 100)
    return 1 <= month <= 12 and 1 <= day <= 31


def _written(value: Any) -> str:
    """Return a date as it is in the file.

    Parameters
    ----------
    value : object
        Text or number.
    """
    return value if isinstance(value, str) else str(int(value))


def _order(column: pd.Series, number: int) -> str:
    """Return "ascending" or "descending" if the rows are sorted by a column of dates; else an empty text.

    Parameters
    ----------
    column : Series, shape (n,)
        Dates, and NaN for gaps.
    number : int
        Number of different dates.
    """
    if number < max(3, _MIN_DISTINCT * len(column)):
        return ""
    texts = column.dropna().map(_written)
    for day_first in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, about forms that it has to guess
            times = pd.to_datetime(texts, errors="coerce", dayfirst=day_first, format="mixed", utc=True)
        if times.isna().any():
            continue
        if times.is_monotonic_increasing:
            return "ascending"
        if times.is_monotonic_decreasing:
            return "descending"
    return ""
