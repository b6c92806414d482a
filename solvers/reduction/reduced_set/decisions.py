"""Vectors and coefficients fitted to the decisions of the whole machine at samples, by L-BFGS.

With few vectors, the sums of least distance in the space of the kernel also differ where no sample is. Here
Σ_p Σ_i (Ψ_p(x_i) − Ψ'_p(x_i))² becomes small, over the samples x_i on which subproblem p decides. The
coefficients are the best ones for the vectors, with a small ridge, so that the envelope theorem gives the
gradient as in `refine`.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from solvers.kernels.functions import IMQ, RBF, kernel_block
from solvers.reduction.reduced_set.expansion import Reduced, blocks_of
from solvers.reduction.reduced_set.refine import N_CORRECTIONS, slopes_of

MOST_SAMPLES = 10_000
"""Largest number of samples at which decisions are compared, besides the support vectors."""
RIDGE = 1e-7
"""Addition to the diagonals of the normal equations, as a share of the largest value there."""
MOST_OPERATIONS = 3e11
"""Number of floating-point operations of the iterations, about a minute, beyond which there are fewer."""


class Decisions(NamedTuple):
    """Sums of the whole machine at samples."""

    samples: np.ndarray  # (n, d), dense, as `Kernel.prepare` returns them
    values: np.ndarray  # (n, P): Ψ_p(x_i)
    counts: np.ndarray  # (n, P) bool: whether the subproblem separates the class of the sample


def decisions_at(expansion, samples, labels, is_voted):
    """Return the sums of a machine at samples, and at its support vectors if the samples are too many.

    Parameters
    ----------
    expansion : Expansion
        Sums of a kernel of features on N vectors.
    samples : ndarray of shape (n, d)
        Samples as `Kernel.prepare` returns them.
    labels : int64 ndarray of shape (n,)
        Class of each sample.
    is_voted : bool
        Whether each sum separates a pair of classes.

    Returns
    -------
    Decisions
        Sums at all samples, or at the support vectors and `MOST_SAMPLES` others drawn with a fixed seed.
    """
    if len(samples) > MOST_SAMPLES:
        drawn = np.sort(np.random.default_rng(0).permutation(len(samples))[:MOST_SAMPLES])
        samples = np.concatenate((expansion.vectors, samples[drawn]))
        labels = np.concatenate((expansion.labels, labels[drawn]))
    vectors, coefficients = expansion.vectors, expansion.coefficients
    values = np.empty((len(samples), coefficients.shape[1]))
    for block in blocks_of(len(samples), expansion.size):
        values[block] = kernel_block(samples[block], vectors, expansion.kernel) @ coefficients
    counts = np.ones(values.shape, dtype=bool)
    if is_voted:
        pairs = np.array(list(combinations(range(int(labels.max()) + 1), 2)))
        counts = (labels[:, None, None] == pairs).any(axis=2)
    return Decisions(samples, values, counts)


def fit_to_decisions(kernel, reduced, decisions, max_refine):
    """Fit a reduced set to the decisions of the whole machine, and never raise the sum of squares.

    Parameters
    ----------
    kernel : Kernel
        Kernel of features.
    reduced : Reduced
        Reduced set to start from.
    decisions : Decisions
        Decisions of the whole machine.
    max_refine : int
        Largest number of iterations that move the vectors; 0 fits the coefficients alone.

    Returns
    -------
    Reduced
        Sums on the moved vectors, with the best coefficients.
    """
    if reduced.coefficients.size == 0:
        return reduced
    problem = SquaredChange(kernel, decisions, reduced.vectors)
    iterations = min(max_refine, int(MOST_OPERATIONS // problem.operations(len(reduced.vectors))))
    vectors, rows = reduced.vectors, reduced.rows
    if iterations:
        found = minimize(
            problem.with_gradient,
            vectors.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": N_CORRECTIONS},
        )
        vectors, rows = np.ascontiguousarray(found.x.reshape(vectors.shape)), None
    fitted = Reduced(rows, vectors, problem.best_coefficients(vectors), reduced.labels)
    return fitted if problem.of(fitted) < problem.of(reduced) else reduced


class SquaredChange:
    """Sum of squared changes of decisions, with its gradient by the vectors.

    Parameters
    ----------
    kernel : Kernel
        Kernel of features.
    decisions : Decisions
        Decisions of the whole machine.
    vectors : ndarray of shape (m, d)
        Vectors to start from, which give the scale of the ridge.
    """

    def __init__(self, kernel, decisions, vectors):
        self._kernel, self._decisions = kernel, decisions
        square_sums = np.square(kernel_block(decisions.samples, vectors, kernel)).sum(axis=0)
        self._ridge = max(RIDGE * float(square_sums.max()), np.finfo(float).tiny)

    def operations(self, m):
        """Return the number of floating-point operations of an iteration.

        Parameters
        ----------
        m : int
            Number of vectors.

        Returns
        -------
        float
            Estimated number.
        """
        (n, d), n_counted = self._decisions.samples.shape, float(self._decisions.counts.sum())
        n_subproblems = self._decisions.values.shape[1]
        return n_counted * m**2 + n_subproblems * m**3 / 3.0 + 4.0 * n * m * (d + n_subproblems)

    def of(self, reduced):
        """Return the sum of squared changes of a reduced set with its coefficients.

        Parameters
        ----------
        reduced : Reduced
            Vectors with coefficients.

        Returns
        -------
        float
            Σ_p Σ_i (Ψ_p(x_i) − Ψ'_p(x_i))².
        """
        K = kernel_block(self._decisions.samples, reduced.vectors, self._kernel)
        return float(np.square(self._changes(K, reduced.coefficients)).sum())

    def best_coefficients(self, vectors):
        """Return the coefficients with the least sum of squared changes and ridge.

        Parameters
        ----------
        vectors : ndarray of shape (m, d)
            Vectors.

        Returns
        -------
        ndarray of shape (m, P)
            Coefficients.
        """
        return self._best(kernel_block(self._decisions.samples, vectors, self._kernel))

    def with_gradient(self, flat):
        """Return half the sum of squares with the best coefficients and the ridge, and its gradient.

        Parameters
        ----------
        flat : ndarray of shape (m · d,)
            Vectors, one after the other.

        Returns
        -------
        value : float
            Half the sum of squares, plus the ridge.
        gradient : ndarray of shape (m · d,)
            Derivatives by the features of the vectors.
        """
        X = self._decisions.samples
        Z = np.ascontiguousarray(flat.reshape(-1, X.shape[1]))
        K = kernel_block(X, Z, self._kernel)
        B = self._best(K)
        changes = self._changes(K, B)
        value = 0.5 * float(np.square(changes).sum()) + 0.5 * self._ridge * float(np.square(B).sum())
        slopes = slopes_of(self._kernel, K, X, Z) * (changes @ B.T)
        gradient = slopes.T @ X
        if self._kernel.kind in (RBF, IMQ):
            gradient -= slopes.sum(axis=0)[:, None] * Z
        return value, gradient.ravel()

    def _changes(self, K, B):
        """Return the changes of decisions, 0 where a subproblem does not separate the class of the sample.

        Parameters
        ----------
        K : ndarray of shape (n, m)
            Kernel values of the samples and the vectors.
        B : ndarray of shape (m, P)
            Coefficients.

        Returns
        -------
        ndarray of shape (n, P)
            Ψ'_p(x_i) − Ψ_p(x_i).
        """
        return (K @ B - self._decisions.values) * self._decisions.counts

    def _best(self, K):
        """Return the best coefficients for given kernel values.

        Parameters
        ----------
        K : ndarray of shape (n, m)
            Kernel values of the samples and the vectors.

        Returns
        -------
        ndarray of shape (m, P)
            Coefficients.
        """
        values, counts = self._decisions.values, self._decisions.counts
        B = np.empty((K.shape[1], values.shape[1]))
        if counts.all():
            return self._solved(K, values)
        for p in range(B.shape[1]):
            B[:, p] = self._solved(K[counts[:, p]], values[counts[:, p], p])
        return B

    def _solved(self, K, targets):
        """Return the ridge regression of targets on kernel values.

        Parameters
        ----------
        K : ndarray of shape (n, m)
            Kernel values.
        targets : ndarray of shape (n,) or (n, P)
            Decisions.

        Returns
        -------
        ndarray of shape (m,) or (m, P)
            Coefficients.
        """
        normal = K.T @ K
        normal.flat[:: len(normal) + 1] += self._ridge
        return cho_solve(cho_factor(normal, lower=True, overwrite_a=True), K.T @ targets)
