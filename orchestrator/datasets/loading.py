"""From a dataset's configuration to a checked `Dataset`."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, DatasetError, Features, fingerprint
from orchestrator.datasets.labels import classes_and_codes
from orchestrator.datasets.memory import gigabytes, memory_limit, require_room
from orchestrator.datasets.metadata import (
    GROUPS,
    checked_metadata,
    folders_of,
    own_arguments,
    take_metadata,
)
from orchestrator.datasets.sparse import to_csr
from orchestrator.study.names import ResolveError, resolve
from orchestrator.study.study import DatasetSpec
from orchestrator.study.text import error_line, one_line, shown

_ENDINGS = (Exception, SystemExit, GeneratorExit)
"""What a loader may raise; KeyboardInterrupt is a user's, except in a process of the loader's own."""


def load(spec: DatasetSpec) -> Dataset:
    """Call a dataset's loader and check what it returns.

    Anything array-like will do for `X` (frames, lists, any number type, any sparse format) and for `y`
    (numbers, booleans, strings).

    Raises
    ------
    DatasetError
        If there is no such loader, it fails, or its data cannot be used for classification or need more
        memory than there is for them.
    """
    try:
        try:
            X, y, metadata = _call(spec)
            X = _features(X)
            classes, codes = classes_and_codes(y, X.shape[0])
            metadata = checked_metadata(metadata, X.shape[0])
            digest = fingerprint(X, classes, codes, metadata)
            return Dataset(spec.name, X, classes, codes, digest, metadata)
        except MemoryError as error:
            raise DatasetError(
                f"{spec.target} and the checks of its data need more than the {gigabytes(memory_limit())} "
                "of memory they may take; set data_memory (GB) higher, or use fewer rows or features"
            ) from error
        except DatasetError:
            raise
        except _ENDINGS as error:  # raised by methods of whatever the loader returned
            raise DatasetError(
                f"reading what {spec.target} returned failed with {error_line(error)}; return plain arrays"
            ) from error
    except DatasetError as error:
        raise DatasetError(f"dataset {spec.name!r}: {error}") from error


def _call(spec: DatasetSpec) -> tuple[Any, Any, dict[str, Any]]:
    """Return what the loader does: features, labels, and what else is said of the rows."""
    try:
        loader = resolve(spec.target)
    except ResolveError as error:
        raise DatasetError(str(error)) from error
    if not callable(loader):
        raise DatasetError(f"expected _target_ to name a function, found {spec.target} = {shown(loader)}")
    params = own_arguments(loader, spec.params)
    try:
        found = loader(**params)
    except (DatasetError, MemoryError):
        raise
    except _ENDINGS as error:
        raise DatasetError(f"{spec.target} failed with {error_line(error)}; check its arguments") from error
    if not isinstance(found, (tuple, list)) or len(found) not in (2, 3):
        raise DatasetError(
            f"expected {spec.target} to return (X, y), found a {type(found).__name__}; "
            "scikit-learn's loaders return (X, y) with return_X_y: true"
        )
    X, y, *groups = found
    sources = {name: value for name, value in spec.params.items() if name not in params}
    X, metadata = take_metadata(X, sources, list(folders_of(params)))
    if groups and groups[0] is not None:
        metadata.setdefault(GROUPS, groups[0])
    return X, y, metadata


def _features(X: Any) -> Features:
    try:
        X = to_csr(X) if scipy.sparse.issparse(X) else _dense(X)
    except DatasetError:
        raise
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"expected numbers as features{_first_text_column(X)}, but {one_line(error)}; "
            "encode the others as numbers"
        ) from error
    if 0 in X.shape:
        raise DatasetError(
            f"expected at least one row and one feature, found shape {X.shape}; check the loader"
        )
    _require_finite(X)
    return X


def _dense(X: Any) -> Features:
    """Return the values in memory that nothing else can change."""
    if not isinstance(X, (list, tuple)) and not hasattr(X, "__array__"):
        raise DatasetError(f"expected an array, a frame or a list of rows as X, found a {type(X).__name__}")
    _require_room(X)
    _require_numbers(X)
    _require_present(X)
    X = _two_dimensional(X)
    own = type(X) is np.ndarray and X.flags.owndata
    with np.errstate(all="ignore"):  # what overflows is infinite, and found below
        return _two_dimensional(np.array(X, dtype=np.float64, order="C", copy=None if own else True))


def _require_room(X: Any) -> None:
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        if not isinstance(X, (list, tuple)) or not X or not hasattr(X[0], "__len__"):
            return
        shape = (len(X), len(X[0]))
    if len(shape) == 2:
        n, d = map(int, shape)
        require_room(9.0 * n * d, f"{n:,} rows × {d:,} features")  # and a byte each for looking for nan


def _require_numbers(X: Any) -> None:
    if np.iscomplexobj(X):
        raise TypeError("complex numbers have no order")
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M", "V"):
        raise DatasetError(
            f"expected numbers as features, found the type {one_line(X.dtype, 80)}; "
            "convert them in the loader"
        )


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
    if isinstance(values, (pd.DataFrame, pd.Series)):
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


def _first_text_column(X: Any) -> str:
    for column in X.columns if isinstance(X, pd.DataFrame) else ():
        try:
            np.asarray(X[column], dtype=np.float64)
        except (TypeError, ValueError):
            return f" in column {shown(column)}"
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
