"""Performance profiles: the share of datasets on which an arm is within a factor of the fastest one."""

import numpy as np
import pandas as pd


def performance_profile(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of every arm's performance profile (Dolan and Moré 2002).

    Parameters
    ----------
    costs : DataFrame (datasets, arms)
        Positive costs. The cost is infinite if an arm did not finish, and NaN if it was not measured. An
        infinite cost exceeds any multiple of the lowest cost. Datasets that are not measured for all arms, or
        that none finished, are left out.

    Returns
    -------
    DataFrame
        Columns: solver, factor, share, n (datasets). For each arm in order, its steps in ascending order of
        the factor: `share` of the datasets have a cost of at most `factor` times the lowest. The first step
        is at 1, and its share may be 0.

    References
    ----------
    E. Dolan and J. Moré (2002), Benchmarking optimization software with performance profiles, *Mathematical
    Programming* 91.
    """
    complete = costs.dropna()
    complete = complete.loc[np.isfinite(complete.to_numpy(dtype=float)).any(axis=1)]
    ratios = complete.div(complete.min(axis=1).to_numpy(), axis=0)
    table = []
    for arm in ratios.columns if len(ratios) else ():
        values = np.sort(ratios[arm].to_numpy(dtype=float))
        for factor in np.unique([1.0, *values[np.isfinite(values)]]):
            share = float((values <= factor).mean())
            table.append({"solver": arm, "factor": float(factor), "share": share, "n": len(values)})
    return pd.DataFrame(table)


def share_within(profile: pd.DataFrame, arm: str, factor: float) -> float:
    """Return the share of datasets on which an arm's cost is at most `factor` times the lowest.

    Parameters
    ----------
    profile : DataFrame
        Steps, as `performance_profile` returns them.
    arm : str
        Name of an arm.
    factor : float
        Largest multiple of the lowest cost.
    """
    steps = profile[(profile["solver"] == arm) & (profile["factor"] <= factor)]
    return float(steps["share"].max())
