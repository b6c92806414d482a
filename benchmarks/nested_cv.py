"""Measure nested cross-validation on one core: our studies beside scikit-learn, in one run.

    python benchmarks/nested_cv.py [--solvers smo_l1,newton] [--repeats 3] [--data DIR]
                                   [--peers SVC] DATASET…

All programs train on the same outer and inner folds and scale to [0, 1] on training rows. They search the
same 8 × 8 grid by mean inner accuracy, refit and score. Times are CPU seconds without compilation. Ours
include scheduling, storing and everything else between a configuration and its tables. Runs are repeated and
interleaved, and the table has medians. Each runs in its own forked process, whose peak memory is printed.

Solvers of the L1 loss are compared with LIBSVM: `SVC` in GridSearchCV, and `SVC(kernel="precomputed")` on
one Gram matrix for each split and γ. sklearnex, ThunderSVM and liquidSVM take part if they can be imported.
Solvers of the L2 loss are compared with SVC on K + I/C with an infinite C, which is the same problem except
for its bias.

Accuracies are mean ± standard error corrected for the training rows that folds share (descriptive σ/√n).
They show that both programs did the same work, and are not a comparison of accuracies. For a solver of the
L1 loss, the script lists the outer folds where its choice or score differs from that of SVC, and compares
objectives at equal C. Datasets that are not in scikit-learn are read from --data as NAME.libsvm.xz.
`letter` runs one outer fold by default; set --outer-folds to change this.
"""

import argparse
import gc
import importlib
import math
import multiprocessing
import os
import resource
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before numpy is imported
sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC

import orchestrator.engine.runner as main_loop
from orchestrator.analysis.summaries import corrected_standard_error, standard_error
from orchestrator.cli.display import display
from orchestrator.config.compose import check_settings, compose_settings
from orchestrator.datasets import open_prepared
from orchestrator.engine.load import read_results
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.runner import Runner
from orchestrator.execution.serial import SerialExecutor
from orchestrator.resampling.splits import Splits
from orchestrator.store.store import Store
from solvers import SMOSVC

main_loop.FLUSH_SECONDS = math.inf
"""Rows are written once, at the end, as in a short run on an idle host. On a busy host, a run of a tenth of a
CPU second takes many seconds of wall time, and would write as often."""
N_OUTER = 5
"""Number of outer folds of the rows. A run may use fewer of them."""
DEFAULT_DATASETS = ["iris", "wine", "breast_cancer", "digits", "banana", "satimage", "letter"]
L1 = ("smo_l1", "libsvm_l1")
"""Solvers of LIBSVM's problem. All others solve the L2-loss problem."""


@dataclass(frozen=True)
class Measured:
    """CPU seconds, outer accuracies and chosen (C, γ) of one nested cross-validation."""

    seconds: float
    scores: list[float]
    chosen: list[tuple[float, float]]
    peak_gib: float = 0.0
    best: list[set[tuple[float, float]]] = field(default_factory=list)
    """Candidates whose mean inner score is the best, up to rounding, by outer fold."""

    @property
    def accuracy(self) -> str:
        """Mean in per cent ± corrected standard error (descriptive standard error)."""
        scores = np.array(self.scores)
        text = f"{100 * scores.mean():.2f}"
        if len(scores) < 2:
            return text
        corrected = corrected_standard_error(scores, 1 / (N_OUTER - 1))
        return f"{text} ± {100 * corrected:.2f} ({100 * standard_error(scores):.2f})"


class FirstFolds(PreparedStudy):
    """Prepared study reduced to its first outer folds."""

    n_outer: int = N_OUTER

    def outer_folds(self, pair):
        return range(self.n_outer)


def measure_ours(
    dataset: str, solver: str, overrides: list[str], n_outer: int
) -> tuple[Measured, PreparedStudy]:
    """Run a study in this process and return its costs and scores."""
    with tempfile.TemporaryDirectory() as folder:
        said = [
            *overrides,
            f"study={solver}",
            f"datasets=[{dataset}]",
            f"solvers=[{solver}]",
            f"paths.results={folder}",
        ]
        settings = check_settings(compose_settings(said))
        prepared = prepare_study(settings)
        cut = FirstFolds(**vars(prepared))
        object.__setattr__(cut, "n_outer", n_outer)
        store = Store(Path(folder) / solver)
        with store.lock():
            declared = {"run_id": "benchmark", "number": 1, **prepared.declaration()}
            store.write_provenance("benchmark", declared)
            planned = prepared.planned_trials()
            runner = Runner(
                cut, store, SerialExecutor(), Progress(planned, display(Console(quiet=True))), "benchmark"
            )
            cpu = time.process_time()
            summary = runner.run()
            seconds = time.process_time() - cpu - summary.compile_seconds
        outer = read_results(store).outer.sort_values("outer")
        chosen = [*zip(outer["param_C"], outer["param_gamma"], strict=True)]
        return Measured(seconds, outer["score"].tolist(), chosen), prepared


def folds_of(prepared: PreparedStudy, dataset: str, n_outer: int):
    """Yield the training rows, the test rows and the inner splits of each outer fold."""
    source = prepared.sources[dataset]
    data, folds = open_prepared(source.folder), Splits.load(Path(source.folder), source.split_hash)
    X, y = data.X if sparse.issparse(data.X) else np.asarray(data.X), data.y
    for outer in range(n_outer):
        train, test = folds.train_test(outer)
        place = np.full(len(y), -1)
        place[train] = np.arange(len(train))
        inner = [
            tuple(place[rows] for rows in folds.train_test(outer, inner))
            for inner in range(folds.n_inner[outer])
        ]
        yield X[train], y[train], X[test], y[test], inner


def measure_sklearn(prepared: PreparedStudy, dataset: str, n_outer: int, kind: Callable = SVC) -> Measured:
    """Run scikit-learn's nested loop over the same folds."""
    space = next(iter(prepared.identities.values())).arm.space
    grid = {f"svc__{name}": list(values) for name, values in space.items()}
    scores, chosen, best = [], [], []
    cpu = time.process_time()
    for X, y, X_test, y_test, inner in folds_of(prepared, dataset, n_outer):
        scaler = MaxAbsScaler() if sparse.issparse(X) else MinMaxScaler()
        steps = [("scale", scaler), ("svc", kind())]
        search = GridSearchCV(Pipeline(steps), grid, cv=inner)
        search.fit(X, y)
        scores.append(search.score(X_test, y_test))
        chosen.append(_pair(search.best_params_))
        means = search.cv_results_["mean_test_score"]
        tied = np.flatnonzero(means > means.max() - 1e-9)
        best.append({_pair(search.cv_results_["params"][k]) for k in tied})
    return Measured(time.process_time() - cpu, scores, chosen, best=best)


def _pair(params: dict[str, float]) -> tuple[float, float]:
    return params["svc__C"], params["svc__gamma"]


def measure_precomputed(prepared: PreparedStudy, dataset: str, n_outer: int, l1: bool) -> Measured:
    """Run the nested loop with SVC on Gram matrices, each computed once for all C of a split."""
    space = next(iter(prepared.identities.values())).arm.space
    Cs, gammas = sorted(space["C"]), sorted(space["gamma"])
    scores, chosen = [], []
    cpu = time.process_time()
    for X, y, X_test, y_test, inner in folds_of(prepared, dataset, n_outer):
        accuracy = np.zeros((len(inner), len(Cs), len(gammas)))
        for k, (train, test) in enumerate(inner):
            distances = _scaled_distances(X[train], X[test])
            for j, gamma in enumerate(gammas):
                K, K_test = (np.exp(-gamma * each) for each in distances)
                for i, C in enumerate(Cs):
                    accuracy[k, i, j] = _score(K, y[train], K_test, y[test], C, l1)
        means = accuracy.mean(axis=0).round(12)
        i, j = np.unravel_index(means.argmax(), means.shape)
        K, K_test = (np.exp(-gammas[j] * each) for each in _scaled_distances(X, X_test))
        scores.append(_score(K, y, K_test, y_test, Cs[i], l1))
        chosen.append((Cs[i], gammas[j]))
    return Measured(time.process_time() - cpu, scores, chosen)


def _scaled_distances(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = MinMaxScaler().fit(X)
    X = scaler.transform(X)
    return tuple(euclidean_distances(A, X, squared=True) for A in (X, scaler.transform(X_test)))


def _score(K, y, K_test, y_test, C: float, l1: bool) -> float:
    if not l1:
        K = K + np.eye(len(K)) / C
    return SVC(kernel="precomputed", C=C if l1 else np.inf).fit(K, y).score(K_test, y_test)


def measure_liquidsvm(prepared: PreparedStudy, dataset: str, n_outer: int) -> Measured:
    """Run liquidSVM, whose own program does the inner folds, the grid and the refit.

    Its SVM of the hinge loss has no bias. It draws its own folds, so choices and scores may differ.
    """
    import liquidSVM

    space = next(iter(prepared.identities.values())).arm.space
    grid = {
        "gammas": [1 / math.sqrt(gamma) for gamma in space["gamma"]],  # its kernel is exp(−‖x − z‖²/γ²)
        "c_values": list(space["C"]),
    }
    scores = []
    cpu = time.process_time()
    for X, y, X_test, y_test, inner in folds_of(prepared, dataset, n_outer):
        scaler, (labels, codes) = MinMaxScaler().fit(X), np.unique(y, return_inverse=True)
        model = liquidSVM.mcSVM(
            *(scaler.transform(X), codes.astype(float)), folds=len(inner), threads=1, display=0, **grid
        )
        predicted = np.ravel(model.predict(scaler.transform(X_test))).astype(int)
        scores.append(float((labels[predicted] == y_test).mean()))
    return Measured(time.process_time() - cpu, scores, [])


def import_liquidsvm() -> bool:
    """Import liquidSVM, which looks for its library by a name that newer versions of Python do not define."""
    sysconfig.get_config_vars().setdefault("SO", sysconfig.get_config_var("EXT_SUFFIX"))
    return can_import("liquidSVM")


def can_import(module: str) -> bool:
    """Import a module, and print the reason if that fails."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError, NameError) as error:  # a library of another system is missing
        print(f"{module} is skipped: {error}")
        return False
    return True


def peers() -> dict[str, Callable[..., Measured]]:
    """Return the peers of solvers of the L1 loss, and print the missing packages."""
    found: dict[str, Callable[..., Measured]] = {
        "SVC": measure_sklearn,
        "SVC precomputed": partial(measure_precomputed, l1=True),
    }
    for package, module in (("sklearnex", "sklearnex.svm"), ("thundersvm", "thundersvm")):
        if can_import(module):
            found[package] = partial(measure_sklearn, kind=importlib.import_module(module).SVC)
    if import_liquidsvm():
        found["liquidSVM"] = measure_liquidsvm
    return found


def apart(function: Callable[..., Measured], *arguments) -> Measured:
    """Call a function in a fork of this process, and add its peak memory to the result."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)

    def run():
        measured = function(*arguments)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        theirs.send(replace(measured, peak_gib=peak))

    process = fork.Process(target=run)
    process.start()
    theirs.close()  # otherwise a failed process would block the parent
    measured = ours.recv()
    process.join()
    return measured


def measure_in_fork(*arguments) -> Measured:
    return measure_ours(*arguments)[0]


def median(runs: list[Measured]) -> Measured:
    """Return a run with the median seconds and the largest peak memory."""
    seconds, peaks = zip(*((run.seconds, run.peak_gib) for run in runs), strict=True)
    return replace(runs[0], seconds=float(np.median(seconds)), peak_gib=max(peaks))


def differences(ours: Measured, peer: Measured) -> list[str]:
    """Describe the outer folds on which the selected candidate or the score differs."""
    found = []
    for k, (mine, theirs) in enumerate(zip(ours.chosen, peer.chosen, strict=True)):
        score, other = ours.scores[k], peer.scores[k]
        if mine != theirs or score != other:
            tied = ""
            if mine != theirs and mine in peer.best[k]:
                tied = ", tied in its inner scores"
                if mine == min(peer.best[k]):
                    tied += " (a study's rule of ties selects ours; rounding of the means selected theirs)"
            text = f"chose {mine} for {theirs}{tied}, score {score:.4f} for {other:.4f}"
            found.append(f"  outer fold {k}: {text}")
    return found


def objectives(prepared: PreparedStudy, dataset: str) -> list[str]:
    """Compare the dual objectives of SMOSVC and SVC on two classes of the first outer fold."""
    X, y, *_ = next(folds_of(prepared, dataset, 1))
    first = np.isin(y, np.unique(y)[:2])
    X, y, lines = MinMaxScaler().fit_transform(X[first]), y[first], []
    for C in (1.0, 64.0, 1024.0):
        values = []
        for model in (SMOSVC(C=C, gamma=1.0), SVC(C=C, gamma=1.0)):
            model.fit(X, y)
            beta, rows = model.dual_coef_[0], X[model.support_]
            values.append(np.abs(beta).sum() - 0.5 * beta @ rbf_kernel(rows, gamma=1.0) @ beta)
        lines.append(f"  C = {C:g}: {values[0]:.6g}, SVC's {values[1]:.6g}, {values[0] / values[1] - 1:+.1e}")
    return lines


def run_dataset(dataset: str, options: argparse.Namespace, l1_peers: dict[str, Callable]) -> dict:
    """Measure all solvers and peers on a dataset, print the results, and return seconds by name."""
    n_outer = options.outer_folds or (1 if dataset == "letter" else N_OUTER)
    solvers = options.solvers.split(",")
    overrides = [f"paths.data={options.data}", "protocol.profile=throughput"]
    small = [*overrides, "search.space.C=[1,4]", "search.space.gamma=[1]"]
    for solver in solvers:  # compile everything by training on two points of one fold
        apart(measure_in_fork, dataset, solver, small, 1)  # its process frees the memory used by compilation
        # A thread frees its buffers when it ends; forks would copy the pages that this process filled.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(measure_ours, dataset, solver, small, 1).result()
    gc.collect()
    gc.freeze()  # otherwise each fork would collect garbage among all loaded objects
    said = [*overrides, "study=peers", "solvers=[libsvm_l1]", f"datasets=[{dataset}]"]
    source = prepare_study(check_settings(compose_settings(said)))
    runs: dict[str, list[Measured]] = {}
    others = {} if options.without_sklearn else dict(l1_peers)
    if "SVC precomputed" in others and any(solver not in L1 for solver in solvers):
        others["SVC L2 precomputed"] = partial(measure_precomputed, l1=False)
    for _ in range(options.repeats):
        for solver in solvers:
            runs.setdefault(solver, []).append(apart(measure_in_fork, dataset, solver, overrides, n_outer))
        for name, measure in others.items():
            runs.setdefault(name, []).append(apart(measure, source, dataset, n_outer))
    medians = {name: median(some) for name, some in runs.items()}
    for name, found in medians.items():
        row = [
            dataset,
            name,
            f"{n_outer} outer folds",
            f"{found.seconds:.2f} CPU s",
            f"{found.peak_gib:.2f} GiB",
        ]
        print("  ".join([*row, found.accuracy]), flush=True)
    if "smo_l1" in medians and "SVC" in medians:
        print("\n".join(differences(medians["smo_l1"], medians["SVC"]) or ["  all folds agree with SVC"]))
        print("\n".join(objectives(source, dataset)), flush=True)
    return {name: found.seconds for name, found in medians.items()}


def print_ratios(seconds: dict[str, dict[str, float]], solvers: list[str]) -> None:
    """Print how many times longer each peer takes, on each dataset and as the geometric mean."""
    table = Table("solver", "peer", *seconds, "geometric mean")
    for solver in solvers:
        for peer in next(iter(seconds.values())).keys() - set(solvers):
            # The peer with the same loss, and the usual program.
            if (solver in L1) != ("L2" in peer) or peer == "SVC":
                ratios = [found[peer] / found[solver] for found in seconds.values()]
                mean = math.exp(np.mean(np.log(ratios)))
                table.add_row(solver, peer, *(f"{ratio:.1f}" for ratio in ratios), f"{mean:.1f}")
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=DEFAULT_DATASETS)
    parser.add_argument("--solvers", default="smo_l1,newton,mnsvm")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", default="data", help="folder of NAME.libsvm.xz files")
    parser.add_argument("--outer-folds", type=int, help="number of the five outer folds to run")
    parser.add_argument("--without-sklearn", action="store_true")
    parser.add_argument("--peers", help="names of the peers to run; all by default")
    options = parser.parse_args()
    l1_peers = peers()
    if options.peers:
        named = options.peers.split(",")
        if unknown := [name for name in named if name not in l1_peers]:
            parser.error(f"--peers: {', '.join(unknown)}: not installed. Choose from {', '.join(l1_peers)}")
        l1_peers = {name: l1_peers[name] for name in named}
    seconds = {dataset: run_dataset(dataset, options, l1_peers) for dataset in options.datasets}
    print_ratios(seconds, options.solvers.split(","))


if __name__ == "__main__":
    main()
