"""Datasets from workbooks of Excel."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.table import may_be_renamed, noted, without_unnamed
from orchestrator.datasets.typed_table import features_and_labels

_EXPANSION = 100
"""Memory that a workbook may need for each byte of its compressed file, in bytes."""


def excel_file(
    path: str,
    label: str,
    sheet: str | int = 0,
    **options: Any,
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a sheet of a workbook whose first row names the columns.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.xlsx` is in the data folder.
    label : str
        Name of the column of labels.
    sheet : str or int
        Name of the sheet, or its index from 0. Default: the first one.
    **options
        `drop`, `categories`, `label_type` and `unlabelled`, as for `parquet_file`.

    Returns
    -------
    X : DataFrame, shape (n, d)
        Features; the columns are named as in the sheet.
    y : Series, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file, sheet or column does not exist, two columns have one name, the file is damaged or too
        large, or the package that reads it is not installed.
    """

    def location(row: int) -> str:
        return f"row {row + 2} of the sheet"

    named = [label, *options.get("drop", ()), *options.get("categories", ())]
    table, note = without_unnamed(excel_table(path, sheet), named)
    X, y = features_and_labels(table, path, label, location, **options)
    return noted(X, note), y


def excel_table(path: str, sheet: str | int = 0) -> pd.DataFrame:
    """Return the table of a sheet with all its columns.

    Parameters
    ----------
    path : str
        Path of the file.
    sheet : str or int
        Name of the sheet, or its index from 0. Default: the first one.

    Raises
    ------
    DatasetError
        If the file or sheet does not exist, two columns have one name, the file is damaged or too large, or
        the package that reads it is not installed.
    """
    file = existing_file(path)
    require_memory(float(_EXPANSION * file.stat().st_size), f"the workbook {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions of Excel that a table does not need
            table = pd.read_excel(file, sheet_name=sheet, engine="openpyxl")
            names = _first_row(file, sheet) if may_be_renamed(table) else []
    except ImportError:
        raise DatasetError(
            f"{path}: reading a workbook needs the package openpyxl. Run: pip install 'svmbench[excel]', or "
            "save the sheet as CSV"
        ) from None
    except Exception as error:  # openpyxl raises many kinds of errors for a damaged file
        raise unreadable(f"{file} as a workbook", error) from error
    if not isinstance(table, pd.DataFrame) or table.empty:
        raise DatasetError(f"{path}, sheet {sheet}: expected a table with rows, found none; set `sheet`")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(
            f"{path}, row 1 of the sheet, has two columns {twice!r}; give each column a different name"
        )
    return table


def _first_row(file: Path, sheet: str | int) -> list[str]:
    """Return the texts of the first row of a sheet, without empty cells.

    Parameters
    ----------
    file : Path
        The workbook.
    sheet : str or int
        Name of the sheet, or its index from 0.
    """
    first = pd.read_excel(file, sheet_name=sheet, engine="openpyxl", header=None, nrows=1)
    return [str(value) for value in first.iloc[0].dropna()]
