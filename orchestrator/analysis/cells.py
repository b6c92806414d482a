"""The rows of each dataset × arm as arrays: of thousands, a frame for each would cost milliseconds."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

Pair = tuple[str, str]


class Cell:
    """The rows of one dataset × arm: columns by name, numbers as floats (nan where there is none)."""

    def __init__(self, columns: dict[str, np.ndarray], rows: slice | np.ndarray):
        self._columns = columns
        self._rows = rows

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name][self._rows]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))[self._rows])

    def where(self, mask: np.ndarray) -> "Cell":
        """Return those rows for which a mask is true."""
        return Cell({name: values[self._rows][mask] for name, values in self._columns.items()}, slice(None))

    def finite(self, name: str) -> np.ndarray:
        """Return the numbers of a column that are there, none if there is no such column."""
        values = self[name] if name in self else np.array([])
        return values[np.isfinite(values)]

    def mean(self, name: str) -> float:
        """Return the mean of the numbers that are there, nan if none is."""
        values = self.finite(name)
        return float(values.mean()) if len(values) else float("nan")


def numbers(column: pd.Series) -> np.ndarray:
    """Return a column as floats; nan where it holds something else, or nothing."""
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def cells(
    frame: pd.DataFrame, pairs: Iterable[Pair], measures: Iterable[str], others: Iterable[str] = ()
) -> Iterator[tuple[str, str, Cell]]:
    """Yield dataset, arm and rows of each pair, in the order of the frame; a pair without rows has none.

    Parameters
    ----------
    frame : DataFrame
        With the columns dataset and solver.
    pairs : iterable of (dataset, arm)
    measures, others : iterable of str
        Columns to give as floats, and as they are; those that the frame lacks are left out.
    """
    keys = pd.MultiIndex.from_arrays([frame["dataset"].astype(object), frame["solver"].astype(object)])
    codes, found = keys.factorize()
    order = np.argsort(codes, kind="stable")
    columns = {name: numbers(frame[name])[order] for name in measures if name in frame}
    columns |= {name: frame[name].to_numpy(dtype=object)[order] for name in others if name in frame}
    columns["place"] = order
    ends = np.cumsum(np.bincount(codes, minlength=len(found)))
    rows = {pair: slice(start, end) for pair, start, end in zip(found, [0, *ends], ends, strict=False)}
    for pair in pairs:
        yield *pair, Cell(columns, rows.get(pair, slice(0, 0)))
