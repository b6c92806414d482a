"""Findings about the columns of a table that a person would want to know before anything is trained."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset
from orchestrator.datasets.dates import date_finding
from orchestrator.datasets.finding import (
    CONSTANT,
    GAPS,
    GROUPED,
    IDENTIFIER,
    LABEL,
    SPELLINGS,
    TEXTS,
    TOTAL,
    Finding,
)
from orchestrator.datasets.number_texts import number_finding
from orchestrator.study.column_overrides import drop_override, groups_override
from orchestrator.study.text import format_share, shown

MIN_ROWS = 10
"""Smallest number of rows for which different values in all rows are remarkable."""

_SAMPLE = 1000
"""Number of rows that decide whether a column needs a closer look."""

_DENSE = 20
"""Largest ratio of the range of whole numbers to the number of rows at which they count as row numbers."""

_MANY = 0.5
"""Smallest share of different texts for which a column of texts is remarkable."""

_DIFFERENT = 0.97
"""Smallest share of different values for which a column identifies rows, of which some may be copies."""

_MANY_GROUPS = 50
"""Number of different whole numbers from which a column that names somebody holds identifiers."""

_ROWS_OF_GROUP = 10
"""Largest number of rows for each of fewer whole numbers at which they count as identifiers."""

_PROSE = 40
"""Smallest mean length at which different texts count as prose instead of identifiers, in characters."""

_ID = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|identifier)$", re.IGNORECASE)
_ID_CAMEL = re.compile(r"[a-z]I[dD]$")
_WHO = re.compile(
    r"(^|[ _.-])(patient|customer|client|user|subject|person|member|account|household|session|student|"
    r"participant|animal|device|machine|site|hospital)([ _.-]?(id|(no|nr)\.?|number|code|key))?$",
    re.IGNORECASE,
)
"""Names of columns that say whom a row is about."""

_TOTAL = re.compile(
    r"\s*(grand[ -]?|sub[ -]?)?(total|totals|sum|summe|gesamt|insgesamt|somme|suma)\s*:?\s*", re.I
)
"""Text in a row of totals."""


def column_findings(dataset: Dataset) -> list[Finding]:
    """Return what is remarkable about the columns and the labels of a table, column by column.

    Parameters
    ----------
    dataset : Dataset
        Dataset whose columns have names. There are no findings for others, nor for sparse matrices.
    """
    if not dataset.columns or scipy.sparse.issparse(dataset.X):
        return []
    found = list(_on_labels(dataset))
    for at, name in enumerate(dataset.columns):
        found += _on_column(name, _column(dataset.X, at), dataset)
    return [*found, *_on_last_row(dataset)]


def _column(X: Any, at: int) -> pd.Series:
    """Return a column of the features; categories become their values.

    Parameters
    ----------
    X : array or DataFrame, shape (n, d)
        Features of all samples.
    at : int
        Index of the column.
    """
    column = X.iloc[:, at] if isinstance(X, pd.DataFrame) else pd.Series(X[:, at])
    return column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column


def _on_column(name: str, column: pd.Series, dataset: Dataset) -> Iterator[Finding]:
    """Yield what is remarkable about one column.

    Parameters
    ----------
    name : str
        Name of the column.
    column : Series, shape (n,)
        Numbers as float64, or `str` objects and NaN.
    dataset : Dataset
        Dataset that contains the column.

    Yields
    ------
    Finding
        One for the gaps, and at most one for the values.
    """
    gaps = int(column.isna().sum())
    present = column[column.notna()]
    if gaps == len(column):
        yield Finding(CONSTANT, name, "no value in any row")
        return
    if gaps:
        share = format_share(max(gaps / len(column), 0.001), 1).replace(".0 %", " %")
        yield Finding(GAPS, name, f"{share} gaps ({gaps:,} of {len(column):,} rows)", short=share)
    if present.iloc[:_SAMPLE].nunique() == 1 and present.nunique() == 1:
        if not gaps:
            yield Finding(CONSTANT, name, f"{_value(present.iloc[0])} in all rows, so it tells nothing")
        return
    is_text = isinstance(present.iloc[0], str)
    found = _label_again(name, column, dataset)
    if found is None and is_text:
        found = number_finding(name, present, dataset.name)
    if found is None:
        found = date_finding(name, column, dataset.metadata)
    if found is None and len(present) >= MIN_ROWS:
        found = (_on_texts if is_text else _on_numbers)(name, present)
    if found is not None:
        yield found


def _on_texts(name: str, present: pd.Series) -> Finding | None:
    """Return what is remarkable about a column of texts; None if nothing is.

    Parameters
    ----------
    name : str
        Name of the column.
    present : Series
        Its texts, without gaps.
    """
    n, texts = len(present), present.unique()
    length = float(np.mean([len(text) for text in texts[:_SAMPLE]]))
    if len(texts) >= _DIFFERENT * n and length < _PROSE:
        text = f"{_in_rows(len(texts), n, 'text')}, as an identifier has ({shown(texts[0])})"
        return Finding(IDENTIFIER, name, text)
    if len(texts) > _MANY * n:
        text = f"{len(texts):,} different texts in {n:,} rows"
        return Finding(TEXTS, name, text, "texts that hardly recur tell a solver little")
    if _names_somebody(name) and len(texts) >= MIN_ROWS:
        return _grouped(name, len(texts), n)
    if twins := _twins(texts[:_SAMPLE]):
        text = f"{shown(twins[0])} and {shown(twins[1])} differ only in case or spaces"
        return Finding(SPELLINGS, name, text)
    return None


def _on_numbers(name: str, present: pd.Series) -> Finding | None:
    """Return what is remarkable about a column of numbers; None if nothing is.

    Parameters
    ----------
    name : str
        Name of the column.
    present : Series
        Its numbers, without gaps.
    """
    n, values = len(present), present.to_numpy(dtype=np.float64)
    first = values[:_SAMPLE]
    is_named, names_somebody = bool(_ID.search(name) or _ID_CAMEL.search(name)), _names_somebody(name)
    may_identify = names_somebody or len(np.unique(first)) >= _DIFFERENT * len(first)
    if not may_identify or (np.rint(first) != first).any() or (np.rint(values) != values).any():
        return None
    number = len(np.unique(values))
    if number >= _DIFFERENT * n:
        steps = np.diff(values)
        is_ordered = max(np.mean(steps > 0), np.mean(steps < 0)) >= _DIFFERENT
        if is_named or is_ordered or np.ptp(values) < _DENSE * n:
            text = f"{_in_rows(number, n, 'whole number')}, as an identifier has"
            return Finding(IDENTIFIER, name, text)
    # A household may be its size, and a session the number of them: such counts have few values.
    are_many = number >= min(_MANY_GROUPS, n / _ROWS_OF_GROUP)
    is_grouped = is_named or (names_somebody and are_many)
    return _grouped(name, number, n) if is_grouped and number >= MIN_ROWS else None


def _in_rows(number: int, n: int, what: str) -> str:
    """Return the finding that a column has a different value in every row, or in nearly every one.

    Parameters
    ----------
    number : int
        Number of different values.
    n : int
        Number of rows.
    what : str
        Kind of the values, such as "text".
    """
    nearly = "" if number == n else "nearly "
    return f"a different {what} in {nearly}every row"


def _value(value: Any) -> str:
    """Return a value as a file has it: whole numbers without a decimal point.

    Parameters
    ----------
    value : object
        Text or number.
    """
    return shown(int(value)) if isinstance(value, float) and value == np.rint(value) else shown(value)


def _names_somebody(name: str) -> bool:
    """Return whether a column's name says that it identifies whom a row is about.

    Parameters
    ----------
    name : str
        Name of the column.
    """
    return bool(_ID.search(name) or _ID_CAMEL.search(name) or _WHO.search(name))


def _grouped(name: str, number: int, n: int) -> Finding:
    """Return the finding about an identifier that occurs in several rows.

    Parameters
    ----------
    name : str
        Name of the column.
    number : int
        Number of different identifiers.
    n : int
        Number of rows.
    """
    return Finding(
        GROUPED,
        name,
        f"{number:,} identifiers in {n:,} rows, so that training and test rows may share one",
        f"keep its rows together with {groups_override(name)}, or leave it out with {drop_override([name])}",
    )


def _label_again(name: str, column: pd.Series, dataset: Dataset) -> Finding | None:
    """Return the finding that a column is a copy or another code of the labels; None if it is not.

    Parameters
    ----------
    name : str
        Name of the column.
    column : Series, shape (n,)
        Values, and NaN for gaps.
    dataset : Dataset
        Dataset with the labels.
    """
    number = len(dataset.classes)
    if column.iloc[: 10 * _SAMPLE].nunique() > number or column.nunique() != number:
        return None
    codes, values = pd.factorize(column)
    present = codes >= 0
    pairs = np.unique(np.stack([codes[present], dataset.codes[present]]), axis=1)
    if pairs.shape[1] != number or len(np.unique(pairs[1])) != number or present.mean() < 0.5:
        return None
    if number == len(column):
        return None
    of_class = {dataset.classes[label].item(): values[code] for code, label in pairs.T.tolist()}
    is_copy = all(label == value for label, value in of_class.items())
    label, value = next(iter(of_class.items()))
    other = f"the label in other words ({_value(value)} for {shown(label)})"
    return Finding(LABEL, name, "a copy of the label" if is_copy else other)


def _on_labels(dataset: Dataset) -> Iterator[Finding]:
    """Yield labels that differ only in case or spaces.

    Parameters
    ----------
    dataset : Dataset
        Dataset with the labels.

    Yields
    ------
    Finding
        At most one.
    """
    if dataset.classes.dtype.kind == "U" and (twins := _twins(dataset.classes[:_SAMPLE].tolist())):
        text = f"the labels {shown(twins[0])} and {shown(twins[1])} differ only in case or spaces"
        yield Finding(SPELLINGS, "", text, "write one of them, unless they are different classes")


def _twins(texts: Any) -> tuple[str, str] | None:
    """Return two texts that differ only in case or spaces; None if there are none.

    Parameters
    ----------
    texts : iterable of str
        Texts without repetitions.
    """
    known: dict[str, str] = {}
    for text in texts:
        other = known.setdefault(" ".join(text.lower().split()), text)
        if other != text:
            return other, text
    return None


def _on_last_row(dataset: Dataset) -> Iterator[Finding]:
    """Yield the finding that the last row seems to hold totals.

    Parameters
    ----------
    dataset : Dataset
        Table with at least `MIN_ROWS` rows.

    Yields
    ------
    Finding
        At most one.
    """
    n = len(dataset.codes)
    if n < MIN_ROWS:
        return
    last = [str(dataset.classes[dataset.codes[-1]])]
    sums = []
    for at, name in enumerate(dataset.columns):
        column = _column(dataset.X, at)
        value = column.iloc[-1]
        if isinstance(value, str):
            last.append(value)
        elif column.dtype == np.float64 and _is_sum(column.to_numpy()):
            sums.append(name)
    text = next((text for text in last if _TOTAL.fullmatch(text)), None)
    if text is None and not sums:
        return
    why = shown(text) if text is not None else f"it has the sum of {sums[0]!r}"
    yield Finding(
        *(TOTAL, "", f"the last row seems to be a row of totals ({why})"),
        f"remove it from the file, or set dataset.{dataset.name}.skipfooter=1 for a CSV file",
    )


def _is_sum(values: NDArray[np.float64]) -> bool:
    """Return whether the last number is the sum of all others, of which at least two are not zero.

    Parameters
    ----------
    values : float64 array, shape (n,)
        Values of a column.
    """
    others, last = values[:-1], values[-1]
    if not np.isfinite(last) or last == 0 or np.count_nonzero(np.nan_to_num(others)) < 3:
        return False
    return bool(
        np.isclose(np.nansum(others), last, rtol=1e-9, atol=0) and abs(last) > np.nanmax(np.abs(others))
    )
