"""Datasets that are named by the path of a file, and the keys of the command line that describe them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.datasets.formats import (
    TABLE_LOADERS,
    TEST,
    TRAIN,
    dataset_name,
    file_node,
    format_problem,
    has_columns,
    split_node,
)
from orchestrator.study.schemes import PREDEFINED
from orchestrator.study.study_name import name_problem
from orchestrator.study.targets import TARGET
from orchestrator.study.text import shown

TABLES = "tables"
"""Key of a composed configuration with the names of the datasets that are given by a path."""

SPLITTER = {TARGET: PREDEFINED}
"""Outer splitter of datasets whose test rows are in a second file."""

_KEYS = ("label", "drop", "groups")

LONE_FILE = "the file of the other rows"
"""Part of the message about `train` without `test`, or the other way round."""


def file_nodes(config: Mapping[str, Any], paths: Sequence[str], problems: list[str]) -> dict[str, Any]:
    """Return the configurations of the datasets that are given by a path, by path.

    Parameters
    ----------
    config : mapping
        Composed configuration with the keys `label`, `drop` and `groups`.
    paths : sequence of str
        Paths among the names of datasets.
    problems : list of str
        One message is appended for each path or key that cannot be used.
    """
    keys = _checked_keys(config, problems)
    nodes: dict[str, Any] = {}
    for path in paths:
        if problem := format_problem(path):
            problems.append(problem)
        else:
            nodes[path] = file_node(path, **keys)
    if not paths and not config[TRAIN]:
        problems += [
            f"{key}={shown(config[key])} is for datasets that are given by the path of a file, such as "
            f"datasets=[mine.csv]; for a dataset with a configuration, set dataset.NAME.{key}"
            for key in _KEYS
            if config[key]
        ]
    return nodes


def given_split(config: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the configuration of the dataset of `train=FILE test=FILE`, by its name; empty without them.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    problems : list of str
        One message is appended for each key that cannot be used.
    """
    files = {key: config[key] for key in (TRAIN, TEST) if config[key] is not None}
    if not files:
        return {}
    if len(files) == 1:
        (given,), (lacking,) = files, {TRAIN, TEST} - files.keys()
        problems.append(f"{given}={files[given]} needs {lacking}=FILE, {LONE_FILE}")
        return {}
    wrong = [
        format_problem(path) if isinstance(path, str) else f"{key}={shown(path)}: expected the path of a file"
        for key, path in files.items()
    ]
    if found := [problem for problem in wrong if problem]:
        problems += found
        return {}
    if has_columns(files[TRAIN]) != has_columns(files[TEST]):
        problems.append(
            f"train={files[TRAIN]} and test={files[TEST]}: expected two tables with named columns, or two "
            "files of numbers, found one of each"
        )
        return {}
    return {dataset_name(files[TRAIN]): split_node(**files, **_checked_keys(config, []))}


def _checked_keys(config: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return `label`, `drop` and `groups` of a configuration; those that cannot be used are left out.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    problems : list of str
        One message is appended for each key that cannot be used.
    """
    label, drop, groups = (config[key] for key in _KEYS)
    if not isinstance(label, str | int | None) or isinstance(label, bool):
        problems.append(f"label={shown(label)}: expected the name of a column, or its position from 0")
        label = None
    drop = [] if drop is None else drop if isinstance(drop, list) else [drop]
    if odd := [name for name in drop if type(name) not in (str, int)]:
        problems.append(f"drop={shown(odd[0])}: expected names of columns, such as drop=[a,b]")
        drop = []
    return {"label": label, "drop": drop, "groups": groups}


def with_short_forms(config: dict[str, Any]) -> dict[str, Any]:
    """Return a composed configuration in which `metric`, `train` and a table's name have taken effect.

    Parameters
    ----------
    config : dict
        Composed configuration, which may be changed.
    """
    protocol = config["protocol"]
    if config["metric"] is not None:
        protocol["metric"] = config["metric"]
    if config[TRAIN] is not None:
        protocol["outer"] = dict(SPLITTER)
    if config["study"] in (None, "") and config[TABLES]:
        config["study"] = _study_name(config[TABLES][0])
    return config


def _study_name(dataset: str) -> str:
    """Return the name of a study for a dataset: its name, as far as names of studies allow.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    """
    return dataset if not name_problem(dataset) else f"table-{dataset}"


def table_problems(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each dataset given by a path whose file or column of labels is not known.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations of the datasets that are given by a path.
    """
    if not nodes:
        return []
    from orchestrator.datasets.files import file_problem  # imports what a light command does not need
    from orchestrator.datasets.likely_labels import label_hint

    found = []
    for name, node in nodes.items():
        parts = (node[TRAIN], node[TEST]) if TRAIN in node else (node,)
        missing = [problem for part in parts if (problem := file_problem(_path(part)))]
        if missing:
            found += [
                f"dataset {name}: {problem.replace('correct `path`', 'correct it')}" for problem in missing
            ]
        elif "label" not in parts[0] and parts[0]["_target_"] in TABLE_LOADERS:
            found.append(f"dataset {name}: {label_hint(parts[0])}")
    return found


def label_problems(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each dataset given by a path whose table lacks the named column of labels.

    A run finds such a column when it loads the table. This check lists it together with other problems.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations of the datasets that are given by a path.
    """
    from orchestrator.datasets.files import file_problem  # imports what a light command does not need
    from orchestrator.datasets.likely_labels import unknown_label

    found = []
    for name, node in nodes.items():
        part = node.get(TRAIN, node)
        is_table = "path" in part and part["_target_"] in TABLE_LOADERS
        if is_table and isinstance(part.get("label"), str) and not file_problem(_path(part)):
            found += [f"dataset {name}: {problem}" for problem in unknown_label(part)]
    return found


def _path(node: Mapping[str, Any]) -> Path:
    """Return the path of the file that a configuration reads.

    Parameters
    ----------
    node : mapping
        Configuration of a dataset, as `file_node` returns it.
    """
    given = node["path"] if "path" in node else Path(node["folder"], node["name"])
    return Path(given).expanduser()
