"""Whether searched ranges were wide enough: selected candidates on a border that nothing inside matches."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.summaries import numbers
from orchestrator.store.results import StudyResults
from orchestrator.study.values import is_number

_MIN_VALUES = 3
"""Smallest number of values of a hyper-parameter with an inside; of two values, both are ends."""


def border_winners(results: StudyResults, design: Design) -> pd.DataFrame:
    """Count the outer splits whose selected candidate lies on a border that no candidate inside equals.

    A border is the smallest or the largest value of a hyper-parameter with at least three numbers, unless the
    search fixes it on the dataset. A candidate inside equals the selected one if its mean inner score over
    the same inner splits is as high.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.

    Returns
    -------
    DataFrame
        One row for each arm with such a hyper-parameter and a selection. Columns: solver, n (selections),
        n_border (on a border), n_unmatched (on a border, and nothing inside is equal), ends (text, the ends
        of the unmatched ones, most frequent first).
    """
    table = []
    trials = dict(iter(results.trials[results.trials["inner"] >= 0].groupby("solver", sort=False)))
    for arm, chosen in results.selections.groupby("solver", sort=False):
        if arm not in design.arms or arm not in trials:
            continue
        limits = {
            str(dataset): {
                name: ends
                for name, ends in _limits(design.space(str(dataset), str(arm))).items()
                if name in chosen
            }
            for dataset in chosen["dataset"].unique()
        }
        if not any(limits.values()):
            continue
        ends = [_ends(row, limits[row["dataset"]]) for row in chosen.to_dict("records")]
        inside = _splits_with_a_best_inside(trials[arm], limits)
        splits = list(zip(chosen["dataset"], chosen["outer"], strict=True))
        unmatched = [each for each, split in zip(ends, splits, strict=True) if each and split not in inside]
        counts = Counter(end for each in unmatched for end in each)
        table.append(
            {
                "solver": arm,
                "n": len(ends),
                "n_border": sum(map(bool, ends)),
                "n_unmatched": len(unmatched),
                "ends": ", ".join(f"{end} ({count}×)" for end, count in counts.most_common()),
            }
        )
    return pd.DataFrame(table)


def _limits(space: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the ends of each hyper-parameter with an inside, by column.

    Parameters
    ----------
    space : mapping of str to any
        Searched values by hyper-parameter, or the ends of a range.
    """
    found = {}
    for name, values in space.items():
        listed = () if isinstance(values, Mapping) else {float(value) for value in values if is_number(value)}
        if len(listed) >= _MIN_VALUES:
            found[f"param_{name}"] = min(listed), max(listed)
    return found


def _ends(row: Mapping[Any, Any], limits: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the ends of ranges on which a candidate lies, such as `largest C`.

    Parameters
    ----------
    row : mapping
        Row with a column for each hyper-parameter.
    limits : mapping of str to (float, float)
        Ends by column.
    """
    found = []
    for column, (low, high) in limits.items():
        value, name = pd.to_numeric(row[column], errors="coerce"), column.removeprefix("param_")
        if value == low:
            found.append(f"smallest {name}")
        elif value == high:
            found.append(f"largest {name}")
    return found


def _splits_with_a_best_inside(
    trials: pd.DataFrame, limits: Mapping[str, Mapping[str, tuple[float, float]]]
) -> set[tuple[str, int]]:
    """Return the outer splits on which a candidate inside all ranges has the highest mean inner score.

    Parameters
    ----------
    trials : DataFrame
        Inner trials of one arm.
    limits : mapping of str to mapping of str to (float, float)
        Ends by dataset and column.
    """
    params = [name for name in trials if str(name).startswith("param_")]
    keys = ["dataset", "outer", *params]
    scores = trials.assign(score=numbers(trials["score"]))
    means = scores.groupby(keys, sort=False, dropna=False)["score"].agg(["mean", "count"]).reset_index()
    of_split = means.groupby(["dataset", "outer"])
    means = means[means["count"] == of_split["count"].transform("max")]  # a race drops candidates early
    best = means.groupby(["dataset", "outer"])["mean"].transform("max")
    is_best = np.round(best - means["mean"], DECIMALS) <= 0
    is_inside = np.ones(len(means), dtype=bool)
    for dataset, ends in limits.items():
        for column, (low, high) in ends.items():
            values = numbers(means[column])
            is_inside &= (means["dataset"] != dataset) | ((values > low) & (values < high))
    found = means[is_best & is_inside]
    return set(zip(found["dataset"], found["outer"], strict=True))
