"""Costs of a prediction beside accuracy: seconds per row, vectors, the Pareto front, and rates by class."""

from collections.abc import Sequence
from math import nan

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.paired_means import half_predictions, without_ties
from orchestrator.analysis.ratios import compare_costs
from orchestrator.analysis.summaries import finished, n_tested, rows_by_pair, timing_rows
from orchestrator.study.records import Status

COST = "seconds_per_row"
"""Column with the seconds that the prediction of a batch takes, divided by its rows."""
ONE_ROW = "row_seconds"
"""Column with the seconds of a prediction of one row, if the study recorded it."""


def with_seconds_per_row(outer: pd.DataFrame) -> pd.DataFrame:
    """Return the refits of the profile `timing` with the seconds per row of their predictions.

    Parameters
    ----------
    outer : DataFrame
        Refits, one for each outer split of a dataset × arm.

    Returns
    -------
    DataFrame
        The timed refits with the column `COST`.
    """
    rows = timing_rows(outer)
    n_test = rows["n_test"].astype(float)
    return rows.assign(**{COST: rows["predict_seconds"].astype(float) / n_test.where(n_test > 0)})


def average_costs(outer: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Average what a prediction costs, for each dataset × arm that was timed on every outer fold.

    A pair with a stopped refit is left out, because the finished model may predict faster or slower.
    Columns: dataset, solver, score, seconds_per_row, row_seconds (NaN if it was not recorded), n_sv,
    kept_share (vectors divided by those of the arm with the most on this dataset), speed_up (seconds of the
    first arm divided by those of the arm), score_difference (from the first arm), on_front (whether no other
    arm is at least as accurate and as fast, and better in one of the two; accuracies tie as in the tests).

    Parameters
    ----------
    outer : DataFrame
        Refits of the study.
    design : Design
        The design of the study.
    """
    measures = ("score", COST, ONE_ROW, "n_sv")
    table = []
    for (dataset, arm), rows in rows_by_pair(with_seconds_per_row(outer), design.pairs, measures, ["status"]):
        fits = finished(rows)
        complete = len(fits["score"]) == len(rows["score"]) == design.n_outer(dataset)
        complete &= not (fits["status"] == Status.TIMEOUT).any()
        if complete and np.isfinite(fits["score"]).all() and np.isfinite(fits[COST]).all():
            table.append({"dataset": dataset, "solver": arm} | {name: _mean(fits[name]) for name in measures})
    frame = pd.DataFrame(table, columns=["dataset", "solver", *measures])
    ties_below = half_predictions(design.metric, n_tested(outer))
    parts = [
        _compared(group, next(iter(design.arms)), ties_below)
        for _, group in frame.groupby("dataset", sort=False)
    ]
    return pd.concat(parts, ignore_index=True) if parts else frame


def _mean(values: np.ndarray) -> float:
    """Return a mean.

    Parameters
    ----------
    values : ndarray
        Numbers, perhaps NaN.

    Returns
    -------
    float
        Mean; NaN if a value is unknown.
    """
    return float(values.mean()) if len(values) else nan


def _compared(group: pd.DataFrame, reference: str, ties_below: pd.Series) -> pd.DataFrame:
    """Compare the arms on one dataset.

    Parameters
    ----------
    group : DataFrame
        Rows of one dataset.
    reference : str
        Arm that the others are compared with.
    ties_below : Series
        By dataset, the difference of two scores below which they are tied.

    Returns
    -------
    DataFrame
        The rows with the columns that compare arms.
    """
    of_reference = group[group["solver"] == reference]
    seconds, score = (
        float(of_reference[name].iloc[0]) if len(of_reference) else nan for name in (COST, "score")
    )
    most = group["n_sv"].max()
    positive = group[COST].where(group[COST] > 0)
    return group.assign(
        kept_share=group["n_sv"] / most if most > 0 else nan,
        speed_up=seconds / positive,
        score_difference=group["score"] - score,
        on_front=pareto_front(_leads(group, ties_below), group[COST].to_numpy()),
    )


def _leads(group: pd.DataFrame, ties_below: pd.Series) -> np.ndarray:
    """Return the difference in score of each arm (row) from each arm (column) on one dataset, 0 for ties.

    Parameters
    ----------
    group : DataFrame
        Rows of one dataset.
    ties_below : Series
        By dataset, the difference of two scores below which they are tied.
    """
    scores = group.set_index("dataset")["score"]
    return np.stack([without_ties(scores - score, ties_below).to_numpy() for score in scores], axis=1)


def pareto_front(leads: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return which points no other point dominates.

    A point dominates another one if it has at least its score and at most its seconds, and is better in one.

    Parameters
    ----------
    leads : ndarray of shape (n, n)
        Difference in score of each point (row) from each point (column), 0 for ties; a higher score is
        better.
    seconds : ndarray of shape (n,)
        Cost of each point; a lower one is better.

    Returns
    -------
    bool ndarray of shape (n,)
        Whether each point is on the front.
    """
    as_good = (leads >= 0) & (seconds[:, None] <= seconds)
    better = (leads > 0) | (seconds[:, None] < seconds)
    dominated: np.ndarray = np.any(as_good & better, axis=0)
    return ~dominated


def speed_ups(outer: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Compare the seconds per row of the first arm with those of each other arm; see `compare_costs`.

    A ratio above 1 means that the arm predicts faster than the first one. The column `reference` holds the
    arm, and `solver` the first arm.

    Parameters
    ----------
    outer : DataFrame
        Refits of the study.
    design : Design
        The design of the study.
    """
    rows, (first, *others) = with_seconds_per_row(outer), design.arms
    tables = [compare_costs(rows, design, [COST], [first], arm) for arm in others]
    frame = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return frame[frame[f"{COST}_n"] > 0].reset_index(drop=True) if len(frame) else frame


def class_rates(predictions: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return how often each class is found, and how often the rows of others are given to it.

    Columns: dataset, solver, class, n_rows, found (share of the rows of the class that are predicted as it),
    given (share of the rows of the other classes that are predicted as it; NaN without such rows).

    Parameters
    ----------
    predictions : DataFrame
        Result of `StudyResults.predictions`; the rows of all refits are counted together.
    pairs : sequence of (dataset, arm)
        The pairs to count, in that order.
    """
    groups = dict(tuple(predictions.groupby(["dataset", "solver"], sort=False)))
    table = []
    for dataset, arm in pairs:
        if (dataset, arm) not in groups:
            continue
        rows = groups[dataset, arm]
        true, predicted = rows["true"].to_numpy(), rows["predicted"].to_numpy()
        for label in _ordered(set(true) | set(predicted)):
            of_class, as_class = true == label, predicted == label
            n, n_others = int(of_class.sum()), int((~of_class).sum())
            table.append(
                {
                    "dataset": dataset,
                    "solver": arm,
                    "class": label,
                    "n_rows": n,
                    "found": float((of_class & as_class).sum() / n) if n else nan,
                    "given": float((~of_class & as_class).sum() / n_others) if n_others else nan,
                }
            )
    return pd.DataFrame(table, columns=["dataset", "solver", "class", "n_rows", "found", "given"])


def _ordered(labels: set[str]) -> list[str]:
    """Return labels in order: numbers by their value, before text.

    Parameters
    ----------
    labels : set of str
        Labels as text.

    Returns
    -------
    list of str
        Labels.
    """

    def key(label: str) -> tuple[bool, float, str]:
        try:
            return False, float(label), label
        except ValueError:
            return True, 0.0, label

    return sorted(labels, key=key)
