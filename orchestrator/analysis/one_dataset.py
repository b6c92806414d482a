"""Differences of arms from the first one on each single dataset."""

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from orchestrator.analysis.pairwise import ALPHA
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.summaries import corrected_standard_error, numbers, test_share


def paired_differences(outer: pd.DataFrame, means: pd.DataFrame, alpha: float = ALPHA) -> pd.DataFrame:
    """Return the mean paired difference from the first arm on every dataset that both completed.

    The interval is the mean ± t · s·√(1/J + n_test/n_train) over J outer folds, with Student's t of J − 1
    degrees of freedom (Nadeau and Bengio 2003). It is approximate, concerns redrawn splits of this
    dataset only, and is not a test.

    Parameters
    ----------
    outer : DataFrame
        Refits.
    means : DataFrame (datasets, arms)
        Mean scores, NaN unless all outer folds have a score.
    alpha : float
        Significance level; the confidence level of the intervals is 1 − α.

    Returns
    -------
    DataFrame
        Columns: dataset, solver, reference, n_folds, difference, corrected_se, low, high; NaN where a single
        fold has no standard error.

    References
    ----------
    C. Nadeau and Y. Bengio (2003), Inference for the generalization error, *Machine Learning* 52.
    """
    table = []
    for dataset, rows in outer[outer["dataset"].isin(means.index)].groupby("dataset", sort=False):
        reference, *others = means.columns
        complete = means.loc[dataset].notna()
        arms = [arm for arm in others if complete[arm]]
        if not arms or not complete[reference]:
            continue
        share = test_share({name: numbers(rows[name]) for name in ("n_train", "n_test")})
        rows = rows.assign(score=numbers(rows["score"]))
        scores = rows.pivot(index="outer", columns="solver", values="score")[[reference, *arms]].to_numpy()
        paired = np.round(scores[:, 1:] - scores[:, :1], DECIMALS)
        n_folds = len(paired)
        t = float(stdtrit(n_folds - 1, 1 - alpha / 2)) if n_folds > 1 else np.nan
        for arm, values in zip(arms, paired.T, strict=True):
            mean, error = float(values.mean()), corrected_standard_error(values, share)
            table.append(
                {
                    "dataset": dataset,
                    "solver": arm,
                    "reference": reference,
                    "n_folds": n_folds,
                    "difference": mean,
                    "corrected_se": error,
                    "low": mean - t * error,
                    "high": mean + t * error,
                }
            )
    return pd.DataFrame(table)
