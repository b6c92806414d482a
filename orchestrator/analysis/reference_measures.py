"""Measures of every arm against a reference arm, over the points of a grid and the outer splits.

Nandan, Khargonekar and Talathi (2014, Section 5.3) define the measures. An arm has the score s, the training
time T and the number of support vectors N at a point and a split, and the reference arm has s', T' and N':

- RMSE = √mean (s' − s)²,
- ETS = mean (T'/T) and OTS = (ΣT' + R') / (ΣT + R), where R is the time of the reductions of an arm,
- ECS = mean (N'/N) and OCS = ΣN' / ΣN.

A reduction serves all values of C. So R counts it once for each outer split and each combination of the other
parameters, and T does not contain it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.store.results import StudyResults
from orchestrator.study.records import PARTS_OF_FIT, Status
from orchestrator.study.study import PATH_PARAM
from orchestrator.study.values import cell, with_merged_numbers

_COUNTS = ("n_sv", "n_representatives", "n_train")
"""Columns of trials that count vectors or rows."""


def grid_points(results: StudyResults, design: Design) -> pd.DataFrame:
    """Return the trainings of a study without selection that have a score and were not stopped.

    Columns: dataset, solver, point (its parameters as text), off_path (the parameters but C), outer, score,
    seconds (of training, without the parts in `PARTS_OF_FIT`; NaN unless the profile is `timing`),
    reduction_seconds, n_sv, n_representatives (NaN if the arm does not publish them), n_train.

    Parameters
    ----------
    results : StudyResults
        Stored rows of the study.
    design : Design
        The design of the study.

    Returns
    -------
    DataFrame
        Rows in the order of the trials; empty for a study that selects candidates.
    """
    columns = ["dataset", "solver", "point", "off_path", "outer", "score", "seconds"]
    columns += ["reduction_seconds", *_COUNTS]
    trials = results.trials
    if design.selects or trials.empty:
        return pd.DataFrame(columns=columns)
    trials = trials[(trials["status"] == Status.OK) & trials["score"].notna()]
    numbers = {name: _numbers(trials, name) for name in ("fit_seconds", *_COUNTS, *PARTS_OF_FIT)}
    parts = sum(numbers[name].fillna(0.0) for name in PARTS_OF_FIT)
    seconds = (numbers["fit_seconds"] - parts).where(trials["profile"] == "timing")
    frame = trials[["dataset", "solver", "outer", "score"]].assign(
        seconds=seconds.where(seconds > 0),
        reduction_seconds=numbers["reduction_seconds"],
        **{name: numbers[name] for name in _COUNTS},
        point="",
        off_path="",
    )
    for arm, description in design.arms.items():
        rows = frame["solver"] == arm
        texts = _parameter_texts(trials[rows], list(description.get("space") or {}))
        frame.loc[rows, "point"] = _joined(texts, list(texts))
        frame.loc[rows, "off_path"] = _joined(texts, [name for name in texts if name != PATH_PARAM])
    return frame[columns].reset_index(drop=True)


def _numbers(trials: pd.DataFrame, name: str) -> "pd.Series[float]":
    """Return a column as floats; NaN if older trials do not have it.

    Parameters
    ----------
    trials : DataFrame
        Trials of a study.
    name : str
        Name of the column.
    """
    if name not in trials:
        return pd.Series(np.nan, index=trials.index)
    return trials[name].astype("Float64").astype(float)


def _parameter_texts(trials: pd.DataFrame, names: Sequence[str]) -> "dict[str, pd.Series[str]]":
    """Return the parameters of trials as texts, by name in alphabetical order.

    A parameter of a step of a pipeline has its own name there: `svc__C` is C. So a pipeline has the points of
    an arm with the same parameters. If two steps have a parameter of one name, all names stay complete.

    Parameters
    ----------
    trials : DataFrame
        Trials of one arm.
    names : sequence of str
        Parameters of its space.
    """
    short = {name: name.rpartition("__")[2] for name in names}
    if len(set(short.values())) < len(names):
        short = {name: name for name in names}
    ordered = sorted(names, key=short.__getitem__)
    return {short[name]: _texts(trials[f"param_{name}"]) for name in ordered}


def _texts(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Return the stored values of a parameter as texts; equal numbers have equal texts in all arms.

    If a space has the number 1 both as an integer and as a float, they stay apart.

    Parameters
    ----------
    values : Series
        Column `param_NAME` of one arm. It holds texts if a value of the arm's space is not a number.
    """
    texts = {value: _text(value) for value in values.unique()}
    if len(set(texts.values())) < len(texts):
        texts = {value: str(value) for value in texts}
    return values.map(texts)


def _text(value: Any) -> str:
    """Return a stored parameter as text.

    Parameters
    ----------
    value : float or str
        Value of a column `param_NAME`; a text is that of `cell`.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    return cell(with_merged_numbers(value))


def _joined(texts: "Mapping[str, pd.Series[str]]", names: Sequence[str]) -> list[str] | str:
    """Return some parameters of each row in one text, such as `C=4, gamma=0.5`.

    Parameters
    ----------
    texts : mapping of str to Series of str
        Values of each parameter.
    names : sequence of str
        Parameters to join; for none, the text is empty.
    """
    rows = zip(*(texts[name] for name in names), strict=True)
    texts_of_rows = (zip(names, row, strict=True) for row in rows)
    return [", ".join(f"{name}={text}" for name, text in row) for row in texts_of_rows] if names else ""


def reference_measures(points: pd.DataFrame, design: Design, references: Sequence[str] = ()) -> pd.DataFrame:
    """Measure every arm against each reference arm, on the points and splits that both have.

    Columns: dataset, reference, solver, n_points (points × splits that both have), n_planned (those that the
    larger of the two grids has), the fields of `measures`.

    Parameters
    ----------
    points : DataFrame
        Trainings, as `grid_points` returns them.
    design : Design
        The design of the study. Its choices name the reference arms; by default that is the first arm.
    references : sequence of str
        Reference arms that replace those of the choices; none by default.

    Returns
    -------
    DataFrame
        One row for each dataset × reference × arm. Measures without a value are NaN.
    """
    if points.empty:
        return pd.DataFrame()
    references = references or design.choices.reference or tuple(design.arms)[:1]
    of_pair = {
        pair: rows.set_index(["point", "outer"]) for pair, rows in points.groupby(["dataset", "solver"])
    }
    rows = []
    for dataset, arm in design.pairs:
        for reference in references:
            pairs = (dataset, reference), (dataset, arm)
            ends = [of_pair.get(pair, points.iloc[:0].set_index(["point", "outer"])) for pair in pairs]
            common = ends[0].index.intersection(ends[1].index)
            planned = [design.planned(*pair) or 0 for pair in pairs]
            rows.append(
                {
                    "dataset": dataset,
                    "reference": reference,
                    "solver": arm,
                    "n_points": len(common),
                    "n_planned": max(planned),
                    **measures(ends[1].loc[common], ends[0].loc[common], design.n_outer(dataset)),
                }
            )
    order = {name: i for i, name in enumerate(references)}
    frame = pd.DataFrame(rows).sort_values(
        ["dataset", "reference"],
        kind="stable",
        key=lambda names: names.map(order if names.name == "reference" else _positions(design.datasets)),
    )
    return frame.reset_index(drop=True)


def _positions(names: Mapping[str, Any]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def measures(arm: pd.DataFrame, reference: pd.DataFrame, n_outer: int) -> dict[str, float]:
    """Return the measures of an arm against a reference on the same points and splits.

    Parameters
    ----------
    arm, reference : DataFrame
        Trainings with the index (point, outer), equal in both, and the columns of `grid_points`.
    n_outer : int
        Number of outer splits. Points that lack some of them do not enter `maximum` and `sd_of_means`.

    Returns
    -------
    dict of str to float
        `rmse`, `ets`, `ots`, `reduction_seconds` (R), `ecs`, `ocs`; of the scores of the arm itself `maximum`
        and `sd_of_means` (population σ) over the points' means over splits, `mean` and `sd` (population σ)
        over points × splits. NaN for a measure without a value.
    """
    scores = arm["score"].to_numpy(dtype=float)
    difference = reference["score"].to_numpy(dtype=float) - scores
    each = arm["score"].groupby(level="point").agg(["mean", "size"])
    means = each.loc[each["size"] == n_outer, "mean"].to_numpy()
    reductions = [_reductions(frame) for frame in (arm, reference)]
    ets, ots = _speedups(arm, reference, "seconds", reductions)
    ecs, ocs = _speedups(arm, reference, "n_sv", [0.0, 0.0])
    return {
        "rmse": float(np.sqrt(np.mean(difference**2))) if len(scores) else np.nan,
        "ets": ets,
        "ots": ots,
        "reduction_seconds": np.nan if np.isnan(ots) else reductions[0],
        "ecs": ecs,
        "ocs": ocs,
        "maximum": float(means.max()) if len(means) else np.nan,
        "mean": float(scores.mean()) if len(scores) else np.nan,
        "sd": float(scores.std()) if len(scores) else np.nan,
        "sd_of_means": float(means.std()) if len(means) else np.nan,
    }


def _speedups(
    arm: pd.DataFrame, reference: pd.DataFrame, column: str, further: Sequence[float]
) -> tuple[float, float]:
    """Return the mean ratio of a cost, and the ratio of its sums, of a reference and an arm.

    Parameters
    ----------
    arm, reference : DataFrame
        Trainings on the same points and splits.
    column : str
        Cost of each training.
    further : sequence of float
        Costs that the sums of the arm and of the reference contain besides.

    Returns
    -------
    tuple of float
        NaN if a training lacks the cost, or if a sum is 0. The mean is NaN if a cost of the arm is 0.
    """
    costs = [frame[column].to_numpy(dtype=float) for frame in (arm, reference)]
    if not len(arm) or not all(np.isfinite(each).all() for each in costs):
        return np.nan, np.nan
    sums = [each.sum() + more for each, more in zip(costs, further, strict=True)]
    if not all(sums):
        return np.nan, np.nan
    mean = np.mean(costs[1] / costs[0]) if costs[0].all() else np.nan
    return float(mean), float(sums[1] / sums[0])


def _reductions(arm: pd.DataFrame) -> float:
    """Return the seconds of an arm's reductions, each counted once for all values of C.

    Trainings of the profile `timing` run by themselves, so each repeats the reduction. Their mean counts.

    Parameters
    ----------
    arm : DataFrame
        Trainings with the index (point, outer).
    """
    seconds = arm["reduction_seconds"].astype(float).fillna(0.0)
    groups = [arm["off_path"], arm.index.get_level_values("outer")]
    return float(seconds.groupby(groups).mean().sum()) if len(arm) else 0.0


def point_means(points: pd.DataFrame) -> pd.DataFrame:
    """Average the score, the training time and the number of vectors of every point over its splits.

    Parameters
    ----------
    points : DataFrame
        Trainings, as `grid_points` returns them.

    Returns
    -------
    DataFrame
        Columns dataset, solver, point, n_splits, score, seconds, n_sv. A mean is NaN if a split lacks the
        number.
    """
    if points.empty:
        return pd.DataFrame()
    groups = points.groupby(["dataset", "solver", "point"], sort=False)
    means = groups[["score", "seconds", "n_sv"]].mean()
    complete = groups[["score", "seconds", "n_sv"]].count().eq(groups.size(), axis=0)
    return means.where(complete).assign(n_splits=groups.size()).reset_index()


def representative_sets(points: pd.DataFrame) -> pd.DataFrame:
    """Average the size of the representative sets, and the time to derive them, over splits and values of C.

    Parameters
    ----------
    points : DataFrame
        Trainings, as `grid_points` returns them.

    Returns
    -------
    DataFrame
        Columns dataset, solver, parameters (all but C, as text), n_sets (one for each outer split),
        n_representatives, share (of the training rows), reduction_seconds (NaN unless the profile is
        `timing`). Only arms that publish a number of representatives have rows.
    """
    known = points[points["n_representatives"].notna()] if len(points) else points
    if known.empty:
        return pd.DataFrame()
    seconds = known["reduction_seconds"].where(known["seconds"].notna())
    known = known.assign(
        share=known["n_representatives"] / known["n_train"], reduction_seconds=seconds
    ).rename(columns={"off_path": "parameters"})
    axes = ["dataset", "solver", "parameters"]
    numbers = ["n_representatives", "share", "reduction_seconds"]
    sets = known.groupby([*axes, "outer"], sort=False)[numbers].mean().reset_index()
    groups = sets.groupby(axes, sort=False)
    return groups[numbers].mean().assign(n_sets=groups.size()).reset_index()
