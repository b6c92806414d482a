"""The shade of a cell by the difference that it prints."""

import numpy as np
import pandas as pd

from orchestrator.report.table import SHADES


def shades(differences: "pd.Series[float]") -> list[int]:
    """Return a shade for each difference, the strongest for the largest one in either direction.

    Parameters
    ----------
    differences : Series of float
        Signed differences; NaN where there is none.

    Returns
    -------
    list of int
        From −`SHADES` to `SHADES`; 0 for NaN.
    """
    values = differences.to_numpy(dtype=float)
    largest = np.nanmax(np.abs(values), initial=0.0)
    scaled = values / largest if largest > 0 else np.zeros_like(values)
    steps = np.sign(scaled) * np.ceil(SHADES * np.abs(scaled) - 1e-9)
    return [int(step) for step in np.nan_to_num(steps)]
