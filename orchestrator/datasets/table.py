"""From a table to features and labels, by the names of its columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import shown

NOTES = "svmbench notes"
"""The attribute of a frame under which a loader says what it has left out."""

SPELLINGS = "svmbench spellings"
"""The attribute of a frame under which a loader keeps a function that reads a column again as text."""


def split_table(
    table: pd.DataFrame,
    source: Any,
    label: str | int,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features of a table and its column of labels.

    Parameters
    ----------
    table : DataFrame
    source : str or path
        Where it is from, for messages.
    label : str or int
        The name of the column of labels.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Columns to make categorical, for estimators that look at the type of a column.

    Raises
    ------
    DatasetError
        If there is no such column, two columns have one name, or names are no list.
    """
    require_lists(drop=drop, categories=categories)
    known = list(map(str, table.columns))
    if twice := next((name for at, name in enumerate(known) if name in known[:at]), None):
        raise DatasetError(f"{source} has two columns {twice!r}; give each column a name of its own")
    for name in [label, *drop, *categories]:
        if name not in table.columns:
            quotes = "" if isinstance(name, str) else "; a name that YAML does not read as text needs quotes"
            columns = did_you_mean(str(name), known) or f"; it has {', '.join(known[:20])}"
            raise DatasetError(f"{source} has no column {name!r}{columns}{quotes}")
    if label in drop:
        raise DatasetError(f"drop names the label {label!r} of {source}; take it off, or correct `label`")
    if unused := {*categories} & {label, *drop}:
        raise DatasetError(f"{min(unused)!r} is no feature of {source}; take it off `categories`")
    X = table.drop(columns=[label, *drop])
    return X.astype(dict.fromkeys(categories, "category")), table[label]


def require_lists(**named: Any) -> None:
    """Raise a DatasetError unless arguments are lists of names of columns.

    Parameters
    ----------
    **named
        The arguments by their names.
    """
    for key, names in named.items():
        if isinstance(names, str):  # whose characters may be names of columns
            raise DatasetError(f"{key} must be a list of columns, found {names!r}; write {key}: [{names}]")
        if not isinstance(names, Sequence):
            columns = ", ".join(map(str, names)) if isinstance(names, Mapping) else "NAME"
            raise DatasetError(
                f"{key} must be a list of columns, found {shown(names)}; write {key}: [{columns}]"
            )
        if odd := [name for name in names if type(name) not in (str, int)]:
            raise DatasetError(
                f"{key} must be a list of names of columns, found {shown(odd[0])} in it; a name that YAML "
                "does not read as text needs quotes"
            )


def noted(X: pd.DataFrame, *sentences: str) -> pd.DataFrame:
    """Return a frame that carries sentences for whoever loads the dataset; empty ones are left out."""
    X.attrs[NOTES] = [*notes_of(X), *filter(None, sentences)]
    return X


def notes_of(X: Any) -> tuple[str, ...]:
    """Return the sentences that a loader has added to its frame by `noted`; none for other types."""
    return tuple(X.attrs.get(NOTES, ())) if isinstance(X, pd.DataFrame) else ()


def with_text_reader(X: pd.DataFrame, read: Callable[[str, str], Any]) -> pd.DataFrame:
    """Return a frame that carries a function by which a column is read from the file again, as text.

    Parameters
    ----------
    X : DataFrame
    read : callable
        From the name of a column and a label type ("auto", "number" or "text") to a value for each row; None
        if the configuration gives the column a type.
    """
    X.attrs[SPELLINGS] = read
    return X


def typed_column(X: pd.DataFrame, name: str, label_type: str) -> Any:
    """Return a column whose values are names, not measurements, as labels of a type are read.

    Parameters
    ----------
    X : DataFrame
        What a loader has returned.
    name : str
    label_type : {"auto", "number", "text"}
    """
    read = X.attrs.get(SPELLINGS)
    found = read(name, label_type) if read else None
    return X[name] if found is None else found
