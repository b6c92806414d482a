"""Datasets that packages bring, as rows of a table: a file for each would repeat nearly all it says."""

import csv
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.study.errors import ConfigError

_NUMBERS = ("n", "d", "classes")
_TEXTS = ("source", "licence", "citation", "note")


@cache
def table_datasets(path: Path) -> dict[str, dict[str, Any]]:
    """Return the configurations that a table makes, by name; only read.

    Parameters
    ----------
    path : Path
        CSV as `conf/dataset/packages.csv`: name, arguments of `arff_file`, family, and what `about` holds.

    Raises
    ------
    ConfigError
        If two rows, or a row and a file beside the table, have one name.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = Counter([row["name"] for row in rows] + [file.stem for file in path.parent.glob("*.yaml")])
    if problems := [
        f"{path}: {name} names {count} datasets of rows and files; keep one of them"
        for name, count in names.items()
        if count > 1
    ]:
        raise ConfigError(problems)
    return {row["name"]: _node(row) for row in rows}


def _node(row: dict[str, str]) -> dict[str, Any]:
    numbers = {key: int(row[key]) for key in _NUMBERS}
    texts = {key: row[key] for key in _TEXTS if row[key]}
    complete = {"complete_rows": True} if row["complete_rows"] else {}
    family = {"family": row["family"]} if row["family"] else {}
    return {
        "_target_": "orchestrator.datasets.arff_file",
        **{key: row[key] for key in ("package", "path", "label")},
        "one_hot": True,
        **complete,
        **family,
        "about": {**numbers, **texts},
    }
