"""Load counts of words; the training rows of a published split choose the frequent words and weight them."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.published_splits import libsvm_split


def frequent_words(
    name: str, folder: str | Path, n_features: int, n_train: int, n_words: int
) -> tuple[scipy.sparse.csr_matrix, NDArray[Any], dict[str, NDArray[np.int64]]]:
    """Read a LIBSVM file of word counts, and return tf-idf weights of frequent words in rows of norm 1.

    Words and their inverse document frequencies are those of the training rows: log((1 + n)/(1 + n_w)) + 1
    for n rows, of which n_w contain word w. Use it with `PredefinedSplit` as the outer splitter.

    Parameters
    ----------
    name, folder, n_features, n_train
        As in `libsvm_split`.
    n_words : int
        Number of words. Of equal counts, the word with the smaller index is kept.

    Returns
    -------
    X : CSR matrix, shape (n, n_words)
        Weights.
    y : array, shape (n,)
        Class label of each row.
    metadata : dict of str to array
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If the file cannot be read, has fewer words, or the split does not fit its rows.
    """
    X, y, metadata = libsvm_split(name, folder, n_features, n_train=n_train)
    counts = scipy.sparse.csr_matrix(X)
    if not 0 < n_words <= counts.shape[1]:
        raise DatasetError(f"n_words={n_words}: expected a number from 1 to {counts.shape[1]}, all words")
    totals = np.asarray(counts[:n_train].sum(axis=0)).ravel()
    chosen = np.sort(np.argsort(-totals, kind="stable")[:n_words])
    kept = counts[:, chosen].astype(np.float64).tocsr()
    n_with_word = np.bincount(kept[:n_train].indices, minlength=n_words)
    weights = kept @ scipy.sparse.diags_array(np.log((1.0 + n_train) / (1.0 + n_with_word)) + 1.0)
    norms = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    scale = scipy.sparse.diags_array(1.0 / np.where(norms > 0.0, norms, 1.0))
    return scipy.sparse.csr_matrix(scale @ weights), y, metadata
