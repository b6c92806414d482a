"""Mean differences of pairs of arms over datasets, by models that know the errors of the folds."""

from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.hierarchical import MIN_SPLITS, hierarchical
from orchestrator.analysis.one_dataset import scores_by_split
from orchestrator.analysis.paired_means import PairedMeans
from orchestrator.analysis.random_effects import random_effects
from orchestrator.study.families import unit_names


def mean_effects(
    means: PairedMeans, tests: pd.DataFrame, practical: pd.DataFrame, outer: pd.DataFrame, alpha: float
) -> pd.DataFrame:
    """Estimate the mean difference of every tested pair.

    The members of a family may share their errors, so that their mean has the mean of their variances. A
    dataset takes part if it has at least two outer splits and both arms have a score on each of them. A
    failed refit has no error that the models could use, however `report.failed` counts it.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    tests, practical : DataFrame
        Results of these functions of `findings`; `practical` may be empty.
    outer : DataFrame
        Refits of the study.
    alpha : float
        One minus the confidence of the intervals.

    Returns
    -------
    DataFrame
        Columns: first, second, the fields of `RandomEffects`, and if `practical` is not empty rope and the
        probabilities hierarchical_better, _equal and _worse, and signed_rank_better, _equal and _worse.
        A pair without a dataset has n = 0 and no numbers. Empty if no pair has a dataset.
    """
    if tests.empty:
        return pd.DataFrame()
    arms, by_dataset = list(means.means.columns), means.by_dataset
    groups = {
        str(name): rows for name, rows in outer.groupby("dataset", sort=False) if name in by_dataset.index
    }
    splits = {name: scores_by_split(rows, arms) for name, rows in groups.items()}
    table = []
    for index, (first, second) in enumerate(zip(tests["first"], tests["second"], strict=True)):
        units = _units(means, splits, first, second)
        found = random_effects(*_columns(units, "difference", "variance", "degrees"), alpha=alpha)
        row = {"first": first, "second": second, **vars(found)}
        table.append(row | (_probabilities(units, practical.iloc[index]) if len(practical) else {}))
    return pd.DataFrame(table) if any(row["n"] for row in table) else pd.DataFrame()


def _units(
    means: PairedMeans, splits: dict[str, tuple[pd.DataFrame, float]], first: str, second: str
) -> pd.DataFrame:
    """Return the differences of a pair by unit, with the errors of the folds.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    splits : dict of str to (DataFrame, float)
        By dataset with refits, the scores of every split and arm, and the ratio of test to training rows.
    first, second : str
        Names of the arms.

    Returns
    -------
    DataFrame
        Columns: difference, deviation, n_splits, share (the ratio of test to training rows), variance,
        degrees.
    """
    names = ["difference", "deviation", "n_splits", "share", "variance", "degrees"]
    complete = means.by_dataset[[first, second]].dropna().index
    rows = {}
    for name in map(str, complete):
        if name not in splits:
            continue
        scores, share = splits[name]
        values = (scores[first] - scores[second]).to_numpy(dtype=float)
        if len(values) < 2 or np.isnan(values).any():
            continue
        deviation = float(values.std(ddof=1))
        rows[name] = {
            "difference": float(values.mean()),
            "deviation": deviation,
            "n_splits": len(values),
            "share": share,
            "variance": deviation**2 * (1 / len(values) + share),
            "degrees": len(values) - 1,
        }
    if not rows:
        return pd.DataFrame(columns=names, dtype=float)
    frame = pd.DataFrame.from_dict(rows, orient="index")[names]
    units = unit_names(frame.index, means.families)
    return frame.groupby(units, sort=False).mean()


def _probabilities(units: pd.DataFrame, practical: "pd.Series[Any]") -> dict[str, float]:
    """Return the probabilities of the hierarchical test beside those of the signed-rank test.

    Parameters
    ----------
    units : DataFrame
        Differences by unit, as `_units` returns them.
    practical : Series
        The row of the pair in `practical`.
    """
    names, rope = ("better", "equal", "worse"), float(practical["rope"])
    of_ranks = {f"signed_rank_{name}": practical[name] for name in names}
    enough = units["n_splits"].min() >= MIN_SPLITS and np.isfinite(units["share"]).all()
    difference, deviation, n_splits = _columns(units, "difference", "deviation", "n_splits")
    shares = (units["share"] / (1 + units["share"])).to_numpy(dtype=float)
    found = dict.fromkeys(names, np.nan)
    if enough:
        found = vars(hierarchical(difference, deviation, n_splits, shares, rope))
    return {"rope": rope} | {f"hierarchical_{name}": found[name] for name in names} | of_ranks


def _columns(units: pd.DataFrame, *names: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second, third = (units[name].to_numpy(dtype=float) for name in names)
    return first, second, third
