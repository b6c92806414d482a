"""Conversion of a dataset's configuration to a checked `Dataset`."""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, DatasetError, Features, fingerprint
from orchestrator.datasets.duplicates import KEEP, deduplicated
from orchestrator.datasets.frames import category
from orchestrator.datasets.labels import classes_and_codes
from orchestrator.datasets.memory import memory_limit, require_memory
from orchestrator.datasets.metadata import (
    DEDUPLICATE,
    GROUPS,
    checked_metadata,
    folders_of,
    loader_arguments,
    require_arguments,
    take_metadata,
)
from orchestrator.datasets.sparse import to_csr
from orchestrator.datasets.table import DROP, notes_of
from orchestrator.study.column_overrides import drop_override
from orchestrator.study.study import DatasetSpec
from orchestrator.study.targets import ResolveError, resolve
from orchestrator.study.text import error_line, format_memory, one_line, plural, represented, shown

_EXACT = 2**53
"""Largest whole number up to which float64 holds all whole numbers."""

_LOADER_ERRORS = (Exception, SystemExit, GeneratorExit)
"""Exceptions of a loader. KeyboardInterrupt comes from the user, except in the loader's child process."""


def load(spec: DatasetSpec) -> Dataset:
    """Call a dataset's loader and check its result.

    `X` may be any array-like object: a frame, a list, or a sparse matrix, with any number type. `y` may
    contain numbers, booleans or strings. Masked and missing values become NaN. A pandas frame with columns of
    text or categories stays a frame.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.

    Raises
    ------
    DatasetError
        If the loader does not exist or fails, or its data cannot be used for classification or exceed the
        memory limit.
    """
    try:
        try:
            X, y, metadata, deduplicate = _call(spec)
            columns = tuple(map(str, X.columns)) if isinstance(X, pd.DataFrame) else ()
            said = notes_of(X)
            rounded = filter(None, [_rounding_note(X)])
            notes = (*(note + _key_hint(note, spec) for note in said), *rounded)
            X = _features(X, columns)
            classes, codes = _classes_and_codes(y, X.shape[0], said)
            n, checked = X.shape[0], checked_metadata(metadata, X.shape[0])
            X, codes, kept = deduplicated(deduplicate, X, codes, checked)
            digest = fingerprint(X, classes, codes, kept)
            return Dataset(spec.name, X, classes, codes, digest, kept, columns, n - X.shape[0], notes)
        except MemoryError as error:
            raise DatasetError(
                f"{spec.target} and the checks of its data need more than the "
                f"{format_memory(memory_limit())} of memory they may take; set data_memory (GiB) "
                "higher, or use fewer rows or features"
            ) from error
        except DatasetError:
            raise
        except _LOADER_ERRORS as error:  # raised by methods of an object that the loader returned
            raise DatasetError(
                f"reading what {spec.target} returned failed with {error_line(error)}; return plain arrays"
            ) from error
    except DatasetError as error:
        raise DatasetError(f"dataset {spec.name!r}: {error}{_key_hint(str(error), spec)}") from error


def _classes_and_codes(y: Any, n: int, notes: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return what `classes_and_codes` returns; its errors repeat the notes, which may name their cause.

    Parameters
    ----------
    y : array-like, shape (n,)
        Labels.
    n : int
        Number of rows of the features.
    notes : sequence of str
        Sentences of the loader, such as one about rows without a label.
    """
    try:
        return classes_and_codes(y, n)
    except DatasetError as error:
        raise DatasetError("; ".join([str(error), *notes])) from error


def _key_hint(message: str, spec: DatasetSpec) -> str:
    """Return how to set a key of a reader that a message names; empty for a dataset with a configuration.

    Parameters
    ----------
    message : str
        Message or note of the loader.
    spec : DatasetSpec
        Dataset of the configuration.
    """
    names_key = spec.params.get("unlabelled") == DROP and re.search(r"(write|set) \w+: ", message)
    return f" (as dataset.{spec.name}.KEY=VALUE)" if names_key else ""


def _call(spec: DatasetSpec) -> tuple[Any, Any, dict[str, Any], Any]:
    """Call the loader and return features, labels, metadata and the value of `deduplicate`.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.
    """
    try:
        loader = resolve(spec.target)
    except ResolveError as error:
        raise DatasetError(str(error)) from error
    if not callable(loader):
        raise DatasetError(f"expected _target_ to name a function, found {spec.target} = {shown(loader)}")
    params = loader_arguments(loader, spec.params)
    require_arguments(loader, params)
    try:
        found = loader(**params)
    except (DatasetError, MemoryError):
        raise
    except _LOADER_ERRORS as error:
        raise DatasetError(f"{spec.target} failed with {error_line(error)}; check its arguments") from error
    if not isinstance(found, (tuple, list)) or len(found) not in (2, 3):
        raise DatasetError(
            f"expected {spec.target} to return (X, y), found a {type(found).__name__}; "
            "scikit-learn's loaders return (X, y) with return_X_y: true"
        )
    X, y, *groups = found
    sources = {name: value for name, value in spec.params.items() if name not in params}
    deduplicate = sources.pop(DEDUPLICATE, KEEP)
    X, metadata = take_metadata(X, sources, list(folders_of(params)))
    if groups and groups[0] is not None:
        of_loader = groups[0] if isinstance(groups[0], Mapping) else {GROUPS: groups[0]}
        metadata = {**of_loader, **metadata}
    return X, y, metadata, deduplicate


def _features(X: Any, names: Sequence[str] = ()) -> Features:
    """Return features in one of the forms of `Features`, or raise a DatasetError.

    Parameters
    ----------
    X : array-like, frame or sparse matrix, shape (n, d)
        Features of the loader.
    names : sequence of str
        Names of the columns of a frame. Default: none.
    """
    try:
        if isinstance(X, pd.DataFrame) and not all(_is_numeric(X.iloc[:, at]) for at in range(X.shape[1])):
            X = _mixed(X)
        else:
            X = to_csr(X) if scipy.sparse.issparse(X) else _dense(X)
    except DatasetError:
        raise
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"expected numbers as features, but {one_line(error)}; "
            "encode the others as numbers, or return a pandas frame with columns of text"
        ) from error
    if 0 in X.shape:
        raise DatasetError(
            f"expected at least one row and one feature, found shape {X.shape}; keep a column besides the "
            "label, or check the loader"
        )
    if not isinstance(X, pd.DataFrame):
        _require_finite(X, lambda column: f"column {shown(names[column]) if names else f'{column} (from 0)'}")
    return X


def _rounding_note(X: Any) -> str:
    """Return a note about whole numbers that float64 cannot hold; empty if there are none.

    Parameters
    ----------
    X : array-like, frame or sparse matrix, shape (n, d)
        Features of the loader.
    """
    if isinstance(X, pd.DataFrame):
        columns = [(str(X.columns[at]), X.iloc[:, at]) for at in range(X.shape[1])]
        whole = ((name, column.dropna().to_numpy()) for name, column in columns if column.dtype.kind in "iu")
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iu":
        whole = ((f"{at} (from 0)", X[:, at]) for at in range(X.shape[1]))
    else:
        return ""
    found = {}
    for name, values in whole:
        large = values[(values > _EXACT) | (values < -_EXACT)].tolist()
        if (changed := next((value for value in large if float(value) != value), None)) is not None:
            found[name] = changed
    if not found:
        return ""
    name, value = next(iter(found.items()))
    more = f", as in {plural(len(found) - 1, 'further column')}" if len(found) > 1 else ""
    leave_out = f" with {drop_override([*found])}" if isinstance(X, pd.DataFrame) else ""
    return (
        f"column {name!r} has whole numbers beyond 2**53, which are rounded ({value} to {int(float(value))})"
        f"{more}; if they identify something, leave them out{leave_out}, or write them as texts"
    )


def _dense(X: Any) -> Features:
    """Return features as a float64 array that no other object shares.

    Parameters
    ----------
    X : array-like, shape (n, d)
        Numeric features.
    """
    if not isinstance(X, (list, tuple)) and not hasattr(X, "__array__"):
        raise DatasetError(f"expected an array, a frame or a list of rows as X, found a {type(X).__name__}")
    _require_memory(X)
    _require_numbers(X)
    X = _two_dimensional(_with_nan(X))
    is_private = type(X) is np.ndarray and X.flags.owndata
    with np.errstate(all="ignore"):  # values that overflow become infinite and are rejected later
        return _two_dimensional(np.array(X, dtype=np.float64, order="C", copy=None if is_private else True))


def _require_memory(X: Any) -> None:
    """Raise a DatasetError if features exceed the memory limit.

    Parameters
    ----------
    X : array-like
        Features of the loader; objects of unknown shape are not checked.
    """
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        if not isinstance(X, (list, tuple)) or not X or not hasattr(X[0], "__len__"):
            return
        shape = (len(X), len(X[0]))
    if len(shape) == 2:
        n, d = map(int, shape)
        # The check for NaN needs one byte for each value.
        require_memory(9.0 * n * d, f"{n:,} rows × {d:,} features")


def _require_numbers(X: Any) -> None:
    """Raise if the type of the features cannot be converted to float64.

    Parameters
    ----------
    X : array-like
        Features of the loader.
    """
    if np.iscomplexobj(X):
        raise TypeError("complex numbers have no order")
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M", "V"):
        raise DatasetError(
            f"expected numbers as features, found the type {one_line(X.dtype, 80)}; "
            "convert them in the loader"
        )


def _with_nan(X: Any) -> Any:
    """Return features with NaN for masked values and for `pandas.NA`.

    Parameters
    ----------
    X : array-like, shape (n, d)
        Features of the loader.
    """
    missing = _missing(X)
    if missing is None or missing.ndim != 2 or not missing.any():
        return X
    if isinstance(X, pd.DataFrame):
        columns = (X.iloc[:, at] for at in range(X.shape[1]))
        return np.column_stack([_as_numbers(column) for column in columns])
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and not np.ma.isMaskedArray(X):
        return np.where(missing, np.nan, X)
    return np.ma.filled(np.ma.array(X, dtype=np.float64), np.nan)


def _missing(values: Any) -> NDArray[np.bool_] | None:
    """Return a mask of masked and missing values; None for arrays that cannot contain any.

    Parameters
    ----------
    values : array-like
        Features of the loader.
    """
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
    """Return features unchanged if they have two dimensions, else raise a DatasetError.

    Parameters
    ----------
    X : array-like
        Features of the loader.
    """
    shape = np.shape(X)
    if len(shape) != 2:
        raise DatasetError(
            f"expected X with two dimensions (rows, features), found shape {shape}; reshape it in the loader"
        )
    return X


def _require_finite(X: Features, name: Callable[[int], str]) -> None:
    """Raise a DatasetError for infinite values, and for NaN in a sparse matrix.

    Later code does not check sparse matrices for NaN.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Features that a loader returned.
    name : callable
        Function from the index of a column to its name in the message.
    """
    sparse = scipy.sparse.issparse(X)
    finite = np.isfinite(X.data) if sparse else ~np.isinf(X)
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
    n_infinite = len(bad) - n_nan
    infinite = plural(n_infinite, "infinite value") if n_infinite else ""
    found = " and ".join(filter(None, [f"{n_nan:,} NaN" if n_nan else "", infinite]))
    raise DatasetError(
        f"expected finite features, found {found}, the first in "
        f"row {row} (from 0), {name(column)}; impute them, or leave out those rows or columns"
    )


# -- frames with text ----------------------------------------------------------------------------


def _is_numeric(column: pd.Series) -> bool:
    """Return whether a column of a frame can be converted to numbers, ignoring missing values.

    Categorical columns are not converted.

    Parameters
    ----------
    column : Series, shape (n,)
        Column of the loader's frame.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if column.dtype.kind in "biufc":
        return True
    try:
        _as_numbers(column)
    except (TypeError, ValueError):
        return False
    return True


def _as_numbers(column: pd.Series) -> NDArray[np.float64]:
    """Return a column as numbers, or raise a TypeError or ValueError.

    Parameters
    ----------
    column : Series, shape (n,)
        Column of the loader's frame.
    """
    if column.dtype.kind in "mM":
        raise TypeError(f"column {shown(column.name)} holds dates or times; convert it in the loader")
    if column.dtype.kind not in "biufc" and any(isinstance(value, str) and "_" in value for value in column):
        raise ValueError(f"column {shown(column.name)} holds text")  # `float` reads 10_19 as 1019
    with np.errstate(all="ignore"):  # values that overflow become infinite and are rejected later
        numbers = column.astype(object).where(column.notna(), np.nan).to_numpy(np.float64)
    if column.dtype.kind not in "biufc":
        _require_one_spelling(column, numbers)
    return numbers


def _require_one_spelling(column: pd.Series, numbers: NDArray[np.float64]) -> None:
    """Raise a ValueError if two texts of a column, such as 01 and 1, are one number.

    Parameters
    ----------
    column : Series, shape (n,)
        Column of the loader's frame.
    numbers : float64 array, shape (n,)
        Its values as numbers.
    """
    is_text = np.array([isinstance(value, str) for value in column], dtype=bool)
    if column[is_text].nunique() > len(np.unique(numbers[is_text])):
        raise ValueError(f"column {shown(column.name)} holds text: two spellings are one number")


def _mixed(X: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of numbers, text and categories, as `frames` describes it.

    Parameters
    ----------
    X : DataFrame, shape (n, d)
        Frame of the loader.
    """
    _require_memory(X)
    names = list(map(str, X.columns))
    if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise DatasetError(f"expected different names of columns, found {shown(twice)} twice; rename one")
    return pd.DataFrame({name: _mixed_column(X.iloc[:, at], name) for at, name in enumerate(names)})


def _mixed_column(column: pd.Series, name: str) -> Any:
    """Return a column as numbers, text or categories.

    Parameters
    ----------
    column : Series, shape (n,)
        Column of the loader's frame.
    name : str
        Name of the column, for messages.
    """
    column = _without_times(column)
    present = column[column.notna()]
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.dtype.categories.tolist()
        if any(isinstance(value, str) for value in values):
            _require_types(name, values, str)
        else:
            _require_types(name, values, (bool, int, float))
        return category(column.cat.codes, values, bool(column.dtype.ordered))
    if any(isinstance(value, str) for value in present):
        _require_types(name, present, str)
        texts = np.full(len(column), np.nan, dtype=object)
        texts[column.notna().to_numpy()] = present.tolist()
        return pd.Series(texts, dtype=object)
    try:
        numbers = _as_numbers(column)
    except (TypeError, ValueError) as error:
        _require_types(name, present, (bool, int, float))
        raise DatasetError(f"expected numbers or text in column {name!r}, but {one_line(error)}") from error
    _require_finite(numbers[:, None], lambda _: f"column {name!r}")
    return numbers


def _without_times(column: pd.Series) -> pd.Series:
    """Return a column with dates as ISO 8601 texts and durations as seconds; other columns unchanged.

    Parameters
    ----------
    column : Series, shape (n,)
        Column of the loader's frame.
    """
    if column.dtype.kind == "O":
        present = column[column.notna()]
        if len(present) and all(isinstance(value, datetime.date) for value in present):
            with suppress(ValueError, TypeError, OverflowError):
                column = pd.to_datetime(column)
    if column.dtype.kind == "m":
        return column.dt.total_seconds()
    if column.dtype.kind != "M":
        return column
    times = column.dropna()
    only_days = bool((times.dt.normalize() == times).all())
    texts = times.map(lambda time: time.date().isoformat() if only_days else time.isoformat())
    return texts.astype(object).reindex(column.index)


def _require_types(name: str, values: Iterable[Any], types: Any) -> None:
    """Raise a DatasetError if a value of a column has another type.

    Parameters
    ----------
    name : str
        Name of the column.
    values : iterable of object
        Values of the column that are not missing, or its categories.
    types : type or tuple of types
        Types that the values may have.
    """
    for value in values:
        if not isinstance(value, types):
            raise DatasetError(
                f"expected numbers as features, or text or categories, in column {shown(name)}, found "
                f"{represented(value)} ({type(value).__name__}); convert the column in the loader"
            )
