"""Splitters with given numbers of training rows: by the size of the dataset, or for each class.

`LeftOutRows` makes the inner split of an outer split with few training rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

TRAINS, TESTED, LEFT_OUT = -1, 0, -2
"""Part of an outer split to which a row belongs."""


class SizedShuffleSplit:
    """Random splits whose number of training rows depends on that of all rows, as in Rätsch's benchmark.

    The first k splits are the same for any `n_splits` of at least k.

    Parameters
    ----------
    sizes : sequence of [int, int, int]
        Rows of a dataset, its training rows and its test rows.
    train_share : float, default=0.6
        Share of training rows of datasets of other sizes; all other rows are test rows.
    n_splits : int, default=100
        Number of splits.
    random_state : int or None, default=None
        Seed of the draws.
    """

    def __init__(
        self,
        sizes: Sequence[Sequence[int]] = (),
        train_share: float = 0.6,
        n_splits: int = 100,
        random_state: int | None = None,
    ):
        known = [[int(n) for n in each] for each in sizes]
        wrong = [each for each in known if len(each) != 3 or min(each) < 1 or each[1] + each[2] > each[0]]
        if wrong:
            raise ValueError(
                f"sizes: expected [rows, training rows, test rows] that fit, found {wrong[0]}. Correct it"
            )
        if not 0.0 < train_share < 1.0:
            raise ValueError(f"train_share={train_share}: expected a number between 0 and 1. Set 0.6")
        self.sizes, self.train_share = known, train_share
        self.n_splits, self.random_state = n_splits, random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, optional
            Not used.
        """
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Split]:
        """Return the splits, each with the same number of training rows, stratified by class.

        Parameters
        ----------
        X : array of shape (n, ...)
            Samples, of which only the number is used.
        y : array of shape (n,)
            Labels.
        groups : object, optional
            Not used.
        """
        n = len(y)
        n_train = round(self.train_share * n)
        n_test = n - n_train
        for rows, train, test in self.sizes:
            if rows == n:
                n_train, n_test = train, test
        splitter = StratifiedShuffleSplit(
            self.n_splits, train_size=n_train, test_size=n_test, random_state=self.random_state
        )
        return iter(splitter.split(np.zeros((n, 1)), y))


class RowsOfEachClass:
    """One split for a learning curve: some random rows of each class are the training rows.

    Parameters
    ----------
    n : int
        Training rows of each class.
    test_fold : array of shape (n_rows,) or None, default=None
        Rows with −1 may become training rows, and those from 0 are the test rows. None, or no test rows: all
        rows may, and the rest is tested.
    random_state : int or None, default=None
        Seed of the draws. With the same seed, the rows of the published training part that are drawn do not
        depend on whether the test part is present.
    """

    def __init__(self, n: int, test_fold: Any = None, random_state: int | None = None):
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(
                f"n={n!r}: expected the number of training rows of each class, an integer from 1. Set n=50"
            )
        self.n, self.test_fold, self.random_state = int(n), test_fold, random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, which is 1.

        Parameters
        ----------
        X, y, groups : object, optional
            Not used.
        """
        return 1

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Split]:
        """Return the split.

        Parameters
        ----------
        X : array of shape (n_rows, ...)
            Samples, not used.
        y : array of shape (n_rows,)
            Labels.
        groups : object, optional
            Not used.

        Yields
        ------
        train, test : int array
            Rows of the two parts, ascending.

        Raises
        ------
        ValueError
            A class has too few rows.
        """
        y = np.asarray(y)
        may_train = np.ones(y.size, dtype=bool)
        if self.test_fold is not None and (np.asarray(self.test_fold) >= 0).any():
            may_train = np.asarray(self.test_fold) < 0
        generator = np.random.default_rng(self.random_state)
        drawn = []
        for label in np.unique(y[may_train]):
            rows = np.flatnonzero(may_train & (y == label))
            if rows.size < self.n:
                raise ValueError(
                    f"class {label}: expected at least {self.n} rows to train on, found {rows.size}. Set a "
                    "smaller n"
                )
            drawn.append(generator.permutation(rows)[: self.n])
        train = np.sort(np.concatenate(drawn))
        is_test = np.ones(y.size, dtype=bool) if may_train.all() else ~may_train
        is_test[train] = False
        yield train, np.flatnonzero(is_test)


class LeftOutRows:
    """One inner split: the outer training rows train, and those that the outer split leaves out are tested.

    So a candidate is selected on many rows although few train, and the refit trains on the same few rows.

    Parameters
    ----------
    outer_part : int array of shape (n_rows,) or None, default=None
        For each row of the dataset, −1: it trains in the outer split; 0: it is tested there; −2: it is left
        out. A splitter with a parameter of this name receives all rows instead of the outer training rows.
    """

    def __init__(self, outer_part: Any = None):
        self.outer_part = outer_part

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, which is 1.

        Parameters
        ----------
        X, y, groups : object, optional
            Not used.
        """
        return 1

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Split]:
        """Return the split.

        Parameters
        ----------
        X, y, groups : object
            Not used.

        Yields
        ------
        train, test : int array
            Rows of the two parts, ascending.

        Raises
        ------
        ValueError
            There is no outer split, or it leaves out no row.
        """
        part = np.array([TRAINS]) if self.outer_part is None else np.asarray(self.outer_part)
        if not (part == LEFT_OUT).any():
            raise ValueError(
                "expected an outer split that leaves out rows, found that all are training or test rows. "
                "RowsOfEachClass (protocol=learning_curve) leaves out rows of a dataset with a test_fold: "
                "choose such a dataset, or set protocol.inner to a number of folds"
            )
        yield np.flatnonzero(part == TRAINS), np.flatnonzero(part == LEFT_OUT)
