"""Compare the machines of the version space with SMOSVC, and measure how the costs of the centres grow.

    python benchmarks/version_space.py --data DIR [--most N] [ratios] [bayes] [growth]

`DIR` holds the file a9a.libsvm.xz. Times are CPU seconds of one thread in one process, without compilation.

`ratios` trains `SMOSVC`, `RelativeMarginSVC`, `SoftBallSVC` and `EllipsoidalKernelSVC` on 2,000 rows of adult
at C = 1. `bayes` trains `BayesPointClassifier` on 4,000 rows. `growth` trains it and `EllipsoidSVC` on 250,
500, … rows, at most N and at most those of `GROWING`. It prints the exponents of the times with standard
errors.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from solvers import (
    SMOSVC,
    BayesPointClassifier,
    EllipsoidalKernelSVC,
    EllipsoidSVC,
    RelativeMarginSVC,
    SoftBallSVC,
)

GAMMA = 1 / 14
ROWS = (250, 500, 1000, 2000, 4000, 8000)
BALLS = {"gamma": GAMMA, "cache_size": 2000, "random_state": 0}
GROWING = {
    "bpm": (BayesPointClassifier(tol=0.01, **BALLS), 8000),
    "bpm_paper": (BayesPointClassifier(restart=None, flight="euclidean", **BALLS), 8000),
    "esvm": (EllipsoidSVC(gamma=GAMMA, cache_size=4000), 8000),
    "esvm_smo": (EllipsoidSVC(gamma=GAMMA, cache_size=4000, solver="smo"), 4000),
}
"""Models whose growth is measured, and the most rows of each, above which one takes more than ten minutes."""


def rows_of(folder, n, seed=0):
    """Return random samples of adult."""
    with lzma.open(folder / "a9a.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    chosen = np.random.default_rng(seed).permutation(y.size)[:n]
    return X[chosen].toarray(), y[chosen]


def seconds_of(model, X, y):
    """Return the CPU seconds of a fit, the minimum of three if it is short."""
    model.fit(X[:60], y[:60])  # compiles
    seconds = []
    while not seconds or (len(seconds) < 3 and seconds[0] < 2.0):
        started = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - started)
    return min(seconds)


def ratios(folder):
    """Print times as multiples of that of SMOSVC."""
    X, y = rows_of(folder, 2000)
    base = {kernel: seconds_of(SMOSVC(gamma=GAMMA, kernel=kernel), X, y) for kernel in ("rbf", "linear")}
    for model in (
        RelativeMarginSVC(gamma=GAMMA, bound=2.0),
        RelativeMarginSVC(gamma=GAMMA, bound=1.25),
        SoftBallSVC(0.3, gamma=GAMMA),
        SoftBallSVC(0.1, gamma=GAMMA),
        EllipsoidalKernelSVC(gamma=GAMMA),
        EllipsoidalKernelSVC(kernel="linear"),
    ):
        seconds = seconds_of(model, X, y)
        ratio = seconds / base[model.kernel]
        print(f"{model!s:60} {seconds:8.2f} s {ratio:8.2f} times SMOSVC  {model.stopping_}", flush=True)


def bayes(folder):
    """Print the times of the Bayes point on 4,000 rows."""
    X, y = rows_of(folder, 4000)
    for options in (
        {"tol": 0.01},
        {"tol": 0.001, "max_bounces": 5_000_000},
        {"restart": None, "flight": "euclidean"},
    ):
        model = BayesPointClassifier(**BALLS, **options)
        seconds = seconds_of(model, X, y)
        print(f"{options} {seconds:8.1f} s, {model.n_iter_[0]:,} bounces, {model.stopping_}", flush=True)


def growth(folder, most):
    """Print times by the number of rows, and the exponent of each machine so far with its standard error."""
    seconds = {name: [] for name in GROWING}
    for n in ROWS:
        X, y = rows_of(folder, n)
        for name, (model, most_rows) in GROWING.items():
            if n > min(most, most_rows):
                continue
            seconds[name].append(seconds_of(model, X, y))
            text = f"{name:10} {n:6,} rows {seconds[name][-1]:8.2f} s {np.sum(model.n_iter_):12,} steps"
            if len(seconds[name]) > 3:
                logs = np.log(ROWS[: len(seconds[name])]), np.log(seconds[name])
                (slope, _), covariance = np.polyfit(*logs, 1, cov=True)
                text += f"   exponent {slope:.2f} ± {np.sqrt(covariance[0, 0]):.2f}"
            print(text, flush=True)


def main():
    """Run the parts that the command names, or all of them."""
    parts = {"ratios": ratios, "bayes": bayes, "growth": lambda folder: growth(folder, arguments.most)}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--most", type=int, default=ROWS[-1], help="most rows of growth")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="ratios, bayes, growth")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.parts or parts:
        parts[name](arguments.data)


if __name__ == "__main__":
    main()
