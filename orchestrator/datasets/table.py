"""Conversion of a table to features and labels, by column names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown

NOTES = "svmbench notes"
"""Key in `DataFrame.attrs` of the loader's sentences about unused parts of the file."""

SPELLINGS = "svmbench spellings"
"""Key in `DataFrame.attrs` of the loader's function that reads a column again as text."""


_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)?")
"""Name that pandas gives to a column without a name, also after the table was saved and read again."""

REFUSE, DROP = "refuse", "drop"
"""Values of the argument `unlabelled` of loaders: rows without a label are an error, or are dropped."""

_MAX_ROWS = 5
"""Largest number of rows without a label whose locations a note names."""


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
        Table with labels.
    source : str or path
        Origin of the table, for messages.
    label : str or int
        Name of the column of labels.
    drop : sequence of str
        Columns that are not features, such as an identifier.
    categories : sequence of str
        Columns to convert to categories, for estimators that use the type of a column.

    Raises
    ------
    DatasetError
        If a column does not exist, two columns have one name, or names are not a list.
    """
    require_lists(drop=drop, categories=categories)
    known = list(map(str, table.columns))
    if twice := next((name for at, name in enumerate(known) if name in known[:at]), None):
        raise DatasetError(f"{source} has two columns {twice!r}; give each column a different name")
    for name in [label, *drop, *categories]:
        if name not in table.columns:
            quotes = "" if isinstance(name, str) else "; a name that YAML does not read as text needs quotes"
            columns = did_you_mean(str(name), known) or f"; it has {', '.join(known[:20])}"
            raise DatasetError(f"{source} has no column {name!r}{columns}{quotes}")
    if label in drop:
        raise DatasetError(f"drop names the label {label!r} of {source}; remove it, or correct `label`")
    if unused := {*categories} & {label, *drop}:
        raise DatasetError(f"{min(unused)!r} is not a feature of {source}; remove it from `categories`")
    X = table.drop(columns=[label, *drop])
    return X.astype(dict.fromkeys(categories, "category")), table[label]


def require_lists(**named: Any) -> None:
    """Raise a DatasetError unless arguments are lists of column names.

    Parameters
    ----------
    **named
        Arguments, by name.
    """
    for key, names in named.items():
        if isinstance(names, str):  # a string is a sequence of one-character names
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
    """Add the loader's sentences to a frame and return it.

    Parameters
    ----------
    X : DataFrame
        Features of a loader.
    *sentences : str
        Sentences for the user; empty ones are omitted.
    """
    X.attrs[NOTES] = [*notes_of(X), *filter(None, sentences)]
    return X


def notes_of(X: Any) -> tuple[str, ...]:
    """Return the sentences that `noted` has added to a frame; empty for other types.

    Parameters
    ----------
    X : object
        Features of a loader.
    """
    return tuple(X.attrs.get(NOTES, ())) if isinstance(X, pd.DataFrame) else ()


def with_text_reader(X: pd.DataFrame, read: Callable[[str, str], Any]) -> pd.DataFrame:
    """Add a function to a frame that reads a column of the file again as text, and return the frame.

    Parameters
    ----------
    X : DataFrame
        Features of a loader.
    read : callable
        Function of a column name and a label type ("auto", "number" or "text"). It returns a value for each
        row, or None if the configuration sets the type of the column.
    """
    X.attrs[SPELLINGS] = read
    return X


def typed_column(X: pd.DataFrame, name: str, label_type: str) -> Any:
    """Return a column of names, such as groups, converted like labels of a type.

    Parameters
    ----------
    X : DataFrame
        Features of a loader.
    name : str
        Name of the column.
    label_type : {"auto", "number", "text"}
        Type of the values.
    """
    read = X.attrs.get(SPELLINGS)
    found = read(name, label_type) if read else None
    return X[name] if found is None else found


def require_unlabelled(unlabelled: Any) -> None:
    """Raise a DatasetError unless a value is "refuse" or "drop".

    Parameters
    ----------
    unlabelled : object
        Configured value.
    """
    if unlabelled not in (REFUSE, DROP):
        raise DatasetError(f"expected unlabelled: {REFUSE} or {DROP}, found {shown(unlabelled)}")


def unlabelled_note(
    label: Any, absent: NDArray[np.bool_], location: Callable[[int], str], words: Sequence[str] = ()
) -> str:
    """Return a sentence about the rows without a label that are dropped; empty if there is none.

    Parameters
    ----------
    label : object
        Name of the column of labels.
    absent : bool array, shape (n,)
        Whether the label of each row is missing.
    location : callable
        Function from the index of a row to its location in the file.
    words : sequence of str
        Texts in place of the missing labels, such as "NA". Default: none.

    Raises
    ------
    DatasetError
        If no row has a label.
    """
    verb = "means" if len(words) == 1 else "mean"
    listed = ", ".join(map(shown, words[:_MAX_ROWS]))
    keep = (
        f"; {listed} {verb} a missing label, set label_type: text for a class of this name" if words else ""
    )
    if absent.all() and len(absent):
        raise DatasetError(
            f"expected labels in column {str(label)!r}, found none in {len(absent):,} rows{keep}; "
            "set `label` to another column if it holds none"
        )
    rows = np.flatnonzero(absent).tolist()
    if not rows:
        return ""
    where = ", ".join(location(row) for row in rows[:_MAX_ROWS]) + (", …" if len(rows) > _MAX_ROWS else "")
    lacks, was = ("has", "was") if len(rows) == 1 else ("have", "were")
    number = f"{len(rows):,} of {len(absent):,} rows"
    return f"{number} {lacks} no label in {str(label)!r} and {was} dropped ({where}){keep}"


def labelled_rows(
    table: pd.DataFrame, label: Any, unlabelled: str, location: Callable[[int], str]
) -> tuple[pd.DataFrame, str]:
    """Return the rows of a table that have a label, and a note about the others; or all rows.

    Parameters
    ----------
    table : DataFrame
        Table with labels.
    label : object
        Name of the column of labels.
    unlabelled : {"refuse", "drop"}
        Whether rows without a label are dropped. If not, they stay, and a later check refuses them.
    location : callable
        Function from the index of a row to its location in the file.
    """
    require_unlabelled(unlabelled)
    if unlabelled == REFUSE or label not in table.columns or not table[label].isna().any():
        return table, ""
    absent = table[label].isna().to_numpy()
    return table[~absent].reset_index(drop=True), unlabelled_note(label, absent, location)


def may_be_renamed(names: Iterable[Any]) -> bool:
    """Return whether pandas may have renamed a second column of one name, `NAME` to `NAME.1`.

    Parameters
    ----------
    names : iterable of object
        Names of the columns as pandas read them.
    """
    known = {str(name) for name in names}
    return any(name.rpartition(".")[2].isdigit() and name.rpartition(".")[0] in known for name in known)


def without_unnamed(table: pd.DataFrame, named: Sequence[Any]) -> tuple[pd.DataFrame, str]:
    """Return the table without unnamed columns of row numbers or row names, and a note about them.

    Parameters
    ----------
    table : DataFrame
        Table with labels, whose file names the columns.
    named : sequence of object
        Columns that the configuration names.
    """
    unnamed = [name for name in table.columns if _UNNAMED.fullmatch(str(name)) and name not in named]
    found = [name for name in unnamed if _marks_rows(table[name], name == table.columns[0])]
    if not found:
        return table, ""
    names = ", ".join(map(repr, found))
    return table.drop(columns=found), (
        f"{names} has no name in the file, and holds only row numbers or names: it is not a feature; if it "
        "is one, name it in the file"
    )


def _marks_rows(column: pd.Series, is_first: bool) -> bool:
    """Return whether a column is empty, or identifies the rows.

    Parameters
    ----------
    column : Series, shape (n,)
        Column whose header is empty.
    is_first : bool
        Whether it is the first column, which may also hold text.
    """
    if column.isna().all():
        return True
    different = column.notna().all() and column.is_unique
    return bool(different and (column.dtype.kind in "iu" or (is_first and column.dtype.kind in "OUT")))
