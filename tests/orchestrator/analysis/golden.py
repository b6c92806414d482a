"""Scores and differences of which published or hand-computed statistics are known."""

import pandas as pd

DEMSAR = """
    .763 .768 .771 .798 | .599 .591 .590 .569 | .954 .971 .968 .967 | .628 .661 .654 .657 |
    .882 .888 .886 .898 | .936 .931 .916 .931 | .661 .668 .609 .685 | .583 .583 .563 .625 |
    .775 .838 .866 .875 | 1 1 1 1 | .940 .962 .965 .962 | .619 .666 .614 .669 |
    .972 .981 .975 .975 | .957 .978 .946 .970
"""
"""Accuracies of four arms on fourteen datasets: Demšar (2006), Table 6."""

M_MINUS_C45 = [0.5, -0.8, 1.7, 3.3, 0.6, -0.5, 0.7, 0, 6.3, 0, 2.2, 4.7, 0.9, 2.1]
"""Points of two arms of Demšar (2006), Table 6."""

TEN = [0.01, 0.02, 0.015, 0.03, -0.002, 0.025, 0.012, 0.04, 0.018, 0.022]


def by_dataset(values):
    return pd.Series(values, index=[f"dataset{i}" for i in range(len(values))], dtype=float)


def table(text):
    rows = [[float(value) for value in row.split()] for row in text.split("|")]
    return pd.DataFrame(rows, index=[f"d{i}" for i in range(len(rows))])
