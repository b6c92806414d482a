"""From a dataset's configuration to a checked `Dataset`."""

import numbers
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, DatasetError, Features, fingerprint
from orchestrator.resolve import ResolveError, resolve
from orchestrator.study import DatasetSpec


def load(spec: DatasetSpec) -> Dataset:
    """Call a dataset's loader and check what it returns.

    Anything array-like will do for `X` (frames, lists, any number type, any sparse format) and for `y`
    (numbers, booleans, strings).

    Raises
    ------
    DatasetError
        If there is no such loader, it fails, or its data cannot be used for classification.
    """
    try:
        X, y = _call(spec)
        X = _features(X)
        classes, codes = _labels(y, X.shape[0])
    except DatasetError as error:
        raise DatasetError(f"dataset {spec.name!r}: {error}") from error
    return Dataset(spec.name, X, classes, codes, fingerprint(X, classes, codes))


def _call(spec: DatasetSpec) -> tuple[Any, Any]:
    try:
        loader = resolve(spec.target)
    except ResolveError as error:
        raise DatasetError(str(error)) from error
    if not callable(loader):
        raise DatasetError(f"expected _target_ to name a function, found {spec.target} = {loader!r}")
    try:
        found = loader(**spec.params)
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(
            f"{spec.target} failed with {type(error).__name__}: {error}; check its arguments"
        ) from error
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise DatasetError(
            f"expected {spec.target} to return (X, y), found a {type(found).__name__}; "
            "scikit-learn's loaders return (X, y) with return_X_y: true"
        )
    return found[0], found[1]


def _features(X: Any) -> Features:
    sparse = scipy.sparse.issparse(X)
    try:
        if np.iscomplexobj(X):
            raise TypeError("complex numbers have no order")
        _require_present(X)
        X = _csr(X) if sparse else np.ascontiguousarray(_two_dimensional(X), dtype=np.float64)
    except DatasetError:
        raise
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"expected numbers as features{_first_text_column(X)}, but {error}; encode the others as numbers"
        ) from error
    if 0 in X.shape:
        raise DatasetError(
            f"expected at least one row and one feature, found shape {X.shape}; check the loader"
        )
    _require_finite(X)
    return X


def _require_present(X: Any) -> None:
    """Refuse what a conversion to numbers would fill in (masked values) or stumble over (pandas' NA)."""
    missing = _missing(X)
    if missing is None or missing.ndim != 2 or not missing.any():
        return
    row, column = map(int, np.argwhere(missing)[0])
    raise DatasetError(
        f"expected values everywhere, found {int(missing.sum())} missing or masked ones, the first in "
        f"row {row}, column {column} (from 0); impute them, or leave out those rows or columns"
    )


def _missing(values: Any) -> NDArray[np.bool_] | None:
    """Return where values are masked, or missing in the sense of pandas; None for arrays without either."""
    if isinstance(values, (list, tuple)) and any(map(np.ma.isMaskedArray, values)):
        values = np.ma.array(values)
    if np.ma.isMaskedArray(values):
        return np.ma.getmaskarray(values)
    if hasattr(values, "isna"):
        return np.asarray(values.isna(), dtype=bool)
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        return np.asarray(pd.isna(values))
    return None


def _two_dimensional(X: Any) -> Any:
    shape = np.shape(X)
    if len(shape) != 2:
        raise DatasetError(
            f"expected X with two dimensions (rows, features), found shape {shape}; reshape it in the loader"
        )
    return X


def _csr(X: Any) -> Features:
    csr = scipy.sparse.csr_matrix(X, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if csr.nnz > np.iinfo(np.int32).max:
        raise DatasetError(f"expected at most 2³¹ - 1 non-zero values, found {csr.nnz}; use fewer rows")
    csr.indices = csr.indices.astype(np.int32, copy=False)
    csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def _first_text_column(X: Any) -> str:
    for column in getattr(X, "columns", ()):
        try:
            np.asarray(X[column], dtype=np.float64)
        except (TypeError, ValueError):
            return f" in column {column!r}"
    return ""


def _require_finite(X: Features) -> None:
    sparse = scipy.sparse.issparse(X)
    finite = np.isfinite(X.data if sparse else X)
    if finite.all():
        return
    bad = np.flatnonzero(~finite)
    if sparse:
        row, column = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, int(X.indices[bad[0]])
        values = X.data[bad]
    else:
        row, column = divmod(int(bad[0]), X.shape[1])
        values = X.reshape(-1)[bad]
    n_nan = int(np.isnan(values).sum())
    raise DatasetError(
        f"expected finite features, found {n_nan} NaN and {len(bad) - n_nan} infinite values, the first in "
        f"row {row}, column {column} (from 0); impute them, or leave out those rows or columns"
    )


def _labels(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    if np.ma.is_masked(y):
        row = int(np.flatnonzero(np.ma.getmaskarray(y))[0])
        raise DatasetError(
            f"expected a label in every row, found a masked one in row {row} (from 0); drop the row"
        )
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.ndim != 1:
        raise DatasetError(f"expected y with one label for each row, found shape {labels.shape}")
    if len(labels) != n:
        raise DatasetError(
            f"expected a label for each row, found {n} rows and {len(labels)} labels; check the loader"
        )
    classes, codes = np.unique(_plain(labels), return_inverse=True)
    if len(classes) < 2:
        raise DatasetError(
            f"expected two classes or more, found {classes[0].item()!r} in all {n} rows; check the labels"
        )
    return classes, codes.astype(np.int32)


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as one of the types that JSON keeps: bool, int64, float64 or str."""
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DatasetError(
            f"expected a label in every row, found {labels[row]} in row {row} (from 0); drop the row"
        )
    plain = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_, "S": np.str_}
    if labels.dtype.kind not in plain:
        raise DatasetError(
            f"expected numbers, booleans or strings as labels, found dtype {labels.dtype}; convert them"
        )
    return labels.astype(plain[labels.dtype.kind], copy=False)


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    text = any(isinstance(label, str) for label in labels)
    wanted = (str,) if text else (numbers.Real, np.bool_)
    for row, label in enumerate(labels):
        if not isinstance(label, wanted):
            raise DatasetError(
                f"expected {'strings' if text else 'numbers'} as labels, found {label!r} in row {row} "
                "(from 0); convert it, or drop the row"
            )
    return labels.astype(np.str_) if text else np.array(labels.tolist())
