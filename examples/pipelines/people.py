"""A dataset with missing values and a text column, and a factory: a function that returns an estimator."""

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def table(n=120, seed=0):
    """Return features and labels of fictitious people. `table().to_csv` wrote people.csv."""
    rng = np.random.default_rng(seed)
    age, city = rng.normal(40, 12, n).round(1), rng.choice(["Bonn", "Köln", "Ulm"], n)
    answer = np.where(age + 8 * (city == "Ulm") + rng.normal(0, 6, n) > 43, "yes", "no")
    X = pd.DataFrame({"age": age, "income": rng.gamma(2, 1500, n).round(), "city": city, "answer": answer})
    X.loc[rng.random(n) < 0.15, "age"] = np.nan
    X.loc[rng.random(n) < 0.1, "city"] = None
    return X


def scaled(model, strategy="mean"):
    """Return a pipeline that imputes and scales numbers before a model."""
    return make_pipeline(SimpleImputer(strategy=strategy), StandardScaler(), model)
