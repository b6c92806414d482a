"""Rows of the Gaussian kernel, one at a time, without the work that every row would repeat."""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from solvers.kernels.functions import RBF, require_finite


def has_gaussian_rows(kernel):
    """Return whether `GaussianRows` evaluates a kernel.

    Parameters
    ----------
    kernel : solvers.kernels.functions.Kernel
        Kernel.

    Returns
    -------
    bool
        True for the Gaussian kernel, unless distances are computed from differences.
    """
    return kernel.kind == RBF and not kernel.by_differences


class GaussianRows:
    """Samples with their square norms, for rows of the Gaussian kernel.

    The values are bit for bit those of `kernel_block`, which computes the square norms of all samples, and
    transposes sparse ones, in each call.

    Parameters
    ----------
    points : {ndarray, CSR} of shape (n, d)
        Samples of the columns, as `Kernel.prepare` returns them.
    kernel : solvers.kernels.functions.Kernel
        Kernel for which `has_gaussian_rows` is True.
    by_feature : bool
        Whether sparse samples are copied feature by feature, so that a row reads the features of one sample
        only. If not, a row reads all samples in place. Default True.
    """

    def __init__(self, points, kernel, by_feature=True):
        self._points, self._features = points, None
        if sparse.issparse(points) and by_feature:
            self._points, self._features = None, points.T.tocsr()
        self._squares = row_norms(points, squared=True)
        self._gamma = kernel.gamma

    def write(self, point, row):
        """Write the kernel between one sample and all.

        Parameters
        ----------
        point : {ndarray, CSR} of shape (1, d)
            Sample.
        row : float64 ndarray of shape (n,)
            Receives the values.

        Raises
        ------
        ValueError
            A value is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            row[:] = self._products(point)
            row *= -2.0
            row += row_norms(point, squared=True)
            row += self._squares
            np.maximum(row, 0.0, out=row)
            row *= -self._gamma
            np.exp(row, out=row)
        require_finite(row)

    def _products(self, point):
        """Return the inner products of one sample and all.

        Parameters
        ----------
        point : {ndarray, CSR} of shape (1, d)
            Sample.

        Returns
        -------
        ndarray of shape (n,)
            Products. Each adds its terms in the order of the features.
        """
        if self._features is not None:
            return safe_sparse_dot(point, self._features, dense_output=True)[0]
        if sparse.issparse(self._points):
            return self._points @ point.toarray()[0]
        return (point @ self._points.T)[0]
