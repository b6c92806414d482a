"""Rows of the Gaussian kernel between sparse samples, one at a time."""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from solvers.kernels.functions import RBF, require_finite


def has_sparse_rows(points, kernel):
    """Return whether `SparseRows` evaluates a kernel.

    Parameters
    ----------
    points : {ndarray, CSR} of shape (n, d)
        Samples, as `Kernel.prepare` returns them.
    kernel : solvers.kernels.functions.Kernel
        Kernel.

    Returns
    -------
    bool
        True for the Gaussian kernel of sparse samples, unless distances are computed from differences.
    """
    return sparse.issparse(points) and kernel.kind == RBF and not kernel.by_differences


class SparseRows:
    """Samples kept feature by feature, so that a row of the kernel reads the features of one sample only.

    The values are bit for bit those of `kernel_block`, which transposes the samples anew in each call.

    Parameters
    ----------
    points : CSR of shape (n, d)
        Samples of the columns, as `Kernel.prepare` returns them.
    kernel : solvers.kernels.functions.Kernel
        Kernel for which `has_sparse_rows` is True.
    """

    def __init__(self, points, kernel):
        self._features = points.T.tocsr()
        self._squares = row_norms(points, squared=True)
        self._gamma = kernel.gamma

    def write(self, point, row):
        """Write the kernel between one sample and all.

        Parameters
        ----------
        point : CSR of shape (1, d)
            Sample.
        row : float64 ndarray of shape (n,)
            Receives the values.

        Raises
        ------
        ValueError
            A value is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            row[:] = safe_sparse_dot(point, self._features, dense_output=True)[0]
            row *= -2.0
            row += row_norms(point, squared=True)
            row += self._squares
            np.maximum(row, 0.0, out=row)
            row *= -self._gamma
            np.exp(row, out=row)
        require_finite(row)
