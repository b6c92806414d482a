"""Arms of one solver that differ in one swept value, compared with the first of them."""

from collections.abc import Iterator
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.paired_means import PairedMeans, without_ties
from orchestrator.analysis.ratios import costs, divide, summarise
from orchestrator.analysis.summaries import timing_rows
from orchestrator.store.results import StudyResults
from orchestrator.study.values import cell, stored_as_numbers


def sweeps(design: Design) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every sweep as a title, the swept parameter, and its arms with their values in declared order.

    With several swept parameters, a sweep varies one of them and fixes the others. If some values are not
    numbers, all values are yielded as text.

    Parameters
    ----------
    design : Design
        The design of the study.

    Yields
    ------
    title, axis, arms
        The title of the sweep, the swept parameter, and the values by name of the arm.
    """
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Any]] = {}
    for name, description in design.arms.items():
        sweep = description.get("sweep") or {}
        for axis, value in sweep.items():
            fixed = tuple(sorted((other, cell(held)) for other, held in sweep.items() if other != axis))
            groups.setdefault((description.get("solver", ""), axis, fixed), {})[name] = value
    for (solver, axis, fixed), arms in groups.items():
        if len(arms) > 1:
            held = ", ".join(f"{other}={value}" for other, value in fixed)
            if not stored_as_numbers(list(arms.values())):
                arms = {name: cell(value) for name, value in arms.items()}
            yield f"{solver}[{held}]" if held else solver, axis, arms


def compare_settings(
    results: StudyResults, design: Design, means: PairedMeans
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare every setting of a sweep with its reference, the setting declared first.

    Folds, draws and seeds are common to all settings, so the differences are paired. The costs are n_iter,
    n_kernel_evals and, under the profile `timing`, fit_seconds.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    means : PairedMeans
        Mean scores as tests compare them.

    Returns
    -------
    differences : DataFrame
        One row for each dataset. Columns: sweep, axis, setting, reference, reference_solver, solver, dataset,
        difference (of dataset means), and of each cost `<cost>_ratio` (setting / reference; NaN where unknown
        or where a training was stopped).
    summary : DataFrame
        Over datasets. Columns: sweep, axis, setting, reference, solver, n, higher, equal, lower,
        median_difference, lowest_difference, highest_difference, and of each cost `<cost>_<field>` for the
        fields n, bound, ratio, median_low and median_high of `RatioSummary`.
    """
    rows = dict.fromkeys(("n_iter", "n_kernel_evals"), results.outer)
    rows["fit_seconds"] = timing_rows(results.outer)
    declared = [] if means.by_dataset.empty else list(sweeps(design))
    known = {name: costs(frame, design, name) for name, frame in rows.items()} if declared else {}
    each: list[dict[str, Any]] = []
    overall: list[dict[str, Any]] = []
    for title, axis, arms in declared:
        reference = next(iter(arms))
        scores = means.by_dataset.reindex(index=list(design.datasets), columns=list(arms))
        for arm, setting in arms.items():
            names = {"sweep": title, "axis": axis, "setting": setting, "reference": arms[reference]}
            difference = without_ties(scores[arm] - scores[reference], means.ties_below).to_numpy()
            columns, summary = {"difference": difference}, _summary(difference[~np.isnan(difference)])
            for cost, bounds in known.items():
                low, high = ratios = divide(bounds[arm], bounds[reference])
                columns[f"{cost}_ratio"] = np.where(low == high, low, np.nan)
                over_datasets = summarise(ratios)
                for field in ("n", "bound", "ratio", "median_low", "median_high"):
                    summary[f"{cost}_{field}"] = getattr(over_datasets, field)
            names |= {"reference_solver": reference, "solver": arm}
            for i, dataset in enumerate(design.datasets):
                each.append(names | {"dataset": dataset} | {name: x[i] for name, x in columns.items()})
            overall.append(names | summary)
    return pd.DataFrame(each), pd.DataFrame(overall).drop(columns="reference_solver", errors="ignore")


def _summary(differences: np.ndarray) -> dict[str, Any]:
    return {
        "n": len(differences),
        "higher": int((differences > 0).sum()),
        "equal": int((differences == 0).sum()),
        "lower": int((differences < 0).sum()),
        "median_difference": float(np.median(differences)) if len(differences) else nan,
        "lowest_difference": min(differences, default=nan),
        "highest_difference": max(differences, default=nan),
    }
