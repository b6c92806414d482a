"""Bounds on the problem of all samples for a model that was trained on representatives.

The problem of all samples is ``F1(w, b) = ½‖w‖² + C Σ s_i max(0, 1 − y_i (w·φ_i + b))``. From the dual
solution α̂ on the representatives, ``ᾰ_i = s_i Σ_t γ_ti α̂_t / β_t`` is feasible for its dual problem:
0 ≤ ᾰ_i ≤ C s_i and Σ y_i ᾰ_i = 0. Hence D(ᾰ) ≤ F1* ≤ F1(w, b) with ``D(ᾰ) = Σ ᾰ_i − ½ N²`` and
``N = ‖Σ ᾰ_i y_i φ_i‖``. Two bounds of N are known:

- cheap: N ≤ ‖Σ_t (Γᵀᾰ)_t y_t φ_t‖ + Σ ᾰ_i √p_i, from kernel values of the representatives only;
- exact: N itself, from kernel values of all samples with ᾰ_i > 0.

θᾰ is feasible too for 0 ≤ θ ≤ 1. The bound uses the best θ, so that it is never negative. All bounds allow
for the rounding errors of kernel values and sums.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.kernels.functions import kernel_diagonal
from solvers.reduction.values import Sums


class Reduced(NamedTuple):
    """Two labels of a training set, and their representatives."""

    X: np.ndarray | sparse.csr_matrix  # samples as `Kernel.prepare` returns them, or the Gram matrix
    kernel: object  # solvers.kernels.functions.Kernel
    rows: np.ndarray  # (m,) int64: rows of the samples, those of weight 0 left out
    y: np.ndarray  # (m,): labels, 1 or -1
    weight: np.ndarray  # (m,): weights s of the samples
    gamma: sparse.csr_matrix  # (m, M): weights of each sample's combination
    errors: np.ndarray  # (m,): squared distance of each sample from its combination
    points: np.ndarray  # (M,) int64: indices in `rows` of the representatives


class Bounds(NamedTuple):
    """Bounds of a training for several C: arrays of shape (n_C,)."""

    primal: np.ndarray  # F1(w, b), an upper bound of the optimum
    cheap: np.ndarray  # lower bound of the optimum from the representatives
    exact: np.ndarray  # lower bound from all samples; NaN if it was not computed
    n_kernel_evals: int  # kernel values of all bounds

    @property
    def gaps(self):
        """Relative gaps of the better lower bounds: ndarray of shape (n_C,)."""
        return (self.primal - np.fmax(self.cheap, self.exact)) / self.primal


def bounds_of(reduced, beta, bias, Cs, max_exact, memory):
    """Bound the optimum of the problem on all samples.

    Parameters
    ----------
    reduced : Reduced
        Samples and representatives.
    beta : ndarray of shape (n_C, M)
        Signed weights y_t α̂_t of the representatives. α̂ satisfies the bounds of the reduced problem up to
        rounding.
    bias : ndarray of shape (n_C,)
        Constant b of the decision function.
    Cs : ndarray of shape (n_C,)
        Values of C.
    max_exact : float
        Largest number of kernel values for the exact bound.
    memory : float
        Memory for kernel values, in bytes.

    Returns
    -------
    Bounds
        Bounds for each C.
    """
    diagonal = kernel_diagonal(reduced.X, reduced.kernel)[reduced.rows]
    sums = Sums(reduced.X, reduced.kernel, reduced.rows.size, Cs.size, memory)
    largest, value_error = np.abs(diagonal).max(), sums.value_error
    primal, n_primal = _primal(reduced, beta, bias, Cs, largest, sums)
    y_of_points = reduced.y[reduced.points]
    alpha = _feasible(np.maximum(y_of_points * beta, 0.0), y_of_points, reduced, Cs)
    sizes = reduced.gamma.T @ reduced.weight
    breve = reduced.weight * (reduced.gamma @ (alpha / sizes).T).T  # (n_C, m)
    total = breve.sum(axis=1)
    image = (reduced.gamma.T @ breve.T).T  # (n_C, M)
    per_value = value_error + (reduced.rows.size + FEW_ROUNDINGS) * UNIT_ROUNDOFF * largest

    square, n_cheap = sums.square_norms(reduced.rows[reduced.points], y_of_points * image)
    is_point = (np.diff(reduced.gamma.indptr) == 1) & (reduced.errors == 0.0)  # a representative or its copy
    terms = np.diff(reduced.gamma.indptr) + FEW_ROUNDINGS
    p = reduced.errors + 4.0 * (value_error + terms * UNIT_ROUNDOFF * largest)
    distance = breve @ np.where(is_point, 0.0, np.sqrt(p))
    norm = np.sqrt(np.maximum(square, 0.0) + per_value * total**2) + distance
    cheap = _best_scaled(total, norm)

    exact, n_exact = np.full(Cs.size, np.nan), 0
    n_used = np.count_nonzero(breve.any(axis=0))
    if 0.5 * n_used**2 <= max_exact:
        square, n_exact = sums.square_norms(reduced.rows, reduced.y * breve)
        exact = _best_scaled(total, np.sqrt(np.maximum(square, 0.0) + per_value * total**2))
    return Bounds(primal, cheap, exact, n_primal + n_cheap + n_exact)


def _primal(reduced, beta, bias, Cs, largest, sums):
    """Return F1(w, b), with an allowance for rounding.

    Parameters
    ----------
    reduced, beta, bias, Cs
        As in `bounds_of`.
    largest : float
        Largest k(x, x).
    sums : solvers.reduction.values.Sums
        Sums of kernel values.

    Returns
    -------
    primal : ndarray of shape (n_C,)
        Upper bounds of F1(w, b).
    n_kernel_evals : int
        Number of kernel values.
    """
    used = np.flatnonzero(beta.any(axis=0))
    products = sums.at(reduced.rows[reduced.points[used]], beta[:, used], reduced.rows)
    total = np.abs(beta).sum(axis=1)
    per_value = sums.value_error + (used.size + FEW_ROUNDINGS) * UNIT_ROUNDOFF * largest
    error = total * per_value + UNIT_ROUNDOFF * np.abs(bias)
    square_norm = np.maximum((beta * products[:, reduced.points]).sum(axis=1), 0.0) + 2.0 * total * error
    slack = np.maximum(0.0, 1.0 - reduced.y * (products + bias[:, None]) + error[:, None])
    rounding = (reduced.rows.size + FEW_ROUNDINGS) * UNIT_ROUNDOFF
    primal = (0.5 * square_norm + Cs * (slack @ reduced.weight)) * (1.0 + rounding)
    return primal, reduced.rows.size * used.size


def _feasible(alpha, y, reduced, Cs):
    """Return weights within their bounds that have the same sum in both classes.

    Parameters
    ----------
    alpha : ndarray of shape (n_C, M)
        Weights of the representatives, at least 0.
    y : ndarray of shape (M,)
        Their labels.
    reduced : Reduced
        Samples and representatives.
    Cs : ndarray of shape (n_C,)
        Values of C.

    Returns
    -------
    ndarray of shape (n_C, M)
        Weights that differ from `alpha` by rounding, if `alpha` is feasible up to rounding.
    """
    alpha = np.minimum(alpha, Cs[:, None] * (reduced.gamma.T @ reduced.weight))
    positive, negative = alpha[:, y > 0.0].sum(axis=1), alpha[:, y < 0.0].sum(axis=1)
    less = np.minimum(positive, negative)
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = np.nan_to_num([less / positive, less / negative])
    return np.where(y > 0.0, factors[0][:, None], factors[1][:, None]) * alpha


def _best_scaled(total, norm):
    """Return the largest θ Σᾰ − ½ θ² N² for 0 ≤ θ ≤ 1, less an allowance for rounding.

    Parameters
    ----------
    total : ndarray of shape (n_C,)
        Σᾰ.
    norm : ndarray of shape (n_C,)
        Upper bounds of N.

    Returns
    -------
    ndarray of shape (n_C,)
        Lower bounds of the optimum.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        theta = np.minimum(1.0, np.nan_to_num(total / norm**2, nan=0.0))
    dual = theta * total - 0.5 * (theta * norm) ** 2
    return np.maximum(dual - 1e-12 * total, 0.0)
