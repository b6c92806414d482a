"""The Multi-Comparison Matrix: pairwise comparisons that do not depend on the other arms."""

import pandas as pd

from orchestrator.analysis.paired_means import PairedMeans, paired
from orchestrator.analysis.pairwise import ALPHA
from orchestrator.analysis.signed_rank import DECIMALS, signed_rank

ARMS_SHOWN = 20
"""Largest number of arms in the matrix, in addition to the first one: those with the highest means."""


def compare_all_pairs(means: PairedMeans | pd.DataFrame, alpha: float = ALPHA) -> pd.DataFrame:
    """Compare every two arms over the datasets that both completed (Ismail-Fawaz et al. 2023).

    A cell depends only on its two arms, so a further arm changes only the order of rows and columns, and
    not the content of a cell. The p-values are not adjusted for the number of cells.

    Parameters
    ----------
    means : PairedMeans or DataFrame (units, arms)
        Mean scores, NaN where an arm has not completed a unit.
    alpha : float
        Largest p that is marked.

    Returns
    -------
    DataFrame
        Both orientations of each pair, ordered by the arms' means. Columns: row, column, n, difference (the
        mean of row − column), wins, ties, losses (of the row), p (of the exact signed-rank test), marked (p
        up to alpha). Empty below two arms.

    References
    ----------
    A. Ismail-Fawaz et al. (2023), An approach to multiple comparison benchmark evaluations that is stable
    under manipulation of the comparate set, arXiv 2305.11921.
    """
    means = paired(means)
    order = by_mean(means.means)
    arms = [arm for arm in order if arm in {*order[:ARMS_SHOWN], *means.means.columns[:1]}]
    cells = {}
    for i, row in enumerate(arms):
        for column in arms[i + 1 :]:
            differences = means.difference(row, column).dropna()
            test, n = signed_rank(differences), len(differences)
            mean, p = (float(differences.mean()), test.p) if n else (float("nan"), float("nan"))
            shared = {"n": n, "ties": test.n_zero, "p": p, "marked": p <= alpha}
            cells[row, column] = {"difference": mean, "wins": test.wins, "losses": test.losses} | shared
            cells[column, row] = {"difference": -mean, "wins": test.losses, "losses": test.wins} | shared
    columns = ["row", "column", "n", "difference", "wins", "ties", "losses", "p", "marked"]
    pairs = [(row, column) for row in arms for column in arms if row != column]
    table = [{"row": row, "column": column} | cells[row, column] for row, column in pairs]
    return pd.DataFrame(table, columns=columns)


def by_mean(means: pd.DataFrame) -> list[str]:
    """Return the arms by their mean over the datasets that all completed, the highest first.

    Without such a dataset, and where means are equal, they stay in declared order.

    Parameters
    ----------
    means : DataFrame
        Mean scores of datasets (rows) and arms (columns).
    """
    return list((-means.dropna().mean().round(DECIMALS)).sort_values(kind="stable").index)
