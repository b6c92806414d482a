"""Choice of the method that makes a reduced set."""

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.kernels.functions import GRAM, KINDS, RBF
from solvers.reduction.reduced_set.backward import backward
from solvers.reduction.reduced_set.decisions import fit_to_decisions
from solvers.reduction.reduced_set.exact import exact
from solvers.reduction.reduced_set.expansion import of_rows
from solvers.reduction.reduced_set.fixed_point import fixed_point
from solvers.reduction.reduced_set.greedy import greedy
from solvers.reduction.reduced_set.l1 import l1
from solvers.reduction.reduced_set.merge import merge
from solvers.reduction.reduced_set.refine import refine

METHODS = {"greedy": greedy, "backward": backward, "l1": l1, "fixed_point": fixed_point, "merge": merge}
"""Methods for a number of vectors, by name. "exact" is not among them, because it finds the number."""
OF_GAUSSIAN_KERNEL = ("fixed_point", "merge")
"""Methods for the Gaussian kernel only."""


def reduce_expansion(expansion, n_vectors, method, max_refine, decisions=None):
    """Return a reduced set of sums of kernel functions.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    n_vectors : int or None
        Largest number of vectors. From N on, the sums stay as they are. Not used by the method "exact".
    method : str
        A key of `METHODS`, or "exact".
    max_refine : int
        Largest number of iterations that move the vectors; 0 for none.
    decisions : Decisions, optional
        Decisions that the sums are fitted to. By default, the sums are those of least residual.

    Returns
    -------
    Reduced
        Sums on the vectors of the reduced set.
    """
    with one_blas_thread():
        if not expansion.size or (method != "exact" and n_vectors >= expansion.size):
            rows = _every(expansion)
            return of_rows(expansion, rows, expansion.coefficients)
        if method == "exact":
            return exact(expansion)
        reduced = refine(expansion, METHODS[method](expansion, n_vectors), max_refine)
        if decisions is None:
            return reduced
        return fit_to_decisions(expansion.kernel, reduced, decisions, max_refine)


def require_usable(kernel, method, max_refine, fitted_to="norm"):
    """Raise if a method cannot be used with a kernel.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the sums.
    method : str
        A key of `METHODS`, or "exact".
    max_refine : int
        Largest number of iterations that move the vectors.
    fitted_to : {"norm", "decisions"}, default="norm"
        What the sums are fitted to.

    Raises
    ------
    ValueError
        The kernel is not positive semidefinite, or has no features for new vectors.
    """
    if kernel.kind == GRAM:
        if method in OF_GAUSSIAN_KERNEL or (max_refine and method != "exact"):
            raise ValueError(
                f"method={method!r}, refine={bool(max_refine)}: expected a choice among the support vectors, "
                "because a precomputed or callable kernel has no features from which new vectors could be "
                "made. Set method='greedy' and refine=False"
            )
        if fitted_to == "decisions" and method != "exact":
            raise ValueError(
                "fitted_to='decisions': expected a named kernel, which can be evaluated at samples, found a "
                "precomputed or callable one. Set fitted_to='norm'"
            )
        return
    name = next(name for name, kind in KINDS.items() if kind == kernel.kind)
    if not kernel.is_positive:
        raise ValueError(
            f"kernel={name!r}: expected a positive semidefinite kernel, whose sums have a norm. Use "
            "kernel='rbf', or poly with an integer degree and coef0 of at least 0"
        )
    if method in OF_GAUSSIAN_KERNEL and kernel.kind != RBF:
        raise ValueError(
            f"method={method!r}: expected kernel='rbf', found {name!r}. Set method='greedy', which takes "
            "every positive semidefinite kernel"
        )


def _every(expansion):
    """Return the numbers of all vectors.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.

    Returns
    -------
    int64 ndarray of shape (N,)
        Numbers.
    """
    return np.arange(expansion.size)
