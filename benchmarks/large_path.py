"""Measure large training sets beside LIBSVM: paths of C, cold fits and predictions, side by side.

    python benchmarks/large_path.py --data DIR [path] [path_l2] [fit] [objective] [floor]
                                    [--sets shuttle-10000-4 …] [--alone] [--solvers …]

`DIR` holds files NAME.libsvm.xz. The script prints the names of missing files and omits them. Features are
scaled to [0, 1], but those of reuters, which stay sparse. The samples are drawn once with a fixed seed. Times
are CPU seconds of one thread without compilation. Plain NumPy computes the largest violation of each path
again, in float64, over every pair and every C. Peak memory is that of a separate process.

`path` measures the L1 loss, and `path_l2` the other solvers. Sets of 50,000 samples, such as ijcnn1-50000-4,
are measured by ``path --alone``, and a9a-48842-1/64 with ``--cache-size 400``. `objective` compares the dual
objectives of a path with those of SVC at tol = 10⁻⁵ for some C. `floor` compares the kernel values that
a path computes with those that its certificates need: one for each support vector and each sample of its pair
of classes. They are counted once for each C, and once for all C, as a joint certificate would need them.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import lzma
import resource
import subprocess
import sys
import time
from itertools import combinations, product
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from solvers import MNSVC, SMOSVC, NewtonSVC

CS = 4.0 ** np.arange(-2, 6)
FEATURES = {
    "shuttle": 9,
    "covtype": 54,
    "a9a": 123,
    "usps": 256,
    "ijcnn1": 22,
    "letter": 16,
    "reuters": 8315,
    "mnist": 784,
}
SPARSE = {"reuters"}
PATHS = [
    *("shuttle-10000-4", "shuttle-10000-1/16", "covtype-6000-1/4", "covtype-20000-1/4", "a9a-6000-1/64"),
    *("a9a-20000-1/64", "usps-9298-1/64", "ijcnn1-10000-4", "ijcnn1-40000-4", "letter-10000-4"),
]
FITS = [
    *("shuttle-20000-4", "ijcnn1-20000-4", "a9a-20000-1/64", "covtype-20000-1/4", "reuters-8000-1"),
    "mnist-40000-1/64",  # its features take more than half of the default cache_size
]
FIT_CS = (1.0, 64.0)
SOLVERS = {
    "smo_l1": SMOSVC,
    "smo_l2": lambda **parameters: SMOSVC(loss="l2", **parameters),
    "newton": NewtonSVC,
    "mnsvm": lambda **parameters: MNSVC(random_state=0, **parameters),
}
PREDICTED = 3000
SHORT = 2.0  # seconds; shorter calls are measured three times
HEADER = f"{'set':20} {'SVC, s':>8} {'ours, s':>8} {'ratio':>6}"
HEADERS = {
    "path": f"{HEADER} {'violation':>10} {'peak, GB':>8}",
    "floor": f"{'set':20} {'computed':>9} {'each C':>9} {'ratio':>6} {'all C':>9} {'ratio':>6}",
}


def load(name, folder):
    """Return the samples of a set such as ``"covtype-6000-1/4"``, scaled to [0, 1], their labels and γ."""
    dataset, n, gamma = name.split("-")
    with lzma.open(folder / f"{dataset}.libsvm.xz") as file:
        X, y = load_svmlight_file(file, n_features=FEATURES[dataset])
    rows = np.random.default_rng(0).permutation(y.size)[: int(n)]
    over, _, under = gamma.partition("/")
    samples = X[rows] if dataset in SPARSE else minmax_scale(X[rows].toarray())
    return samples, y[rows], float(over) / float(under or 1)


def seconds_of(call):
    """Return the CPU seconds of a call, the minimum of three if it is short, and its result."""
    seconds, result = [], None
    while not seconds or (len(seconds) < 3 and seconds[0] < SHORT):
        started = time.process_time()
        result = call()
        seconds.append(time.process_time() - started)
    return min(seconds), result


def compile_all(solvers=()):
    """Call every timed function once, with large and with small pairs of classes, to compile it."""
    rng = np.random.default_rng(0)
    X = rng.random((7200, 3))
    y = (X[:, 0] + 0.2 * rng.standard_normal(7200) > 0.5).astype(int)
    y[:300], y[300:600] = 2, 3
    SMOSVC(gamma=4.0).fit_path(X, y, CS[2:5])
    wide = np.hstack((X, X))[1200:]  # their kernel is larger than the default cache_size
    for solver in solvers:
        for C in (1.0, 64.0):
            SOLVERS[solver](gamma=4.0, C=C).fit(wide, y[1200:]).predict(wide[:100])


def signed_weights(problem, weights):
    """Yield the rows of each pair of classes, their signs, and their signed weights for every C."""
    start = problem.class_start
    for i, j in combinations(range(problem.classes.size), 2):
        places = np.r_[start[i] : start[i + 1], start[j] : start[j + 1]]
        sign = np.repeat([1.0, -1.0], np.diff(start)[[i, j]])
        yield (
            problem.rows[places],
            sign,
            np.where(sign > 0, weights[:, j - 1, places], -weights[:, i, places]),
        )


def largest_violation(solution, X, gamma):
    """Return the largest violation of all pairs and C, in float64, without code of the solver."""
    problem, largest = solution.problem, 0.0
    for rows, sign, weights in signed_weights(problem, solution.weights):
        first, F = sign > 0, np.empty_like(weights)
        support = np.flatnonzero(weights.any(axis=0))
        squares = (X[rows] ** 2).sum(axis=1)
        for part in np.array_split(np.arange(rows.size), 1 + rows.size * support.size // 4_000_000):
            D = squares[part, None] + squares[support] - 2.0 * X[rows[part]] @ X[rows[support]].T
            F[:, part] = weights[:, support] @ np.exp(-gamma * np.maximum(D, 0.0)).T - sign[part]
        for k, C in enumerate(problem.Cs):
            grow, shrink = weights[k] < np.where(first, C, 0.0), weights[k] > np.where(first, 0.0, -C)
            if grow.any() and shrink.any():
                largest = max(largest, F[k, shrink].max() - F[k, grow].min())
    return largest


def path(name, folder, with_peer=True, cache_size=200):
    """Print one line for a set."""
    X, y, gamma = load(name, folder)
    compile_all()
    solutions = keep_solutions()
    ours, fitted = seconds_of(lambda: SMOSVC(gamma=gamma, cache_size=cache_size).fit_path(X, y, CS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    assert fitted.converged_.all()
    peer = np.nan
    if with_peer:
        peer, _ = seconds_of(lambda: [SVC(C=C, gamma=gamma).fit(X, y) for C in CS])
    violation = largest_violation(solutions[-1], X, gamma)
    print(f"{name:20} {peer:8.2f} {ours:8.3f} {peer / ours:6.1f} {violation:10.1e} {peak:8.2f}", flush=True)


def path_l2(name, folder, solvers, with_peer=True):
    """Print one line for each solver, except the one with the L1 loss."""
    X, y, gamma = load(name, folder)
    solvers = [solver for solver in solvers if solver != "smo_l1"]
    compile_all(solvers)
    peer = np.nan
    if with_peer:
        peer, _ = seconds_of(lambda: [SVC(C=C, gamma=gamma).fit(X, y) for C in CS])
    for solver in solvers:
        # Compile the functions that these samples use.
        SOLVERS[solver](gamma=gamma).fit_path(X[:4000], y[:4000], CS)
        ours, fitted = seconds_of(lambda solver=solver: SOLVERS[solver](gamma=gamma).fit_path(X, y, CS))
        line = f"{name:20} {peer:8.2f} {ours:8.3f} {peer / ours:6.1f}   {solver}"
        print(line if fitted.converged_.all() else f"{line}, not all certified", flush=True)


def floor(name, folder, solvers, cache_size=200):
    """Print the kernel values that the path of each solver computes, and those that it needs, in millions."""
    X, y, gamma = load(name, folder)
    solutions = keep_solutions()
    for solver in solvers:
        fitted = SOLVERS[solver](gamma=gamma, cache_size=cache_size).fit_path(X, y, CS)
        for_each, for_all = values_needed(solutions[-1])
        computed = 1e-6 * fitted.n_kernel_evals_.sum()
        line = f"{name:20} {computed:9.0f} {for_each:9.0f} {computed / for_each:6.1f}"
        print(f"{line} {for_all:9.0f} {computed / for_all:6.1f}   {solver}", flush=True)


def values_needed(solution):
    """Return the kernel values that certificates need, in millions: for one C at a time, and for all C."""
    for_each = for_all = 0.0
    for rows, _, weights in signed_weights(solution.problem, solution.weights):
        for_each += 1e-6 * rows.size * np.count_nonzero(weights)
        for_all += 1e-6 * rows.size * np.count_nonzero(weights.any(axis=0))
    return for_each, for_all


def keep_solutions():
    """Return a list that receives the weights of all samples of each path trained from now on."""
    from solvers.path.result import PathSolution

    solutions, on_used_rows = [], PathSolution.on_used_rows

    def keep(self):
        solutions.append(self)
        return on_used_rows(self)

    PathSolution.on_used_rows = keep
    return solutions


def objective(name, folder, cache_size=200):
    """Print the dual objective of all pairs of SVC and of a path, in float64, for each of `FIT_CS`."""
    X, y, gamma = load(name, folder)
    solutions = keep_solutions()
    SMOSVC(gamma=gamma, cache_size=cache_size).fit_path(X, y, CS)
    problem, of_path = solutions[-1].problem, solutions[-1].weights
    place = np.empty(y.size, np.int64)
    place[problem.rows] = np.arange(y.size)
    for C in FIT_CS:
        svc = SVC(C=C, gamma=gamma, tol=1e-5).fit(X, y)
        of_svc = np.zeros((1, *of_path.shape[1:]))
        of_svc[0][:, place[svc.support_]] = np.abs(svc.dual_coef_)
        k = np.flatnonzero(CS == C)
        ours, theirs = (dual_objective(problem, weights, X, gamma) for weights in (of_path[k], of_svc))
        print(f"{name + f' C={C:g}':26} {theirs:.8g} {ours:.8g} {ours / theirs - 1:+.1e}", flush=True)


def dual_objective(problem, weights, X, gamma):
    """Return Σα − ½ αᵀQα of all pairs of classes for one C."""
    total = 0.0
    for rows, _, (beta,) in signed_weights(problem, weights):
        rows, beta = rows[beta != 0.0], beta[beta != 0.0]
        total += np.abs(beta).sum()
        for part in np.array_split(np.arange(rows.size), 1 + rows.size**2 // 4_000_000):
            total -= 0.5 * beta[part] @ rbf_kernel(X[rows[part]], X[rows], gamma=gamma) @ beta
    return total


def fit_and_predict(name, folder, solvers, with_peer=True):
    """Print one line for each C and solver, and one for predictions."""
    X, y, gamma = load(name, folder)
    compile_all(solvers)
    for solver, C in product(solvers, FIT_CS):  # part of this set may be solved by other methods
        SOLVERS[solver](C=C, gamma=gamma).fit(X[:6000], y[:6000])
    for C in FIT_CS:
        (peer, svc), models = (np.nan, None), []
        if with_peer:
            peer, svc = seconds_of(lambda C=C: SVC(C=C, gamma=gamma).fit(X, y))
        for solver in solvers:
            ours, model = seconds_of(lambda C=C, s=solver: SOLVERS[s](C=C, gamma=gamma).fit(X, y))
            line = f"{name + f' C={C:g}':26} {peer:8.2f} {ours:8.3f} {peer / ours:6.1f}   {solver}"
            print(line if model.converged_ else f"{line}, not certified", flush=True)
            models.append(model)
        if svc is None:
            continue
        samples, n = X[:PREDICTED], min(PREDICTED, y.size)
        ours, _ = seconds_of(lambda model=models[0], samples=samples: model.predict(samples))
        peer, _ = seconds_of(lambda svc=svc, samples=samples: svc.predict(samples))
        ours, peer = 1e6 * ours / n, 1e6 * peer / n
        line = f"{name + f' C={C:g}':26} {peer:8.2f} {ours:8.3f} {peer / ours:6.1f}"
        print(f"{line}   predict by {solvers[0]}, µs a sample")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "parts", nargs="*", default=["path", "fit"], metavar="path|path_l2|fit|objective|floor"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", help="names of sets, such as covtype-6000-1/4")
    parser.add_argument("--alone", action="store_true", help="do not measure SVC")
    parser.add_argument(
        "--solvers",
        nargs="*",
        choices=SOLVERS,
        default=list(SOLVERS),
        help="solvers of fit, path_l2 and floor",
    )
    parser.add_argument("--cache-size", type=float, default=200, help="cache_size of paths, in MB")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        if arguments.parts == ["path"]:
            path(arguments.one, arguments.data, not arguments.alone, arguments.cache_size)
        elif arguments.parts == ["objective"]:
            objective(arguments.one, arguments.data, arguments.cache_size)
        elif arguments.parts == ["floor"]:
            floor(arguments.one, arguments.data, arguments.solvers, arguments.cache_size)
        elif arguments.parts == ["path_l2"]:
            path_l2(arguments.one, arguments.data, arguments.solvers, not arguments.alone)
        else:
            fit_and_predict(arguments.one, arguments.data, arguments.solvers, not arguments.alone)
        return
    for part in arguments.parts:
        print(HEADERS.get(part, HEADER), flush=True)
        for name in arguments.sets or (FITS if part in ("fit", "objective") else PATHS):
            if not (arguments.data / f"{name.partition('-')[0]}.libsvm.xz").exists():
                print(f"({name}: not in {arguments.data}, omitted)")
                continue
            # Each set runs in its own process, whose peak memory is that of the set.
            command = [sys.executable, __file__, part, "--data", str(arguments.data), "--one", name]
            command += ["--cache-size", str(arguments.cache_size)]
            command += ["--alone"] * arguments.alone + ["--solvers", *arguments.solvers]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
