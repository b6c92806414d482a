"""One row for every arm: its mean, and its comparisons with the control and with the best arm."""

from collections.abc import Sequence
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.aggregates import best_set_p
from orchestrator.analysis.comparison_matrix import by_mean
from orchestrator.analysis.paired_means import PairedMeans
from orchestrator.analysis.pairwise import HIGHER, LOWER
from orchestrator.analysis.signed_rank import smallest_p

BEST_COMPARED = 40
"""Largest number of arms that are compared with the best, which are those with the highest means."""

_SIGNED = ("estimate", "low", "high", "mean_difference", "mean_low", "mean_high")
_OF_TESTS = ("n", "wins", "n_zero", "losses", *_SIGNED[:3], "confidence", "p", "p_adjusted", "verdict")
_OF_MEANS = (*_SIGNED[3:], "p_flips")
_PROBABILITIES = ("better", "equal", "worse")
_OPPOSITES = (
    *(("wins", "losses"), ("low", "high"), ("mean_low", "mean_high")),
    *(("better", "worse"), (HIGHER, LOWER)),
)
_MIRRORED = {name: other for pair in _OPPOSITES for name, other in (pair, pair[::-1])}
_OF_AGGREGATES = {
    "wins_share": "wins",
    "score_low": "mean_low",
    "score_high": "mean_high",
    **{name: name for name in ("rank_low", "rank_high", "wins_low", "wins_high")},
}
"""Columns of the errors of aggregates: their names here, and in `bootstrap_aggregates`."""
_OF_TIME = ("bound", "ratio", "ratio_low", "ratio_high", "median_low", "median_high", "n")


def gather_standings(
    means: PairedMeans,
    ranks: pd.DataFrame,
    tests: pd.DataFrame,
    practical: pd.DataFrame,
    time_ratios: pd.DataFrame,
    aggregates: pd.DataFrame,
    alpha: float,
) -> pd.DataFrame:
    """Gather a row for each arm, by mean, the highest first.

    Parameters
    ----------
    means : PairedMeans
        The control first among the arms.
    ranks, tests, practical, time_ratios, aggregates : DataFrame
        Results of `arm_ranks`, `tests`, `practical`, `time_ratios` and `aggregates` of `findings`. Only
        comparisons with the control are used.
    alpha : float
        One minus the confidence of the set of the best arms.

    Returns
    -------
    DataFrame
        Columns: solver, is_control, n_complete and mean (over the datasets that all arms completed),
        mean_rank, and of `bootstrap_aggregates` wins_share and the intervals score_low, score_high, rank_low,
        rank_high, wins_low and wins_high; of arm − control, from `tests` and `practical`: n, wins, n_zero,
        losses, estimate, low, high, confidence, p, p_adjusted, verdict, better, equal, worse, and with max-t
        mean_difference, mean_low, mean_high and p_flips; best (the arm with the highest mean, or all that
        share it), p_best (see `best_set_p`) and may_be_best; and `fit_seconds_<field>` of `RatioSummary`.
        Values that cannot be computed are missing.
    """
    complete = means.means.dropna()
    order, control = by_mean(means.means), means.means.columns[0]
    averages = complete.mean()
    mean_ranks = dict(zip(ranks["solver"], ranks["mean_rank"], strict=True)) if len(ranks) else {}
    of_tests = (*_OF_TESTS, *(_OF_MEANS if "mean_low" in tests else ()))
    compared = _with_control(tests, control, of_tests)
    likely = _with_control(practical, control, _PROBABILITIES)
    times = {row["solver"]: row for row in time_ratios.to_dict("records")}
    errors = {row["solver"]: row for row in aggregates.to_dict("records")}
    best = means.highest() if len(complete) > 1 else []
    set_p = _set_of_best(means, order[:BEST_COMPARED], alpha) if best else {}
    table = []
    for arm in order:
        table.append(
            {
                "solver": arm,
                "is_control": arm == control,
                "n_complete": len(complete),
                "mean": averages[arm],
                "mean_rank": mean_ranks.get(arm, nan),
                **{name: errors.get(arm, {}).get(source, nan) for name, source in _OF_AGGREGATES.items()},
                **{name: compared.get(arm, {}).get(name) for name in of_tests},
                **{name: likely.get(arm, {}).get(name) for name in _PROBABILITIES},
                "best": " and ".join(best) or None,
                "p_best": set_p.get(arm, nan),
                "may_be_best": set_p[arm] > alpha if arm in set_p else None,
                **{f"fit_seconds_{name}": times.get(arm, {}).get(f"fit_seconds_{name}") for name in _OF_TIME},
            }
        )
    return pd.DataFrame(table)


def _set_of_best(means: PairedMeans, arms: Sequence[str], alpha: float) -> dict[str, float]:
    """Return p of `best_set_p` by arm; empty if too few units could remove any arm.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    arms : sequence of str
        The arms that are compared.
    alpha : float
        One minus the confidence of the set.
    """
    complete = means.means.dropna().index
    if smallest_p(len(complete)) > alpha:
        return {}
    differences = [means.difference(*pair)[complete].to_numpy(dtype=float) for pair in combinations(arms, 2)]
    p = best_set_p(np.array(differences).reshape(-1, len(complete)).T, len(arms))
    return dict(zip(arms, p.tolist(), strict=True))


def _with_control(comparisons: pd.DataFrame, control: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return columns of the comparisons with the control, by arm and as arm − control.

    Parameters
    ----------
    comparisons : DataFrame
        One row for each pair of arms.
    control : str
        Name of the control.
    names : sequence of str
        The columns to return.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in comparisons.to_dict("records"):
        if row["second"] == control:
            found[row["first"]] = {name: row[name] for name in names}
        elif row["first"] == control:
            values = {name: row[_MIRRORED.get(name, name)] for name in names}
            for name in set(_SIGNED) & set(values):
                values[name] = None if values[name] is None else -values[name]
            if "verdict" in values:
                values["verdict"] = _MIRRORED.get(values["verdict"], values["verdict"])
            found[row["second"]] = values
    return found
