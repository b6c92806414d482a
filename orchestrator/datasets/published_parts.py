"""Load datasets with a published training part in their first rows, and words that this part selects."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.metadata import TEST_FOLD
from orchestrator.study.targets import TARGET, resolve
from orchestrator.study.text import shown


def published_parts(source: Mapping[str, Any], n_train: int) -> tuple[Any, NDArray[Any], dict[str, Any]]:
    """Read a dataset whose first rows are the published training part.

    Parameters
    ----------
    source : mapping
        `_target_` of a loader and its arguments.
    n_train : int
        Number of training rows, which come first.

    Returns
    -------
    X : array or CSR matrix, shape (n, d)
        Features.
    y : array, shape (n,)
        Class label of each row.
    metadata : dict
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If the source is not a loader, or has too few rows.
    """
    if not isinstance(source, Mapping) or not isinstance(source.get(TARGET), str):
        raise DatasetError(f"expected source with the _target_ of a loader, found {shown(source)}")
    arguments = {name: value for name, value in source.items() if name != TARGET}
    X, y, *_ = resolve(source[TARGET])(**arguments)
    n = len(y)
    if not 0 < n_train < n:
        raise DatasetError(f"n_train={n_train}: expected a number from 1 to {n - 1}, as there are {n} rows")
    return X, y, {TEST_FOLD: np.repeat([-1, 0], [n_train, n - n_train])}


def frequent_words(
    source: Mapping[str, Any], n_train: int, n_words: int
) -> tuple[Any, NDArray[Any], dict[str, Any]]:
    """Read word counts, and return tf-idf weights of the most frequent words in rows of norm 1.

    Words and their inverse document frequencies are those of the training part: log((1 + n)/(1 + n_w)) + 1
    for n rows, of which n_w contain word w.

    Parameters
    ----------
    source : mapping
        `_target_` of a loader of a CSR matrix of counts, and its arguments.
    n_train : int
        Number of training rows, which come first.
    n_words : int
        Number of words. Of equal counts, the word with the smaller index is kept.

    Returns
    -------
    X : CSR matrix, shape (n, n_words)
        Weights.
    y : array, shape (n,)
        Class label of each row.
    metadata : dict
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If the source cannot be used, or has fewer words.
    """
    X, y, metadata = published_parts(source, n_train)
    counts = scipy.sparse.csr_matrix(X)
    if not 0 < n_words <= counts.shape[1]:
        raise DatasetError(f"n_words={n_words}: expected a number from 1 to {counts.shape[1]}, all words")
    train = counts[:n_train]
    totals = np.asarray(train.sum(axis=0)).ravel()
    chosen = np.sort(np.argsort(-totals, kind="stable")[:n_words])
    kept = counts[:, chosen].astype(np.float64).tocsr()
    n_with_word = np.bincount(kept[:n_train].indices, minlength=n_words)
    weights = kept @ scipy.sparse.diags_array(np.log((1.0 + n_train) / (1.0 + n_with_word)) + 1.0)
    norms = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    scale = scipy.sparse.diags_array(1.0 / np.where(norms > 0.0, norms, 1.0))
    return scipy.sparse.csr_matrix(scale @ weights), y, metadata
