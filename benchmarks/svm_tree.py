"""Compare decision lists of planes with Gaussian machines by the time of a prediction, side by side.

   python benchmarks/svm_tree.py --data DIR [predict] [train] [published] [--sets usps fourclass …]

`DIR` holds files NAME.libsvm.xz. `predict` prints the names of missing files and omits them. `train` needs
usps, covtype and kdd99-10pct, and `published` needs usps and fourclass. Times are CPU seconds of one thread
in one process, without compilation, those of rows by themselves wall seconds.

`predict` trains `SVMTreeClassifier`, `SVC` and `SMOSVC` on the training rows of each set, scaled to [0, 1].
`SVC` and `SMOSVC` have the C and gamma of `SETS`, which a cross-validation on about 1,000 training rows chose
from C in 1, 4, 16, 64, 256 and gamma in 1/64, 1/16, 1/4, 1, 4, 16 (`--tune` repeats it). A batch is all test
rows, at least 100,000 of fourclass. A row by itself is the median of 200 calls of `predict`, and *call* that
of the compiled walk behind it. `train` measures fits on usps, covtype and kdd99-10pct, and `published` the
numbers of planes and the accuracy on the splits of Zapién et al. (2007).
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from solvers import H1SVC, SMOSVC, SVMTreeClassifier
from solvers.tree.scoring import walk


class Data(NamedTuple):
    """Training and test rows of a set, and the machine that cross-validation has chosen."""

    n_features: int
    n_train: int  # the first rows train
    C: float
    gamma: float


SETS = {
    "usps": Data(256, 7291, 4.0, 1 / 64),
    "fourclass": Data(2, 287, 4.0, 16.0),
    "shuttle": Data(9, 43500, 256.0, 4.0),
    "satimage": Data(36, 4435, 16.0, 4.0),
}
GRID = {"C": [1, 4, 16, 64, 256], "gamma": [1 / 64, 1 / 16, 1 / 4, 1, 4, 16]}
ROWS = 200  # rows by themselves


def load(name, folder):
    """Return the training and test rows of a set, scaled by the training rows."""
    data = SETS[name]
    with lzma.open(folder / f"{name}.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=data.n_features)
    X = X.toarray()
    if name == "fourclass":
        order = np.random.default_rng(0).permutation(y.size)
        X, y = X[order], y[order]
    scaler = MinMaxScaler().fit(X[: data.n_train])
    train, test = scaler.transform(X[: data.n_train]), scaler.transform(X[data.n_train :])
    return train, y[: data.n_train], test, y[data.n_train :]


def cpu_seconds(call):
    """Return the CPU seconds of a call, the smallest of three, and its result."""
    seconds = []
    for _ in range(3):
        started = time.process_time()
        result = call()
        seconds.append(time.process_time() - started)
        if seconds[-1] > 2.0:
            break
    return min(seconds), result


def row_seconds(function, X):
    """Return the median wall time of a call with one row, in seconds."""
    seconds = []
    for k in range(ROWS + 5):
        row = X[k % len(X)][None, :]
        started = time.perf_counter()
        function(row)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[5:]))


def compare_predictions(names, folder, tune):
    """Print the times of predictions, in batches and row by row."""
    print("set        machine   planes/SVs  correct %   fit, s   batch, s    ratio  row, µs  call, µs")
    for name in names:
        train, y, test, y_test = load(name, folder)
        C, gamma = SETS[name].C, SETS[name].gamma
        if tune:
            some = slice(None) if y.size < 1000 else slice(0, None, max(1, y.size // 1000))
            found = GridSearchCV(SVC(cache_size=500), GRID, cv=3).fit(train[some], y[some])
            print(name, found.best_params_, flush=True)
            C, gamma = found.best_params_["C"], found.best_params_["gamma"]
        batch = np.tile(test, (-(-100_000 // len(test)), 1)) if name == "fourclass" else test
        machines = [
            ("SVC", SVC(C=C, gamma=gamma, cache_size=500)),
            ("SMOSVC", SMOSVC(C, loss="l1", gamma=gamma)),
            ("tree", SVMTreeClassifier()),
            ("greedy", SVMTreeClassifier(greedy=True)),
        ]
        base = None
        for label, machine in machines:
            started = time.process_time()
            machine.fit(train, y)
            fitted = time.process_time() - started
            machine.predict(batch[:50])
            seconds, _ = cpu_seconds(lambda machine=machine, batch=batch: machine.predict(batch))
            base = base or seconds
            row = 1e6 * row_seconds(machine.predict, test)
            call = np.nan
            if isinstance(machine, SVMTreeClassifier):
                call = 1e6 * row_seconds(lambda x, lists=machine._lists: walk(x, lists), test)
            size = getattr(machine, "n_nodes_", None) or int(np.sum(machine.n_support_))
            correct = 100 * machine.score(test, y_test)
            print(
                f"{name:10} {label:8} {size:11,} {correct:10.2f} {fitted:8.2f} {seconds:10.4f}"
                f" {base / seconds:8.1f} {row:8.0f} {call:9.1f}",
                flush=True,
            )


def measure_training(folder):
    """Print the seconds of fits on usps, covtype and kdd99-10pct, and of predictions for the last one."""
    train, y, _, _ = load("usps", folder)
    for greedy in (False, True):
        started = time.process_time()
        model = SVMTreeClassifier(greedy=greedy).fit(train, y)
        print(
            f"usps, greedy={greedy}: {time.process_time() - started:.1f} s, {model.n_nodes_} planes",
            flush=True,
        )
    with lzma.open(folder / "covtype.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=54)
    X = MinMaxScaler().fit_transform(X.toarray())
    started = time.process_time()
    model = H1SVC().fit(X, y == 2)
    print(f"covtype, H1SVC: {time.process_time() - started:.1f} s, gap {model.gap_:.1g}, {model.stopping_}")
    del X
    with lzma.open(folder / "kdd99-10pct.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=119)
    X = MinMaxScaler().fit_transform(X.toarray())
    rows = np.random.default_rng(0).permutation(494_021)[:20_000]
    started = time.process_time()
    model = SVMTreeClassifier().fit(X[rows], y[rows])
    fitted = time.process_time() - started
    seconds, _ = cpu_seconds(lambda: model.predict(X))
    correct = 100 * model.score(X[494_021:], y[494_021:])
    print(
        f"kdd99-10pct: fit of 20,000 rows {fitted:.1f} s, {model.n_nodes_} planes; "
        f"{len(y):,} predictions {seconds:.2f} s; {correct:.2f} % of the test rows correct"
    )


def compare_with_published(folder):
    """Print planes and accuracy on the splits of the paper."""
    with lzma.open(folder / "usps.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=256)
    X = X.toarray()
    for kind in (MinMaxScaler, StandardScaler):
        scaler = kind().fit(X[7291:])
        for greedy in (False, True):
            model = SVMTreeClassifier(greedy=greedy).fit(scaler.transform(X[7291:]), y[7291:])
            correct = 100 * model.score(scaler.transform(X[:7291]), y[:7291])
            print(
                f"usps reversed, {kind.__name__}, greedy={greedy}: {model.n_nodes_}, {correct:.2f} %",
                flush=True,
            )
    with lzma.open(folder / "fourclass.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=2)
    X = X.toarray()
    for kind in (MinMaxScaler, StandardScaler):
        for greedy in (False, True):
            found = []
            for seed in range(10):
                A, B, a, b = train_test_split(X, y, train_size=1 / 3, random_state=seed, stratify=y)
                scaler = kind().fit(A)
                model = SVMTreeClassifier(greedy=greedy).fit(scaler.transform(A), a)
                found.append((model.n_nodes_, 100 * model.score(scaler.transform(B), b)))
            nodes, correct = np.transpose(found)
            print(
                f"fourclass, {kind.__name__}, greedy={greedy}: "
                f"{nodes.min():.0f} to {nodes.max():.0f} planes, "
                f"{correct.mean():.2f} ± {correct.std(ddof=1):.2f} % "
                f"({correct.min():.1f} to {correct.max():.1f})"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=["predict", "train", "published"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_args()
    missing = [name for name in options.sets if not (options.data / f"{name}.libsvm.xz").exists()]
    if missing:
        print("not found:", ", ".join(missing))
    generator = np.random.default_rng(0)
    for tail in (None, "rbf"):  # compiled
        SVMTreeClassifier(tail=tail, gamma=1.0, greedy=True).fit(
            generator.normal(size=(30, 2)), np.arange(30) % 2
        )
    if "predict" in options.what:
        compare_predictions([n for n in options.sets if n not in missing], options.data, options.tune)
    if "train" in options.what:
        measure_training(options.data)
    if "published" in options.what:
        compare_with_published(options.data)


if __name__ == "__main__":
    main()
