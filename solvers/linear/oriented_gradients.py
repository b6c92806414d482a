"""Histograms of oriented gradients of grey-scale images (Dalal and Triggs 2005)."""

import numpy as np

from solvers.common.compile import njit

EPSILON = 1e-3
"""Addition to the norm of a block, as a share of the largest possible gradient."""


@njit
def cell_histograms(images, cell, n_orientations, is_signed, histograms):
    """Add up the gradients of each cell by their orientation.

    The gradient is the difference of the next and the last pixel, with the border repeated. Its length goes
    to the two nearest of the orientations, in proportion.

    Parameters
    ----------
    images : float64 array (n, height, width)
        Images.
    cell : int
        Width of a cell, in pixels; it divides height and width.
    n_orientations : int
        Number of orientations.
    is_signed : bool
        Whether opposite directions are different orientations.
    histograms : float64 array (n, height / cell, width / cell, n_orientations)
        Receives the sums; 0 at the start.
    """
    n, height, width = images.shape
    scale = n_orientations / (2.0 * np.pi if is_signed else np.pi)
    for k in range(n):
        image = images[k]
        for r in range(height):
            for c in range(width):
                down = image[min(r + 1, height - 1), c] - image[max(r - 1, 0), c]
                right = image[r, min(c + 1, width - 1)] - image[r, max(c - 1, 0)]
                length = np.sqrt(down * down + right * right)
                if length == 0.0:
                    continue
                place = np.arctan2(down, right) * scale
                lower = np.floor(place)
                share = place - lower
                first = np.int64(lower) % n_orientations
                histogram = histograms[k, r // cell, c // cell]
                histogram[first] += (1.0 - share) * length
                histogram[(first + 1) % n_orientations] += share * length


def normalised_blocks(histograms, block, largest):
    """Return the histograms of all square blocks of cells, each with a norm below 1.

    Parameters
    ----------
    histograms : ndarray of shape (n, rows, columns, n_orientations)
        Histograms of the cells.
    block : int
        Width of a block, in cells.
    largest : float
        Largest possible length of a gradient.

    Returns
    -------
    ndarray of shape (n, (rows − block + 1) · (columns − block + 1) · block² · n_orientations)
        Features, block by block.
    """
    windows = np.lib.stride_tricks.sliding_window_view(histograms, (block, block), axis=(1, 2))
    flat = np.ascontiguousarray(windows).reshape(*windows.shape[:3], -1)
    norms = np.sqrt((flat**2).sum(axis=-1, keepdims=True) + (EPSILON * largest) ** 2)
    return (flat / norms).reshape(histograms.shape[0], -1)
