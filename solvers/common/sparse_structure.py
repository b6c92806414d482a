"""The structure of sparse matrices, which compiled code follows without a check."""

import numpy as np
from scipy import sparse

COMPRESSED = ("csr", "csc", "bsr")
INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def sound_csr(X):
    """Return a sparse matrix as CSR, or raise if its indices lead out of its arrays or out of its shape.

    Parameters
    ----------
    X : object
        Sparse matrices and arrays of any format are checked, in one pass over their indices.

    Returns
    -------
    object
        `X` itself if it is not sparse or not two-dimensional, else a CSR matrix or array. It shares the
        arrays of `X` if that is CSR. Scipy has not yet noted whether its indices are in order: a note that
        was made before the arrays were changed in place would be wrong.

    Raises
    ------
    ValueError
        The structure is damaged. The message says where.
    """
    if not sparse.issparse(X) or X.ndim != 2:  # the caller refuses another shape
        return X
    _require_sound(X)
    if X.format == "csr":
        return type(X)(X)
    rows = X.tocsr()
    _require_sound(rows)
    return rows


def _require_sound(X):
    """Raise if the structure of a compressed or coordinate matrix is damaged."""
    damage = None
    if X.format in COMPRESSED:
        damage = _damage_of_compressed(X)
    elif X.format == "coo":
        damage = _damage_of_coordinates(X)
    if damage:
        raise ValueError(
            f"X is a {X.format.upper()} matrix of shape {X.shape} with a damaged structure: {damage}. "
            "Build the matrix again from its values."
        )


def _damage_of_compressed(X):
    """Return what is wrong with a CSR, CSC or BSR matrix; None if nothing is."""
    indptr, indices, n_stored = X.indptr, X.indices, len(X.data)
    major, minor = X._swap(X.shape) if X.format != "bsr" else _blocks_of(X)
    if indptr.dtype not in INDEX_TYPES or indices.dtype not in INDEX_TYPES:
        return f"expected int32 or int64 in indptr and indices, found {indptr.dtype} and {indices.dtype}"
    if indptr.shape != (major + 1,):
        return f"expected {major + 1} values in indptr, found shape {indptr.shape}"
    if indices.shape != (n_stored,):
        return f"expected an index for each of {n_stored} stored values, found shape {indices.shape}"
    if indptr[0] != 0 or indptr[-1] != n_stored:
        return f"expected indptr from 0 to {n_stored}, found {indptr[0]} to {indptr[-1]}"
    if (indptr[1:] < indptr[:-1]).any():
        return "expected ascending values in indptr, found a descent"
    return _damage_of_indices(indices, minor, "indices")


def _damage_of_coordinates(X):
    """Return what is wrong with a COO matrix; None if nothing is."""
    for axis, (coordinates, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        if coordinates.dtype not in INDEX_TYPES or coordinates.shape != X.data.shape:
            found = f"{coordinates.dtype} of shape {coordinates.shape}"
            return f"expected {X.data.size} integers as coordinates of axis {axis}, found {found}"
        if damage := _damage_of_indices(coordinates, size, f"coordinates of axis {axis}"):
            return damage
    return None


def _damage_of_indices(indices, size, what):
    """Return what is wrong with indices that have to be at least 0 and below a size."""
    # A negative index is a large one without its sign, so that one pass finds both.
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= size:
        return f"expected {what} from 0 to {size - 1}, found {indices.min()} to {indices.max()}"
    return None


def _blocks_of(X):
    """Return the shape of a BSR matrix in blocks."""
    return tuple(n // size for n, size in zip(X.shape, X.blocksize, strict=True))
