"""Paired t-tests over random splits, whose test sets overlap, and scores without the splits that selected.

Papers that draw 100 random splits of a dataset often report a paired t-test over them. It takes the splits as
independent. They share most of their rows, so its t is too large by √(1 + J · test rows/training rows) for J
splits (Nadeau and Bengio, 2003). Both values describe one dataset, and no verdict follows from them.
"""

from collections.abc import Iterable
from math import nan, sqrt
from typing import Any

import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.one_dataset import declared_pairs, mean_difference, scores_by_split
from orchestrator.analysis.summaries import numbers
from orchestrator.study.schemes import n_repeats
from orchestrator.study.study import SELECTION_SPLITS

_COLUMNS = ["dataset", "first", "second", "n_splits", "difference", "t", "factor", "corrected_t"]


def datasets_drawn_again(outer: pd.DataFrame, design: Design) -> list[str]:
    """Return the datasets whose outer splits test more rows than there are, so that test sets overlap.

    Parameters
    ----------
    outer : DataFrame
        Refits, with their numbers of training and test rows.
    design : Design
        The design of the study. Repeated folds are not random splits: their test sets overlap only between
        repeats.

    Returns
    -------
    list of str
        Names in declared order.
    """
    if n_repeats(design.protocol) > 1 or outer.empty:
        return []
    rows = outer[["dataset"]].assign(n_train=numbers(outer["n_train"]), n_test=numbers(outer["n_test"]))
    sizes = {name: tuple(mean) for name, *mean in rows.groupby("dataset").mean().itertuples()}
    # Folds differ by one row, so the mean over the stored ones may exceed that over all by less than one row.
    return [
        name
        for name in design.datasets
        if name in sizes and (sizes[name][1] - 1.0) * design.n_outer(name) > sum(sizes[name])
    ]


def split_tests(
    outer: pd.DataFrame, means: pd.DataFrame, datasets: Iterable[str], control: str | None
) -> pd.DataFrame:
    """Return the paired t over the splits of each dataset, and its corrected value.

    Parameters
    ----------
    outer : DataFrame
        Refits.
    means : DataFrame (datasets, arms)
        Mean scores, NaN unless all outer splits have a score.
    datasets : iterable of str
        Datasets whose splits are random.
    control : str or None
        Arm with which the others are compared; None for all pairs.

    Returns
    -------
    DataFrame
        One row for each dataset and pair that both arms completed. Columns: dataset, first, second, n_splits,
        difference (first − second), t, factor (t divided by its corrected value), corrected_t. Both t are NaN
        for differences that are equal in all splits.
    """
    table: list[dict[str, Any]] = []
    arms = list(means.columns)
    for dataset in datasets:
        if dataset not in means.index:
            continue
        scores, share = scores_by_split(outer[outer["dataset"] == dataset], arms)
        complete = means.loc[dataset].notna()
        for first, second in declared_pairs(arms, control):
            if not (complete[first] and complete[second]):
                continue
            found = mean_difference((scores[first] - scores[second]).to_numpy(), share)
            factor = sqrt(1.0 + found.n_splits * share)
            corrected = found.difference / found.corrected_se if found.corrected_se > 0 else nan
            values = (found.n_splits, found.difference, factor * corrected, factor, corrected)
            table.append(dict(zip(_COLUMNS, (dataset, first, second, *values), strict=True)))
    return pd.DataFrame(table, columns=_COLUMNS)


def later_splits(outer: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return the mean scores with and without the first splits, on which hyper-parameters were selected.

    Parameters
    ----------
    outer : DataFrame
        Refits.
    design : Design
        The design of the study.

    Returns
    -------
    DataFrame
        One row for each dataset and arm with a score on every split. Columns: dataset, solver, n_first
        (number of the first splits), n_splits (of all), mean, later_mean, difference (later_mean − mean).
        Empty unless the hyper-parameters are medians over fewer splits than the study has.
    """
    names = ["dataset", "solver", "n_first", "n_splits", "mean", "later_mean", "difference"]
    table: list[dict[str, Any]] = []
    n_first = design.search.options.get(SELECTION_SPLITS)
    if isinstance(n_first, int):
        for (dataset, arm), rows in outer.groupby(["dataset", "solver"], sort=False):
            scores, number = numbers(rows["score"]), numbers(rows["outer"])
            later = scores[number >= n_first]
            n_outer = design.n_outer(str(dataset))
            if not 0 < len(later) < len(scores) == n_outer or pd.isna(scores).any():
                continue
            means = float(scores.mean()), float(later.mean())
            values = (dataset, arm, n_first, len(scores), *means, means[1] - means[0])
            table.append(dict(zip(names, values, strict=True)))
    return pd.DataFrame(table, columns=names)
