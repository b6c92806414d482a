"""Checks of input that NumPy and compiled code would accept: wrong types and damaged sparse matrices."""

import datetime

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from solvers.common.plain import plain

_REMEDIES = {
    "M": "Convert dates to numbers first, such as the days since the first one",
    "m": "Convert durations to numbers first, such as seconds",
    "c": "Complex data not supported: pass real and imaginary parts as two features",
    "V": "Pass its fields as columns of an array of numbers, as "
    "numpy.lib.recfunctions.structured_to_unstructured does",
}
"""Remedies for types that are not real numbers, by the kind of the dtype."""
_KINDS_OF_OBJECTS = (
    ((np.datetime64, datetime.date, datetime.time), "M"),
    ((np.timedelta64, datetime.timedelta), "m"),
    ((complex, np.complexfloating), "c"),
)


def checked_table(estimator, X, is_precomputed, **others):
    """Return validated rows of numbers.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator whose `n_features_in_` is set, or compared if ``reset=False``.
    X : {array-like, CSR}
        Samples as the user passed them.
    is_precomputed : bool
        Whether X is a kernel matrix, which may stay float32.
    **others : dict
        Further arguments of scikit-learn's `validate_data`.

    Returns
    -------
    ndarray, CSR or tuple
        Result of `validate_data`.
    """
    X = sound_csr(X)
    require_real_numbers(X)
    accepted = [np.float64, np.float32] if is_precomputed else np.float64
    return validate_data(estimator, X, accept_sparse="csr", dtype=accepted, order="C", **others)


def require_real_numbers(values, name="X"):
    """Raise if values have a type that NumPy would silently convert to real numbers.

    Parameters
    ----------
    values : array, sparse matrix, data frame or sequence
        Values to check. The function reads their type only. If that is `object` or unknown, it reads the type
        of every element.
    name : str, default="X"
        Name of the values in the message.

    Raises
    ------
    ValueError
        The values are dates, durations, complex numbers or records. The message names the type.
    """
    columns = getattr(values, "dtypes", None)
    if isinstance(values, np.ndarray) or sparse.issparse(values):
        _require_real(values, name)
    elif columns is not None and hasattr(columns, "items"):  # a data frame
        for column, dtype in columns.items():
            _require_kind(getattr(dtype, "kind", "O"), dtype, f"{name}, column {plain(column)}")
        if any(getattr(dtype, "kind", "O") == "O" for dtype in columns):
            _require_real(np.asarray(values), name)
    else:
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):  # such as rows of different lengths, which other checks refuse
            return
        _require_real(array, name)


def _require_real(array, name):
    """Raise if an array, or its elements where they are objects, cannot be read as real numbers.

    Parameters
    ----------
    array : ndarray or sparse matrix
        Values to check.
    name : str
        Name of the values in the message.
    """
    kind = array.dtype.kind
    if kind in "biuf":
        return
    _require_kind(kind, array.dtype, name)
    if kind == "O":
        for element in set(map(type, np.asarray(array).ravel())):
            for types, kind_of_element in _KINDS_OF_OBJECTS:
                if issubclass(element, types):
                    _require_kind(kind_of_element, element.__name__, name)


def _require_kind(kind, dtype, name):
    """Raise if a kind of dtype does not stand for real numbers.

    Parameters
    ----------
    kind : str
        Kind of the dtype, one letter as in `numpy.dtype.kind`.
    dtype : dtype or str
        Type to name in the message.
    name : str
        Name of the values in the message.
    """
    if kind in _REMEDIES:
        raise ValueError(f"{name}: expected real numbers, found {dtype}. {_REMEDIES[kind]}.")


COMPRESSED = ("csr", "csc", "bsr")
INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def sound_csr(X):
    """Return a sparse matrix as CSR, or raise if its indices exceed its arrays or its shape.

    Parameters
    ----------
    X : object
        Input of any type. Sparse matrices and arrays of any format are checked, in one pass over their
        indices.

    Returns
    -------
    object
        `X` itself if it is not sparse or not two-dimensional, else a CSR matrix or array. The result shares
        the arrays of `X` if that is CSR. It does not copy the flags by which SciPy remembers that indices are
        in order: they would be wrong after a change of the arrays in place.

    Raises
    ------
    ValueError
        The structure is damaged. The message says where.
    """
    if not sparse.issparse(X) or X.ndim != 2:  # the caller refuses other shapes
        return X
    _require_sound(X)
    if X.format == "csr":
        return type(X)(X)
    rows = X.tocsr()
    _require_sound(rows)
    return rows


def _require_sound(X):
    """Raise if the structure of a compressed or coordinate matrix is damaged.

    Parameters
    ----------
    X : sparse matrix
        Two-dimensional matrix or array of any format.
    """
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
    """Return a description of the damage of a CSR, CSC or BSR matrix.

    Parameters
    ----------
    X : sparse matrix
        Matrix to check.

    Returns
    -------
    str or None
        Found and expected structure; None if the matrix is sound.
    """
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
    """Return a description of the damage of a COO matrix.

    Parameters
    ----------
    X : sparse matrix
        Matrix to check.

    Returns
    -------
    str or None
        Found and expected structure; None if the matrix is sound.
    """
    for axis, (coordinates, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        if coordinates.dtype not in INDEX_TYPES or coordinates.shape != X.data.shape:
            found = f"{coordinates.dtype} of shape {coordinates.shape}"
            return f"expected {X.data.size} integers as coordinates of axis {axis}, found {found}"
        if damage := _damage_of_indices(coordinates, size, f"coordinates of axis {axis}"):
            return damage
    return None


def _damage_of_indices(indices, size, what):
    """Return a description of indices that are out of range.

    Parameters
    ----------
    indices : integer ndarray
        Indices, which should be at least 0 and below `size`.
    size : int
        Upper limit of the indices, exclusive.
    what : str
        Name of the indices in the description.

    Returns
    -------
    str or None
        Found and expected range; None if all indices are in range.
    """
    # A negative index is a large one without its sign, so that one pass finds both.
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= size:
        return f"expected {what} from 0 to {size - 1}, found {indices.min()} to {indices.max()}"
    return None


def _blocks_of(X):
    """Return the shape of a BSR matrix in blocks.

    Parameters
    ----------
    X : BSR matrix
        Matrix of blocks.

    Returns
    -------
    tuple of int
        Number of block rows and of block columns.
    """
    return tuple(n // size for n, size in zip(X.shape, X.blocksize, strict=True))
