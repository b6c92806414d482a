"""The tests of scores and of times of a study as one family, adjusted by step-down max-t."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from orchestrator.analysis.sign_flips import max_t_means, simultaneous_intervals


@dataclass(frozen=True)
class MaxTFamily:
    """The adjusted tests of a family.

    Attributes
    ----------
    p_flips, p_adjusted : ndarray of shape (m,)
        Unadjusted and adjusted p-values of the mean differences of scores, by pair.
    low, high : ndarray of shape (m,)
        Ends of the simultaneous intervals of the mean differences; NaN where there is none.
    times_at_best, times_at_worst : ndarray of shape (k,)
        Smaller and larger adjusted p of the two ends of each comparison of times. They are equal if no
        training was stopped. If the two ends have different signs, the larger one is 1.
    times_sign : ndarray of shape (k,)
        Sign of the mean logarithm of the ratio; 0 if the two ends disagree.
    """

    p_flips: np.ndarray
    p_adjusted: np.ndarray
    low: np.ndarray
    high: np.ndarray
    times_at_best: np.ndarray
    times_at_worst: np.ndarray
    times_sign: np.ndarray


def max_t_family(
    differences: pd.DataFrame, times: tuple[pd.DataFrame, pd.DataFrame] | None, alpha: float
) -> MaxTFamily:
    """Test all comparisons of a study jointly; see `max_t_means`.

    The critical value of the intervals is that of the differences from their means, and the p-values are
    those of the differences themselves. An interval therefore reaches to 0 where its adjusted p exceeds α.

    Ratios of times are known by bounds if trainings were stopped. The family is therefore tested twice, with
    all ratios at their lower and at their upper ends, and the larger p counts.

    Parameters
    ----------
    differences : DataFrame (units, pairs)
        Differences of scores, NaN if an arm of the pair has not completed a unit.
    times : (DataFrame, DataFrame) or None
        Lower and upper ends of the logarithms of ratios of times, by unit and arm; None without such tests.
    alpha : float
        Level of the tests, and one minus the confidence of the intervals.
    """
    n_pairs = differences.shape[1]
    ends = [differences] if times is None else [pd.concat([differences, end], axis=1) for end in times]
    found = [max_t_means(end.to_numpy(dtype=float), alpha) for end in ends]
    p = np.array([each.p_adjusted for each in found])
    signs = np.array([np.sign(np.nan_to_num(each.t[n_pairs:])) for each in found])
    agreed = (signs == signs[0]).all(axis=0)
    # Ends of different signs leave the direction open, however small their p-values are.
    worst = np.where(agreed, p[:, n_pairs:].max(axis=0), 1.0)
    low, high = simultaneous_intervals(differences.to_numpy(dtype=float), alpha)
    is_open = p[:, :n_pairs].max(axis=0) > alpha
    low, high = np.where(is_open, np.minimum(low, 0.0), low), np.where(is_open, np.maximum(high, 0.0), high)
    return MaxTFamily(
        p_flips=found[0].p[:n_pairs],
        p_adjusted=p[:, :n_pairs].max(axis=0),
        low=np.where(np.isfinite(low), low, np.nan),
        high=np.where(np.isfinite(high), high, np.nan),
        times_at_best=p[:, n_pairs:].min(axis=0),
        times_at_worst=worst,
        times_sign=np.where(agreed, signs[0], 0.0),
    )
