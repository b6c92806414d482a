"""Measure the CPU seconds of `EllipsoidSVC` beside `SVC`, and how they grow with the number of rows.

    python -m benchmarks.ellipsoid DATA [N …]

DATA is a folder with the files of banana and adult (a9a). Each line is one fit of one thread. Run it on an
idle host, because other processes lengthen CPU seconds as well.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from orchestrator.datasets import libsvm_file
from solvers import EllipsoidSVC

GAMMA = {"banana": 2.0, "a9a": 0.0078125}
"""Width γ of the kernel by dataset. The features of banana are standardised, those of a9a are 0 or 1."""
N_FEATURES = {"banana": 2, "a9a": 123}


def rows_of(name, n, folder):
    """Return random rows of a dataset and their labels. Features of banana are standardised.

    Parameters
    ----------
    name : str
        Name of the dataset.
    n : int
        Number of rows.
    folder : str
        Folder of its file.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        Labels.
    """
    features, labels = libsvm_file(name=name, folder=folder, n_features=N_FEATURES[name])
    chosen = np.random.default_rng(0).permutation(labels.size)[:n]
    X = features[chosen]
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return StandardScaler().fit_transform(X) if name == "banana" else X, labels[chosen]


def measure(name, n, folder):
    """Print one line for each machine.

    Parameters
    ----------
    name : str
        Name of the dataset.
    n : int
        Number of rows.
    folder : str
        Folder of its file.
    """
    X, y = rows_of(name, n, folder)
    gamma = GAMMA[name]
    machines = {"SVC": SVC(C=1.0, gamma=gamma), "esvm": EllipsoidSVC(C=1.0, gamma=gamma, cache_size=4000)}
    if n <= 1000:
        machines["esvm_smo"] = EllipsoidSVC(C=1.0, gamma=gamma, solver="smo", cache_size=4000)
        machines["esvm_hard"] = EllipsoidSVC(margin="hard", r=1 - 1e-6, gamma=gamma, cache_size=4000)
    for arm, model in machines.items():
        started = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - started
        rounds, gap = np.sum(getattr(model, "n_iter_", 0)), getattr(model, "gap_", np.nan)
        text = getattr(model, "stopping_", "")
        print(
            f"{name:7} {n:5} {arm:9} {seconds:8.2f} s  {rounds:6} rounds  gap {gap:.1e}  {text}", flush=True
        )


def main(arguments):
    """Measure all datasets and numbers of rows.

    Parameters
    ----------
    arguments : list of str
        Folder of the data, and numbers of rows.
    """
    folder, *numbers = arguments
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EllipsoidSVC().fit(np.eye(4), [0, 1, 0, 1])
        EllipsoidSVC(solver="smo").fit(np.eye(4), [0, 1, 0, 1])
        for n in map(int, numbers or ["250", "500", "1000", "2000", "4000"]):
            for name in GAMMA:
                measure(name, n, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
