"""Compute the typical cost of trainings of our solvers from finished studies, for `svmbench plan`.

    python -m benchmarks.typical_costs results/published/*

The script writes orchestrator/engine/typical_costs.json. It holds a factor for each profile, solver and
class: mean seconds divided by the seconds that `orchestrator.engine.cost_model` predicts from sizes alone.
It is the mean over datasets, then the median over arms. The script also prints how far the predictions for
all trainings of each study × arm are from the measured times.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from orchestrator.engine.cost_model import base_seconds
from orchestrator.engine.load import read_results
from orchestrator.engine.typical_costs import FILE, key_of
from orchestrator.store.store import Store
from orchestrator.study.declaration import current_declaration


def costs(folder: Path) -> pd.DataFrame:
    """Return the mean seconds of the inner trainings of each dataset × arm, and their factors."""
    store = Store(folder)
    trials = read_results(store).trials
    trials = trials[trials["inner"] >= 0]
    seconds = trials["fit_seconds"].fillna(0.0) + trials["predict_seconds"].fillna(0.0)
    of = trials.assign(seconds=seconds).groupby(["profile", "dataset", "solver"])
    table = of.agg(
        n=("n_train", "mean"), k=("n_classes", "first"), mean=("seconds", "mean"), total=("seconds", "sum")
    ).reset_index()
    table["base"] = [base_seconds(n, k) for n, k in zip(table["n"], table["k"], strict=True)]
    declaration = current_declaration(store.provenance())
    assert declaration is not None
    arms = {
        arm: declared.identity.arm for (_, arm), declared in declaration.pairs.items() if declared.identity
    }
    names = [arms[arm].solver for arm in table["solver"]]
    targets = [arms[arm].target for arm in table["solver"]]
    return table.assign(study=folder.name, factor=table["mean"] / table["base"], name=names, target=targets)


def factors(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the factors by profile and then by solver, or by class."""
    found: dict[str, dict[str, float]] = {}
    for profile, rows in table.groupby("profile"):
        of_arms = rows.groupby(["target", "name", "solver"])["factor"].mean()
        of_solvers = of_arms.groupby(["target", "name"]).median()  # because sweeps have extreme arms
        of_classes = of_solvers.groupby("target").mean()
        both = of_classes.to_dict() | {
            key_of(name, target): factor for (target, name), factor in of_solvers.items()
        }
        found[str(profile)] = {name: float(f"{factor:.3g}") for name, factor in sorted(both.items())}
    return found


def predicted(table: pd.DataFrame, found: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Return the expected total time of all trainings of a dataset × arm."""
    keys = zip(table["profile"], table["name"], table["target"], strict=True)
    factor = [found[profile][key_of(name, target)] for profile, name, target in keys]
    return table.assign(predicted=table["total"] / table["mean"] * table["base"] * factor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="+", type=Path)
    table = pd.concat([costs(folder) for folder in parser.parse_args().studies])
    found = factors(table)
    FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    sums = predicted(table, found).groupby(["study", "solver"])[["predicted", "total"]].sum()
    sums["predicted ÷ total"] = sums["predicted"] / sums["total"]
    print(sums.round(2).to_string())


if __name__ == "__main__":
    main()
