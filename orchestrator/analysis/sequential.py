"""The anytime-valid test over datasets that arrive one after another, in an order fixed in advance."""

import numpy as np
import pandas as pd

from orchestrator.analysis.paired_means import PairedMeans, paired
from orchestrator.analysis.pairwise import ALPHA, HIGHER, LOWER, family
from orchestrator.analysis.signed_rank import rounded
from orchestrator.analysis.statistics import holm


def e_values(differences: pd.Series) -> np.ndarray:
    """Return the evidence after each dataset that differences are not symmetric about zero.

    E = ½∏(1 + s·u) + ½∏(1 − s·u). Here s is the sign of a difference d, and u is the mid-rank of |d| among
    the differences so far, divided by their number plus one. A difference of zero leaves E unchanged. Under
    the hypothesis, E is a martingale of mean 1. By Ville's inequality, the probability that E ever reaches
    1/α is at most α. The test may therefore be evaluated after every dataset, and the study stopped for any
    reason.

    Parameters
    ----------
    differences : Series of float
        Indexed by dataset name, in an order that was fixed before any result.

    Returns
    -------
    ndarray (n_datasets,)
        E after each dataset.

    Raises
    ------
    FoldsAreNotIndependent, ValueError
        As in `signed_rank`.

    References
    ----------
    J. Ville (1939), *Étude critique de la notion de collectif*; A. Ramdas et al. (2023), Game-theoretic
    statistics and safe anytime-valid inference, *Statistical Science* 38.
    """
    return wealth(rounded(differences)).mean(axis=0)


def wealth(differences: np.ndarray) -> np.ndarray:
    """Return ∏(1 + s·u) and ∏(1 − s·u) after each dataset, the wealth of bets on either sign.

    Parameters
    ----------
    differences : ndarray (..., n_datasets)
        Rounded differences of one comparison or of several.

    Returns
    -------
    ndarray (2, ..., n_datasets)
        The wealth of both bets after each dataset.
    """
    sizes, steps = np.abs(differences), np.sign(differences)
    for t in range(differences.shape[-1]):
        so_far, last = sizes[..., : t + 1], sizes[..., t : t + 1]
        rank = (so_far < last).sum(axis=-1) + ((so_far == last).sum(axis=-1) + 1) / 2
        steps[..., t] *= rank / (t + 2)
    return np.stack([np.cumprod(1 + steps, axis=-1), np.cumprod(1 - steps, axis=-1)])


def datasets_needed(n_tests: int, alpha: float = ALPHA) -> int:
    """Return the smallest number of datasets after which the evidence of one test can reach n_tests/alpha.

    Parameters
    ----------
    n_tests : int
        Number of tests of the family.
    alpha : float, default=ALPHA
        Level of the tests.
    """
    n = 1
    # The evidence is strongest if all differences have one sign and each is larger than all before it.
    while wealth(np.arange(1.0, n + 1)).mean(axis=0)[-1] < n_tests / alpha:
        n += 1
    return n


def sequential(means: PairedMeans | pd.DataFrame, also_tested: int = 0, alpha: float = ALPHA) -> pd.DataFrame:
    """Test every declared pair after each dataset that both arms have completed in order.

    The anytime-valid p is 1 / the largest evidence so far, and is adjusted by Holm's method after each
    dataset. A pair is decided once its adjusted p is at most alpha, and stays so.

    Parameters
    ----------
    means : PairedMeans or DataFrame (units, arms)
        Mean scores in declared order; NaN if an arm has not completed a dataset.
    also_tested : int
        Number of tests of the family that are not made here; they count with p = 1.
    alpha : float
        Level of the tests.

    Returns
    -------
    DataFrame
        Columns: first, second, n (datasets before the first that is missing for the pair), evidence (E after
        the last of them), largest_evidence, p, p_holm, family, decided_after (datasets; NaN if it is open),
        verdict ("higher", "lower" or "open").
    """
    means = paired(means)
    pairs = family(list(means.means.columns))
    series = [in_order(means.difference(first, second)) for first, second in pairs]
    both_bets = [wealth(rounded(differences)) for differences in series]
    longest = max(map(len, series), default=0)
    p = np.ones((longest + 1, len(pairs) + also_tested))  # row t: after t datasets
    for column, bets in enumerate(both_bets):
        largest = np.maximum.accumulate([1.0, *bets.mean(axis=0)])
        p[:, column] = 1 / np.pad(largest, (0, longest + 1 - len(largest)), mode="edge")
    adjusted = np.array([holm(row) for row in p])[:, : len(pairs)]
    table = []
    for (first, second), differences, bets, own, holms in zip(
        pairs, series, both_bets, p.T, adjusted.T, strict=False
    ):
        decided = np.flatnonzero(holms <= alpha)
        above, below = bets[:, np.argmax(bets.mean(axis=0))] if len(differences) else (1.0, 1.0)
        table.append(
            {
                "first": first,
                "second": second,
                "n": len(differences),
                "evidence": bets.mean(axis=0)[-1] if len(differences) else 1.0,
                "largest_evidence": 1 / own[-1],
                "p": own[-1],
                "p_holm": holms[-1],
                "family": p.shape[1],
                "decided_after": decided[0] if len(decided) else np.nan,
                "verdict": OPEN if not len(decided) else HIGHER if above > below else LOWER,
            }
        )
    return pd.DataFrame(table)


OPEN = "open"
"""Verdict of a comparison that is not decided yet."""


def in_order(differences: pd.Series) -> pd.Series:
    """Return the differences before the first missing one, because gaps may depend on results.

    Parameters
    ----------
    differences : Series
        Differences in declared order, NaN where one is missing.
    """
    missing = np.flatnonzero(differences.isna())
    return differences.iloc[: missing[0] if len(missing) else None]


def all_decided(sequence: pd.DataFrame) -> bool:
    """Return whether every declared pair is decided, so that a study may stop.

    Parameters
    ----------
    sequence : DataFrame
        Tests, as `sequential` returns them.
    """
    return len(sequence) > 0 and bool((sequence["verdict"] != OPEN).all())
