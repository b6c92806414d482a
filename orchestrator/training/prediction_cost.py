"""Cost of a prediction: the time of one row, and the numbers that a fitted model holds."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

CALLS, WARM_CALLS = 200, 3
"""Number of predictions whose median counts, and of those before them that do not count."""
MAX_SECONDS = 5.0
"""Time after which no more predictions are measured, in seconds."""


def row_seconds(predict: Callable[[Any], Any], X_test: Any) -> float | None:
    """Return the median time in which a fitted estimator predicts one row.

    Parameters
    ----------
    predict : callable
        Method of the estimator.
    X_test : {ndarray, sparse matrix} of shape (n_test, n_features)
        Test rows, which are predicted one after the other, from the first one again after the last.

    Returns
    -------
    float or None
        Seconds of wall time; None if a prediction raised an exception.
    """
    rows = [X_test[i : i + 1] for i in range(min(CALLS, X_test.shape[0]))]
    seconds: list[float] = []
    started = perf_counter()
    try:
        for k in range(WARM_CALLS + CALLS):
            before = perf_counter()
            predict(rows[k % len(rows)])
            after = perf_counter()
            if k >= WARM_CALLS:
                seconds.append(after - before)
            if seconds and after - started > MAX_SECONDS:
                break
    except Exception:  # the labels of all rows are there, so the trial counts
        return None
    return median(seconds)


def model_values(estimator: Any) -> int | None:
    """Return the number of floats that a prediction of a fitted estimator may read.

    Parameters
    ----------
    estimator : fitted classifier
        Estimator. It may publish the number as `n_model_values_`.

    Returns
    -------
    int or None
        That number. Otherwise the values of `support_vectors_`, `dual_coef_` and `intercept_`, or without
        support vectors those of `coef_` and `intercept_`. None if there are none of these.
    """
    published = getattr(estimator, "n_model_values_", None)
    if published is not None:
        return int(published) if published >= 0 else None
    vectors = getattr(estimator, "support_vectors_", None)
    names = ("coef_", "intercept_") if vectors is None else ("support_vectors_", "dual_coef_", "intercept_")
    arrays: list[Any] = [getattr(estimator, name, None) for name in names]
    if any(array is None for array in arrays):
        return None
    sizes: list[int] = [array.nnz if sparse.issparse(array) else np.size(array) for array in arrays]
    return int(sum(sizes))
