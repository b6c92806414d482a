"""From a table to features and labels, by the names of its columns."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.names import did_you_mean


def split_table(
    table: pd.DataFrame, source: Any, label: str, drop: Sequence[str] = (), categories: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features of a table and its column of labels.

    Parameters
    ----------
    table : DataFrame
    source : str or path
        Where it is from, for messages.
    label : str
        The column of labels.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Columns to make categorical, for estimators that look at the type of a column.

    Raises
    ------
    DatasetError
        If there is no such column, two columns have one name, or names are no list.
    """
    for key, names in {"drop": drop, "categories": categories}.items():
        if isinstance(names, str):  # whose characters may be names of columns
            raise DatasetError(f"{key} must be a list of columns, found {names!r}; write [{names}]")
    known = list(map(str, table.columns))
    if twice := next((name for at, name in enumerate(known) if name in known[:at]), None):
        raise DatasetError(f"{source} has two columns {twice!r}; give each column a name of its own")
    for name in [label, *drop, *categories]:
        if name not in table.columns:
            quotes = "" if isinstance(name, str) else "; a name that YAML does not read as text needs quotes"
            columns = did_you_mean(str(name), known) or f"; it has {', '.join(known[:20])}"
            raise DatasetError(f"{source} has no column {name!r}{columns}{quotes}")
    if unused := {*categories} & {label, *drop}:
        raise DatasetError(f"{min(unused)!r} is no feature of {source}; take it off `categories`")
    X = table.drop(columns=[label, *drop])
    return X.astype(dict.fromkeys(categories, "category")), table[label]
