"""Datasets from Feather files, the format of Apache Arrow for tables on disk."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather

from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.typed_table import features_and_labels


def feather_file(
    path: str,
    label: str,
    **options: Any,
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table from a Feather file.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.feather` is in the data folder.
    label : str
        Name of the column of labels.
    **options
        `drop`, `categories`, `label_type` and `unlabelled`, as for `parquet_file`.

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
    return features_and_labels(feather_table(path), path, label, "row {} (from 0)".format, **options)


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
