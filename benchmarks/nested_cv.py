"""Nested cross-validation on one core: a study of ours beside scikit-learn's GridSearchCV, in one process.

    python benchmarks/nested_cv.py [--solvers newton,mnsvm] [--data DIR] [--outer-folds N] DATASET…

Both train on the same outer and inner folds, scale to [0, 1] on training rows, search the same 8 × 8 grid
by mean inner accuracy, refit and score. CPU seconds; compilation apart; ours include scheduling, storing
and everything else between a configuration and its tables. Peak memory is that of the process so far.
Accuracies: mean ± standard error corrected for the training rows that folds share (descriptive σ/√n); they
tell that both did the same work, and are no comparison of accuracies.
Datasets beside scikit-learn's own are read from --data as NAME.libsvm.xz. `letter` runs one outer fold
unless --outer-folds says otherwise.
"""

import argparse
import math
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before numpy is imported
sys.path[0] = str(Path(__file__).parent.parent)  # or benchmarks/solvers.py would hide the package

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from orchestrator.analysis.summaries import corrected_standard_error, standard_error
from orchestrator.cli.display import display
from orchestrator.config.compose import check_settings, compose_settings
from orchestrator.datasets import open_prepared
from orchestrator.engine.load import read_results
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.runner import Runner
from orchestrator.execution.serial import SerialExecutor
from orchestrator.resampling.splits import Splits
from orchestrator.store.store import Store

N_OUTER = 5
"""Outer folds that the rows are split into; fewer of them may be run."""
DEFAULT_DATASETS = ["iris", "wine", "breast_cancer", "digits", "banana", "satimage", "letter"]


@dataclass(frozen=True)
class Measured:
    """CPU seconds and outer accuracies of one nested cross-validation."""

    seconds: float
    scores: list[float]
    peak_gib: float = 0.0

    @property
    def accuracy(self) -> str:
        """Mean in per cent ± corrected standard error (descriptive one)."""
        scores = np.array(self.scores)
        text = f"{100 * scores.mean():.2f}"
        if len(scores) < 2:
            return text
        corrected = corrected_standard_error(scores, 1 / (N_OUTER - 1))
        return f"{text} ± {100 * corrected:.2f} ({100 * standard_error(scores):.2f})"


class FirstFolds(PreparedStudy):
    """A prepared study cut down to its first outer folds."""

    n_outer: int = N_OUTER

    def outer_folds(self, pair):
        return range(self.n_outer)


def measure_ours(
    dataset: str, solver: str, overrides: list[str], n_outer: int
) -> tuple[Measured, PreparedStudy]:
    """Run a study in this process and return its costs and scores."""
    with tempfile.TemporaryDirectory() as folder:
        said = [
            *overrides,
            f"study={solver}",
            f"datasets=[{dataset}]",
            f"solvers=[{solver}]",
            f"paths.results={folder}",
        ]
        settings = check_settings(compose_settings(said))
        prepared = prepare_study(settings)
        cut = FirstFolds(**vars(prepared))
        object.__setattr__(cut, "n_outer", n_outer)
        store = Store(Path(folder) / solver)
        with store.lock():
            declared = {"run_id": "benchmark", "number": 1, **prepared.declaration()}
            store.write_provenance("benchmark", declared)
            planned = prepared.planned_trials()
            runner = Runner(
                cut, store, SerialExecutor(), Progress(planned, display(Console(quiet=True))), "benchmark"
            )
            cpu = time.process_time()
            summary = runner.run()
            seconds = time.process_time() - cpu - summary.compile_seconds
        outer = read_results(store).outer
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        return Measured(seconds, outer["score"].tolist(), peak), prepared


def measure_sklearn(prepared: PreparedStudy, dataset: str, n_outer: int) -> Measured:
    """Run scikit-learn's nested loop over the very same folds."""
    source = prepared.sources[dataset]
    data, folds = open_prepared(source.folder), Splits.load(Path(source.folder), source.split_hash)
    space = next(iter(prepared.identities.values())).arm.space
    grid = {f"svc__{name}": list(values) for name, values in space.items()}
    X, y = np.asarray(data.X), data.y
    scores = []
    cpu = time.process_time()
    for outer in range(n_outer):
        train, test = folds.train_test(outer)
        place = np.full(len(y), -1)
        place[train] = np.arange(len(train))
        inner = [
            tuple(place[rows] for rows in folds.train_test(outer, inner))
            for inner in range(folds.n_inner[outer])
        ]
        search = GridSearchCV(make_pipeline(MinMaxScaler(), SVC()), grid, cv=inner)
        search.fit(X[train], y[train])
        scores.append(search.score(X[test], y[test]))
    return Measured(time.process_time() - cpu, scores)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=DEFAULT_DATASETS)
    parser.add_argument("--solvers", default="newton,mnsvm")
    parser.add_argument("--data", default="data", help="folder of NAME.libsvm.xz files")
    parser.add_argument("--outer-folds", type=int, help="run only so many of the five outer folds")
    parser.add_argument("--without-sklearn", action="store_true")
    options = parser.parse_args()
    table = Table(
        "dataset",
        "solver",
        "outer folds",
        "ours, CPU s",
        "peak GiB",
        "scikit-learn, CPU s",
        "ratio",
        "accuracy ours",
        "scikit-learn",
    )
    ratios: dict[str, list[float]] = {}
    for dataset in options.datasets:
        n_outer = options.outer_folds or (1 if dataset == "letter" else N_OUTER)
        peer = None
        for solver in options.solvers.split(","):
            overrides = [f"paths.data={options.data}", "protocol.profile=throughput"]
            # Trained once before, on two points of one fold, everything is compiled.
            measure_ours(dataset, solver, [*overrides, "search.space.C=[1,4]", "search.space.gamma=[1]"], 1)
            ours, prepared = measure_ours(dataset, solver, overrides, n_outer)
            if peer is None and not options.without_sklearn:
                peer = measure_sklearn(prepared, dataset, n_outer)
            row = [dataset, solver, str(n_outer), f"{ours.seconds:.2f}", f"{ours.peak_gib:.1f}"]
            if peer is None:
                row += ["", "", ours.accuracy, ""]
            else:
                ratios.setdefault(solver, []).append(ours.seconds / peer.seconds)
                row += [f"{peer.seconds:.1f}", f"1/{peer.seconds / ours.seconds:.1f}"]
                row += [ours.accuracy, peer.accuracy]
            table.add_row(*row)
            print("  ".join(row), flush=True)
    Console(width=140).print(table)
    for solver, values in ratios.items():
        print(f"{solver}: geometric mean 1/{math.exp(-np.mean(np.log(values))):.1f}")


if __name__ == "__main__":
    main()
