"""Arms of one solver that differ in one swept value, compared with the first of them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.tables import geometric_mean, ratio
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


def sweep_differences(
    design: Design, means: pd.DataFrame, effort: pd.DataFrame, timing: pd.DataFrame
) -> pd.DataFrame:
    """Compare every setting of a sweep with its reference, the setting declared first, on each dataset.

    Folds, draws and seeds are common to all settings, so the differences are paired. Columns: sweep, axis,
    setting, reference, solver, dataset, difference (of dataset means), n_iter_ratio, n_kernel_evals_ratio,
    fit_seconds_ratio (setting / reference; NaN where unknown).
    """
    work = {"n_iter": effort, "n_kernel_evals": effort, "fit_seconds": timing}
    table = []
    for title, axis, arms in sweeps(design):
        reference = next(iter(arms))
        scores = means.reindex(columns=list(arms))
        for arm, setting in arms.items():
            columns = {"difference": (scores[arm] - scores[reference]).round(DECIMALS)}
            columns |= {f"{name}_ratio": ratio(frame, name, arm, reference) for name, frame in work.items()}
            rows = pd.DataFrame(columns, index=means.index).rename_axis("dataset").reset_index()
            rows.insert(0, "sweep", title)
            rows.insert(1, "axis", axis)
            rows.insert(2, "setting", setting)
            rows.insert(3, "reference", arms[reference])
            rows.insert(4, "solver", arm)
            table.append(rows)
    return pd.concat(table, ignore_index=True) if table else pd.DataFrame()


def sweep_summary(differences: pd.DataFrame) -> pd.DataFrame:
    """Summarise the paired differences of every setting over datasets.

    Columns: sweep, axis, setting, reference, solver, n, higher, equal, lower, median_difference,
    lowest_difference, highest_difference, and the geometric mean of each ratio.
    """
    if differences.empty:
        return differences
    table = []
    for (sweep, axis, solver), rows in differences.groupby(["sweep", "axis", "solver"], sort=False):
        d = rows["difference"].dropna()
        table.append(
            {
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
                **{
                    name: geometric_mean(rows[name])
                    for name in ("n_iter_ratio", "n_kernel_evals_ratio", "fit_seconds_ratio")
                },
            }
        )
    return pd.DataFrame(table)
