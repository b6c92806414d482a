"""Datasets from Feather files, the format of Apache Arrow for tables on disk."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.feather

from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.spellings import require_label_type, retyped_labels
from orchestrator.datasets.table import labelled_rows, noted, require_lists, split_table


def feather_file(
    path: str,
    label: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    label_type: str = "auto",
    unlabelled: str = "refuse",
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table from a Feather file.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.feather` is in the data folder.
    label : str
        Name of the column of labels.
    drop : sequence of str
        Columns that are not features, such as an identifier.
    categories : sequence of str
        Columns to convert to categories, for estimators that use the type of a column.
    label_type : {"auto", "number", "text"}
        Type of labels; "auto" keeps the type of the file.
    unlabelled : {"refuse", "drop"}
        Whether rows without a label are an error, or are dropped with a note.

    Returns
    -------
    X : DataFrame, shape (n, d)
        Features; the columns are named as in the file.
    y : Series, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file or column does not exist, or the file is damaged or too large.
    """
    require_label_type(label_type)
    require_lists(drop=drop, categories=categories)
    location = "row {} (from 0)".format
    table, without = labelled_rows(feather_table(path), label, unlabelled, location)
    X, y = split_table(table, path, label, drop, categories)
    return noted(X, without), retyped_labels(y, label_type, location)


def feather_table(path: str) -> pd.DataFrame:
    """Return the table of a Feather file with all its columns.

    Parameters
    ----------
    path : str
        Path of the file.

    Raises
    ------
    DatasetError
        If the file does not exist, or is damaged or too large.
    """
    file = existing_file(path)
    require_memory(2.0 * file.stat().st_size, f"a table in {path}")
    try:
        table = pa.feather.read_table(file)
        require_memory(9.0 * table.num_rows * table.num_columns, f"the table of {path}")
        return table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(f"{file} as Feather", error) from error
