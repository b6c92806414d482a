"""Random Fourier features: a map whose inner products estimate the Gaussian kernel."""

from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from solvers.common.input_checks import checked_table
from solvers.common.resources import require_memory
from solvers.estimators.parameters import Samples


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Map samples to random cosines and sines, whose inner products estimate exp(−γ ‖x − z‖²).

    The features of x are √(1/m) (cos ω_1·x, …, cos ω_m·x, sin ω_1·x, …, sin ω_m·x) for m random frequencies
    ω_j with independent normal components of variance 2γ. The expectation of z(x)·z(x') over the frequencies
    is the kernel value. Every row has norm 1, and an empty row has sines of 0. `RBFSampler` of scikit-learn
    has cosines with random offsets instead, whose rows have norm 1 in expectation only.

    Parameters
    ----------
    n_components : int, default=100
        Number of features, cosines and sines together, if `pairs` is true. It is then even. Otherwise, the
        number of frequencies, each of which gives two features.
    gamma : float, default=1.0
        Width γ of the kernel exp(−γ ‖x − z‖²), positive.
    random_state : int, RandomState or None, default=None
        Source of the frequencies.
    pairs : bool, default=True
        Whether `n_components` counts cosines and sines. If not, it counts frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_, m)
        Frequencies ω_j, one in each column.
    n_features_in_ : int
        Number of features of the samples in `fit`.

    Raises
    ------
    ValueError
        By `fit`: a parameter or a sample is not valid, or `n_components` is odd with ``pairs=True``.
    MemoryError
        By `fit` and `transform`: the frequencies or the features would not fit into memory.

    References
    ----------
    A. Rahimi and B. Recht (2007), Random features for large-scale kernel machines, Advances in Neural
    Information Processing Systems 20: section 3, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import FourierFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> Z = FourierFeatures(n_components=4, gamma=0.5, random_state=0).fit_transform(X)
    >>> Z.shape, Z[0].tolist()
    ((2, 4), [0.7071067811865476, 0.7071067811865476, 0.0, 0.0])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "pairs": ["boolean"],
    }

    def __init__(self, n_components=100, *, gamma=1.0, random_state=None, pairs=True):
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state
        self.pairs = pairs

    def fit(self, X: Samples, y: ArrayLike | None = None) -> Self:
        """Draw the frequencies. Of the samples, only the number of features matters.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.
        y : array-like, default=None
            Not used.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._validate_params()
        if self.pairs and self.n_components % 2:
            raise ValueError(
                f"n_components={self.n_components}: expected an even number with pairs=True, which counts "
                f"cosines and sines. Set n_components={self.n_components + 1}, or pairs=False"
            )
        X = checked_table(self, X, False)
        m = self.n_components // 2 if self.pairs else self.n_components
        require_memory(8.0 * X.shape[1] * m, f"the matrix of {m:,} frequencies", "set a smaller n_components")
        normal = check_random_state(self.random_state).standard_normal((X.shape[1], m))
        self.frequencies_ = np.sqrt(2.0 * self.gamma) * normal
        return self

    def transform(self, X: Samples) -> np.ndarray:
        """Return the features of samples.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2m), float64
            All cosines, then all sines. Each row has norm 1.
        """
        check_is_fitted(self)
        X = checked_table(self, X, False, reset=False)
        m = self.frequencies_.shape[1]
        require_memory(
            24.0 * X.shape[0] * m,
            f"{2 * m:,} features of {X.shape[0]:,} samples",
            "transform fewer samples at a time",
        )
        with np.errstate(over="ignore", invalid="ignore"):
            products = safe_sparse_dot(X, self.frequencies_)
        if not np.isfinite(products).all():
            raise ValueError(
                f"X: products with the frequencies exceed the range of float64 at gamma={self.gamma:g}. "
                "Scale the samples, or set a smaller gamma"
            )
        Z = np.empty((X.shape[0], 2 * m))
        np.cos(products, out=Z[:, :m])
        np.sin(products, out=Z[:, m:])
        Z *= np.sqrt(1.0 / m)
        return Z

    @property
    def _n_features_out(self):
        """Number of features, from which scikit-learn makes their names."""
        return 2 * self.frequencies_.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
