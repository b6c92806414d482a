"""Splice junctions of DNA as three bits a position, as in Statlog's dna."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.arff import arff_file
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.table import noted
from orchestrator.study.text import shown

BITS = {"A": (1.0, 0.0, 0.0), "C": (0.0, 1.0, 0.0), "G": (0.0, 0.0, 1.0), "T": (0.0, 0.0, 0.0)}
"""Bits of each nucleotide."""
AMBIGUOUS = frozenset("DNRS")
"""Letters that stand for several nucleotides. Rows with one of them are dropped."""


def splice_bits(path: str, label: str, package: str = "") -> tuple[pd.DataFrame, NDArray[Any]]:
    """Read an ARFF file of sequences with a column for each position, and give each position three bits.

    Parameters
    ----------
    path : str
        Path of the file.
    label : str
        Name of the column of labels.
    package : str
        Installed package that contains the file; `path` is relative to its folder. Empty for a path on disk.

    Returns
    -------
    X : DataFrame of shape (n, 3 · positions)
        Columns `POSITION=A`, `POSITION=C` and `POSITION=G` of zeros and ones. T is three zeros.
    y : array of shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file cannot be read, or a position has another letter.
    """
    letters, y, *_ = arff_file(path, label, package=package)
    sequences = letters.astype(str).to_numpy()
    unknown = sorted(set(np.unique(sequences)) - set(BITS) - AMBIGUOUS)
    if unknown:
        raise DatasetError(
            f"expected the letters A, C, G, T, D, N, R or S in {path}, found {shown(unknown[0])}"
        )
    is_kept = np.isin(sequences, list(BITS)).all(axis=1)
    names = [f"{position}={letter}" for position in letters.columns for letter in "ACG"]
    values = np.array([[BITS[letter] for letter in row] for row in sequences[is_kept]])
    X = pd.DataFrame(values.reshape(len(values), len(names)), columns=names)
    n_dropped = int(np.count_nonzero(~is_kept))
    if n_dropped:
        X = noted(X, f"{n_dropped} rows with an ambiguous letter are left out")
    return X, np.asarray(y)[is_kept]
