"""The range of penalties, which are products of C and weights."""

import numpy as np

from solvers.common.plain import plain

MIN_PENALTY = float(np.finfo(np.float64).tiny)
"""Smallest penalty whose reciprocal is finite."""


def require_penalties(Cs, weights, names):
    """Raise if C times a weight, or its reciprocal, is no longer a positive finite number.

    Parameters
    ----------
    Cs : ndarray of shape (n_C,)
        Values of C. An infinite C, for the hard margin, is infinite with any weight.
    weights : ndarray of shape (n,)
        Factor of C of each sample, positive.
    names : sequence of str
        Names of the parameters that the weights come from.

    Raises
    ------
    ValueError
        A product overflows or underflows. The message names the parameters and the values.
    """
    for C, weight in ((Cs.min(), weights.min()), (Cs.max(), weights.max())):
        with np.errstate(over="ignore", under="ignore"):
            penalty = C * weight
        if np.isfinite(C) and not MIN_PENALTY <= penalty < np.inf:
            problem = "overflows" if penalty == np.inf else "underflows"
            raise ValueError(
                f"the penalty C times {' times '.join(names)} {problem} for C={plain(C)} and a weight of "
                f"{plain(weight)}: change C or the weights"
            )
