"""Measure what races save: inner trainings of search=race, beside those of a race that knows the best order.

    python benchmarks/race.py [--solvers libsvm_l1,newton] [--seeds 0,1,2] [--data DIR] DATASET…

The best order knows the winner's score in advance. For each candidate (or path) it also knows the inner
splits that exclude it earliest. Scores come from a run of the grid. Arms with warm starts train whole paths.
The statistical race runs on the same study. The script prints its inner trainings, and how far its outer
scores are below those of the grid, in points. Each seed divides the rows differently. One division says
little about the loss, because one row of iris is 0.7 points.
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

import numpy as np

from orchestrator import run_study
from orchestrator.search import make_space
from orchestrator.search.race import TIE, Race
from orchestrator.study.study import Candidate

DEFAULT_DATASETS = ["iris", "wine", "breast_cancer", "digits"]
STATISTICAL = ["search=race", "search.mode=statistical"]


def inner_scores(results, axes) -> dict[int, dict[Candidate, np.ndarray]]:
    """Return the inner scores of each candidate, by outer fold."""
    space = make_space(axes)
    found: dict[int, dict[Candidate, np.ndarray]] = {}
    inner = results.trials[results.trials["inner"] >= 0].sort_values("inner")
    for (outer, *values), rows in inner.groupby(["outer", *(f"param_{name}" for name in axes)]):
        candidate = space.candidate(space.point(dict(zip(axes, values, strict=True))))
        found.setdefault(int(outer), {})[candidate] = rows["score"].to_numpy()
    return found


def trained(scores: dict[Candidate, np.ndarray], axes, together: bool) -> tuple[int, int]:
    """Return the number of trainings of a race, and of its rounds."""
    n_splits = len(next(iter(scores.values())))
    race, number, rounds = Race(make_space(axes), n_splits, 1.0, together), 0, 0
    while asked := race.ask():
        rounds += 1
        for (split,), candidates in asked:
            number += len(candidates)
            for candidate in candidates:
                race.tell(candidate, split, float(scores[candidate][split]))
    return number, rounds


def least(scores: dict[Candidate, np.ndarray], together: bool) -> int:
    """Return the number of trainings of the best order."""
    best = max(np.mean(each) for each in scores.values()) - TIE
    units: dict[Candidate, list[np.ndarray]] = {}
    for candidate, each in scores.items():
        units.setdefault(candidate.off_path if together else candidate, []).append(each)
    return sum(len(unit) * _splits_to_rule_out(np.array(unit), best) for unit in units.values())


def _splits_to_rule_out(unit: np.ndarray, best: float) -> int:
    n_splits = unit.shape[1]
    for number in range(1, n_splits):
        for splits in itertools.combinations(range(n_splits), number):
            known = np.isin(np.arange(n_splits), splits)
            if (np.where(known, unit, 1.0).mean(axis=1) < best).all():
                return number
    return n_splits


def compare(dataset: str, solver: str, seed: int, data: str) -> float:
    """Run the grid and both races, print the savings, and return the points lost by the statistical race."""
    axes = {"C": [4.0**k for k in range(-2, 6)], "gamma": [4.0**k for k in range(-5, 3)]}
    with tempfile.TemporaryDirectory() as folder:
        said = [f"datasets=[{dataset}]", f"solvers=[{solver}]", f"paths.results={Path(folder)}"]
        said += ["study=grid", "cluster=serial", f"paths.data={data}", f"protocol.seed={seed}"]
        results = run_study(*said)
        together = bool(results.trials["warm_started"].any())
        folds = inner_scores(results, axes).values()
        statistical = run_study(*said, *STATISTICAL)
    n_inner = int((statistical.trials["inner"] >= 0).sum())
    lost = 100 * float(results.outer["score"].mean() - statistical.outer["score"].mean())
    whole = sum(each.size for scores in folds for each in scores.values())
    used, rounds = np.sum([trained(scores, axes, together) for scores in folds], axis=0)
    fewest = sum(least(scores, together) for scores in folds)
    share = (whole - used) / (whole - fewest) if whole > fewest else 1.0
    print(
        f"{dataset}  {solver}  seed {seed}  {'paths' if together else 'candidates'}: {used / whole:.0%} "
        f"of the inner trainings, at least {fewest / whole:.0%}: {share:.0%} of what can be saved; "
        f"{rounds / len(folds):.1f} rounds; statistical: {n_inner / whole:.1%}, {lost:+.2f} points lost",
        flush=True,
    )
    return lost


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=DEFAULT_DATASETS)
    parser.add_argument("--solvers", default="libsvm_l1,newton")
    parser.add_argument("--seeds", default="0", help="seeds of the splits")
    parser.add_argument("--data", default="data", help="folder of NAME.libsvm.xz files")
    options = parser.parse_args()
    losses: dict[str, list[float]] = {}
    seeds = map(int, options.seeds.split(","))
    for dataset, solver, seed in itertools.product(options.datasets, options.solvers.split(","), seeds):
        losses.setdefault(solver, []).append(compare(dataset, solver, seed, options.data))
    for solver, lost in losses.items():
        print(f"{solver}: {np.mean(lost):+.3f} points lost by the statistical race, mean over all of these")


if __name__ == "__main__":
    main()
