"""Configured splitters: any class with scikit-learn's method `split`."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from orchestrator.study.targets import TARGET, instantiate, resolve, target_problems
from orchestrator.study.text import error_line

OUTER_PART = "outer_part"
"""Parameter of an inner splitter that splits all rows: the part of each row in the outer split."""


def takes_all_rows(scheme: Mapping[str, Any]) -> bool:
    """Return whether an inner splitter has the parameter `outer_part`, so that it splits all rows.

    Parameters
    ----------
    scheme : mapping
        Configuration with `_target_` and arguments.
    """
    return OUTER_PART in inspect.signature(resolve(scheme[TARGET])).parameters


def make_splitter(scheme: Mapping[str, Any], seed: int, metadata: Mapping[str, Any]) -> Any:
    """Return the configured splitter, with the random state and the metadata that it needs.

    Parameters
    ----------
    scheme : mapping
        Configuration with `_target_` and arguments.
    seed : int
        Random state of a splitter that accepts one, unless `shuffle` is false.
    metadata : mapping of str to array
        Values of the rows. They become arguments of parameters with the same name, such as `test_fold` of
        `PredefinedSplit`.

    Raises
    ------
    Exception
        Any exception that the class raises.
    """
    kind = resolve(scheme[TARGET])
    defaults = {name: found.default for name, found in inspect.signature(kind).parameters.items()}
    filled = {name: values for name, values in metadata.items() if name in defaults} | dict(scheme)
    shuffles = filled.get("shuffle", defaults.get("shuffle", True))
    if "random_state" in defaults and filled.get("random_state") is None and shuffles:
        filled["random_state"] = seed
    if defaults.get("test_fold") is inspect.Parameter.empty and "test_fold" not in filled:
        raise ValueError(
            "the dataset has no test_fold; name a column of its table, or a file with the test fold of each "
            "row (-1: always in training), as `test_fold` of the dataset"
        )
    return instantiate(filled)


def unusable_splitter(scheme: Mapping[str, Any]) -> str:
    """Return why a configuration does not make a splitter; empty if it does.

    Parameters
    ----------
    scheme : mapping
        Configuration with `_target_` and arguments.
    """
    if problems := list(target_problems(scheme)):
        return "; ".join(problems)
    try:
        splitter = make_splitter(scheme, 0, {"test_fold": np.array([-1, 0])})
    except Exception as error:  # raised by a user-defined class
        return f"{scheme[TARGET]} refuses its arguments: {error_line(error)}"
    if not callable(getattr(splitter, "split", None)):
        return (
            f"{scheme[TARGET]} makes a {type(splitter).__name__}, which has no method `split`; expected a "
            "splitter such as sklearn.model_selection.GroupKFold"
        )
    return ""


def needs_groups(splitter: Any) -> bool:
    """Return whether a splitter requires groups, according to scikit-learn's metadata routing.

    Parameters
    ----------
    splitter : object
        Splitter with the interface of scikit-learn.
    """
    try:
        return splitter.get_metadata_routing().split.requests.get("groups") is True
    except AttributeError:  # the class is from another library, or has no metadata request
        return False
