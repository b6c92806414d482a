"""Weights of samples as the estimators without a kernel parameter accept them."""

import numpy as np

from solvers.common.input_checks import require_real_numbers


def checked_sample_weight(sample_weight, n):
    """Return the weights of samples as an array, or raise.

    Parameters
    ----------
    sample_weight : array-like or None
        Weights as the user passed them; None means 1.
    n : int
        Number of samples.

    Returns
    -------
    ndarray of shape (n,)
        Weights, finite and nonnegative.

    Raises
    ------
    ValueError
        The weights are not n finite nonnegative numbers.
    """
    given = 1.0 if sample_weight is None else sample_weight
    require_real_numbers(given, "sample_weight")
    found = np.asarray(given, dtype=np.float64)
    if found.shape not in ((), (n,)):
        raise ValueError(f"sample_weight must have shape ({n},), one weight a sample; got {found.shape}")
    weights = np.array(np.broadcast_to(found, n))
    wrong = np.flatnonzero(~(weights >= 0.0) | np.isinf(weights))
    if wrong.size:
        raise ValueError(
            f"sample_weight: expected finite numbers of at least 0, found {weights[wrong[0]]} at index "
            f"{wrong[0]}. Correct the weights, or drop these samples"
        )
    return weights
