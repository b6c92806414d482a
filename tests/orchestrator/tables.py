"""A table of an identifier, a date, text, gaps and numbers."""

import numpy as np
import pandas as pd

CITIES = ("Aarhus", "Bremen", "Como")


def table(n=60, seed=0):
    """Two classes, told by a number with gaps and by a city."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    columns = {
        "id": [f"C{number:05d}" for number in rng.permutation(n)],
        "since": [f"{2018 + k % 5}-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(n)],
        "city": np.where(rng.random(n) < 0.1, None, rng.choice(CITIES, n)),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + y),
        "income": rng.normal(size=n),
    }
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}), y
