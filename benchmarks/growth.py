"""Measure how the time and memory of one training grow with the samples, for every solver and LIBSVM.

    python -m benchmarks.growth --data DIR [--sets ijcnn1 checkers …] [--solvers mnsvm …] [--C 1 100]
                                [--largest 50000] [--most-seconds 20] [--budget 3600] [--measured FILE.csv]

The benchmark runs cold fits on 1,000 samples, 2,000, 4,000, … until the set ends or a fit has taken more than
`--most-seconds`. A training is stopped after 30 minutes of CPU time. The next training is always the one that
should take least, so that `--budget`, in seconds of wall time, is used for as many as possible. With
`--measured`, each measurement is appended to a file, and one that the file has is not repeated.

The benchmark generates checkers (a million samples at most). The other sets are NAME.libsvm.xz in DIR,
scaled to [0, 1], and the samples are the first rows of one permutation. `covtype-2` is class 2 of covtype
against the others. Times are CPU seconds of one thread without compilation, and the least of three
measurements if a fit is short. Each fit runs in a forked process. Its peak memory includes that of the
process that it was forked from.

The exponent is the slope of the logarithms with Student's 95 % interval, as in a report
(`orchestrator.analysis.scaling`). The slope of the last two sizes is printed beside it. Solvers are those of
conf/solver. The solvers of Strack (2013) draw their candidates and end by other rules than SVC, so the
accuracy on 2,000 further samples is printed, too.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import csv
import math
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from hydra.utils import instantiate
from numba.core import event
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.large_path import load, seconds_of
from orchestrator.analysis.scaling import scaling
from orchestrator.datasets.synthetic import checkers

SETS = {
    "ijcnn1": "4",
    "covtype": "1/4",
    "covtype-2": "1/4",
    "shuttle": "4",
    "a9a": "1/64",
    "checkers": "16",
}
CONFIGS = Path(__file__).parent.parent / "conf" / "solver"
SAMPLING = ("mnsvm_paper", "spheresvm", "spheresvm_590", "spheresvm_100", "bvm", "cvm")
"""Solvers of Strack (2013) that stop only by draws. The others examine every sample to certify them."""
SOLVERS = ("SVC", "smo_l1", "smo_l2", "newton", "mnsvm", *SAMPLING)
SMALLEST, LARGEST, TESTED = 1000, 1_000_000, 2000
COMPILING = 300, 4000
"""Sizes of the fits that run before a process is forked, so that it inherits compiled functions."""
LIMIT = 1800
"""Longest CPU time of a forked process, in seconds."""
FIELDS = ("set", "solver", "C", "n", "seconds", "peak", "n_support", "accuracy")


class Samples(NamedTuple):
    """Training rows of a set, and `TESTED` other rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    gamma: float


class Fit(NamedTuple):
    """CPU seconds, peak memory in GB, support vectors and accuracy of a fit, or NaN if it was stopped."""

    seconds: float
    peak: float
    n_support: int
    accuracy: float


STOPPED = Fit(math.nan, math.nan, 0, math.nan)


@dataclass
class Curve:
    """Trainings of a solver at one C on growing numbers of samples."""

    name: str
    solver: str
    C: float
    fits: dict[int, Fit] = field(default_factory=dict)

    @property
    def is_stopped(self) -> bool:
        """Whether the largest training did not end."""
        return bool(self.fits) and math.isnan(self.fits[max(self.fits)].seconds)

    @property
    def points(self) -> pd.DataFrame:
        """Sizes and seconds of the trainings that ended, as `scaling` reads them."""
        ended = [(n, fit) for n, fit in sorted(self.fits.items()) if fit.seconds > 0]
        columns = {"n_train": [n for n, _ in ended], "n_sv": [fit.n_support for _, fit in ended]}
        seconds = [fit.seconds for _, fit in ended]
        return pd.DataFrame({"solver": self.solver, **columns, "fit_seconds": seconds})

    def next_size(self, largest: int, most_seconds: float) -> int | None:
        """Return the number of samples of the next training, or None if the curve has ended."""
        missing = [n for n in sizes(largest) if n not in self.fits]
        if not missing or self.is_stopped:
            return None
        if self.fits and max(fit.seconds for fit in self.fits.values()) > most_seconds:
            return None
        return missing[0]

    def expected_seconds(self) -> float:
        """Return a guess at the time of the next training, which has twice the samples."""
        return 4 * max((fit.seconds for fit in self.fits.values()), default=0.0)


def classifier(solver: str, C: float, gamma: float):
    """Return an unfitted classifier: LIBSVM, or the class of a configuration in conf/solver."""
    if solver == "SVC":
        return SVC(C=C, gamma=gamma)
    config = yaml.safe_load((CONFIGS / f"{solver}.yaml").read_text())
    model = instantiate(config, C=C, gamma=gamma)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def samples(name: str, folder: Path | None, largest: int) -> Samples:
    """Return at most `largest` rows of a set in a random order, and the rows for tests."""
    if name == "checkers":
        X, y = checkers(n=largest + TESTED, seed=0)
        gamma = float(SETS[name])
    else:
        assert folder is not None
        X, y, gamma = load(f"{name.removesuffix('-2')}-{largest + TESTED}-{SETS[name]}", folder)
        y = y == 2 if name.endswith("-2") else y
    return Samples(X[TESTED:], y[TESTED:], X[:TESTED], y[:TESTED], gamma)


def in_a_process(function: Callable[[], Fit]) -> Fit:
    """Call a function in a forked process, and return its result, or `STOPPED` if the process was killed."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        used = math.ceil(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT, used + LIMIT))
        sender.send(function())

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return STOPPED
    finally:
        process.join()


def fit(solver: str, C: float, data: Samples, n: int) -> Fit:
    """Train on the first n samples. Repeat a measurement during which numba compiled."""
    X, y, compiling = np.ascontiguousarray(data.X[:n]), data.y[:n], event.TimingListener()
    train = partial(seconds_of, lambda: classifier(solver, C, data.gamma).fit(X, y))
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


def grow(curves: list[Curve], data: Samples, options: argparse.Namespace, deadline: float) -> None:
    """Train on growing numbers of samples until all curves or the budget end, and print a line for each.

    Parameters
    ----------
    curves : list of Curve
        Curves of one set. Measurements are added to them.
    data : Samples
        The set.
    options : Namespace
        Arguments of the command line.
    deadline : float
        Value of `time.monotonic` after which no training starts.
    """
    for curve in {curve.solver: curve for curve in curves}.values():
        for n in COMPILING:
            fit(curve.solver, min(options.C), data, min(n, options.largest))
    largest = min(options.largest, len(data.y))
    while True:
        waiting = [curve for curve in curves if curve.next_size(largest, options.most_seconds)]
        if not waiting or time.monotonic() > deadline:
            return
        curve = min(waiting, key=Curve.expected_seconds)
        n = curve.next_size(largest, options.most_seconds)
        assert n is not None
        curve.fits[n] = found = in_a_process(partial(fit, curve.solver, curve.C, data, n))
        line = [curve.name, curve.solver, curve.C, n, *found]
        print(line_of(line), flush=True)
        if options.measured:
            with options.measured.open("a", newline="") as file:
                csv.writer(file).writerow(line)


def line_of(values: list) -> str:
    name, solver, C, n, seconds, peak, n_support, accuracy = values
    text = f"{name:9} {solver:13} {C:5g} {n:9,} "
    if math.isnan(seconds):
        return f"{text} did not end within {LIMIT:,.0f} s"
    return f"{text}{seconds:9.3f} {peak:7.2f} {n_support:8,} {accuracy:8.4f}"


def read_measured(path: Path | None, curves: list[Curve]) -> None:
    """Add the measurements of a file to the curves, and begin the file if it is missing."""
    if path is None:
        return
    if not path.exists():
        path.write_text(",".join(FIELDS) + "\n")
    found = {(curve.name, curve.solver, curve.C): curve for curve in curves}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            curve = found.get((row["set"], row["solver"], float(row["C"])))
            if curve:
                values = float(row["seconds"]), float(row["peak"]), int(row["n_support"])
                curve.fits[int(row["n"])] = Fit(*values, float(row["accuracy"]))


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


def table_of(curves: list[Curve]) -> str:
    """Return the curves of a set as a Markdown table with a row for each solver and C."""
    lines = ["| solver | C | to n | s | exponent | last two | peak, GB | right |", "|---" * 8 + "|"]
    for curve in curves:
        points = curve.points
        if points.empty:
            continue
        n = int(points["n_train"].max())
        last = curve.fits[n]
        size = f"{n:,}" + (f", not {max(curve.fits):,}" if curve.is_stopped else "")
        cells = [f"`{curve.solver}`", f"{curve.C:g}", size, f"{last.seconds:.2g}", exponent(points)]
        cells += [last_exponent(points), f"{last.peak:.2f}", f"{100 * last.accuracy:.1f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--solvers", nargs="*", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--C", nargs="*", type=float, default=[16.0])
    parser.add_argument("--largest", type=int, default=LARGEST, help="largest number of samples")
    parser.add_argument("--most-seconds", type=float, default=20.0)
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for all trainings together")
    parser.add_argument("--measured", type=Path, help="file to which measurements are appended")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    warnings.simplefilter("ignore", ConvergenceWarning)
    curves = [Curve(*key) for key in product(options.sets, options.solvers, options.C)]
    read_measured(options.measured, curves)
    print("set       solver            C         n     CPU s peak GB  vectors accuracy")
    for name in options.sets:
        file = options.data and options.data / f"{name.removesuffix('-2')}.libsvm.xz"
        if name != "checkers" and not (file and file.exists()):
            print(f"({name}: not in {options.data}, omitted)")
        elif time.monotonic() < deadline:
            chosen = [curve for curve in curves if curve.name == name]
            grow(chosen, samples(name, options.data, options.largest), options, deadline)
    for name in options.sets:
        print(f"\n{name}\n\n{table_of([curve for curve in curves if curve.name == name])}")


if __name__ == "__main__":
    main()
