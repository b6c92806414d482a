"""Measure part of a nested search on large sets beside scikit-learn in one run.

    python -m benchmarks.large_nested --data DIR [--solvers smo_l1,newton] [--alone] [--memory 2] [SET…]

The part is the first of five outer folds with two inner ones and eight C at one γ. It has sixteen trainings
on two fifths of the rows, and a refit on four fifths. A whole search of 5 × 5 folds over 8 × 8 points has
1,605 trainings. Our solvers run through the whole program with the profile `throughput`. scikit-learn runs
`SVC` in GridSearchCV on the same folds. Times are CPU seconds of one thread without compilation. Each runs
in its own forked process, whose peak memory is printed.

The samples are the first rows of NAME.libsvm.xz in DIR. Their number is in `SETS` or in the name of the set.
For example, `ijcnn1-16000 ijcnn1-26000` are sizes below and above n = 20,000, where trainings stop sharing
their Gram matrices (`orchestrator.training.gram`). `--alone` omits SVC. `--memory` is the memory limit of a
worker in GB, which decides how matrices are kept.
"""

import argparse
import itertools
import lzma
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import nested_cv  # imported first, because it limits NumPy to one thread
from orchestrator.config.compose import check_settings, compose_settings
from orchestrator.engine.prepare import prepare_study

SETS = {
    "usps": (9298, 1 / 64),
    "letter": (20_000, 4),
    "shuttle": (43_500, 4),
    "ijcnn1": (49_990, 4),
    "w3a": (49_749, 1 / 4),
    "a9a": (32_561, 1 / 64),
    "mnist": (20_000, 1 / 64),
}
"""Number of rows, and γ. mnist has fewer than its 60,000 rows, because SVC would take minutes a training."""


def write_rows(source: Path, to: Path, n_rows: int) -> None:
    """Write the first lines of a compressed file."""
    with lzma.open(source, "rt") as lines, to.open("w") as file:
        file.writelines(itertools.islice(lines, n_rows))


def run_set(text: str, options: argparse.Namespace) -> None:
    """Measure a set, and print one line for SVC and one for each solver."""
    name, _, rows = text.partition("-")
    n_rows, gamma = SETS[name]
    n_rows, solvers = int(rows or n_rows), options.solvers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        write_rows(options.data / f"{name}.libsvm.xz", Path(folder) / f"{name}.libsvm", n_rows)
        overrides = [f"paths.data={folder}", "protocol.profile=throughput", "protocol.inner=2"]
        overrides += [f"datasets=[{name}]", f"search.space.gamma=[{gamma}]"]
        overrides += [f"cluster.memory={options.memory}"] if options.memory else []
        for solver in solvers:  # compile first, on rows that use the same methods
            nested_cv.apart(nested_cv.measure_in_fork, name, solver, overrides, 1)
            nested_cv.measure_ours(name, solver, [*overrides, "search.space.C=[1]"], 1)
        runs = {solver: partial(nested_cv.measure_in_fork, name, solver, overrides, 1) for solver in solvers}
        if not options.alone:
            said = [*overrides, "study=peers", "solvers=[libsvm_l1]"]
            prepared = prepare_study(check_settings(compose_settings(said)))
            runs = {"SVC": partial(nested_cv.measure_sklearn, prepared, name, 1), **runs}
        peer = None
        for who, run in runs.items():
            found = nested_cv.apart(run)
            peer = peer or (found.seconds if who == "SVC" else None)
            ratio = f"1/{peer / found.seconds:<6.1f}" if peer else ""
            (score,), ((C, _),) = found.scores, found.chosen
            print(
                f"{name:8} {n_rows:6,} rows, γ = {gamma:<8g} {who:10} {found.seconds:8.2f} CPU s, {ratio}"
                f"{1e9 * found.seconds / n_rows**2:6.1f} ns a pair of rows, {found.peak_gib:5.2f} GiB,"
                f" C = {C:g}, score {score:.4f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--solvers", default="smo_l1,newton")
    parser.add_argument("--alone", action="store_true", help="do not measure SVC")
    parser.add_argument("--memory", type=float, help="memory limit of a worker, in GB")
    options = parser.parse_args()
    for text in options.sets:
        run_set(text, options)


if __name__ == "__main__":
    main()
