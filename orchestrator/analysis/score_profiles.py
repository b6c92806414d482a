"""How far arms are below the best of each dataset, and their scores on each dataset against the control's."""

import numpy as np
import pandas as pd

from orchestrator.analysis.paired_means import PairedMeans
from orchestrator.analysis.pairwise import runs_alike
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.statistics import holm, ranks

WIN, TIE, LOSS = "win", "tie", "loss"


def score_profile(means: PairedMeans) -> pd.DataFrame:
    """Return the steps of every arm's performance profile of scores.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them. Units that an arm has not completed are left out.

    Returns
    -------
    DataFrame
        Columns: solver, below, share, n (units). For each arm in order, its steps in ascending order of
        `below`: `share` of the units have a score of at most `below` under the highest of all arms. The first
        step is at 0.
    """
    gaps = means.shortfalls()
    table = []
    for arm in gaps.columns if len(gaps) else ():
        values = np.sort(gaps[arm].to_numpy(dtype=float))
        for below in np.unique([0.0, *values]):
            share = float((values <= below).mean())
            table.append({"solver": arm, "below": float(below), "share": share, "n": len(values)})
    return pd.DataFrame(table)


def share_near_best(profile: pd.DataFrame, arm: str, below: float) -> float:
    """Return the share of units on which an arm is at most `below` under the best.

    Parameters
    ----------
    profile : DataFrame
        Steps, as `score_profile` returns them.
    arm : str
        Name of an arm.
    below : float
        Largest distance from the highest score, in the unit of the metric.
    """
    steps = profile[(profile["solver"] == arm) & (profile["below"] <= np.round(below, DECIMALS))]
    return float(steps["share"].max())


def scores_against_control(means: PairedMeans) -> pd.DataFrame:
    """Return the scores of every arm beside those of the first, on each unit that both completed.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them, the control first among the arms.

    Returns
    -------
    DataFrame
        Columns: unit, solver, reference, score, reference_score, outcome ("win", "tie" or "loss" of the
        arm).
    """
    reference, *others = means.means.columns
    table = []
    for arm in others:
        differences = means.difference(arm, reference).dropna()
        signs = np.sign(differences.to_numpy(dtype=float)).astype(int)
        both = means.means.loc[differences.index, [arm, reference]].to_numpy(dtype=float)
        frame = pd.DataFrame({"unit": differences.index, "solver": arm, "reference": reference})
        scores = {"score": both[:, 0], "reference_score": both[:, 1]}
        table.append(frame.assign(**scores, outcome=[(TIE, WIN, LOSS)[sign] for sign in signs]))
    return pd.concat(table, ignore_index=True) if table else pd.DataFrame()


def rank_cliques(means: PairedMeans, pairs: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Return mean ranks, and the groups of arms that a critical-difference diagram joins.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    pairs : DataFrame
        Both orientations of every pair with its p, as `compare_all_pairs` returns them.
    alpha : float
        Level of the tests of all pairs, which Holm's method adjusts.

    Returns
    -------
    DataFrame
        One row for each arm, the best rank first. Columns: solver, mean_rank, n (units), cliques (text, the
        numbers of the groups that the arm belongs to). A group is a maximal run of arms in the order of ranks
        between which no test finds a difference.
    """
    complete = means.means.dropna()
    if complete.empty:
        return pd.DataFrame()
    order = ranks(means).mean().sort_values(kind="stable")
    once = pairs[[row < column for row, column in zip(pairs["row"], pairs["column"], strict=True)]]
    adjusted = holm(once["p"].fillna(1.0).to_numpy())
    found = {
        frozenset(pair) for *pair, p in zip(once["row"], once["column"], adjusted, strict=True) if p <= alpha
    }
    arms = [arm for arm in order.index if arm in set(pairs["row"])]
    runs = runs_alike(arms, found)
    return pd.DataFrame(
        {
            "solver": arms,
            "mean_rank": order[arms].to_numpy(),
            "n": len(complete),
            "cliques": [
                ", ".join(str(k + 1) for k, (first, last) in enumerate(runs) if first <= at <= last)
                for at in range(len(arms))
            ],
        }
    )
