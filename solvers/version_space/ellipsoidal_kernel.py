"""Training of one subproblem of the ellipsoidal kernel machine: an ellipsoid, then SMO in its metric."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.status import CONVERGED, TIMEOUT, uncertified_text
from solvers.kernels.functions import GRAM, LINEAR, Kernel
from solvers.kernels.subproblem_kernel import OutOfTime, SubproblemKernel
from solvers.problem import Solution
from solvers.smo.certificate import SMO_STOPPING_TEXTS
from solvers.smo.kernel_rows import rows_of
from solvers.smo.row_training import SmoState, certify
from solvers.version_space.dense_arrays import require_dense
from solvers.version_space.enclosing_ellipsoid import Samples, enclose, mean_diagonal

N_ARRAYS = 4
"""Number of n × n arrays of a training: the kernel, two products of it, and the kernel of the ellipsoid."""
FEW_FEATURES = 3
"""Least number of samples for each feature from which the linear kernel is trained on features."""
UNIT_ROUNDOFF_32 = 2.0**-24
"""Unit roundoff of float32."""
NO_VALUES = np.empty((0, 0))


@dataclass
class EllipsoidalSolution(Solution):
    """Trained subproblem with its ellipsoid, and the weights from which another C starts."""

    inner: Any = None  # solution in the kernel of the ellipsoid
    ellipsoid_gap: float = np.nan  # gap of the ellipsoid


def samples_of(problem, cache_bytes):
    """Return the samples of a subproblem for the training of an ellipsoid.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem.
    cache_bytes : float
        Memory for n × n arrays, in bytes.

    Returns
    -------
    samples : Samples
        Features if the kernel is linear and they are few, else kernel values.
    evaluations : int
        Number of kernel values that were computed.

    Raises
    ------
    MemoryError
        The n × n arrays exceed the memory.
    OutOfTime
        If the deadline passes.
    """
    n = problem.rows.size
    if problem.kernel.kind == LINEAR and FEW_FEATURES * problem.X.shape[1] <= n:
        X = problem.X[problem.rows]
        dense = X.toarray() if sparse.issparse(X) else np.array(X)
        return Samples(NO_VALUES, np.ascontiguousarray(dense)), 0
    require_dense(n, N_ARRAYS, cache_bytes, "EllipsoidalKernelSVC")
    kernel = SubproblemKernel(problem)
    return Samples(kernel.gram(), NO_VALUES), int(kernel.evaluations)


def require_positive_semidefinite(K, kernel, is_float32):
    """Raise if a kernel matrix has a negative eigenvalue that is larger than rounding.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    kernel : Kernel
        Kernel that they come from.
    is_float32 : bool
        Whether the values were rounded to float32.

    Raises
    ------
    ValueError
        The matrix is not positive semidefinite.
    """
    if K.size == 0 or kernel.is_positive:
        return
    n, largest = len(K), float(np.abs(np.diag(K)).max())
    unit = UNIT_ROUNDOFF_32 if is_float32 else FEW_ROUNDINGS * UNIT_ROUNDOFF
    shifted = 0.5 * (K + K.T)
    shifted[np.diag_indices(n)] += n * (unit * largest + kernel.error)
    with one_blas_thread():
        _, info = dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            lowest = float(np.linalg.eigvalsh(K)[0])
            raise ValueError(
                "EllipsoidalKernelSVC: expected a positive semidefinite kernel matrix, found the eigenvalue "
                f"{lowest:.3g} of that of {n:,} samples. Use another kernel, such as kernel='rbf'"
            )


class EllipsoidalKernel:
    """Kernel in the metric of the ellipsoid around the samples of a subproblem.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    slack : float
        Penalty E of a sample outside; infinite if none may be outside.
    ridge : float
        The number η as a share of the mean of the diagonal of the centred kernel.
    tol : float
        Largest gap of the ellipsoid.
    cache_bytes : float
        Memory for n × n arrays, in bytes.

    Raises
    ------
    MemoryError
        The n × n arrays exceed the memory.
    OutOfTime
        If the deadline passes.
    ValueError
        All samples are equal, or the kernel is not positive semidefinite.
    """

    def __init__(self, problem, weights, slack, ridge, tol, cache_bytes):
        samples, self.evaluations = samples_of(problem, cache_bytes)
        with one_blas_thread():
            spread = mean_diagonal(samples, weights / weights.sum())
        require_positive_semidefinite(samples.K, problem.kernel, problem.X.dtype == np.float32)
        least = samples.n * UNIT_ROUNDOFF * self._largest(samples)
        if not spread > least:
            raise ValueError(
                "EllipsoidalKernelSVC: expected samples that differ, found that all samples of a "
                f"subproblem are equal in the space of the kernel (mean square distance {spread:.2g}). "
                "Check the samples, or use a larger gamma"
            )
        try:
            found = enclose(samples, ridge * spread, slack * weights, tol, problem.max_iter, problem.deadline)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"EllipsoidalKernelSVC: the kernel matrix of {samples.n:,} samples is not positive "
                f"semidefinite, found {error}. Use another kernel, or a larger ridge"
            ) from error
        self.ellipsoid, self.gap, self.steps, self.status = found
        self._cache_bytes = cache_bytes
        with one_blas_thread():
            self._evaluate(samples)

    def _evaluate(self, samples):
        """Compute the kernel in the metric of the ellipsoid, or its features.

        Parameters
        ----------
        samples : Samples
            Samples.
        """
        if samples.X.size:
            centred, L = self.ellipsoid.factor()
            self.X, self.kernel = np.ascontiguousarray(self.ellipsoid.features(centred, L).T), Kernel(LINEAR)
        else:
            # Values are differences of terms of about 1/η; all of them are at most about 1/λ.
            value_error = 8.0 * samples.n * UNIT_ROUNDOFF * self._largest(samples) / self.ellipsoid.eta
            self.X, self.kernel = self.ellipsoid.kernel(), Kernel(GRAM, error=value_error)

    @staticmethod
    def _largest(samples):
        """Return the largest size of a kernel value.

        Parameters
        ----------
        samples : Samples
            Samples.

        Returns
        -------
        float
            Largest diagonal value without its sign.
        """
        if samples.X.size:
            return float((samples.X**2).sum(axis=1).max())
        return float(np.abs(np.diag(samples.K)).max())

    def solve(self, problem, tol):
        """Train the subproblem in the metric of the ellipsoid.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Subproblem with its penalties and limits.
        tol : float
            Largest violation and gap.

        Returns
        -------
        EllipsoidalSolution
            Trained subproblem, with coefficients of the kernel k.
        """
        n = problem.rows.size
        here = replace(problem, X=self.X, rows=np.arange(n, dtype=np.int32), kernel=self.kernel)
        state = SmoState(here, "l1")
        try:
            state.store = rows_of(state.kernel, self._cache_bytes)
            if problem.start is not None and getattr(problem.start, "inner", None) is not None:
                state.start_from(problem.start.inner)
            status, gap, converged = certify(state, tol, True, max(1, problem.max_iter - self.steps))
        except OutOfTime:
            status, gap, converged = TIMEOUT, np.nan, False
        inner = state.solution(status, gap, converged, tol)
        with one_blas_thread():
            coefficients, constant = self.ellipsoid.coefficients(state.beta)
        if not np.any(state.beta):
            coefficients = np.zeros(n)
        support = np.flatnonzero(coefficients)
        worst = float(np.maximum(gap, self.gap))
        text, is_whole = inner.stopping, converged and self.status == CONVERGED
        if not converged:
            text = uncertified_text(SMO_STOPPING_TEXTS[status], worst)
        elif not is_whole:
            status = self.status
            text = uncertified_text(f"ellipsoid: {SMO_STOPPING_TEXTS[status]}", worst)
        return EllipsoidalSolution(
            support=support,
            alpha=(state.y * coefficients)[support],
            bias=inner.bias + constant,
            objective=inner.objective,
            gap=worst,
            n_iter=inner.n_iter + self.steps,
            n_kernel_evals=self.evaluations,
            status=int(status),
            converged=is_whole,
            stopping=text,
            inner=inner,
            ellipsoid_gap=float(self.gap),
        )
