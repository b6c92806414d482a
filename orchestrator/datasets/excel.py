"""Datasets from workbooks of Excel."""

import warnings
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.memory import require_memory
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
        If the file, sheet or column does not exist, the file is damaged or too large, or the package that
        reads it is not installed.
    """

    def location(row: int) -> str:
        return f"row {row + 2} of the sheet"

    return features_and_labels(excel_table(path, sheet), path, label, location, **options)


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
        If the file or sheet does not exist, the file is damaged or too large, or the package that reads it is
        not installed.
    """
    file = existing_file(path)
    require_memory(float(_EXPANSION * file.stat().st_size), f"the workbook {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions of Excel that a table does not need
            table = pd.read_excel(file, sheet_name=sheet, engine="openpyxl")
    except ImportError:
        raise DatasetError(
            f"{path}: reading a workbook needs the package openpyxl. Run: pip install 'svmbench[excel]', or "
            "save the sheet as CSV"
        ) from None
    except Exception as error:  # openpyxl raises many kinds of errors for a damaged file
        raise unreadable(f"{file} as a workbook", error) from error
    if not isinstance(table, pd.DataFrame) or table.empty:
        raise DatasetError(f"{path}, sheet {sheet}: expected a table with rows, found none; set `sheet`")
    return table
