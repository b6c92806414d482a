"""Choice of vectors by a penalty of the absolute coefficients (Schölkopf et al. 1999, section IV).

Minimise Σ_p ω_p ‖Ψ_p − Σ_i β_ip φ(x_i)‖² + λ Σ_i c_i ‖β_i‖ with ‖β_i‖² = Σ_p ω_p β_ip², the mean of ‖a‖ over
‖a_i‖ as c_i, by coordinate descent over the vectors. λ is found by bisection such that at most the wanted
number of vectors keeps a coefficient. The best coefficients on these vectors replace the shrunken ones.
"""

import numpy as np

from solvers.common.compile import njit
from solvers.common.resources import require_memory
from solvers.reduction.reduced_set.expansion import of_rows, values_between, weights_of
from solvers.reduction.reduced_set.greedy import pursue

MAX_SWEEPS, MAX_BISECTIONS = 40, 24
"""Largest number of passes over all vectors for one λ, and of values of λ."""
SMALLEST_CHANGE = 1e-4
"""Largest change of a coefficient in a pass that ends the passes, as a share of the largest coefficient."""
CLOSE_ENOUGH = 0.02
"""Share of the wanted number of vectors that may be missing at the end of the bisection."""


def l1(expansion, n_vectors):
    """Return the reduced set of the vectors that keep a coefficient.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    n_vectors : int
        Largest number of vectors. If the bisection ends with fewer, the greedy choice adds the others.

    Returns
    -------
    Reduced
        Sums on the chosen vectors.

    Raises
    ------
    MemoryError
        The kernel matrix would not fit into memory.
    """
    n = expansion.size
    what = f"the kernel matrix of {n:,} support vectors, for method='l1',"
    require_memory(16.0 * n**2, what, "set method='greedy'")
    values = values_between(expansion, slice(None), slice(None))
    sums = values @ expansion.coefficients
    scale = np.sqrt(weights_of((expansion.coefficients * sums).sum(axis=0)))
    sizes = np.linalg.norm(expansion.coefficients * scale, axis=1)
    penalties = np.where(sizes > 0.0, sizes.mean() / np.where(sizes > 0.0, sizes, 1.0), np.inf)
    kept = _kept_by_penalty(values, sums * scale, penalties, n_vectors)
    pursuit = pursue(expansion, n_vectors, kept)
    return of_rows(expansion, np.array(pursuit.rows, dtype=np.int64), pursuit.coefficients())


def _kept_by_penalty(values, targets, penalties, n_vectors):
    """Return the vectors that keep a coefficient, at most a number of them.

    Parameters
    ----------
    values : ndarray of shape (N, N)
        Kernel values.
    targets : ndarray of shape (N, P)
        Sums Ψ_p at the vectors, times √ω_p.
    penalties : ndarray of shape (N,)
        Factors c_i of λ; infinite for vectors that get no coefficient.
    n_vectors : int
        Largest number of vectors.

    Returns
    -------
    int64 ndarray
        Vectors, those of the largest coefficients first.
    """
    high = 2.0 * (np.linalg.norm(targets, axis=1) / penalties).max()
    low, best = 0.0, np.empty(0, dtype=np.int64)
    if high == 0.0:  # all sums vanish
        return best
    residual, beta = targets.copy(), np.zeros_like(targets)
    for _ in range(MAX_BISECTIONS):
        middle = np.sqrt(low * high) if low > 0.0 else 0.1 * high
        _descend(values, residual, beta, middle * penalties, MAX_SWEEPS, SMALLEST_CHANGE)
        size = np.linalg.norm(beta, axis=1)
        found = np.flatnonzero(size)
        if found.size > n_vectors:
            low = middle
        else:
            high = middle
            if found.size > best.size:
                best = found[np.argsort(-size[found], kind="stable")]
        if best.size >= (1.0 - CLOSE_ENOUGH) * n_vectors or (low > 0.0 and high < 1.001 * low):
            break
    return best


@njit
def _descend(values, residual, beta, thresholds, max_sweeps, smallest_change):
    """Minimise the penalised residual by passes over the vectors.

    Parameters
    ----------
    values : float64 array (N, N)
        Kernel values.
    residual : float64 array (N, P)
        Residual functions at the vectors for the coefficients `beta`; changed in place.
    beta : float64 array (N, P)
        Coefficients, times √ω_p; changed in place.
    thresholds : float64 array (N,)
        Products λ c_i.
    max_sweeps : int
        Largest number of passes.
    smallest_change : float
        Largest change in a pass that ends them, as a share of the largest coefficient.
    """
    n, P = beta.shape
    steps = np.empty(P)
    for _ in range(max_sweeps):
        change, largest = 0.0, 0.0
        for i in range(n):
            if not (values[i, i] > 0.0 and thresholds[i] < np.inf):
                continue
            square = 0.0
            for p in range(P):
                g = residual[i, p] + values[i, i] * beta[i, p]
                square += g * g
            shrink = max(0.0, 1.0 - 0.5 * thresholds[i] / np.sqrt(square)) if square > 0.0 else 0.0
            moved = 0.0
            for p in range(P):
                new = shrink * (residual[i, p] / values[i, i] + beta[i, p])
                steps[p] = new - beta[i, p]
                beta[i, p] = new
                moved, largest = max(moved, abs(steps[p])), max(largest, abs(new))
            change = max(change, moved)
            if moved > 0.0:
                for k in range(n):
                    for p in range(P):
                        residual[k, p] -= values[i, k] * steps[p]
        if change <= smallest_change * largest:
            break
