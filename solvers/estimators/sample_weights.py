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
    if sample_weight is None:
        return np.ones(n)
    require_real_numbers(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight a sample; got {weights.shape}")
    valid = np.isfinite(weights) & (weights >= 0.0)
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        raise ValueError(
            f"sample_weight: expected finite numbers of at least 0, found {weights[row]} at index {row}. "
            "Correct the weights, or drop these samples"
        )
    return weights
