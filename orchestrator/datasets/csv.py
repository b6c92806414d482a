"""Datasets from CSV files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import one_line


def csv_file(
    path: str, label: str, drop: Sequence[str] = (), categories: Sequence[str] = (), **options: Any
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table whose first line names the columns.

    Empty cells, `NA`, `NaN` and the like are missing values, as `pandas.read_csv` says.

    Parameters
    ----------
    path : str
        The file, perhaps compressed; in a configuration, `${paths.data}/NAME.csv` is in the data folder.
    label : str
        The column of labels.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Columns to make categorical, for estimators that look at the type of a column.
    **options
        Of `pandas.read_csv`, such as `sep` or `na_values`.

    Returns
    -------
    X : DataFrame, shape (n, d)
    y : Series, shape (n,)

    Raises
    ------
    DatasetError
        If there is no such file or column, or pandas cannot read it.
    """
    try:
        table = pd.read_csv(Path(path).expanduser(), **options)
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}; correct `path`") from None
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"cannot read {path}: {one_line(error)}") from error
    if not isinstance(table, pd.DataFrame):
        raise DatasetError(f"{path} was read in pieces; leave out `chunksize` and `iterator`")
    known = list(map(str, table.columns))
    for name in [label, *drop, *categories]:
        if name not in table.columns:
            raise DatasetError(f"{path} has no column {name!r}{did_you_mean(str(name), known)}")
    if unused := {*categories} & {label, *drop}:
        raise DatasetError(f"{min(unused)!r} is no feature of {path}; take it off `categories`")
    X = table.drop(columns=[label, *drop])
    return X.astype(dict.fromkeys(categories, "category")), table[label]
