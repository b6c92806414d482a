"""Measure representative sets, their bounds on all samples, and the training on them.

    python -m benchmarks.representatives --data DIR [derive] [sizes] [growth] [bounds] [speed] [fit]
                                                    [polish] [baseline] [ratios]

`DIR` holds files NAME.libsvm.xz. Seconds are CPU seconds of one thread, without compilation. Features are not
scaled, as in Nandan et al. (2014).

`derive` prints the size of the set and the seconds for the training rows of D4 (covtype, one fold), D5
(ijcnn1), D6 (a9a), D8 (mnist) and D9 (w3a) beside those of the paper. `sizes` prints the size by ε at γ = 1
for D4 and D5. `growth` prints seconds by number of rows, and the seconds of one and of two threads. Covtype
has 10⁶ rows there: those beyond its own are copies with noise. `bounds` prints the gaps by the cheap and by
the exact bound, beside the bound of the paper, 2 C √(C ε) with C = n C', as a share of the objective. `speed`
compares the training with LIBSVM and `SMOSVC` on the first rows of ijcnn1. `fit` does so for single values of
C and prints accuracies on the 20,000 rows that follow. `polish` prints the seconds of the rounds on all
samples of D5 and D6 at γ = 1 and C = 16, beside those of `SMOSVC` from scratch.

`baseline` trains paths of `SMOSVC` on the published splits of ijcnn1 and a9a, and with four values of C on
that of mnist, which takes 9 GB of memory. It prints maximum, mean and standard deviation of the accuracy on
the test rows over the points, and the mean number of vectors.
`ratios` prints the seconds of `AESVC`, `SVC` and `SMOSVC` at some points of the grid on the published splits
of ijcnn1 and kdd99, with accuracies on 20,000 random test rows.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

from orchestrator.datasets import kdd99_distinct, libsvm_split
from solvers import AESVC, SMOSVC
from solvers.kernels.functions import RBF, Kernel, for_samples
from solvers.reduction.certificate import Reduced, bounds_of
from solvers.reduction.copies import first_copies
from solvers.reduction.representatives import derive_rs

# Name, file, number of training rows, positive label, published M/N in per cent and seconds at γ = 1.
SETS = {
    "D5": ("ijcnn1", 49_990, 31.8, 18),
    "D6": ("a9a", 32_561, 83.9, 9),
    "D8": ("mnist", 60_000, 100.0, 70),
    "D9": ("w3a", 49_749, 72.7, 16),
    "D4": ("covtype", 464_809, 20.7, 139),
}
POSITIVE = {"mnist": 0.0, "covtype": 2.0}
MOST_DENSE = 0.3
EPSILON = 1e-3

CS = 2.0 ** np.arange(-4, 8)
FEW_CS = 2.0 ** np.array([-4, -1, 3, 7])
GAMMAS = 2.0 ** np.arange(-4, 3)
POINTS = [(gamma, C) for gamma in (1.0, 0.25, 0.0625, 4.0) for C in (0.0625, 1.0, 16.0)]


def load(folder, name, n=None):
    """Return samples, dense or CSR by their density, and labels of two classes."""
    with lzma.open(folder / f"{name}.libsvm.xz") as file:
        X, y = load_svmlight_file(file)
    if name == "mnist":
        X = X / 255.0
    if name == "covtype":
        X = X.multiply(1.0 / np.maximum(X.max(axis=0).toarray(), 1e-300)).tocsr()
    if name in POSITIVE:
        y = np.where(y == POSITIVE[name], 1.0, -1.0)
    X, y = X[:n], y[:n]
    return (X.toarray() if X.nnz > MOST_DENSE * X.shape[0] * X.shape[1] else sparse.csr_matrix(X)), y


def derived(X, y, gamma=1.0, epsilon=EPSILON, **options):
    """Return the representatives of a Gaussian kernel, and the CPU and wall seconds."""
    kernel, samples = for_samples(Kernel(RBF, gamma), X)
    cpu, wall = time.process_time(), time.perf_counter()
    found = derive_rs(samples, y, kernel, epsilon, **options)
    return found, time.process_time() - cpu, time.perf_counter() - wall


def derive(folder):
    print(
        f"{'set':4} {'rows':>7} {'γ':>6} {'M/N, %':>7} {'paper':>6} {'CPU s':>7} {'paper':>6} {'distinct':>8}"
    )
    for name, (file, n, share, seconds) in SETS.items():
        if not (folder / f"{file}.libsvm.xz").exists():
            print(f"{name}: {file}.libsvm.xz is missing")
            continue
        X, y = load(folder, file, n)
        distinct = sum(np.unique(first_copies(X, np.flatnonzero(y == label))).size for label in np.unique(y))
        for gamma in (0.0625, 1.0):
            found, cpu, _ = derived(X, y, gamma)
            published = (share, seconds) if gamma == 1.0 else ("", "")
            print(
                f"{name:4} {y.size:7} {gamma:6g} {100 * found.rows.size / y.size:7.1f} {published[0]:>6} "
                f"{cpu:7.1f} {published[1]:>6} {100 * distinct / y.size:8.1f}",
                flush=True,
            )


def sizes(folder):
    for name, epsilons in {"D4": (1e-3, 1.2e-3, 1.5e-3, 2e-3), "D5": (1e-3, 1e-2, 1.5e-2)}.items():
        file, n, share, _ = SETS[name]
        X, y = load(folder, file, n)
        for epsilon in epsilons:
            found, cpu, _ = derived(X, y, epsilon=epsilon)
            print(
                f"{name}, ε = {epsilon:g}: M/N {100 * found.rows.size / y.size:.1f} %, {cpu:.1f} s "
                f"(paper: {share} % at 1e-3)",
                flush=True,
            )


def rows_to_grow(folder, name, most):
    """Return samples and labels of a set for `growth`."""
    rng = np.random.default_rng(0)
    if name == "checkers":
        X = rng.random((most, 2))
        return X, np.floor(4 * X).sum(axis=1) % 2
    if name == "kdd99":
        X, _, y, _ = published(name, folder)
        return X, y
    X, y = load(folder, name)
    more = rng.permutation(y.size)[: most - y.size]
    copies = X[more]
    copies.data += 1e-3 * rng.standard_normal(copies.nnz)
    return sparse.vstack((X, copies), format="csr"), np.append(y, y[more])


def growth(folder):
    rng = np.random.default_rng(1)
    for name, most in (("checkers", 1_000_000), ("covtype", 1_000_000), ("kdd99", 145_584)):
        X, y = rows_to_grow(folder, name, most)
        numbers = [n for n in (10_000, 100_000, 1_000_000) if n < most] + [most]
        seconds = []
        for n in numbers:
            rows = np.sort(rng.permutation(most)[:n])
            found, cpu, _ = derived(X[rows], y[rows])
            seconds.append(cpu)
            print(f"{name} {n:8} rows: {cpu:7.2f} s, M/N {100 * found.rows.size / n:.1f} %", flush=True)
        print(f"{name}: exponent {np.polyfit(np.log(numbers), np.log(seconds), 1)[0]:.2f}")
    X, y = load(folder, "ijcnn1", 49_990)
    one, two = (min(derived(X, y, n_jobs=jobs)[2] for _ in range(3)) for jobs in (1, 2))
    print(f"ijcnn1, wall seconds of 1 and 2 threads: {one:.2f} {two:.2f}, ratio {one / two:.2f}")


def bounds(folder):
    X, y = load(folder, "ijcnn1", 5_000)
    print(f"{'ε':>7} {'C':>7} {'excess':>9} {'exact':>9} {'cheap':>9} {'paper':>9}")
    kernel, samples = for_samples(Kernel(RBF, 1.0), X)
    for epsilon in (1e-2, 1e-3, 1e-5):
        found = derive_rs(samples, y, kernel, epsilon)
        rows = found.rows
        reduced = Reduced(
            *(samples, kernel, np.arange(y.size), y, np.ones(y.size)), *(found.gamma, found.errors, rows)
        )
        for C in (0.01, 1.0, 100.0):
            best = -SMOSVC(C=C, gamma=1.0, tol=1e-6).fit(X, y).objective_
            model = SMOSVC(C=C, gamma=1.0, tol=1e-6).fit(X[rows], y[rows], found.beta)
            signed = np.zeros((1, rows.size))
            signed[0, model.support_] = model.dual_coef_[0]
            of_C = signed, model.intercept_, np.array([C])
            found_bounds = bounds_of(reduced, *of_C, np.inf, 1e8)
            F1, total = found_bounds.primal[0], C * y.size
            lower = best, found_bounds.exact[0], found_bounds.cheap[0]
            gaps = [1.0 - value / F1 for value in lower] + [2.0 * total * np.sqrt(total * epsilon) / F1]
            print(f"{epsilon:7g} {C:7g} " + " ".join(f"{gap:9.2g}" for gap in gaps), flush=True)


def speed(folder):
    Cs = 2.0 ** np.arange(-4, 8)
    X, y = load(folder, "ijcnn1", 10_000)
    print(f"{'γ':>6} {'SVC, s':>8} {'smo_l1':>8} {'AESVC':>8} {'reduction':>10} {'bounds':>8}  (12 C, CPU s)")
    for gamma in (0.0625, 1.0, 4.0):
        seconds = []
        for kind in (SVC, SMOSVC):
            start = time.process_time()
            for C in Cs:
                kind(C=C, gamma=gamma, cache_size=600).fit(X, y)
            seconds.append(time.process_time() - start)
        start = time.process_time()
        path = AESVC(gamma=gamma, cache_size=600).fit_path(X, y, Cs)
        whole = time.process_time() - start
        shares = np.array([path.fit_seconds_.sum(), path.reduction_seconds_, path.certificate_seconds_])
        training, reduction, bound = whole * shares / shares.sum()
        print(
            f"{gamma:6g} {seconds[0]:8.2f} {seconds[1]:8.2f} {training:8.2f} {reduction:10.2f} {bound:8.2f}",
            flush=True,
        )


def fit(folder):
    X, y = load(folder, "ijcnn1", 30_000)
    train, test = slice(0, 10_000), slice(10_000, 30_000)
    print(f"{'C':>6} {'solver':>12} {'CPU s':>7} {'vectors':>8} {'accuracy':>8}")
    for C in (0.25, 1.0, 16.0):
        for name, model in {
            "SVC": SVC(C=C, gamma=1.0, cache_size=600),
            "smo_l1": SMOSVC(C=C, gamma=1.0, cache_size=600),
            "aesvm 1e-3": AESVC(C=C, gamma=1.0, cache_size=600),
            "aesvm 1e-2": AESVC(C=C, gamma=1.0, epsilon=1e-2, cache_size=600),
        }.items():
            start = time.process_time()
            model.fit(X[train], y[train])
            seconds = time.process_time() - start
            print(
                f"{C:6g} {name:>12} {seconds:7.2f} {model.support_.size:8} "
                f"{100 * (model.predict(X[test]) == y[test]).mean():8.2f}",
                flush=True,
            )


def polish(folder):
    for name in ("D5", "D6"):
        file, n, *_ = SETS[name]
        X, y = load(folder, file, n)
        found, of_set, _ = derived(X, y)
        seconds = []
        for model, samples in (
            (SMOSVC(C=16.0, gamma=1.0, cache_size=600), (X, y)),
            (SMOSVC(C=16.0, gamma=1.0, cache_size=600), (X[found.rows], y[found.rows], found.beta)),
            (AESVC(C=16.0, gamma=1.0, polish=50, cache_size=600), (X, y)),
        ):
            start = time.process_time()
            model.fit(*samples)
            seconds.append(time.process_time() - start)
            print(f"{name}: {type(model).__name__} {seconds[-1]:.2f} s, gap {model.gap_:.1e}", flush=True)
        print(f"{name}: rounds {seconds[2] - seconds[1] - of_set:.2f} s, the set {of_set:.2f} s", flush=True)


def published(name, folder):
    """Return the training rows, the test rows, and the labels of both, of a published split."""
    if name == "kdd99":
        X, y, about = kdd99_distinct("kdd99-10pct", folder)
    else:
        options = {
            "ijcnn1": {"n_features": 22, "n_train": 49_990},
            "a9a": {"n_features": 123, "n_train": 32_561},
            "mnist": {"n_features": 784, "n_train": 60_000, "positive": 0, "divide": 255},
        }[name]
        X, y, about = libsvm_split(name, folder, **options)
    is_train = about["test_fold"] == -1
    return X[is_train], X[~is_train], y[is_train], y[~is_train]


def baseline(folder):
    for name, values, cache in (("ijcnn1", CS, 600), ("a9a", CS, 600), ("mnist", FEW_CS, 9_000)):
        X, tests, y, answers = published(name, folder)
        scores, vectors = [], []
        start = time.process_time()
        for gamma in GAMMAS:
            path = SMOSVC(gamma=gamma, cache_size=cache).fit_path(X, y, values)
            scores.append([100 * (labels == answers).mean() for labels in path.predict_path(tests)])
            vectors.append(path.sv_share_ * y.size)
        for step in (1, 2) if values is CS else (1,):
            of_points, count = np.array(scores)[::step, ::step], np.array(vectors)[::step, ::step].mean()
            print(
                f"{name}, {of_points.size} points: maximum {of_points.max():.2f}, "
                f"mean {of_points.mean():.2f}, deviation {of_points.std():.2f}, {count:,.0f} vectors"
            )
        print(f"{name}: {time.process_time() - start:.0f} s with the predictions", flush=True)


def ratios(folder):
    print(f"{'set':8} {'γ':>6} {'C':>6} {'solver':>8} {'CPU s':>7} {'vectors':>8} {'accuracy':>8}")
    for name in ("ijcnn1", "kdd99"):
        X, tests, y, answers = published(name, folder)
        some = np.random.default_rng(0).permutation(answers.size)[:20_000]
        tests, answers = tests[some], answers[some]
        reduced = {}
        for gamma, C in POINTS:
            if gamma not in reduced:
                reduced[gamma], cpu, _ = derived(X, y, gamma)
                print(f"{name:8} {gamma:6g} {'':6} {'set':>8} {cpu:7.2f} {reduced[gamma].rows.size:8}")
            found = reduced[gamma]
            on_all = X, y
            on_set = X[found.rows], y[found.rows], found.beta
            for solver, kind, samples in (
                ("AESVC", SMOSVC, on_set),
                ("SMOSVC", SMOSVC, on_all),
                ("SVC", SVC, on_all),
            ):
                start = time.process_time()
                model = kind(C=C, gamma=gamma, cache_size=600).fit(*samples)
                seconds = time.process_time() - start
                score = 100 * (model.predict(tests) == answers).mean()
                shown = f"{seconds:7.2f} {model.support_.size:8} {score:8.2f}"
                print(f"{name:8} {gamma:6g} {C:6g} {solver:>8} {shown}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    modes = {
        "derive": derive,
        "sizes": sizes,
        "growth": growth,
        "bounds": bounds,
        "speed": speed,
        "fit": fit,
        "polish": polish,
        "baseline": baseline,
        "ratios": ratios,
    }
    parser.add_argument("modes", nargs="*", choices=[[], *modes], help="what to measure")
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets")
    args = parser.parse_args()
    X = np.random.default_rng(0).random((3_500, 4))  # compile first
    y = np.where(X[:, 0] + X[:, 1] > 1.0, 1.0, -1.0)
    for solver in (AESVC(), SMOSVC()):
        solver.fit(X, y)
        solver.fit_path(X, y, [1.0, 2.0])
    AESVC(polish=1).fit(X, y)
    for mode in args.modes or modes:
        modes[mode](args.data)


if __name__ == "__main__":
    main()
