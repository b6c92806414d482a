"""Histograms of oriented gradients as a transformer of images."""

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from solvers.common.input_checks import checked_table
from solvers.common.resources import require_memory
from solvers.estimators.parameters import Samples
from solvers.linear.oriented_gradients import cell_histograms, normalised_blocks

IMAGES_AT_A_TIME = 1_000
"""Number of images whose features are computed together."""


class OrientedGradients(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Map images to histograms of the orientations of their gradients (HOG).

    A row is a grey-scale image, line by line. The image is divided into square cells. Each cell adds up the
    lengths of its gradients by orientation. Overlapping blocks of cells are divided by their norm.

    Parameters
    ----------
    height : int or None, default=None
        Number of lines of an image; None for square images.
    cell : int, default=4
        Width of a cell, in pixels. It divides the height and the width of an image.
    block : int, default=2
        Width of a block, in cells.
    orientations : int, default=9
        Number of orientations.
    signed : bool, default=False
        Whether opposite directions are different orientations.

    Attributes
    ----------
    shape_ : tuple of int
        Height and width of an image.
    largest_ : float
        Largest possible length of a gradient, from the range of the training pixels.
    n_features_in_ : int
        Number of pixels.

    Raises
    ------
    ValueError
        By `fit`: a parameter or a sample is not valid, or the cells do not divide the images.
    MemoryError
        By `transform`: the features would not fit into memory.

    References
    ----------
    N. Dalal and B. Triggs (2005), Histograms of oriented gradients for human detection, CVPR. Pixels vote for
    the nearest two orientations, but for one cell only.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from solvers import OrientedGradients
    >>> X, _ = load_digits(return_X_y=True)
    >>> OrientedGradients(cell=2).fit_transform(X).shape
    (1797, 324)
    """

    _parameter_constraints: ClassVar[dict] = {
        "height": [Interval(Integral, 1, None, closed="left"), None],
        "cell": [Interval(Integral, 1, None, closed="left")],
        "block": [Interval(Integral, 1, None, closed="left")],
        "orientations": [Interval(Integral, 1, None, closed="left")],
        "signed": ["boolean"],
    }

    def __init__(self, *, height=None, cell=4, block=2, orientations=9, signed=False):
        self.height = height
        self.cell = cell
        self.block = block
        self.orientations = orientations
        self.signed = signed

    def fit(self, X: Samples, y: ArrayLike | None = None) -> Self:
        """Find the shape of the images and the range of their pixels.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_pixels)
            Images.
        y : array-like, default=None
            Not used.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._validate_params()
        X = checked_table(self, X, False)
        n_pixels = X.shape[1]
        height = int(np.sqrt(n_pixels)) if self.height is None else self.height
        width = n_pixels // height
        if height * width != n_pixels or (self.height is None and width != height):
            expected = "a square number" if self.height is None else "a multiple of the height"
            raise ValueError(
                f"height={self.height}: expected {expected} of pixels, found {n_pixels}. Set the height of "
                "the images"
            )
        least = self.block * self.cell
        if height % self.cell or width % self.cell or min(height, width) < least:
            raise ValueError(
                f"cell={self.cell}, block={self.block}: expected cells that divide images of {height} × "
                f"{width} pixels, and at least one block. Set a smaller cell or block"
            )
        self.shape_ = (height, width)
        spread = float(X.max() - X.min())
        self.largest_ = spread * np.sqrt(2.0) if spread > 0.0 else 1.0
        return self

    def transform(self, X: Samples) -> np.ndarray:
        """Return the histograms of images.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_pixels)
            Images.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            Histograms of the blocks, from left to right and from top to bottom.
        """
        check_is_fitted(self)
        X = checked_table(self, X, False, reset=False)
        what = f"{self._n_features_out:,} features of {X.shape[0]:,} images"
        require_memory(16.0 * X.shape[0] * self._n_features_out, what, "transform fewer images at a time")
        parts = [
            self._of(X[start : start + IMAGES_AT_A_TIME]) for start in range(0, X.shape[0], IMAGES_AT_A_TIME)
        ]
        return np.concatenate(parts)

    def _of(self, X):
        """Return the histograms of some images.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_pixels)
            Validated images.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Features.
        """
        rows, columns = (size // self.cell for size in self.shape_)
        X = X.toarray() if sparse.issparse(X) else X
        images = np.ascontiguousarray(X, dtype=np.float64).reshape(-1, *self.shape_)
        histograms = np.zeros((X.shape[0], rows, columns, self.orientations))
        cell_histograms(images, self.cell, self.orientations, bool(self.signed), histograms)
        return normalised_blocks(histograms, self.block, self.largest_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _n_features_out(self):
        """Number of features, from which scikit-learn makes their names."""
        blocks = [size // self.cell - self.block + 1 for size in self.shape_]
        return blocks[0] * blocks[1] * self.block**2 * self.orientations
