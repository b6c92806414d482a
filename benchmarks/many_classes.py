"""Measure fits and predictions of many classes beside scikit-learn's SVC in one run.

    python -m benchmarks.many_classes [--solvers smo,newton,mnsvm,bvm] [--rows 30] [--alone] [CLASSES…]

The samples are overlapping Gaussian clusters in 20 dimensions, one for each class. Times are CPU seconds of
one thread, the medians of `--repeat` runs in turn with SVC. Each solver first trains on 12 classes, so that
compilation is not counted. A ratio above 1 means slower than SVC. `--alone` omits SVC, which needs several
minutes for 1,000 classes. The last column is the peak memory of the process so far.
"""

import os

for variable in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported

import argparse
import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.svm import SVC

from solvers import MNSVC, SMOSVC, BallSVC, NewtonSVC

PARAMETERS = {"C": 10.0, "gamma": 0.02}
SOLVERS: dict[str, Callable[[], Any]] = {
    "SVC": lambda: SVC(**PARAMETERS),
    "smo": lambda: SMOSVC(**PARAMETERS),
    "newton": lambda: NewtonSVC(**PARAMETERS),
    "mnsvm": lambda: MNSVC(**PARAMETERS, random_state=0),
    "bvm": lambda: BallSVC(**PARAMETERS, random_state=0),
}


def clusters(n_classes: int, n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return shuffled samples of overlapping clusters, and their labels."""
    rng = np.random.default_rng(seed)
    centres = 0.5 * rng.standard_normal((n_classes, 20))
    y = rng.permutation(np.repeat(np.arange(n_classes), n_rows))
    return centres[y] + rng.standard_normal((y.size, 20)), y


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its value."""
    started = time.process_time()
    value = function()
    return time.process_time() - started, value


def measure(n_classes: int, n_rows: int, names: list[str], repeat: int) -> None:
    """Measure a number of classes, and print one line for each solver."""
    X, y = clusters(n_classes, n_rows)
    fits: dict[str, list[float]] = {name: [] for name in names}
    predictions: dict[str, list[float]] = {name: [] for name in names}
    labels = {}
    for _ in range(repeat):
        for name in names:
            seconds, model = timed(lambda name=name: SOLVERS[name]().fit(X, y))
            fits[name].append(seconds)
            seconds, labels[name] = timed(lambda model=model: model.predict(X))
            predictions[name].append(seconds)
    for name in names:
        fit, predict = median(fits[name]), median(predictions[name])
        ratios = ""
        if "SVC" in names:
            same = np.mean(labels[name] == labels["SVC"])
            ratios = f" × {fit / median(fits['SVC']):<5.2f} × {predict / median(predictions['SVC']):<5.2f}"
            ratios += f" labels as SVC's {same:.4f}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{n_classes:5,} × {n_rows} rows  {name:7} fit {fit:8.3f} s  predict {predict:8.3f} s{ratios}"
            f"  right {np.mean(labels[name] == y):.3f}  peak {peak:.2f} GB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("classes", nargs="*", type=int, default=[20, 40, 80, 150, 400])
    parser.add_argument("--solvers", default="smo,newton,mnsvm,bvm")
    parser.add_argument("--rows", type=int, default=30, help="rows of each class")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="do not measure SVC")
    options = parser.parse_args()
    names = [*([] if options.alone else ["SVC"]), *options.solvers.split(",")]
    X, y = clusters(12, options.rows)
    for name in names:  # compile
        SOLVERS[name]().fit(X, y).predict(X)
    for n_classes in options.classes:
        measure(n_classes, options.rows, names, options.repeat)


if __name__ == "__main__":
    main()
