"""Compare the candidates and outer scores of a pattern search with those of the whole grid.

    python benchmarks/pattern_search.py [--solver newton] [--resolution 80] [--data DIR] DATASET…

Both searches belong to one study and share its trainings. The loss is the difference of the mean outer
scores, in standard errors of the grid's mean. These are corrected for the rows that training sets share.
"""

import argparse
import math
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

from orchestrator import run_study
from orchestrator.analysis.summaries import corrected_standard_error

DEFAULT_DATASETS = ["iris", "wine", "breast_cancer", "digits"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=DEFAULT_DATASETS)
    parser.add_argument("--solver", default="newton")
    parser.add_argument("--resolution", type=int, default=80, help="number of points of each axis")
    parser.add_argument("--data", default="data", help="folder of NAME.libsvm.xz files")
    options = parser.parse_args()
    for dataset in options.datasets:
        with tempfile.TemporaryDirectory() as folder:
            said = [f"datasets=[{dataset}]", f"solvers=[{options.solver}]", f"paths.results={folder}"]
            said += ["study=both", "cluster=serial", f"paths.data={options.data}"]
            said += [f"search.resolution={options.resolution}"]
            grid = run_study(*said)
            pattern = run_study(*said, "search=pattern")
        share = pattern.selections["n_candidates"] / grid.selections["n_candidates"]
        scores = grid.outer["score"]
        loss = scores.mean() - pattern.outer["score"].mean()
        rows = grid.outer.iloc[0]
        error = corrected_standard_error(scores.to_numpy(), rows["n_test"] / rows["n_train"])
        errors = f"{loss / error:+.2f}" if error else ("0" if not loss else str(math.inf))
        print(
            f"{dataset}: {share.mean():.2%} of {grid.selections['n_candidates'].iloc[0]:,} candidates "
            f"(at most {share.max():.2%}); grid {scores.mean():.4f}, {100 * loss:+.2f} points lost, "
            f"{errors} standard errors",
            flush=True,
        )


if __name__ == "__main__":
    main()
