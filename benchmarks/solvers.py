"""Measure the geometric solvers, and compare a few datasets with the claims of Strack (2013).

    python benchmarks/solvers.py --data DIR [ratios] [claims] [checkers] [limits]

`DIR` holds files NAME.libsvm.xz (satimage, letter, covtype). The script prints the names of missing files
and omits them. Times are CPU seconds of one thread without compilation. Times that are compared are measured
alternately in one process.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from solvers import MNSVC, BallSVC, CoreSVC, SphereSVC

FEATURES = {"satimage": 36, "letter": 16, "covtype": 54}
RATIOS = [  # dataset, C, γ, the largest allowed ratio to SVC, the ratio of GSVM
    ("digits", 4.0, 1 / 16, 2.0, 4.3),
    ("satimage", 16.0, 4.0, 1.5, 1.8),
    ("letter", 4.0, 4.0, 1.5, 2.2),
    ("satimage", 1024.0, 1 / 16, 5.0, 10.0),
]
SETTINGS = {
    "mnsvm": MNSVC(),
    "mnsvm_mdm": MNSVC(pair="mdm"),
    "mnsvm_meb": MNSVC(stopping="meb"),
    "all_at_once": MNSVC(multiclass="all_at_once"),
    "spheresvm": SphereSVC(),
    "spheresvm_590": SphereSVC(subset=1),
    "spheresvm_100": SphereSVC(subset=1, draws=100),
    "bvm": BallSVC(),
    "cvm": CoreSVC(),
}
CLAIM_SETS = [("digits", 4.0, 1 / 16, 1797), ("satimage", 16.0, 1.0, 3000), ("letter", 4.0, 4.0, 4000)]
CHECKERS = {"C": 16.0, "gamma": 16.0, "random_state": 0}


def load(name, folder):
    """Return samples scaled to [0, 1] and labels, or None if the file is missing."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return minmax_scale(X), y
    path = None if folder is None else folder / f"{name}.libsvm.xz"
    if path is None or not path.exists():
        print(f"({name}: no {name}.libsvm.xz in --data, omitted)")
        return None
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file, n_features=FEATURES[name])
    return minmax_scale(X.toarray()), y


def checkers(n, seed=0):
    """Draw samples of a 4 × 4 board in the unit square, whose squares alternate in class."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, (np.floor(4 * X[:, 0]) + np.floor(4 * X[:, 1])).astype(np.int8) % 2


def fit_seconds(model, X, y):
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.process_time() - started


def ratios(folder):
    print("\nOne fit against sklearn.svm.SVC (medians of 5 fits of each, alternately)")
    print(f"{'':10}{'C':>7}{'γ':>8}{'SVC s':>9}{'MNSVC s':>9}{'ratio':>7}{'allowed':>9}{'GSVM':>6}")
    for name, C, gamma, allowed, gsvm in RATIOS:
        data = load(name, folder)
        if data is None:
            continue
        ours, theirs = MNSVC(C=C, gamma=gamma, random_state=0), SVC(C=C, gamma=gamma)
        fit_seconds(ours, data[0][:300], data[1][:300])
        times = np.array([[fit_seconds(theirs, *data), fit_seconds(ours, *data)] for _ in range(5)])
        a, b = np.median(times, axis=0)
        verdict = "" if b <= allowed * a else "  TOO SLOW"
        print(f"{name:10}{C:7g}{gamma:8g}{a:9.3f}{b:9.3f}{b / a:7.2f}{allowed:9.1f}{gsvm:6.1f}{verdict}")


def cross_validate(X, y, C, gamma):
    """Return accuracy, seconds, iterations, kernel evaluations and vectors of every setting and fold."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    rows = {name: [] for name in SETTINGS}
    for train, test in folds:
        for name, setting in SETTINGS.items():
            model = clone(setting).set_params(C=C, gamma=gamma, random_state=0)
            seconds = fit_seconds(model, X[train], y[train])
            score = model.score(X[test], y[test])
            rows[name].append(
                (score, seconds, np.sum(model.n_iter_), model.n_kernel_evals_ / 1e6, model.support_.size)
            )
    return {name: np.array(values) for name, values in rows.items()}


def claims(folder):
    for setting in SETTINGS.values():  # compile
        clone(setting).set_params(random_state=0).fit(*checkers(200))
    findings = []
    for name, C, gamma, n in CLAIM_SETS:
        data = load(name, folder)
        if data is None:
            continue
        chosen = np.random.default_rng(0).permutation(len(data[1]))[:n]
        table = cross_validate(data[0][chosen], data[1][chosen], C, gamma)
        print(f"\n{name}, {n} samples, C = {C:g}, γ = {gamma:g}: means of 5 folds")
        print("(± standard error corrected for the training rows that folds share, and descriptive σ/√5)")
        columns = {"accuracy": 10, "±": 7, "σ/√5": 7, "fit s": 8, "steps": 9, "kernel M": 10, "vectors": 9}
        print(f"{'':15}" + "".join(f"{name:>{width}}" for name, width in columns.items()))
        for setting, values in table.items():
            error = 100 * values[:, 0].std() / np.sqrt(5)
            corrected = 100 * values[:, 0].std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)
            mean = values.mean(axis=0)
            accuracy, seconds, steps, millions, vectors = mean
            print(
                f"{setting:15}{100 * accuracy:10.2f}{corrected:7.2f}{error:7.2f}{seconds:8.3f}"
                f"{steps:9.0f}{millions:10.2f}{vectors:9.0f}"
            )
        findings.append((name, table))
    print("\nThese are counts of datasets and not a test. They decide nothing.")
    print(f"{'claim':58}   datasets where the means agree with it")
    for text, holds in CLAIMS.items():
        where = [name for name, table in findings if holds(table)]
        print(f"{text:58}   {len(where)} of {len(findings)}: {', '.join(where) or '-'}")


def _mean(table, name, column):
    return table[name][:, column].mean()


def _same_accuracy(table):
    """Return whether the means differ by at most a standard error, all with the papers' stopping rule."""
    names = ("spheresvm", "mnsvm_meb", "bvm")
    means = [_mean(table, name, 0) for name in names]
    return np.ptp(means) <= max(table[name][:, 0].std() for name in names) / np.sqrt(5)


CLAIMS = {
    "SphereSVM = MNSVM = BVM in accuracy within a SE (A1, A3)": _same_accuracy,
    "imdm needs fewer iterations than mdm (S11a)": lambda t: _mean(t, "mnsvm", 2) < _mean(t, "mnsvm_mdm", 2),
    "imdm and mdm are equal in accuracy within a SE (A11)": lambda t: (
        abs(_mean(t, "mnsvm", 0) - _mean(t, "mnsvm_mdm", 0)) <= t["mnsvm"][:, 0].std() / np.sqrt(5)
    ),
    "SphereSVM is faster than BVM (S1a)": lambda t: _mean(t, "spheresvm", 1) < _mean(t, "bvm", 1),
    "MNSVM is faster than SphereSVM (S3b)": lambda t: _mean(t, "mnsvm_meb", 1) < _mean(t, "spheresvm", 1),
    "SphereSVM-590 is faster than 59 × 10 (A13)": lambda t: (
        _mean(t, "spheresvm_590", 1) < _mean(t, "spheresvm", 1)
    ),
    "SphereSVM-100 is faster than -590 (S1b)": lambda t: (
        _mean(t, "spheresvm_100", 1) < _mean(t, "spheresvm_590", 1)
    ),
    "models of SphereSVM not larger than BVM's (S7)": lambda t: (
        _mean(t, "spheresvm", 4) <= _mean(t, "bvm", 4)
    ),
    "models of MNSVM not larger than BVM's (S7)": lambda t: _mean(t, "mnsvm_meb", 4) <= _mean(t, "bvm", 4),
    "all-at-once is faster than pairwise (S10)": lambda t: _mean(t, "all_at_once", 1) < _mean(t, "mnsvm", 1),
    "all-at-once is less accurate than pairwise (A9)": lambda t: (
        _mean(t, "all_at_once", 0) < _mean(t, "mnsvm", 0)
    ),
}


def checkers_scaling():
    print("\ncheckers, C = 16, γ = 16, N_d = 600, the papers' stopping rule: fit seconds and peak memory")
    print("(one process each; peak minus the process before the data, against 1.25 × (data + cache_size))")
    seconds = {}
    for n in (10**5, 10**6, 10**7):
        answer = subprocess.run(
            [sys.executable, __file__, "--one", str(n)], capture_output=True, text=True, check=True
        )
        seconds[n], accuracy, vectors, used, allowed = map(float, answer.stdout.split())
        print(
            f"n = {n:>10,}: {seconds[n]:7.2f} s, accuracy {accuracy:.4f}, {vectors:.0f} vectors, "
            f"{used:.0f} MB of {allowed:.0f} MB allowed"
        )
    ratio = seconds[10**7] / seconds[10**6]
    verdict = "reproduced" if ratio <= 1.5 else "not reproduced"
    print(f"10⁷ against 10⁶: {ratio:.2f} (at most 1.5): {verdict} (S6)")
    print("\ncheckers, n = 60,000, C = 1, γ = 4: the drawing schemes where draws cost kernel evaluations")
    X, y = checkers(60_000)
    for name in ("bvm", "spheresvm", "spheresvm_590", "spheresvm_100", "mnsvm_meb"):
        model = clone(SETTINGS[name]).set_params(C=1.0, gamma=4.0, random_state=0)
        took = fit_seconds(model, X, y)
        score = model.score(*checkers(20_000, seed=1))
        print(
            f"{name:15}{took:8.2f} s  accuracy {score:.4f}  {np.sum(model.n_iter_):7} steps  "
            f"{model.n_kernel_evals_ / 1e6:9.1f} M kernel values  {model.support_.size} vectors"
        )


def one_checkers_fit(n):
    """Measure a fit in this process, and print seconds, accuracy, vectors, used and allowed MB."""
    model = MNSVC(stopping="meb", draws=600, **CHECKERS)
    model.fit(*checkers(60_000, seed=2))  # compile the functions that large problems use
    X, y = np.empty((n, 2)), np.empty(n, np.int8)
    for start in range(0, n, 100_000):  # made in pieces, so that making the data does not set the peak
        X[start : start + 100_000], y[start : start + 100_000] = checkers(min(n, 100_000), seed=start)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak memory
    before = peak_megabytes()
    took = fit_seconds(model, X, y)
    data = (X.nbytes + y.nbytes) / 1e6
    used = peak_megabytes() - before + data
    score = model.score(*checkers(20_000, seed=1))
    print(took, score, model.support_.size, used, 1.25 * (data + model.cache_size))


def peak_megabytes():
    """Return the peak memory of this process since `clear_refs` was last written (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def limits(folder):
    data = load("covtype", folder)
    if data is None:
        return
    print("\ncovtype, C = 16, γ = 4: how long after a limit `fit` comes back (wall seconds; at most 1)")
    model = MNSVC(C=16.0, gamma=4.0, max_seconds=1.0, random_state=0)
    # Compile, including the certificate of large subproblems.
    fit_seconds(MNSVC(stopping="meb", **CHECKERS), *checkers(60_000))
    started = time.monotonic()
    fit_seconds(model, *data)
    late = time.monotonic() - started - 1
    accuracy = model.score(data[0][::100], data[1][::100])
    print(f"max_seconds=1: {late:.2f} late, accuracy {accuracy:.3f}")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for delay in (0.3, 3.0):
        signal.setitimer(signal.ITIMER_REAL, delay)
        started = time.monotonic()
        try:
            model.set_params(max_seconds=None).fit(*data)
        except KeyboardInterrupt:
            print(f"Ctrl-C after {delay} s: {time.monotonic() - started - delay:.2f} late")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["ratios", "claims", "checkers", "limits"])
    parser.add_argument("--data", type=Path, help="folder of NAME.libsvm.xz files")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one_checkers_fit(arguments.one)
    for part in arguments.parts:
        if part == "checkers":
            checkers_scaling()
        else:
            {"ratios": ratios, "claims": claims, "limits": limits}[part](arguments.data)


if __name__ == "__main__":
    main()
