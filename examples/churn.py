"""Write churn.csv, a table of 800 customers as tables often are: an identifier, a date, text and gaps.

Run: python examples/churn.py
"""

import sys

import numpy as np
import pandas as pd


def customers(n: int = 800, seed: int = 0) -> pd.DataFrame:
    """Return generated customers, some of whom leave.

    Parameters
    ----------
    n : int, default 800
        Number of customers.
    seed : int, default 0
        Seed of the random generator.
    """
    rng = np.random.default_rng(seed)
    plan = rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2])
    city = rng.choice(["Cairo", "Kyoto", "Lima", "Oslo"], n)
    age = rng.integers(18, 80, n).astype(float)
    spend = rng.gamma(2, 40, n).round(2)
    calls = rng.poisson(2, n)
    days = rng.integers(0, 2000, n)
    # Customers with many calls leave if they pay little. The plan that makes customers leave depends on age.
    unhappy = (calls >= 3) & (spend < 90)
    wrong_plan = np.where(age < 40, plan == "pro", plan == "basic") & (age > 25)
    risk = 2.6 * unhappy + 1.8 * wrong_plan - days / 700 + 0.6 * (city == "Lima") + rng.logistic(0, 0.3, n)
    table = pd.DataFrame(
        {
            "customer": [f"C{number:05d}" for number in rng.permutation(n)],
            "since": (pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d"),
            "city": city,
            "plan": plan,
            "age": age,
            "spend": spend,
            "calls": calls,
            "outcome": np.where(risk > 0.6, "left", "stayed"),
        }
    )
    table.loc[rng.random(n) < 0.06, "age"] = np.nan
    table.loc[rng.random(n) < 0.04, "city"] = None
    return table


if __name__ == "__main__":
    customers().to_csv("churn.csv", index=False)
    sys.stdout.write("churn.csv: 800 rows\n")
