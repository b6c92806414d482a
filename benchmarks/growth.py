"""Measure how the time and memory of one training grow with the samples, for every solver and LIBSVM.

    python -m benchmarks.growth --data DIR [--sets ijcnn1 checkers …] [--solvers mnsvm …] [--most-seconds 20]

The benchmark runs cold fits at C = 16 on 1,000 samples, 2,000, 4,000, … until the set ends or a fit has
taken more than `--most-seconds`. It generates checkers for each solver (a million samples at most). The
other sets are NAME.libsvm.xz in DIR, scaled to [0, 1], and the samples are the first rows of one
permutation. Times are CPU seconds of one thread without compilation, and the least of three measurements if
a fit is short. Each fit runs in a forked process. Its peak memory is printed beside that of the process
before the fit.

The exponent is the slope of the logarithms with Student's 95 % interval, as in a report
(`orchestrator.analysis.scaling`). The slope of the last two sizes is printed beside it. Solvers are those of
conf/solver. The solvers of Strack (2013) draw their candidates and end by other rules than SVC, so the
accuracy on 2,000 further samples is printed, too.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import multiprocessing
import resource
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from hydra.utils import instantiate
from numba.core import event
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.large_path import FEATURES, load, seconds_of
from orchestrator.analysis.scaling import scaling
from orchestrator.datasets.synthetic import checkers

C = 16.0
SETS = {"ijcnn1": "4", "covtype": "1/4", "shuttle": "4", "a9a": "1/64", "checkers": "16"}
CONFIGS = Path(__file__).parent.parent / "conf" / "solver"
SAMPLING = ("mnsvm_paper", "spheresvm", "spheresvm_590", "spheresvm_100", "bvm", "cvm")
"""Solvers of Strack (2013) that stop only by draws. The others examine every sample to certify them."""
SOLVERS = ("SVC", "smo_l1", "smo_l2", "newton", "mnsvm", *SAMPLING)
SMALLEST, LARGEST, TESTED = 1000, 1_000_000, 2000
COMPILING = 300, 4000
"""Sizes of the fits that run before a process is forked, so that it inherits compiled functions."""


class Samples(NamedTuple):
    """Training rows of a set, and `TESTED` other rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    gamma: float


class Fit(NamedTuple):
    """CPU seconds, peak memory in GB, support vectors and accuracy of a fit."""

    seconds: float
    peak: float
    n_support: int
    accuracy: float


def classifier(solver: str, gamma: float):
    """Return an unfitted classifier: LIBSVM, or the class of a configuration in conf/solver."""
    if solver == "SVC":
        return SVC(C=C, gamma=gamma)
    config = yaml.safe_load((CONFIGS / f"{solver}.yaml").read_text())
    model = instantiate(config, C=C, gamma=gamma)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def samples(name: str, folder: Path | None) -> Samples:
    """Return a set in a random order."""
    if name == "checkers":
        X, y = checkers(n=LARGEST + TESTED, seed=0)
        gamma = float(SETS[name])
    else:
        assert folder is not None
        X, y, gamma = load(f"{name}-{LARGEST}-{SETS[name]}", folder)
    return Samples(X[TESTED:], y[TESTED:], X[:TESTED], y[:TESTED], gamma)


def in_a_process(function: Callable[[], Fit]) -> Fit | None:
    """Call a function in a forked process, and return its result, or None if the process was killed."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: sender.send(function()))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()


def fit(solver: str, data: Samples, n: int) -> Fit:
    """Train on the first n samples. Repeat a measurement during which numba compiled."""
    X, y, compiling = np.ascontiguousarray(data.X[:n]), data.y[:n], event.TimingListener()
    train = partial(seconds_of, lambda: classifier(solver, data.gamma).fit(X, y))
    with event.install_listener("numba:compile", compiling):
        seconds, model = train()
    if compiling.done:
        seconds, model = train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return Fit(seconds, peak, len(model.support_), float(model.score(data.X_test, data.y_test)))


def sizes(n: int) -> list[int]:
    """Return the sizes 1,000, 2,000, 4,000, … and n."""
    doubled = [SMALLEST << k for k in range(11) if (SMALLEST << k) < 0.8 * n]
    return [*doubled, n]


def grow(name: str, solver: str, data: Samples, most_seconds: float) -> pd.DataFrame:
    """Train on growing numbers of samples, print a line for each, and return sizes and seconds."""
    for n in COMPILING:
        fit(solver, data, n)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{name:9} {solver:10} {'(before)':>9} {'':9} {idle:7.2f}", flush=True)
    rows = []
    for n in sizes(len(data.y)):
        found = in_a_process(lambda n=n: fit(solver, data, n))
        if found is None:
            print(f"{name:9} {solver:10} {n:9,} (killed)", flush=True)
            break
        line = f"{name:9} {solver:10} {n:9,} {found.seconds:9.3f} {found.peak:7.2f} {found.n_support:8,}"
        print(f"{line} {found.accuracy:8.4f}", flush=True)
        rows.append({"solver": solver, "n_train": n, "n_sv": found.n_support, "fit_seconds": found.seconds})
        if found.seconds > most_seconds:
            break
    return pd.DataFrame(rows)


def exponent(points: pd.DataFrame) -> str:
    """Return an exponent of time in the number of samples, with its interval."""
    table = scaling(points)
    table = table[table["predictor"] == "n_train"] if len(table) else table
    if table.empty:
        return "(too few sizes)"
    line = table.iloc[0]
    return f"{line.exponent:.2f} ({line.low:.2f} to {line.high:.2f})"


def last_exponent(points: pd.DataFrame) -> str:
    """Return the slope between the last two sizes."""
    if len(points) < 2:
        return ""
    last = np.log(points[["n_train", "fit_seconds"]].iloc[-2:].to_numpy(dtype=float))
    n, seconds = last[1] - last[0]
    return f"{seconds / n:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--solvers", nargs="*", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--most-seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    summary = []
    print("set       solver             n    CPU s peak GB  vectors accuracy")
    for name in arguments.sets:
        file = arguments.data and arguments.data / f"{name}.libsvm.xz"
        if name in FEATURES and not (file and file.exists()):
            print(f"({name}: not in {arguments.data}, omitted)")
            continue
        data = samples(name, arguments.data)
        for solver in arguments.solvers:
            points = grow(name, solver, data, arguments.most_seconds)
            largest = int(points["n_train"].max())
            summary.append(
                f"{name:9} {solver:10} {largest:9,}  {exponent(points):22} {last_exponent(points)}"
            )
    print("\nset       solver          to n  exponent               last two sizes\n" + "\n".join(summary))


if __name__ == "__main__":
    main()
