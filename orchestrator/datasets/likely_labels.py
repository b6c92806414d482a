"""Columns of a table, and those that are likely to hold its labels, for a user who has not named one."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.csv_layout import LAYOUT
from orchestrator.datasets.dataset import DatasetError
from orchestrator.study.targets import did_you_mean, resolve

MAX_NAMES = 20
"""Largest number of columns that a message names."""

_MAX_CLASSES = 20
"""Largest number of different values of a likely column of labels."""

_READER_KEYS = ("path", "package", "sheet", "header", "names", *LAYOUT)
"""Keys of a configuration that decide the columns of a table. The engine `pyarrow` reads only whole files."""

_ROWS = 5000
"""Number of rows of a CSV file that are read."""

_NAME = re.compile(
    r"(^|[ _.-])(y|label|labels|target|class|classes|outcome|response|result|category|diagnosis|species|"
    r"churn|churned|default|survived|status|type|income|quality)($|[ _.-])",
    re.IGNORECASE,
)
"""Words in the names of columns of labels."""


def label_hint(node: Mapping[str, Any]) -> str:
    """Return a sentence that asks for a column of labels, with the columns of the table and likely ones.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset without `label`, as `file_node` returns it.
    """
    path = Path(node["path"])
    try:
        table = whole_table(node, _ROWS)
    except DatasetError as error:
        return str(error)
    names = list(map(str, table.columns))
    listed = ", ".join(names[:MAX_NAMES]) + (
        f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    )
    likely = likely_labels(table)
    perhaps = f"; likely: {', '.join(f'label={name}' for name in likely)}" if likely else ""
    return f"expected label=COLUMN, the column to predict, found none; {path.name} has {listed}{perhaps}"


def unknown_label(node: Mapping[str, Any]) -> list[str]:
    """Return a sentence if a table has no column of the name of its labels, or cannot be read.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset with `label`, as `file_node` returns it.
    """
    try:
        names = list(map(str, whole_table(node, 1).columns))
    except DatasetError as error:
        return [str(error)]
    if node["label"] in names:
        return []
    shown = ", ".join(names[:MAX_NAMES]) + (" and more" if len(names) > MAX_NAMES else "")
    near = did_you_mean(node["label"], names) or f"; it has {shown}"
    return [f"{Path(node['path']).name} has no column {node['label']!r}{near}; correct label"]


def whole_table(node: Mapping[str, Any], rows: int | None = None) -> pd.DataFrame:
    """Return the table of a file with all its columns, read by the loader's own reader.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset, as `file_node` returns it.
    rows : int, optional
        Number of rows to read of a CSV file. By default all.

    Raises
    ------
    DatasetError
        If the file cannot be read.
    """
    given = {key: value for key, value in node.items() if key in _READER_KEYS and value != "pyarrow"}
    loader = str(node["_target_"]).rpartition(".")[2]
    if loader == "csv_file" and rows is not None:
        given["nrows"] = rows
    read = resolve(
        f"orchestrator.datasets.{loader.removesuffix('_file')}.{loader.removesuffix('_file')}_table"
    )
    table: pd.DataFrame = read(**given)
    return table


def likely_labels(table: pd.DataFrame) -> list[str]:
    """Return up to three columns that may hold labels, the most likely one first.

    A likely column has few different values. A telling name counts most, then the last position.

    Parameters
    ----------
    table : DataFrame
        Table with all its columns.
    """
    points: dict[str, float] = {}
    for at, name in enumerate(table.columns):
        column = table.iloc[:, at]
        number = column.nunique()
        if not 2 <= number <= min(_MAX_CLASSES, max(2, len(column) // 2)):
            continue
        if column.dtype.kind == "f" and not (column.dropna() % 1 == 0).all():
            continue
        is_last, is_named = at == table.shape[1] - 1, bool(_NAME.search(str(name)))
        points[str(name)] = 2 * is_named + is_last + 0.5 * (number == 2) - column.isna().mean()
    named = [name for name, value in points.items() if value >= 1] or list(points)
    return sorted(named, key=lambda name: -points[name])[:3]
