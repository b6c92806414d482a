"""Arms of one solver that differ in one swept value, compared with the first of them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.tables import geometric_mean_ratio


def sweeps(design: Design) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every sweep as a title, the swept parameter, and its arms with their values in declared order.

    With several swept parameters, each is followed while the others stay fixed.
    """
    groups: dict[tuple[str, str, tuple[tuple[str, Any], ...]], dict[str, Any]] = {}
    for name, facts in design.arms.items():
        sweep = facts.get("sweep") or {}
        for axis, value in sweep.items():
            fixed = tuple(sorted((other, held) for other, held in sweep.items() if other != axis))
            groups.setdefault((facts.get("solver", ""), axis, fixed), {})[name] = value
    for (solver, axis, fixed), arms in groups.items():
        if len(arms) > 1:
            held = ", ".join(f"{other}={value}" for other, value in fixed)
            yield f"{solver}[{held}]" if held else solver, axis, arms


def sweep_differences(
    design: Design, means: pd.DataFrame, effort: pd.DataFrame, timing: pd.DataFrame
) -> pd.DataFrame:
    """Compare every setting of a sweep with its reference, the setting declared first, on each dataset.

    Folds, draws and seeds are common to all settings, so the differences are paired. Columns: sweep, axis,
    setting, reference, solver, dataset, difference (of dataset means), n_iter_ratio, n_kernel_evals_ratio,
    fit_seconds_ratio (setting / reference; NaN where unknown).
    """
    work = {
        "n_iter": _wide(effort, "n_iter"),
        "n_kernel_evals": _wide(effort, "n_kernel_evals"),
        "fit_seconds": _wide(timing, "fit_seconds"),
    }
    table = []
    for title, axis, arms in sweeps(design):
        reference = next(iter(arms))
        both_known = means.reindex(columns=list(arms))
        for arm, setting in arms.items():
            paired = (both_known[arm] - both_known[reference]).round(DECIMALS)
            for dataset, difference in paired.items():
                table.append(
                    {
                        "sweep": title,
                        "axis": axis,
                        "setting": setting,
                        "reference": arms[reference],
                        "solver": arm,
                        "dataset": dataset,
                        "difference": difference,
                        **{
                            f"{name}_ratio": geometric_mean_ratio(
                                wide[wide.index == dataset], arm, reference
                            )[0]
                            for name, wide in work.items()
                        },
                    }
                )
    return pd.DataFrame(table)


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
                    name: geometric_mean_ratio(rows.assign(one=1.0), name, "one")[0]
                    for name in ("n_iter_ratio", "n_kernel_evals_ratio", "fit_seconds_ratio")
                },
            }
        )
    return pd.DataFrame(table)


def _wide(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    if frame.empty:
        return pd.DataFrame()
    return frame.pivot(index="dataset", columns="solver", values=column)
