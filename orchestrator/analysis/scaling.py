"""Power laws of training time in the numbers of training rows and of support vectors."""

from math import nan

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import linregress

from orchestrator.analysis.design import Design
from orchestrator.analysis.pairwise import ALPHA
from orchestrator.analysis.summaries import numbers, timing_rows
from orchestrator.store.results import StudyResults
from orchestrator.study.records import Status

MIN_SIZES = 5
"""Smallest number of different sizes of a fit."""

MIN_RANGE = 4.0
"""Smallest ratio of the largest to the smallest size of a fit."""

PREDICTORS = ("n_train", "n_sv")


def sizes_and_times(results: StudyResults, design: Design) -> pd.DataFrame:
    """Average size and training time of the refits of every dataset × arm under the profile `timing`.

    Columns: solver, dataset, n_train, n_sv, fit_seconds. Dataset × arm with an unfinished or a
    stopped outer fold are left out.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    rows = timing_rows(results.outer)
    measures = {name: numbers(rows[name]) for name in (*PREDICTORS, "fit_seconds")}
    frame = rows[["solver", "dataset"]].assign(ok=rows["status"].eq(Status.OK), **measures)
    fits = frame.groupby(["dataset", "solver"], sort=False)
    known = fits[[*measures]].count().eq(fits.size(), axis=0)
    means = fits[[*measures]].mean().where(known)
    n_outer = {dataset: design.n_outer(dataset) for dataset in design.datasets}
    finished = fits["ok"].all() & (fits.size() == means.index.get_level_values("dataset").map(n_outer))
    pairs = [pair for pair in design.pairs if finished.get(pair, False)]
    return means.loc[pairs].reset_index()[["solver", "dataset", *measures]]


def scaling(points: pd.DataFrame, alpha: float = ALPHA) -> pd.DataFrame:
    """Fit log time = a + b·log size for each arm by least squares, where there are enough sizes.

    Columns: solver, predictor, n (datasets), smallest, largest, exponent (b), low, high (Student's t interval
    at 1 − alpha), factor (seconds at size 1), r2.

    Parameters
    ----------
    points : DataFrame
        Sizes and times, as `sizes_and_times` returns them.
    alpha : float, default=ALPHA
        Level of the tests; intervals are at 1 − α.
    """
    table = []
    for arm, rows in points.groupby("solver", sort=False) if len(points) else ():
        sizes_of = {name: rows[name].to_numpy(dtype=float) for name in PREDICTORS}
        seconds = rows["fit_seconds"].to_numpy(dtype=float)
        for predictor, sizes in sizes_of.items():
            known = (sizes > 0) & (seconds > 0)
            x, y = sizes[known], seconds[known]
            if len(np.unique(x)) >= MIN_SIZES and x.max() >= MIN_RANGE * x.min():
                table.append({"solver": arm, "predictor": predictor, **_fit(x, y, alpha)})
    return pd.DataFrame(table)


def _fit(sizes: np.ndarray, seconds: np.ndarray, alpha: float) -> dict[str, float]:
    line = linregress(np.log(sizes), np.log(seconds))
    reach = float(stdtrit(len(sizes) - 2, 1 - alpha / 2)) * line.stderr
    return {
        "n": len(sizes),
        "smallest": float(sizes.min()),
        "largest": float(sizes.max()),
        "exponent": float(line.slope),
        "low": float(line.slope - reach),
        "high": float(line.slope + reach),
        "factor": float(np.exp(line.intercept)),
        "r2": float(line.rvalue**2) if np.ptp(seconds) > 0 else nan,
    }
