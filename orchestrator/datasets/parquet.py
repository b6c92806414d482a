"""Datasets from Parquet files: one file, or a folder of files as on Hugging Face."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.table import noted
from orchestrator.datasets.typed_table import features_and_labels

_ERRORS = (pa.ArrowException, OSError, ValueError)
"""Exceptions of pyarrow for files that it cannot read."""


def parquet_file(
    path: str,
    label: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    label_type: str = "auto",
    unlabelled: str = "refuse",
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table from a Parquet file, or from all `*.parquet` files in a folder and its subfolders.

    Rows of several files follow one another in the order of the paths. Columns in which pandas has saved an
    index, such as `__index_level_0__`, are not features unless the configuration names them.

    Parameters
    ----------
    path : str
        Path of the file or folder; in a configuration, `${paths.data}/NAME.parquet` is in the data folder.
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
        If the file or column does not exist, a file is damaged or too large, or files have different columns.
    """
    table, saved = _whole(Path(path).expanduser())
    indices = [name for name in saved if name not in (label, *drop, *categories)]
    X, y = features_and_labels(
        *(table.drop(columns=indices), path, label, "row {} (from 0)".format),
        *(drop, categories, label_type, unlabelled),
    )
    note = f"{', '.join(map(repr, indices))} is an index that pandas has saved: it is not a feature"
    return noted(X, note if indices else ""), y


def parquet_table(path: str) -> pd.DataFrame:
    """Return the table of a Parquet file, or of all in a folder, without a saved index.

    Parameters
    ----------
    path : str
        Path of the file or folder.

    Raises
    ------
    DatasetError
        If a file does not exist, is damaged or too large, or files have different columns.
    """
    table, saved = _whole(Path(path).expanduser())
    return table.drop(columns=saved)


def _whole(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return the table in a file or folder, and its columns in which pandas has saved an index.

    Parameters
    ----------
    path : Path
        File or folder.
    """
    files = _files(path)
    schemas = [_schema(file) for file in files]
    n, d = sum(rows for rows, _ in schemas), len(schemas[0][1])
    for file, (_, names) in zip(files, schemas, strict=True):
        if names != schemas[0][1]:
            odd = min({*names} ^ {*schemas[0][1]}, default="another order")
            raise DatasetError(
                f"{file} has other columns than {files[0]} ({odd}); expected files of one table: name one of "
                "them as `path`, or move the others to another folder"
            )
    require_memory(9.0 * n * d, f"{n:,} rows × {d:,} columns in {path}")
    return pd.concat([_read(file) for file in files], ignore_index=True), _index_columns(files[0])


def _files(path: Path) -> list[Path]:
    """Return the files of a dataset in the order of their paths.

    Parameters
    ----------
    path : Path
        File or folder.
    """
    if not path.is_dir():
        return [existing_file(path)]
    try:
        files = sorted(file for file in path.rglob("*.parquet") if file.is_file())
    except OSError as error:
        raise unreadable(path, error) from error
    if not files:
        raise DatasetError(f"expected *.parquet in the folder {path.absolute()}, found none; correct `path`")
    return [existing_file(file) for file in files]


def _schema(file: Path) -> tuple[int, list[str]]:
    """Return the number of rows and the column names in the metadata of a file.

    Parameters
    ----------
    file : Path
        Parquet file.
    """
    try:
        metadata = pq.read_metadata(file)
    except _ERRORS as error:
        raise unreadable(f"{file} as Parquet", error) from error
    return metadata.num_rows, list(metadata.schema.to_arrow_schema().names)


def _index_columns(file: Path) -> list[str]:
    """Return the columns in which pandas has saved an index.

    Parameters
    ----------
    file : Path
        Parquet file.
    """
    try:
        schema = pq.read_schema(file)
        indices = (schema.pandas_metadata or {}).get("index_columns", [])
    except (*_ERRORS, AttributeError, TypeError):
        return []
    return [name for name in indices if isinstance(name, str) and name in schema.names]


def _read(file: Path) -> pd.DataFrame:
    """Return the table of a file.

    Parameters
    ----------
    file : Path
        Parquet file.
    """
    try:
        return pq.ParquetFile(file, page_checksum_verification=True).read().to_pandas(ignore_metadata=True)
    except _ERRORS as error:
        raise unreadable(f"{file} as Parquet", error) from error
