"""Scores of arms whose refits failed, if each failed refit scored as a classifier without a model.

Datasets that an arm has not completed are left out of its tests. An arm that fails where its scores are low
then looks better than it is: one that fails on its lowest third of scores is called better in 49 % of studies
without a difference. This treatment shows how much of a result depends on the failures.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.dataset_answer import recorded_baseline
from orchestrator.analysis.design import Design
from orchestrator.analysis.summaries import rows_by_pair
from orchestrator.store.results import StudyResults


def failed_pairs(results: StudyResults, design: Design) -> pd.DataFrame:
    """Return the dataset × arm whose trainings have ended and that lack a score on some outer split.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.

    Returns
    -------
    DataFrame
        Columns: dataset, solver, n_failed (outer splits without a score), n_outer, mean (over all outer
        splits, with the score of the majority class for failed ones; NaN if that score is not known).
    """
    ended = [pair for pair in design.pairs if (state := results.states.get(pair)) and state.complete]
    table = []
    for (dataset, arm), rows in rows_by_pair(results.outer, ended, ["score", "outer"]):
        n_outer = design.n_outer(dataset)
        scores = np.full(n_outer, np.nan)
        scores[rows["outer"].astype(int)] = rows["score"]
        missing = ~np.isfinite(scores)
        if missing.any():
            scores[missing] = _constant_scores(results, design, dataset)[missing]
            table.append(
                {
                    "dataset": dataset,
                    "solver": arm,
                    "n_failed": int(missing.sum()),
                    "n_outer": n_outer,
                    "mean": float(scores.mean()),
                }
            )
    return pd.DataFrame(table, columns=["dataset", "solver", "n_failed", "n_outer", "mean"])


def with_constant(means: pd.DataFrame, failed: pd.DataFrame) -> pd.DataFrame:
    """Return dataset means in which failed refits score as the majority class.

    Parameters
    ----------
    means : DataFrame (datasets, arms)
        Mean scores, NaN unless all outer splits have a score.
    failed : DataFrame
        Pairs with failed refits, as `failed_pairs` returns them.

    Returns
    -------
    DataFrame (datasets, arms)
        A copy. Pairs that are not finished remain NaN.
    """
    filled = means.copy()
    for dataset, arm, mean in zip(failed["dataset"], failed["solver"], failed["mean"], strict=True):
        if dataset in filled.index and arm in filled.columns:
            filled.loc[dataset, arm] = mean
    return filled


def _constant_scores(results: StudyResults, design: Design, dataset: str) -> np.ndarray:
    """Return the score of a classifier that always answers the most frequent class, by outer split.

    Parameters
    ----------
    results : StudyResults
        The study, whose runs may have recorded these scores.
    design : Design
        The design of the study.
    dataset : str
        Name of the dataset.

    Returns
    -------
    ndarray (n_outer,)
        Recorded scores; else, for accuracy, the share of the largest class; else NaN.
    """
    description, n_outer = design.datasets[dataset], design.n_outer(dataset)
    known = recorded_baseline(results.provenance, description, design.metric)
    if known is not None and len(known) == n_outer:
        return np.array(known)
    return np.full(n_outer, _largest_share(description) if design.metric == "accuracy" else np.nan)


def _largest_share(description: Mapping[str, Any]) -> float:
    """Return the share of the rows that the largest class has; NaN if it is not recorded.

    Parameters
    ----------
    description : mapping of str to object
        Recorded description of the dataset.
    """
    counts = description.get("class_counts") or {}
    return max(counts.values()) / sum(counts.values()) if counts else float("nan")
