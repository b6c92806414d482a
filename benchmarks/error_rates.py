"""Simulate studies to measure error rates, power and coverage of the procedures of a report.

    python benchmarks/error_rates.py [--studies 4000] [--seed 0]

Every line has the measured share and its Monte Carlo error. `tests/orchestrator/analysis/test_error_rates.py`
asserts them: a fixed-seed sample by default, and the full size with `pytest --full`.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# Products of small matrices are slower on several threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

import numpy as np
import pandas as pd

from orchestrator.analysis.aggregates import best_set_p, bootstrap_aggregates
from orchestrator.analysis.bayesian import EQUAL_FROM, bayesian_signed_rank
from orchestrator.analysis.one_dataset import mean_difference
from orchestrator.analysis.random_effects import random_effects
from orchestrator.analysis.sign_flips import joint_p, max_t_means, simultaneous_intervals
from orchestrator.analysis.signed_rank import hodges_lehmann, signed_rank
from orchestrator.analysis.statistics import friedman, holm

LEVEL = 0.05

Generator = np.random.Generator

DISTRIBUTIONS: dict[str, Callable[[Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "heavy tails": lambda generator, shape: generator.standard_t(2, shape),
    "unequal spreads": lambda generator, shape: (
        generator.standard_normal(shape) * np.exp(generator.normal(0, 1, (shape[0], 1)))
    ),
    "ties": lambda generator, shape: np.round(generator.standard_normal(shape)),
}


def against_control(generator: Generator, n: int, m: int, kind: str = "normal") -> np.ndarray:
    """Return differences (n, m) of m arms from one control, of which none differs, in standard deviations."""
    scores = DISTRIBUTIONS[kind](generator, (n, m + 1))
    return (scores[:, 1:] - scores[:, :1]) / np.sqrt(2)


def signed_ranks(differences: np.ndarray) -> np.ndarray:
    """Return Holm's adjusted p of the signed-rank tests."""
    columns = (pd.Series(column, index=range(len(column))) for column in differences.T)
    return holm(np.array([signed_rank(column).p for column in columns]))


def power(n: int, m: int, real: int, effect: float, studies: int, seed: int) -> dict[str, float]:
    """Return the share of real differences that max-t and Holm's method find."""
    generator, found = np.random.default_rng(seed), {"maxt": 0.0, "holm": 0.0}
    for _ in range(studies):
        differences = against_control(generator, n, m)
        differences[:, :real] += effect
        found["maxt"] += (max_t_means(differences).p_adjusted[:real] <= LEVEL).mean()
        found["holm"] += (signed_ranks(differences)[:real] <= LEVEL).mean()
    return {name: number / studies for name, number in found.items()}


def false_findings(n: int, m: int, kind: str, studies: int, seed: int, real: int = 0) -> float:
    """Return the share of studies in which max-t finds a difference that does not exist."""
    generator, wrong = np.random.default_rng(seed), 0
    for _ in range(studies):
        differences = against_control(generator, n, m, kind)
        differences[:, :real] += 3
        wrong += bool((max_t_means(differences).p_adjusted[real:] <= LEVEL).any())
    return wrong / studies


def unequal_numbers(
    n: int, few: int, m: int, lacking: int, effect: float, studies: int, seed: int
) -> dict[str, float]:
    """Return what max-t finds if comparisons have different numbers of datasets.

    The first `lacking` of m comparisons have `few` of n datasets. The first and the last comparison differ by
    `effect` standard deviations. With an effect of 0, `false` is the share of studies with a false finding,
    and `false_few` that with one of the comparisons of few datasets. Otherwise `few` and `all` are the shares
    in which the first and the last comparison are found. `covered` is the share of studies in which all
    simultaneous intervals contain the mean difference.
    """
    generator = np.random.default_rng(seed)
    found = dict.fromkeys(["false", "false_few", "few", "all", "covered"], 0)
    mean = np.zeros(m)
    mean[[0, -1]] = effect
    for _ in range(studies):
        differences = against_control(generator, n, m) + mean
        for column in range(lacking):
            differences[generator.permutation(n)[few:], column] = np.nan
        p = max_t_means(differences).p_adjusted <= LEVEL
        low, high = simultaneous_intervals(differences, LEVEL)
        wrong = p & (mean == 0)
        found["false"] += bool(wrong.any())
        found["false_few"] += bool(wrong[:lacking].any())
        found["few"] += bool(p[0])
        found["all"] += bool(p[-1])
        found["covered"] += not ((low > mean) | (high < mean)).any()
    return {name: number / studies for name, number in found.items()}


def simultaneous_coverage(n: int, m: int, kind: str, studies: int, seed: int) -> float:
    """Return the share of studies in which all simultaneous intervals contain the mean difference."""
    generator, covered = np.random.default_rng(seed), 0
    for _ in range(studies):
        low, high = simultaneous_intervals(against_control(generator, n, m, kind) + 1, LEVEL)
        covered += bool(((low <= 1) & (high >= 1)).all())
    return covered / studies


def called_worse(n: int, arms: int, studies: int, seed: int) -> dict[str, float]:
    """Return the share of studies in which one of several equal arms is called worse than the best.

    By the Bayesian signed-rank test against the arm of the highest mean, and by the confidence set.
    """
    generator, wrong = np.random.default_rng(seed), {"practically": 0, "set": 0}
    for _ in range(studies):
        scores = 0.02 * generator.standard_normal((n, arms))
        best = int(scores.mean(axis=0).argmax())
        others = [scores[:, arm] - scores[:, best] for arm in range(arms) if arm != best]
        # One arm that is called worse decides.
        others.sort(key=lambda each: each.mean())
        wrong["practically"] += any(
            bayesian_signed_rank(pd.Series(each, index=range(n)), 0.01).worse >= EQUAL_FROM for each in others
        )
        pairs = np.triu_indices(arms, 1)
        wrong["set"] += bool((best_set_p(scores[:, pairs[0]] - scores[:, pairs[1]], arms) <= LEVEL).any())
    return {name: number / studies for name, number in wrong.items()}


def near_clones(n: int, settings: int, studies: int, seed: int) -> dict[str, float]:
    """Return the share of studies that reject equality of the settings of a sweep, by two tests.

    Each dataset has a slope over the settings, with mean zero, so neighbours are alike and no setting is
    better on average.
    """
    generator, wrong = np.random.default_rng(seed), {"friedman": 0, "joint": 0}
    for _ in range(studies):
        slopes = generator.standard_normal((n, 1)) * np.linspace(-1, 1, settings)
        curves = slopes + 0.05 * generator.standard_normal((n, settings))
        wrong["friedman"] += friedman(pd.DataFrame(curves)).p <= LEVEL
        pairs = np.triu_indices(settings, 1)
        wrong["joint"] += joint_p(curves[:, pairs[0]] - curves[:, pairs[1]]) <= LEVEL
    return {name: number / studies for name, number in wrong.items()}


def mean_coverage(n: int, tau: float, studies: int, seed: int) -> dict[str, float]:
    """Return coverage of the random-effects interval, and its width relative to that of the rank interval.

    Datasets have five folds each, whose errors vary by a factor of ten or more between datasets. Scores of
    folds have the correlation of their shared training rows, 0.2.
    """
    generator, covered, widths = np.random.default_rng(seed), 0, []
    for _ in range(studies):
        errors = np.exp(generator.normal(-4.5, 1.2, n))
        true = tau * generator.standard_normal(n)
        shared = generator.standard_normal((n, 1)) * np.sqrt(0.2)
        folds = true[:, None] + errors[:, None] * (shared + generator.standard_normal((n, 5)) * np.sqrt(0.8))
        means, variances = folds.mean(axis=1), folds.var(axis=1, ddof=1) * (1 / 5 + 1 / 4)
        found = random_effects(means, variances, np.full(n, 4.0), LEVEL)
        covered += found.low <= 0 <= found.high
        ranks = hodges_lehmann(pd.Series(means, index=range(n)), 1 - LEVEL)
        if ranks.low is not None and ranks.high is not None:
            widths.append((found.high - found.low) / (ranks.high - ranks.low))
    return {"coverage": covered / studies, "width": float(np.median(widths)) if widths else float("nan")}


def aggregate_coverage(n: int, studies: int, seed: int) -> float:
    """Return the share of bootstrap intervals of the mean of an arm that contain its expectation."""
    generator, covered = np.random.default_rng(seed), 0
    for _ in range(studies):
        level = generator.standard_normal(n)
        folds = {f"d{i}": level[i] + 0.2 * generator.standard_normal((5, 1)) for i in range(n)}
        (row,) = bootstrap_aggregates(folds, {name: [name] for name in folds}, LEVEL, 0).to_dict("records")
        covered += row["mean_low"] <= 0 <= row["mean_high"]
    return covered / studies


def growing(sizes: Sequence[int], studies: int, seed: int) -> list[float]:
    """Return the share of studies of two equal arms with a false finding so far, after each look.

    A study of `sizes[0]` datasets grows to the next size while its signed-rank test is not significant.
    """
    generator, wrong = np.random.default_rng(seed), np.zeros(len(sizes))
    for _ in range(studies):
        differences = pd.Series(generator.standard_normal(sizes[-1]), index=range(sizes[-1]))
        looks = [signed_rank(differences[:n]).p <= LEVEL for n in sizes]
        wrong += np.logical_or.accumulate(looks)
    return [float(share) for share in wrong / studies]


def failing(n: int, baseline: float, studies: int, seed: int) -> dict[str, float]:
    """Return the share of studies that call an arm better or worse that fails on its lowest third of scores.

    Both arms have standard normal scores, so neither is better where it does not fail. Failed datasets are
    left out, or they score as the majority class, whose score is `baseline`.
    """
    generator, found = np.random.default_rng(seed), {"better": 0, "better_constant": 0, "worse_constant": 0}
    for _ in range(studies):
        arm, other = generator.standard_normal((2, n))
        failed = arm <= np.sort(arm)[n // 3 - 1]
        kept = (arm - other)[~failed]
        filled = np.where(failed, baseline, arm) - other
        found["better"] += kept.mean() > 0 and _mean_differs(kept)
        significant = _mean_differs(filled)
        found["better_constant"] += filled.mean() > 0 and significant
        found["worse_constant"] += filled.mean() < 0 and significant
    return {name: number / studies for name, number in found.items()}


def _mean_differs(differences: np.ndarray) -> bool:
    return bool(max_t_means(differences[:, np.newaxis]).p_adjusted[0] <= LEVEL)


def called_equal(n: int, spread: float, rope: float, studies: int, seed: int) -> dict[str, float]:
    """Return the shares of studies called practically equal, and of datasets that differ by more."""
    generator, equal, outside = np.random.default_rng(seed), 0, 0.0
    for _ in range(studies):
        differences = spread * generator.standard_normal(n)
        equal += bayesian_signed_rank(pd.Series(differences, index=range(n)), rope).equal >= EQUAL_FROM
        outside += float((np.abs(differences) > rope).mean())
    return {"equal": equal / studies, "outside": outside / studies}


def one_dataset_coverage(n: int, datasets: int, redraws: int, seed: int) -> dict[str, float]:
    """Return the coverage of the corrected interval of two classifiers on one dataset, five folds.

    `redrawn` is the share of intervals that contain the mean difference over redrawn splits of the same rows,
    and `new` of those that contain the expected difference on new data of this size.
    """
    generator = np.random.default_rng(seed)
    folds = np.array(
        [
            [_of_five_folds(*rows, generator) for _ in range(redraws)]
            for rows in (_two_classes(n, generator) for _ in range(datasets))
        ]
    )
    means = folds.mean(axis=2)
    found = [[mean_difference(each, 1 / 4, LEVEL) for each in rows] for rows in folds]
    low = np.array([[each.low for each in rows] for rows in found]) - 1e-12
    high = np.array([[each.high for each in rows] for rows in found]) + 1e-12
    same_rows = means.mean(axis=1, keepdims=True)
    return {
        "redrawn": float(((low <= same_rows) & (same_rows <= high)).mean()),
        "new": float(((low <= means.mean()) & (means.mean() <= high)).mean()),
    }


def _two_classes(n: int, generator: Generator) -> tuple[np.ndarray, np.ndarray]:
    labels = generator.integers(0, 2, n)
    spreads = 1 + np.arange(5) / 3
    return generator.standard_normal((n, 5)) * spreads + 0.5 * labels[:, np.newaxis], labels


def _of_five_folds(features: np.ndarray, labels: np.ndarray, generator: Generator) -> np.ndarray:
    """Return the differences in accuracy of nearest centroids and least squares on five random folds."""
    order, differences = generator.permutation(len(labels)), []
    for fold in range(5):
        test = np.zeros(len(labels), dtype=bool)
        test[order[fold::5]] = True
        x, y = features[~test], labels[~test]
        middle = [x[y == label].mean(axis=0) for label in (0, 1)]
        distances = [((features[test] - each) ** 2).sum(axis=1) for each in middle]
        weights = np.linalg.lstsq(np.column_stack([np.ones(len(y)), x]), 2.0 * y - 1, rcond=None)[0]
        answers = [distances[1] < distances[0], features[test] @ weights[1:] + weights[0] > 0]
        right = [(each == labels[test]).mean() for each in answers]
        differences.append(right[0] - right[1])
    return np.array(differences)


def main() -> None:
    """Print every measured share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    number, seed = given.studies, given.seed
    print(f"{number} studies a line; Monte Carlo error of a share of 5 %: {np.sqrt(0.0475 / number):.4f}")
    for n, m, real, effect in [(8, 12, 3, 2.0), (9, 6, 2, 1.5)]:
        found = power(n, m, real, effect, number, seed)
        print(f"power, {n} datasets, {m} tests, {real} differences of {effect} sd: {found}")
    for kind in DISTRIBUTIONS:
        for n, m in [(6, 3), (8, 12), (12, 12)]:
            rate = false_findings(n, m, kind, number, seed)
            coverage = simultaneous_coverage(n, m, kind, number, seed)
            print(f"{kind}, {n} datasets, {m} tests: false findings {rate:.4f}, coverage {coverage:.4f}")
    print(
        f"8 datasets, 3 of 12 differ: false findings {false_findings(8, 12, 'normal', number, seed, 3):.4f}"
    )
    for few, effect in [(6, 0.0), (6, 2.0), (4, 0.0), (4, 1.5)]:
        rates = unequal_numbers(10, few, 9, 3, effect, number, seed)
        print(f"10 datasets, 3 of 9 comparisons have {few}, two differ by {effect} sd: {rates}")
    print(f"13 equal arms, 13 datasets, called worse: {called_worse(13, 13, number // 4, seed)}")
    print(f"20 settings of one solver, 8 datasets: {near_clones(8, 20, number // 20, seed)}")
    for n, tau in [(8, 0.0), (8, 0.01), (13, 0.01), (13, 0.03)]:
        print(f"random effects, {n} datasets, τ = {tau}: {mean_coverage(n, tau, number, seed)}")
    print(f"8 datasets, four more while nothing is found: {growing((8, 12, 16, 20), number, seed)}")
    print(f"30 datasets, an arm fails on its lowest third: {failing(30, -2.0, number // 8, seed)}")
    print(f"30 differences N(0, 2 points), within 1 point: {called_equal(30, 0.02, 0.01, number, seed)}")
    print(f"two classifiers on one dataset of 100 rows: {one_dataset_coverage(100, number // 40, 40, seed)}")
    for n in (8, 13, 30):
        print(
            f"bootstrap of the mean, {n} datasets: coverage {aggregate_coverage(n, number // 20, seed):.4f}"
        )


if __name__ == "__main__":
    main()
