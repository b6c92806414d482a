"""The Bayesian signed-rank test over datasets, with a region of practical equivalence."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from math import nan

import numpy as np
import pandas as pd

from orchestrator.analysis.paired_means import PairedMeans, paired
from orchestrator.analysis.pairwise import family
from orchestrator.analysis.signed_rank import DECIMALS, rounded
from orchestrator.study.report_choices import HOLM

MIN_DATASETS = 6
"""Smallest number of datasets for a probability. With fewer, three that agree would give 0.99."""

EQUAL_FROM = 0.95
"""Smallest probability at which two arms are called practically equal."""

DRAWS = 100_000
"""Largest number of draws."""

_LARGEST_SAMPLE = 8_000_000
"""Largest number of weights that are drawn. With many datasets there are fewer draws."""

_PRIOR_WEIGHT = 0.5
"""Weight of the prior, which is one pseudo-observation of zero difference."""


@dataclass(frozen=True)
class Posterior:
    """Probabilities of the average difference of a new pair of datasets.

    Attributes
    ----------
    better, equal, worse : float
        Probabilities of a difference above the region of practical equivalence, in it, and below it.
    """

    better: float
    equal: float
    worse: float


def bayesian_signed_rank(differences: pd.Series, rope: float) -> Posterior:
    """Compare two arms by the Bayesian signed-rank test (Benavoli et al. 2017, §4.2.1).

    The distribution of differences has a Dirichlet process as prior, with weight 0.5 on zero. In the
    posterior, zero and the observed differences have Dirichlet weights. Each draw of these weights gives
    three shares: of the pairs of differences whose average lies above the region [−r, r], in it, and below
    it. A pair may have the same difference twice. The probability of a case is the frequency with which its
    share is the largest. The seed is fixed. The result does not depend on the order of datasets, and is
    mirrored if the arms change places.

    Parameters
    ----------
    differences : Series of float
        Indexed by dataset name; each dataset once.
    rope : float
        Half the width r of the region of practical equivalence, which includes its ends.

    Raises
    ------
    FoldsAreNotIndependent, ValueError
        As in `signed_rank`.

    References
    ----------
    A. Benavoli, G. Corani, J. Demšar and M. Zaffalon (2017), Time for a change: a tutorial for comparing
    multiple classifiers through Bayesian analysis, *Journal of Machine Learning Research* 18.
    """
    (below, within, above), mirrored = _oriented_shares(differences, rope)
    # If shares are equal, the one of the lower region counts as the largest.
    is_below = (below >= within) & (below >= above)
    numbers = [np.count_nonzero(is_below), np.count_nonzero((within >= above) & ~is_below)]
    worse, equal, better = np.array([*numbers, len(below) - sum(numbers)]) / len(below)
    return Posterior(worse, equal, better) if mirrored else Posterior(better, equal, worse)


def _oriented_shares(differences: pd.Series, rope: float) -> tuple[np.ndarray, bool]:
    """Return `_shares` of the differences or of their negatives, and whether they are of the negatives.

    The choice is made so that differences with all signs changed give the same shares.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.
    rope : float
        Half the width of the region of practical equivalence.
    """
    values = np.sort(rounded(differences))
    mirrored = values.tolist() < (-values[::-1]).tolist()
    return _shares(-values[::-1] if mirrored else values, rope), mirrored


DENSITY_CELLS = 24
"""Number of parts of each side of the triangle of a posterior."""


def posterior_density(differences: pd.Series, rope: float) -> pd.DataFrame:
    """Return the distribution of the draws of `bayesian_signed_rank` over their triangle.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.
    rope : float
        Half the width of the region of practical equivalence.

    Returns
    -------
    DataFrame
        A row for each small triangle that draws fall into. Columns: better, equal, worse (the shares at its
        centre, which add up to 1) and share (of the draws).
    """
    (below, within, above), mirrored = _oriented_shares(differences, rope)
    corners = np.stack([below, within, above] if mirrored else [above, within, below])
    indices = np.floor(DENSITY_CELLS * corners / corners.sum(axis=0)).astype(int)
    # A draw on a corner of the lattice belongs to the triangle at its largest share.
    on_corner = np.flatnonzero(indices.sum(axis=0) == DENSITY_CELLS)
    indices[indices[:, on_corner].argmax(axis=0), on_corner] -= 1
    cells, numbers = np.unique(indices, axis=1, return_counts=True)
    centres = (cells + (DENSITY_CELLS - cells.sum(axis=0)) / 3) / DENSITY_CELLS
    return pd.DataFrame(
        {
            **dict(zip(("better", "equal", "worse"), centres, strict=True)),
            "share": numbers / numbers.sum(),
        }
    )


PAIRS_DRAWN, _PAIRS_DRAWN_OF_MANY = 6, 3
"""Largest number of pairs whose posteriors a figure shows, and that number if there are more than twice as
many pairs."""


def pair_densities(means: PairedMeans, practical: pd.DataFrame) -> pd.DataFrame:
    """Return `posterior_density` of a few pairs of `compare`, those of the best arms first.

    They are up to `PAIRS_DRAWN` pairs, or `_PAIRS_DRAWN_OF_MANY` if there are more than twice as many.

    Columns: first, second, and those of `posterior_density`.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    practical : DataFrame
        The pairs, as `compare` returns them.
    """
    if practical.empty:
        return pd.DataFrame()
    known = practical[practical["equal"].notna()]
    order = known["first"].map(means.means.mean()).sort_values(ascending=False, kind="stable").index
    found = []
    number = PAIRS_DRAWN if len(known) <= 2 * PAIRS_DRAWN else _PAIRS_DRAWN_OF_MANY
    for row in known.loc[order[:number]].to_dict("records"):
        differences = means.difference(row["first"], row["second"]).dropna()
        names = {"first": row["first"], "second": row["second"]}
        density = posterior_density(differences, row["rope"])
        found.append(density.assign(**names)[[*names, *density.columns]])
    return pd.concat(found, ignore_index=True)


def _shares(values: np.ndarray, rope: float) -> np.ndarray:
    """Return the weights of pairs below, in and above the region. Each draw has an arbitrary common factor.

    Because `values` ascend, the partners of a value whose sum with it is below a limit are a leading slice.

    Parameters
    ----------
    values : ndarray
        Differences in ascending order.
    rope : float
        Half the width of the region of practical equivalence.
    """
    limit = np.round(2 * rope, DECIMALS)
    prior, sums = _weights(len(values))
    total = sums[-1]
    pairs = np.round(values[:, np.newaxis] + values, DECIMALS)
    below = _weight_of_pairs((pairs < -limit).sum(axis=1), sums)
    not_above = _weight_of_pairs((pairs <= limit).sum(axis=1), sums)
    # Pairs of the prior's zero and a difference count twice, because the pair may be in either order.
    below += 2 * prior * sums[(values < -limit).sum()]
    above = total * total - not_above + 2 * prior * (total - sums[(values <= limit).sum()])
    return np.stack([below, (prior + total) ** 2 - below - above, above])


def _weight_of_pairs(numbers: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return Σᵢ wᵢ · (w₁ + … + wₖ) with k = `numbers`[i], from the partial sums of the weights w.

    Parameters
    ----------
    numbers : ndarray
        The number k of each observation, in descending order.
    sums : ndarray
        Partial sums of the weights, a column for each draw.
    """
    weight, term = np.zeros(sums.shape[1]), np.empty(sums.shape[1])
    for number in np.unique(numbers[numbers > 0]):
        first, last = np.flatnonzero(numbers == number)[[0, -1]]
        np.subtract(sums[last + 1], sums[first], out=term)
        term *= sums[number]
        weight += term
    return weight


@lru_cache(maxsize=1)
def _weights(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the weight of the prior's zero, and partial sums of those of n differences, not normalised.

    Gamma variables divided by their sum are Dirichlet weights. All pairs of arms share the draws.

    Parameters
    ----------
    n : int
        Number of differences.
    """
    generator = np.random.default_rng(0)
    draws = min(DRAWS, _LARGEST_SAMPLE // (n + 1))
    prior = generator.standard_gamma(_PRIOR_WEIGHT, draws)
    sums = np.zeros((n + 1, draws))
    np.cumsum(generator.standard_exponential((n, draws)), axis=0, out=sums[1:])
    return prior, sums


def n_within(differences: pd.Series, rope: float) -> int:
    """Return the number of units whose difference is in the region of practical equivalence.

    The Bayesian signed-rank test speaks of a typical difference. Equal arms may differ on most single units.

    Parameters
    ----------
    differences : Series of float
        Differences of two arms, by unit.
    rope : float
        Half the width of the region, which includes its ends.
    """
    return int((np.abs(rounded(differences)) <= np.round(rope, DECIMALS)).sum())


def compare(
    means: PairedMeans | pd.DataFrame,
    rope: float,
    test_rows: pd.Series | None = None,
    adjustment: str = HOLM,
) -> pd.DataFrame:
    """Compare every pair of the family over the datasets that both arms completed.

    Parameters
    ----------
    means : PairedMeans or DataFrame (units, arms)
        Mean scores, NaN where an arm has not completed a unit.
    rope : float
        Half the width of the region of practical equivalence.
    test_rows : Series of float, optional
        Number of distinct test rows, by unit.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values of tests, on which the family of pairs depends.

    Returns
    -------
    DataFrame
        Columns: first, second, n, n_within (units whose difference is in the region), the fields of
        `Posterior` for the difference first − second, NaN below `MIN_DATASETS`, rope, practically_equal,
        coarse (units with too few test rows for a difference of `rope`). Empty if no pair has enough
        datasets.
    """
    too_few = () if test_rows is None else test_rows.index[test_rows * rope < 1 - 1e-9]
    table = []
    means = paired(means)
    for first, second in family(list(means.means.columns), adjustment):
        differences = means.difference(first, second).dropna()
        enough = len(differences) >= MIN_DATASETS
        posterior = bayesian_signed_rank(differences, rope) if enough else Posterior(nan, nan, nan)
        table.append(
            {
                "first": first,
                "second": second,
                "n": len(differences),
                "n_within": n_within(differences, rope),
                **asdict(posterior),
                "rope": rope,
                "practically_equal": posterior.equal >= EQUAL_FROM,
                "coarse": ", ".join(name for name in differences.index if name in too_few),
            }
        )
    frame = pd.DataFrame(table)
    return frame if len(frame) and frame["equal"].notna().any() else pd.DataFrame()
