"""Arms of one solver that differ in one swept value, compared with the first of them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.ratios import cost_bounds, costs_by_arm, ratios_of, summarise
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.tables import timing_rows
from orchestrator.results import StudyResults
from orchestrator.study import cell, stored_as_numbers


def sweeps(design: Design) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every sweep as a title, the swept parameter, and its arms with their values in declared order.

    With several swept parameters, each is followed while the others stay fixed. Values that are not all
    numbers are given as text, each with its own.
    """
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Any]] = {}
    for name, facts in design.arms.items():
        sweep = facts.get("sweep") or {}
        for axis, value in sweep.items():
            fixed = tuple(sorted((other, cell(held)) for other, held in sweep.items() if other != axis))
            groups.setdefault((facts.get("solver", ""), axis, fixed), {})[name] = value
    for (solver, axis, fixed), arms in groups.items():
        if len(arms) > 1:
            held = ", ".join(f"{other}={value}" for other, value in fixed)
            if not stored_as_numbers(list(arms.values())):
                arms = {name: cell(value) for name, value in arms.items()}
            yield f"{solver}[{held}]" if held else solver, axis, arms


def sweep_ratios(results: StudyResults, design: Design) -> dict[tuple[str, str], dict[str, pd.DataFrame]]:
    """Return, for every (arm, reference) of the sweeps, the ends of its cost ratios by dataset; see `ratios`.

    The costs are n_iter, n_kernel_evals and, from trainings alone on a core, fit_seconds.
    """
    rows = {"n_iter": results.outer, "n_kernel_evals": results.outer}
    rows["fit_seconds"] = timing_rows(results.outer)
    costs = {name: costs_by_arm(cost_bounds(frame, design, name)) for name, frame in rows.items()}
    return {
        (arm, reference): {name: ratios_of(bounds, arm, reference) for name, bounds in costs.items()}
        for _, _, arms in sweeps(design)
        for reference in [next(iter(arms))]
        for arm in arms
    }


def sweep_differences(
    design: Design,
    means: pd.DataFrame,
    ratios: Mapping[tuple[str, str], Mapping[str, pd.DataFrame]],
) -> pd.DataFrame:
    """Compare every setting of a sweep with its reference, the setting declared first, on each dataset.

    Folds, draws and seeds are common to all settings, so the differences are paired. Columns: sweep, axis,
    setting, reference, reference_solver, solver, dataset, difference (of dataset means), and n_iter_ratio,
    n_kernel_evals_ratio, fit_seconds_ratio (setting / reference; NaN where unknown or where a training was
    stopped).
    """
    table = []
    for title, axis, arms in sweeps(design):
        reference = next(iter(arms))
        scores = means.reindex(columns=list(arms))
        for arm, setting in arms.items():
            columns = {"difference": (scores[arm] - scores[reference]).round(DECIMALS)}
            for name, ends in ratios[arm, reference].items():
                columns[f"{name}_ratio"] = ends["low"].where(ends["low"] == ends["high"])
            rows = pd.DataFrame(columns, index=means.index).rename_axis("dataset").reset_index()
            rows.insert(0, "sweep", title)
            rows.insert(1, "axis", axis)
            rows.insert(2, "setting", setting)
            rows.insert(3, "reference", arms[reference])
            rows.insert(4, "reference_solver", reference)
            rows.insert(5, "solver", arm)
            table.append(rows)
    return pd.concat(table, ignore_index=True) if table else pd.DataFrame()


def sweep_summary(
    differences: pd.DataFrame, ratios: Mapping[tuple[str, str], Mapping[str, pd.DataFrame]]
) -> pd.DataFrame:
    """Summarise the paired differences of every setting over datasets.

    Columns: sweep, axis, setting, reference, solver, n, higher, equal, lower, median_difference,
    lowest_difference, highest_difference, and of each cost `<cost>_<field>` for the fields n, bound, ratio,
    median_low and median_high of `RatioSummary`.
    """
    if differences.empty:
        return differences
    table = []
    for name, rows in differences.groupby(["sweep", "axis", "solver"], sort=False):
        sweep, axis, solver = cast(tuple[str, str, str], name)
        d = rows["difference"].dropna()
        summary: dict[str, Any] = {
            "sweep": sweep,
            "axis": axis,
            "setting": rows["setting"].iloc[0],
            "reference": rows["reference"].iloc[0],
            "solver": solver,
            "n": len(d),
            "higher": int((d > 0).sum()),
            "equal": int((d == 0).sum()),
            "lower": int((d < 0).sum()),
            "median_difference": d.median(),
            "lowest_difference": d.min(),
            "highest_difference": d.max(),
        }
        for cost, ends in ratios[solver, rows["reference_solver"].iloc[0]].items():
            over_datasets = summarise(ends)
            for field in ("n", "bound", "ratio", "median_low", "median_high"):
                summary[f"{cost}_{field}"] = getattr(over_datasets, field)
        table.append(summary)
    return pd.DataFrame(table)
