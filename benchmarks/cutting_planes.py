"""Compare one-slack cutting planes with LIBSVM's linear machine and with coordinate descent, side by side.

    python benchmarks/cutting_planes.py --data DIR [linear] [basis] [density] [--sets reuters w3a …]

`DIR` holds files NAME.libsvm.xz. `linear` prints the names of missing files and omits them. `basis` needs
ijcnn1, and `density` needs w3a. Times are CPU seconds of one thread in one process, without compilation.

`linear` trains `PerfSVC`, `SVC(kernel="linear")` and `LinearSVC(loss="hinge", fit_intercept=False)` at
C = 1/16 and 1. The column *excess* is F1 of `PerfSVC` less the minimum by `LinearSVC` at tol = 10⁻⁸, as a
share of C n tol, so that 1 is what the tolerance allows. SVC has a free bias, so only its time is comparable.
`basis` compares pre-images with random basis vectors on ijcnn1, and `density` prints the density of w3a after
a map to random Fourier features.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC, LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from solvers import FourierFeatures, PerfSVC

CS = (1 / 16, 1.0)
SETS = {"reuters": (8315, 7770), "w3a": (300, 49749), "a9a": (123, 32561), "news20-bydate": (130107, 11314)}
HEADER = f"{'set':14} {'C':>6} {'rounds':>6} {'ours, s':>8} {'SVC, s':>8} {'ratio':>6} {'LinearSVC':>9}"
SHORT = 2.0  # seconds; shorter calls are measured three times


def load(name, folder, n_features, n_rows):
    """Return the first samples of a set, and whether each belongs to the last class."""
    with lzma.open(folder / f"{name}.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=n_features)
    return X[:n_rows], np.where(y[:n_rows] == y.max(), 1, 0)


def seconds_of(call):
    """Return the CPU seconds of a call, the minimum of three if it is short, and its result."""
    seconds, result = [], None
    while not seconds or (len(seconds) < 3 and seconds[0] < SHORT):
        started = time.process_time()
        result = call()
        seconds.append(time.process_time() - started)
    return min(seconds), result


def objective(w, X, y, C):
    """Return F1 of a linear machine without a bias."""
    return 0.5 * w @ w + C * np.maximum(1.0 - (2.0 * y - 1.0) * (X @ w), 0.0).sum()


def linear(sets, folder):
    """Print times and objectives of the linear kernel."""
    PerfSVC().fit(np.eye(4), [0, 1, 0, 1])  # compiled
    print(HEADER, f"{'excess':>7} gap")
    for name in sets:
        if not (folder / f"{name}.libsvm.xz").exists():
            print(f"{name}: no file")
            continue
        X, y = load(name, folder, *SETS[name])
        for C in CS:
            ours_seconds, ours = seconds_of(lambda X=X, y=y, C=C: PerfSVC(C).fit(X, y))
            libsvm = SVC(C=C, kernel="linear", cache_size=600)
            their_seconds, _ = seconds_of(lambda X=X, y=y, svc=libsvm: svc.fit(X, y))
            options = {"loss": "hinge", "fit_intercept": False, "C": C, "max_iter": 10**6}
            descent_seconds, _ = seconds_of(lambda X=X, y=y, o=options: LinearSVC(**o).fit(X, y))
            exact = objective(LinearSVC(**options, tol=1e-8).fit(X, y).coef_[0], X, y, C)
            excess = (ours.objective_ - exact) / (C * y.size * ours.tol)
            print(
                f"{name:14} {C:6.4g} {ours.n_iter_[0]:6} {ours_seconds:8.3f} {their_seconds:8.2f} "
                f"{their_seconds / ours_seconds:6.1f} {descent_seconds:9.2f} {excess:7.2f} {ours.gap_:.4f}",
                flush=True,
            )


def basis(folder):
    """Print times, objectives and accuracies of the Gaussian kernel on a basis, on 10,000 rows of ijcnn1."""
    X, y = load("ijcnn1", folder, 22, None)
    X, y, tests, answers = X[:10_000].toarray(), y[:10_000], X[49_990:].toarray(), y[49_990:]
    for C in (1.0, 16.0):
        seconds, model = seconds_of(lambda C=C: SVC(C=C, gamma=1.0).fit(X, y))
        n_vectors = model.n_support_.sum()
        print(f"SVC C={C:g}: {seconds:.2f} s, {n_vectors} vectors, {model.score(tests, answers):.4f}")
        for n_basis in (100, 300, 1000):
            for kind in ("preimage", "random"):
                machine = PerfSVC(C, kernel="rbf", gamma=1.0, n_basis=n_basis, basis=kind, random_state=0)
                seconds, model = seconds_of(lambda machine=machine: machine.fit(X, y))
                print(
                    f"{kind:8} {n_basis:4}: {seconds:6.2f} s, {model.n_iter_[0]} rounds, "
                    f"F1 {model.objective_:.1f}, gap {model.gap_:.4f} (basis {model.gap_basis_:.4f}), "
                    f"{model.score(tests, answers):.4f}",
                    flush=True,
                )


def density(folder):
    """Print the share of values that are not 0 after a map to random Fourier features."""
    X, _ = load("w3a", folder, *SETS["w3a"])
    Z = FourierFeatures(1000, gamma=1.0, random_state=0).fit_transform(X)
    print(f"w3a: density {100 * np.count_nonzero(Z) / Z.size:.1f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["linear", "basis", "density"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part == "linear":
            linear(arguments.sets, arguments.data)
        else:
            {"basis": basis, "density": density}[part](arguments.data)
