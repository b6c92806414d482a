"""Mean scores of several arms on the same datasets, and the differences between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.study.families import Family, unit_names

_ROUND_OFF = 1 - 1e-9
"""Factor of a limit, so that a difference that equals the limit up to round-off is not below it."""


@dataclass(frozen=True)
class PairedMeans:
    """Mean scores, compared over units: families of datasets, and the datasets outside of families.

    Attributes
    ----------
    by_dataset : DataFrame (datasets, arms)
        Mean scores, NaN if an arm has not completed a dataset.
    families : sequence of Family
        Families that count once; empty if each dataset counts.
    ties_below : Series of float
        By dataset, the difference of two means below which they are tied; see `half_predictions`. Datasets
        without an entry have no such limit.
    """

    by_dataset: pd.DataFrame
    families: Sequence[Family] = ()
    ties_below: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))

    @cached_property
    def means(self) -> pd.DataFrame:
        """The means of the units (rows) and arms (columns)."""
        return of_units(self.by_dataset, self.families)

    def difference(self, first: str, second: str) -> pd.Series:
        """Return first − second by unit, rounded and zero for ties; NaN if one of them is incomplete.

        Parameters
        ----------
        first : str
            Name of an arm.
        second : str
            Name of another arm.
        """
        pair = self.by_dataset.reindex(columns=[first, second])
        each = without_ties(pair.iloc[:, 0] - pair.iloc[:, 1], self.ties_below)
        return of_units(each.to_frame(), self.families).iloc[:, 0].round(DECIMALS)

    def highest(self, sign: int = 1) -> list[str]:
        """Return the arms with the highest mean over the units that all completed, several if they tie.

        Two arms tie if the mean of their differences is smaller than half the change that one prediction
        makes.

        Parameters
        ----------
        sign : {1, -1}
            −1 for the lowest mean.

        Returns
        -------
        list of str
            In declared order; empty without a unit that all completed.
        """
        complete = self.means.dropna()
        if complete.empty:
            return []
        first = str((sign * complete.mean()).round(DECIMALS).idxmax())
        units = pd.Series(unit_names(self.by_dataset.index, self.families), self.by_dataset.index)
        used = units[units.isin(complete.index)]
        steps = _limits(used.index, self.ties_below) / used.map(used.value_counts()) / len(complete)
        shortfall = {
            arm: sign * self.difference(first, arm)[complete.index].mean() for arm in complete.columns
        }
        return [arm for arm, value in shortfall.items() if round(value, DECIMALS) <= 0 or value < steps.min()]

    def ranks(self) -> pd.DataFrame:
        """Rank the arms on every unit that all completed, 1 for the highest mean, mid-ranks for ties.

        An arm has rank 1, plus 1 for each arm above it, plus ½ for each arm that ties with it.
        """
        complete = self.means.dropna()
        if self.ties_below.empty:
            return complete.round(DECIMALS).rank(axis=1, ascending=False)
        return self._by_unit(_ranks)

    def shortfalls(self) -> pd.DataFrame:
        """Return how far each arm is below the best on every unit that all completed; 0 for ties."""
        return self._by_unit(_shortfalls)

    def _by_unit(self, numbers: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> pd.DataFrame:
        """Return numbers of the arms (columns) on every unit (rows) that all completed.

        Parameters
        ----------
        numbers : callable
            Function of the means (datasets, arms) of a unit and the limits of its datasets below which a
            difference is zero. It returns a number for each arm.
        """
        complete = self.means.dropna()
        units = np.array(unit_names(self.by_dataset.index, self.families))
        limits = _limits(self.by_dataset.index, self.ties_below)
        rows = [
            numbers(self.by_dataset.to_numpy(dtype=float)[units == unit], limits[units == unit])
            for unit in complete.index
        ]
        found = np.reshape(rows, complete.shape)
        return pd.DataFrame(found, index=complete.index, columns=complete.columns)


def paired(means: PairedMeans | pd.DataFrame) -> PairedMeans:
    """Convert means of units to `PairedMeans`, in which only equal means tie.

    Parameters
    ----------
    means : PairedMeans or DataFrame
        Means of units (rows) and arms (columns).
    """
    return means if isinstance(means, PairedMeans) else PairedMeans(means)


def without_ties(differences: pd.Series, ties_below: pd.Series) -> pd.Series:
    """Round differences of means, and set those below the limit of their dataset to zero.

    Parameters
    ----------
    differences : Series
        Differences of means, by dataset.
    ties_below : Series
        By dataset, the limit below which a difference is zero; 0 for a missing dataset.
    """
    rounded = differences.astype(float).round(DECIMALS)
    return rounded.mask(rounded.abs() < _limits(rounded.index, ties_below), 0.0)


def half_predictions(metric: str, n_tested: pd.Series) -> pd.Series:
    """Return the accuracy of half a prediction, by dataset; empty for other metrics.

    Folds of unequal size weigh their rows differently, so that two arms with the same number of correct rows
    may have means that differ in a late digit.

    Parameters
    ----------
    metric : str
        Name of the scorer.
    n_tested : Series of float
        By dataset, the number of predictions of a mean: rows × repeats × seeds.
    """
    if metric != "accuracy":
        return pd.Series(dtype=float)
    return 0.5 / n_tested[n_tested > 0]


def of_units(means: pd.DataFrame, families: Sequence[Family]) -> pd.DataFrame:
    """Replace the datasets of each family by their mean, NaN if one of them is NaN.

    Parameters
    ----------
    means : DataFrame
        Means of datasets (rows).
    families : sequence of Family
        Families of datasets, each of which becomes one row.
    """
    if means.empty or not families:
        return means
    names = unit_names(means.index, families)
    complete = means.notna().groupby(names, sort=False).all()
    return means.groupby(names, sort=False).mean().where(complete)


def _limits(datasets: pd.Index, ties_below: pd.Series) -> np.ndarray:
    return ties_below.reindex(datasets).fillna(0.0).to_numpy(dtype=float) * _ROUND_OFF


def _ranks(means: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the ranks of the arms on one unit from the means (datasets, arms) of its datasets.

    Parameters
    ----------
    means : ndarray
        Means of the datasets of one unit.
    limits : ndarray
        The limit of each dataset below which a difference is zero.
    """
    leads = _leads(means, limits)
    return np.asarray(0.5 + (leads > 0).sum(axis=0) + 0.5 * (leads == 0).sum(axis=0))


def _shortfalls(means: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return how far each arm is below the best on one unit, with the parameters of `_ranks`.

    Parameters
    ----------
    means : ndarray
        Means of the datasets of one unit.
    limits : ndarray
        The limit of each dataset below which a difference is zero.
    """
    lead: np.ndarray = _leads(means, limits).max(axis=0)
    return lead - lead.min()  # ties of several datasets may leave no arm that is never behind


def _leads(means: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the mean difference of each arm (row) from each arm (column) on one unit, 0 for ties.

    Parameters
    ----------
    means : ndarray
        Means of the datasets of one unit.
    limits : ndarray
        The limit of each dataset below which a difference is zero.
    """
    leads = np.empty((means.shape[1], means.shape[1]))
    for arm in range(len(leads)):
        above = np.round(means - means[:, [arm]], DECIMALS)
        above[np.abs(above) < limits[:, np.newaxis]] = 0.0
        leads[:, arm] = np.round(above.mean(axis=0), DECIMALS)
    return leads
