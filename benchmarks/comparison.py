"""Compare the cost of `svmbench.compare` without a search with that of `cross_validate`, in one process.

    python -m benchmarks.comparison [REPEATS]

Both train a forest and an SVC on wine, on the same five folds. Times are CPU seconds on one thread, after
imports and one round that is not counted. The target is 1.5 times the seconds of `cross_validate`, and 1 s.
"""

import os
import sys
import time

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before numpy is imported

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.svm import SVC

import svmbench


def measure(X, y):
    """Return the CPU seconds of `cross_validate` and of `svmbench.compare`."""
    estimators = {"forest": RandomForestClassifier(random_state=0), "svc": SVC()}
    started = time.process_time()
    for estimator in estimators.values():
        cross_validate(estimator, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    theirs = time.process_time() - started
    started = time.process_time()
    svmbench.compare(X, y, estimators, cluster="serial", progress=False)
    return theirs, time.process_time() - started


def main(repeats=5):
    """Print both times of each round, and how many rounds met the target."""
    X, y = load_wine(return_X_y=True)
    measure(X, y)
    rounds = [measure(X, y) for _ in range(repeats)]
    for theirs, ours in rounds:
        print(f"cross_validate {theirs:.2f} s, compare {ours:.2f} s, target {1.5 * theirs + 1:.2f} s")
    print(f"met in {sum(ours < 1.5 * theirs + 1 for theirs, ours in rounds)} of {repeats} rounds")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
