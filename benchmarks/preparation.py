"""Compare the cost of a shared preparation with that of `GridSearchCV` over a `Pipeline`, in one run.

    python benchmarks/preparation.py [--rows 800] [--folds 5] [--solvers logistic,forest]

The table is generated: an identifier, a date, two text columns, gaps and numbers. Both programs train on the
same outer and inner folds, prepare with `table`, search the same 20 candidates by mean inner accuracy, refit
and score. `GridSearchCV` runs inside `cross_val_score`. Times are CPU seconds on one core, without imports.
Ours include scheduling and storing. The pipeline takes the random state of the split of its rows, so that
scores agree fold by fold; the script says how many do.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before numpy is imported
sys.path[0] = str(Path(__file__).parent.parent)  # for the package, and for workers that import this module

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from orchestrator import run_study
from orchestrator.config.compose import load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.preparation import CODES, ONE_HOT, TABLE, Preparation
from orchestrator.training.open_data import open_data
from orchestrator.training.preparation import preparation_steps
from orchestrator.training.split_data import preparation_seed

WORDS = [f"{start}{end}" for end in ("ing", "ed", "er", "ly") for start in ("pay", "clos", "lat", "slow")]


def table(n=800, seed=0):
    """Return a table of an identifier, a date, two text columns, gaps and numbers, with two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    city = rng.choice(["Aarhus", "Bremen", "Como", "Delft", "Evora"], n)
    note = [" ".join(rng.choice(WORDS[4 * label : 4 * label + 12], 6)) for label in y]
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D")
    columns = {
        "customer": [f"C{number:06d}" for number in rng.permutation(n)],
        "since": days.strftime("%Y-%m-%d"),
        "city": np.where(rng.random(n) < 0.05, None, city),
        "note": note,
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 12, n) + 6 * y),
        "income": rng.lognormal(3, 1, n),
        "visits": rng.poisson(3 + y, n).astype(float),
    }
    return pd.DataFrame({name: pd.Series(values, dtype=None) for name, values in columns.items()}), y


SPACES = {
    "logistic": {"C": np.logspace(-3, 3, 20).round(6).tolist()},
    "forest": {"max_features": [0.1, 0.2, 0.3, 0.5, 0.8], "min_samples_leaf": [1, 2, 5, 10]},
}
MODELS = {
    "logistic": (
        LogisticRegression(),
        ONE_HOT,
        "sklearn.linear_model.LogisticRegression\nwarm_start: false\n",
    ),
    "forest": (
        RandomForestClassifier(100, random_state=0),
        CODES,
        "sklearn.ensemble.RandomForestClassifier\nn_estimators: 100\nrandom_state: 0\n",
    ),
}


class OfSplit(TransformerMixin, BaseEstimator):
    """`table` with the random state of the split to which the rows of its fit belong."""

    seeds: dict = {}  # noqa: RUF012  # of the class, because `clone` would copy a parameter

    def __init__(self, kind=ONE_HOT):
        self.kind = kind

    def fit_transform(self, X, y=None):
        steps = preparation_steps(Preparation(TABLE, self.kind), X, self.seeds[frozenset(X.index)])
        self.made_ = make_pipeline(*steps)
        return self.made_.fit_transform(X, y)

    def fit(self, X, y=None):
        self.fit_transform(X, y)
        return self

    def transform(self, X):
        return self.made_.transform(X)


def write_configuration(folder, n_rows):
    """Write the files of the dataset and the solvers."""
    for group in ("dataset", "solver"):
        (folder / group).mkdir()
    (folder / "dataset" / "table.yaml").write_text(f"_target_: benchmarks.preparation.table\nn: {n_rows}\n")
    for name, (_, _, target) in MODELS.items():
        (folder / "solver" / f"{name}.yaml").write_text(f"_target_: {target}space: {SPACES[name]}\n")


def splitters(folds):
    """Return the outer and inner splitter, as objects and as overrides."""
    kind = "_target_: sklearn.model_selection.StratifiedKFold"
    node = f"{{{kind}, n_splits: {folds}, shuffle: true, random_state: %d}}"
    made = [StratifiedKFold(folds, shuffle=True, random_state=seed) for seed in (0, 1)]
    return made, [f"protocol.outer={node % 0}", f"protocol.inner={node % 1}"]


def measure(solver, n_rows, folds, folder):
    """Return CPU seconds of both programs, and their outer scores."""
    (outer, inner), said = splitters(folds)
    paths = [f"paths.results={folder / solver}", f"paths.cache={folder / 'cache'}", "cluster=serial"]
    said = [f"study={solver}", "datasets=[table]", f"solvers=[{solver}]", *said, *paths]
    ready = prepare_study(load_settings(said, folder))
    source, protocol = ready.sources["table"], ready.study.protocol
    dataset, splits = open_data(source, protocol)
    OfSplit.seeds = {
        frozenset(splits.train_test(*split)[0].tolist()): preparation_seed(source, protocol, *split)
        for refits in (True, False)
        for split in splits.of_level(refits)
    }
    started = time.process_time()
    results = run_study(*said, config_dir=folder)
    ours = time.process_time() - started
    scores = results.outer.sort_values("outer")["score"].to_numpy()

    model, kind, _ = MODELS[solver]
    pipeline = Pipeline([("table", OfSplit(kind)), ("model", model)])
    grid = {f"model__{name}": values for name, values in SPACES[solver].items()}
    started = time.process_time()
    theirs = cross_val_score(GridSearchCV(pipeline, grid, cv=inner), dataset.X, dataset.y, cv=outer)
    return ours, time.process_time() - started, scores, theirs


def main():
    """Measure both programs for each solver, and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--solvers", default="logistic,forest")
    arguments = parser.parse_args()
    total = np.zeros(2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_configuration(folder, arguments.rows)
        for solver in arguments.solvers.split(","):
            ours, theirs, scores, expected = measure(solver, arguments.rows, arguments.folds, folder)
            total += ours, theirs
            same = int((scores == expected).sum())
            print(
                f"{solver}: {ours:.1f} s of {theirs:.1f} s CPU, ratio {ours / theirs:.2f}; "
                f"{same} of {len(scores)} outer scores equal; "
                f"means {scores.mean():.4f} and {expected.mean():.4f}",
                flush=True,
            )
    print(f"together: {total[0]:.1f} s of {total[1]:.1f} s CPU, ratio {total[0] / total[1]:.2f}")


if __name__ == "__main__":
    main()
