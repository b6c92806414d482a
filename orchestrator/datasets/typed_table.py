"""Conversion of a table whose file declares types of columns to features and labels."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from orchestrator.datasets.spellings import require_label_type, retyped_labels
from orchestrator.datasets.table import DROP, labelled_rows, noted, require_lists, split_table


def features_and_labels(
    table: pd.DataFrame,
    source: str,
    label: str,
    location: Callable[[int], str],
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    label_type: str = "auto",
    unlabelled: str = "refuse",
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features of a table and its column of labels.

    Parameters
    ----------
    table : DataFrame
        Table with labels.
    source : str
        File of the table, for messages.
    label : str
        Name of the column of labels.
    location : callable
        Function from the index of a row to its location in the file.
    drop : sequence of str
        Columns that are not features, such as an identifier.
    categories : sequence of str
        Columns to convert to categories, for estimators that use the type of a column.
    label_type : {"auto", "number", "text"}
        Type of labels; "auto" keeps the type of the file.
    unlabelled : {"refuse", "drop"}
        Whether rows without a label are an error, or are dropped with a note.

    Raises
    ------
    DatasetError
        If a column does not exist, or an argument has another form.
    """
    require_label_type(label_type)
    require_lists(drop=drop, categories=categories)
    has_label = table[label].notna() if label in table and unlabelled == DROP else np.ones(len(table), bool)
    rows = np.flatnonzero(has_label)
    table, without = labelled_rows(table, label, unlabelled, location)
    X, y = split_table(table, source, label, drop, categories)
    return noted(X, without), retyped_labels(y, label_type, lambda row: location(int(rows[row])))
