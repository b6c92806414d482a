"""Measure our arms beside liquidSVM, sklearnex, ThunderSVM and SVC on one outer fold, on one core.

    python benchmarks/peers.py [--solvers smo_l1,newton,mnsvm,bvm] [--repeats 3] [--data DIR] DATASET…

The folds, the grid and the measurement are those of `benchmarks/nested_cv.py`. A peer takes part if it can
be imported; otherwise the reason is printed. The result is the table of `docs/costs.md` as Markdown: the CPU
seconds of SVC in GridSearchCV, and the share of this time that each program takes.
"""

import argparse

from nested_cv import peers, run_dataset


def table_of(seconds: dict[str, dict[str, float]]) -> str:
    """Return the table of all programs and datasets as Markdown.

    Parameters
    ----------
    seconds : dict
        CPU seconds by dataset and by program.

    Returns
    -------
    str
        A row for each program. Values are shares of the time of `SVC`, whose row has seconds.
    """
    datasets, programs = list(seconds), list(next(iter(seconds.values())))
    lines = ["| | " + " | ".join(datasets) + " |", "|---" * (len(datasets) + 1) + "|"]
    for program in programs:
        cells = []
        for dataset in datasets:
            reference, own = seconds[dataset]["SVC"], seconds[dataset][program]
            cells.append(f"{own:.2f} s" if program == "SVC" else f"1/{reference / own:.1f}")
        lines.append(f"| `{program}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["iris", "wine", "breast_cancer", "digits"])
    parser.add_argument("--solvers", default="smo_l1,newton,mnsvm,bvm")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", default="data", help="folder of NAME.libsvm.xz files")
    options = parser.parse_args()
    options.outer_folds, options.without_sklearn = 1, False
    found = peers()
    print(table_of({dataset: run_dataset(dataset, options, found) for dataset in options.datasets}))


if __name__ == "__main__":
    main()
