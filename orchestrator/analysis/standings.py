"""One row for every arm: its mean, and its comparisons with the control and with the best arm."""

from collections.abc import Sequence
from math import nan
from typing import Any

import pandas as pd

from orchestrator.analysis.bayesian import EQUAL_FROM, MIN_DATASETS, bayesian_signed_rank, n_within
from orchestrator.analysis.comparison_matrix import by_mean
from orchestrator.analysis.paired_means import PairedMeans
from orchestrator.analysis.pairwise import HIGHER, LOWER

BEST_COMPARED = 40
"""Largest number of arms that are compared with the best, which are those with the highest means."""

_SIGNED = ("estimate", "low", "high")
_OF_TESTS = ("n", "wins", "n_zero", "losses", *_SIGNED, "confidence", "p", "p_holm", "verdict")
_PROBABILITIES = ("better", "equal", "worse")
_OPPOSITES = (("wins", "losses"), ("low", "high"), ("better", "worse"), (HIGHER, LOWER))
_MIRRORED = {name: other for pair in _OPPOSITES for name, other in (pair, pair[::-1])}
_OF_TIME = ("bound", "ratio", "ratio_low", "ratio_high", "median_low", "median_high", "n")


def gather_standings(
    means: PairedMeans,
    ranks: pd.DataFrame,
    tests: pd.DataFrame,
    practical: pd.DataFrame,
    time_ratios: pd.DataFrame,
    rope: float | None,
) -> pd.DataFrame:
    """Gather a row for each arm, by mean, the highest first.

    Parameters
    ----------
    means : PairedMeans
        The control first among the arms.
    ranks, tests, practical, time_ratios : DataFrame
        Results of the functions `arm_ranks`, `tests`, `practical` and `time_ratios` of `findings`. Only
        comparisons with the control are used.
    rope : float or None
        Half the width of the region of practical equivalence.

    Returns
    -------
    DataFrame
        Columns: solver, is_control, n_complete and mean (over the datasets that all arms completed),
        mean_rank; of arm − control, from `tests` and `practical`: n, wins, n_zero, losses, estimate, low,
        high, confidence, p, p_holm, verdict, better, equal, worse; best (the arm with the highest mean, or
        all that share it), equal_to_best and worse_than_best (probabilities of the Bayesian signed-rank test,
        the smallest of those against each of several best ones), n_best and n_within_best (the units compared
        with the best arm, and those of them whose difference from it is in the region; the smallest number
        for several best arms), standing ("best",
        "equal" or "worse", practically and with a probability of at least `EQUAL_FROM`, or "open"); and
        `fit_seconds_<field>` of `RatioSummary`. Values that cannot be computed are missing.
    """
    complete = means.means.dropna()
    order, control = by_mean(means.means), means.means.columns[0]
    averages = complete.mean()
    mean_ranks = dict(zip(ranks["solver"], ranks["mean_rank"], strict=True)) if len(ranks) else {}
    compared = _with_control(tests, control, _OF_TESTS)
    likely = _with_control(practical, control, _PROBABILITIES)
    times = {row["solver"]: row for row in time_ratios.to_dict("records")}
    best = means.highest() if len(complete) > 1 else []
    table = []
    for index, arm in enumerate(order):
        against = best if index < BEST_COMPARED else []
        equal, worse = _below_best(means, arm, against, rope)
        n_best, within = _within_best(means, arm, against, rope)
        table.append(
            {
                "solver": arm,
                "is_control": arm == control,
                "n_complete": len(complete),
                "mean": averages[arm],
                "mean_rank": mean_ranks.get(arm, nan),
                **{name: compared.get(arm, {}).get(name) for name in _OF_TESTS},
                **{name: likely.get(arm, {}).get(name) for name in _PROBABILITIES},
                "best": " and ".join(best) or None,
                "equal_to_best": equal,
                "worse_than_best": worse,
                "n_best": n_best,
                "n_within_best": within,
                "standing": "best" if arm in best else _standing(equal, worse),
                **{f"fit_seconds_{name}": times.get(arm, {}).get(f"fit_seconds_{name}") for name in _OF_TIME},
            }
        )
    return pd.DataFrame(table)


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


def _below_best(means: PairedMeans, arm: str, best: Sequence[str], rope: float | None) -> tuple[float, float]:
    """Return the probabilities that an arm is practically equal to the best one, and worse.

    If several arms are best, the smallest probability counts, so an arm must be equal to each of them.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    arm : str
        Name of the arm.
    best : sequence of str
        The arms with the highest mean; empty if the arm is not compared.
    rope : float or None
        Half the width of the region of practical equivalence.
    """
    if not best or rope is None or arm in best:
        return nan, nan
    differences = [means.difference(arm, each).dropna() for each in best]
    if min(map(len, differences)) < MIN_DATASETS:
        return nan, nan
    posteriors = [bayesian_signed_rank(each, rope) for each in differences]
    # An arm can have the highest mean and still be practically worse on most datasets.
    return min(each.equal for each in posteriors), min(each.worse for each in posteriors)


def _within_best(
    means: PairedMeans, arm: str, best: Sequence[str], rope: float | None
) -> tuple[int | None, int | None]:
    """Return the number of units compared with the best arm, and of those whose difference is in the region.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    arm : str
        Name of the arm.
    best : sequence of str
        The arms with the highest mean; empty if the arm is not compared.
    rope : float or None
        Half the width of the region of practical equivalence.
    """
    if not best or rope is None or arm in best:
        return None, None
    each = [means.difference(arm, other).dropna() for other in best]
    found = [(n_within(differences, rope), len(differences)) for differences in each]
    within, n = min(found, key=lambda pair: pair[0])
    return n, within


def _standing(equal: float, worse: float) -> str:
    return "equal" if equal >= EQUAL_FROM else "worse" if worse >= EQUAL_FROM else "open"
