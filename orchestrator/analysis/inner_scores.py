"""Inner scores over two hyper-parameters: the candidates tried, their scores and the selections."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.summaries import numbers, two_axes
from orchestrator.store.results import StudyResults
from orchestrator.study.trials import REFIT

ARMS_MAPPED, ARMS_MAPPED_OF_MANY = 8, 4
"""Largest number of arms that are mapped, and that number in a study of more than `MANY_ARMS` arms."""

MANY_ARMS = 40
"""Largest number of arms of a study with `ARMS_MAPPED` maps, and with maps of single datasets."""


def mapped_arms(design: Design, means: pd.DataFrame) -> list[str]:
    """Return the arms to map: among arms with two axes, the first one and those with the highest means.

    Parameters
    ----------
    design : Design
        The design of the study.
    means : DataFrame
        Mean scores of datasets (rows) and arms (columns).
    """
    best: list[str] = [*means.mean().sort_values(ascending=False, kind="stable").index] if len(means) else []
    arms = [arm for arm in design.arms if two_axes(design.arms[arm].get("space", {}))]
    order = [arm for arm in dict.fromkeys([*arms[:1], *best, *arms]) if arm in arms]
    return order[: ARMS_MAPPED if len(design.arms) <= MANY_ARMS else ARMS_MAPPED_OF_MANY]


def average_inner_scores(results: StudyResults, design: Design, arms: Sequence[str]) -> pd.DataFrame:
    """Average the inner scores of each candidate, dataset and arm.

    Columns: solver, dataset, x_name, x, y_name, y, n (inner trainings), score (their mean; NaN if none has
    one), below_best (score minus the highest of the dataset × arm), chosen (by how many outer folds).

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    arms : sequence of str
        The arms to average, in the order of the result.
    """
    trials = results.trials
    inner = trials[(trials["inner"] != REFIT) & trials["solver"].isin(list(arms))]
    frames = []
    for arm in arms:
        axes = two_axes(design.arms[arm].get("space", {}))
        columns = [f"param_{name}" for name in axes or ()]
        rows = inner[inner["solver"] == arm]
        if axes is None or rows.empty or not set(columns) <= set(rows):
            continue
        points = _points(rows, columns).assign(score=numbers(rows["score"]))
        table = points.groupby(["dataset", "x", "y"], sort=True)["score"].agg(["size", "mean"]).reset_index()
        chosen = results.selections[results.selections["solver"] == arm]
        # Without any selection of the arm, its hyper-parameters may have no column.
        chosen = chosen.reindex(columns=["dataset", *columns])
        counts = _points(chosen, columns).groupby(["dataset", "x", "y"]).size().rename("chosen").reset_index()
        table = table.merge(counts, on=["dataset", "x", "y"], how="left")
        frames.append(table.assign(solver=arm, x_name=axes[0], y_name=axes[1]))
    if not frames:
        return pd.DataFrame()
    frame = pd.concat(frames, ignore_index=True).rename(columns={"size": "n", "mean": "score"})
    highest = frame.groupby(["solver", "dataset"])["score"].transform("max").to_numpy(dtype=float)
    frame = frame.assign(below_best=frame["score"] - highest, chosen=frame["chosen"].fillna(0).astype(int))
    order = {name: i for i, name in enumerate(design.datasets)}
    frame = frame.sort_values("dataset", key=lambda column: column.map(order), kind="stable")
    arm_order = {name: i for i, name in enumerate(arms)}
    frame = frame.sort_values("solver", key=lambda column: column.map(arm_order), kind="stable")
    names = ["solver", "dataset", "x_name", "x", "y_name", "y", "n", "score", "below_best", "chosen"]
    return frame[names].reset_index(drop=True)


def _points(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    x, y = (numbers(rows[column]) for column in columns)
    return pd.DataFrame({"dataset": rows["dataset"].to_numpy(), "x": x, "y": y})


def by_dataset(frame: pd.DataFrame, n_arms: int) -> bool:
    """Return whether maps of single datasets are drawn, which requires several datasets and few arms.

    Parameters
    ----------
    frame : DataFrame
        Inner scores, as `average_inner_scores` returns them.
    n_arms : int
        Number of arms of the study.
    """
    return n_arms <= MANY_ARMS and len(frame) > 0 and frame["dataset"].nunique() > 1


def over_datasets(frame: pd.DataFrame) -> pd.DataFrame:
    """Average the maps of an arm over the datasets that tried a candidate, and sum its selections.

    A search may try different candidates on different datasets, so the average is over the differences from
    the best candidate of each dataset.

    Parameters
    ----------
    frame : DataFrame
        Inner scores, as `average_inner_scores` returns them.
    """
    grouped = frame.groupby(["solver", "x_name", "x", "y_name", "y"], sort=False)
    table = grouped.agg(
        below_best=("below_best", "mean"),
        datasets=("below_best", "count"),
        n=("n", "sum"),
        chosen=("chosen", "sum"),
    )
    return table.reset_index()


def visits_differ(frame: pd.DataFrame) -> bool:
    """Return whether a search tried some candidates less often than others, or never.

    Parameters
    ----------
    frame : DataFrame
        Inner scores, as `average_inner_scores` returns them.
    """
    cells = frame.groupby(["solver", "dataset"])["x"].transform("size")
    grid = frame.groupby("solver")[["x", "y"]].transform("nunique").prod(axis=1)
    uneven = frame.groupby(["solver", "dataset"])["n"].transform("nunique")
    return bool(((uneven > 1) | (cells < grid)).any()) if np.size(cells) else False
