"""Basis vectors as pre-images of the residuals of cuts (Joachims and Yu 2009, section 4.2).

The vector of a cut is Σ a_i φ(x_i). Its projection onto the span of the basis leaves the residual r =
Σ a_i φ(x_i) − Σ ζ_j φ(z_j). The vector φ(z) that reduces the residual most has the largest r(z)²/p(z), where
p(z) is its squared distance from the span. The fixed point z ← Σ c k(v, z) v / Σ c k(v, z), over the terms
c φ(v) of the residual, is a stationary point of r(z)² for the Gaussian kernel.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from solvers.common.ascent import Limits, climb
from solvers.kernels.functions import kernel_block
from solvers.linear.kernel_basis import SMALLEST_PIVOT

N_STARTS = 3
"""Number of samples of a cut from which the fixed point is sought."""
LIMITS = Limits(max_steps=20, max_halvings=4, smallest_rise=1e-2)
"""When a search for a pre-image ends."""
MAX_REFUSALS = 5
"""Number of consecutive cuts without a new vector after which the basis no longer grows."""


class PreImages:
    """Growth of a basis by one vector for each new cut, until the basis is full.

    Parameters
    ----------
    features : BasisFeatures
        Features, whose basis grows.
    labels : ndarray of shape (n,)
        Labels −1.0 and 1.0.
    shares : ndarray of shape (n,)
        Weights of the samples.
    generator : numpy.random.Generator
        Source of the starting points.
    """

    def __init__(self, features, labels, shares, generator):
        self._features, self._signed, self._generator = features, labels * shares, generator
        self._refusals = 0

    def grow(self, cuts):
        """Append the pre-image of the residual of the newest cut.

        Parameters
        ----------
        cuts : Cuts
            Cuts with their members, the newest last, which receive the new feature.

        Returns
        -------
        bool
            Whether more vectors may follow.
        """
        features = self._features
        z = self._pre_image(cuts.members[-1], cuts.psi[-1][features.bias :])
        n_added = 0 if z is None else features.extend(z)
        self._refusals = 0 if n_added else self._refusals + 1
        if n_added:
            k = features.size - 1
            products = cuts.members @ (self._signed * features.values[k])
            cuts.append_feature(features.last_feature(products, cuts.psi[:, features.bias :]))
        return features.size < features.capacity and self._refusals < MAX_REFUSALS

    def _pre_image(self, members, projection):
        """Return the best pre-image from a few starting points.

        Parameters
        ----------
        members : bool ndarray of shape (n,)
            Samples of the cut.
        projection : ndarray of shape (size,)
            Features of the cut.

        Returns
        -------
        {ndarray, CSR} of shape (1, d) or None
            Vector in the format of the samples; None if the cut has no samples.
        """
        rows = np.flatnonzero(members)
        if rows.size == 0:
            return None
        features = self._features
        residual = _Residual(features, rows, self._signed[rows], projection)
        found, most = None, 0.0
        for row in self._generator.choice(rows, min(N_STARTS, rows.size), replace=False):
            start = features.X[[row]]
            dense = start.toarray()[0] if sparse.issparse(start) else start[0]
            z, height = climb(residual.at, dense, LIMITS)
            z = sparse.csr_matrix(z[None]) if sparse.issparse(features.X) else z[None]
            gain = height**2 / max(_distance_from_span(features, z), SMALLEST_PIVOT)
            if gain > most:
                found, most = z, gain
        return found


def _distance_from_span(features, z):
    """Return the squared distance of φ(z) from the span of the basis.

    Parameters
    ----------
    features : BasisFeatures
        Features with their basis.
    z : {ndarray, CSR} of shape (1, d)
        Vector.

    Returns
    -------
    float
        Squared distance.
    """
    if not features.size:
        return 1.0
    row = features.lower_solution(kernel_block(z, features.vectors(), features.kernel)[0])
    return float(1.0 - row @ row)


class _Residual:
    """Residual Σ a_i φ(x_i) − Σ ζ_j φ(z_j) as a function on the input space.

    Parameters
    ----------
    features : BasisFeatures
        Features with their basis.
    rows : int ndarray of shape (m,)
        Samples of the cut.
    coefficients : ndarray of shape (m,)
        Their factors a_i.
    projection : ndarray of shape (size,)
        Features of the cut.
    """

    def __init__(self, features, rows, coefficients, projection):
        self._kernel = features.kernel
        of_basis = features.coefficients(projection)
        terms = [(features.X[rows], coefficients)]
        if features.size:
            terms.append((features.vectors(), -of_basis))
        self._terms = [(V, V.T, c, row_norms(V, squared=True)) for V, c in terms]

    def at(self, z):
        """Evaluate the size of the residual and its fixed-point map.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Point.

        Returns
        -------
        height : float
            Size of Σ c k(v, z) at z.
        target : ndarray of shape (d,)
            Σ c k(v, z) v divided by Σ c k(v, z); not finite where the sum is 0.
        """
        value, moment, square = 0.0, np.zeros_like(z), z @ z
        for V, transposed, c, square_norms in self._terms:
            distances = np.maximum(square_norms - 2.0 * (V @ z) + square, 0.0)
            products = c * np.exp(-self._kernel.gamma * distances)
            value += float(products.sum())
            moment += transposed @ products
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return abs(value), moment / value
