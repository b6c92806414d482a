"""Totals and ratios that are estimated from samples of complete studies, against the totals themselves."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from benchmarks.typical_costs import read_study
from orchestrator import load_study
from orchestrator.analysis.design import read_design
from orchestrator.analysis.sample_totals import Sample, estimate_ratio, estimate_total
from orchestrator.analysis.sampled_times import sampled_ratios, sampled_totals

PUBLISHED = Path(__file__).parents[3] / "results" / "published"

STUDIES = (
    *("bias_free", "complexity", "draws", "timing_check"),
    *("multiclass_small", "pattern_search_complete", "pattern_search_grid_complete", "toolkit_small"),
)
"""Complete studies under the profile `timing`, with at least nine candidates."""

PAIRS = 20
"""Largest number of dataset × arm of a study, evenly spread."""

COLUMNS = ["dataset", "solver", "outer", "inner", "param_C", "param_gamma", "fit_cpu_seconds"]


@cache
def populations(study):
    """The costs of all inner trainings by arm: candidate × fold, NaN where a search omitted one."""
    trials = read_study(PUBLISHED / study).trials[COLUMNS]
    groups = list(trials.groupby(["dataset", "solver"]))
    found = {}
    for pair, rows in groups[:: max(1, len(groups) // PAIRS)][:PAIRS]:
        inner = rows[rows["inner"] >= 0]
        cells = inner.assign(cell=100 * inner["outer"] + inner["inner"])
        costs = cells.pivot(index=["param_C", "param_gamma"], columns="cell", values="fit_cpu_seconds")
        refits = float(rows.loc[rows["inner"] < 0, "fit_cpu_seconds"].sum())
        found[pair] = costs, refits
    return found


def positions(values):
    ranks = np.unique(values, return_inverse=True)[1]
    return 2 * ranks / max(1, ranks.max()) - 1


def sample_of(costs, refits, order):
    drawn = np.take_along_axis(costs.to_numpy(), order, axis=1)
    points = np.stack([positions(level) for level in zip(*costs.index, strict=True)], axis=1)
    names = tuple(f"{index} {row.tolist()}" for index, row in zip(costs.index, order, strict=True))
    sizes = (~np.isnan(costs.to_numpy())).sum(axis=1).astype(float)
    return Sample(names, sizes, drawn, points, refits)


def coverage(study, folds, n_samples):
    """The share of intervals that cover the complete total, and the mean relative error."""
    generator, covered, errors = np.random.default_rng(1), [], []
    for costs, refits in populations(study).values():
        total = float(np.nansum(costs.to_numpy())) + refits
        for _ in range(n_samples):
            shuffled = np.where(costs.isna(), 2.0, generator.random(costs.shape))
            order = np.argsort(shuffled, axis=1)[:, :folds]
            found = estimate_total(sample_of(costs, refits, order))
            covered.append(found.low <= total <= found.high)
            errors.append(found.value / total - 1)
    print(f"{study}, {folds} folds: {100 * np.mean(covered):.1f} %, mean error {100 * np.mean(errors):.2f} %")
    return np.mean(covered), abs(np.mean(errors))


SIZES = [pytest.param(8, id="sample"), pytest.param(1000, id="full", marks=pytest.mark.full)]


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("study", STUDIES)
def test_with_two_folds_the_interval_covers_the_total_nine_times_of_ten(study, n_samples):
    share, error = coverage(study, 2, n_samples)
    tolerance = 0.03 if n_samples == 1000 else 0.1
    assert abs(share - 0.9) <= tolerance
    assert error < (0.005 if n_samples == 1000 else 0.02)


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("study", STUDIES)
def test_with_one_fold_the_interval_is_conservative(study, n_samples):
    share, error = coverage(study, 1, n_samples)
    assert share >= (0.87 if n_samples == 1000 else 0.8)
    assert error < (0.005 if n_samples == 1000 else 0.03)


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("study", ["bias_free", "draws", "timing_check", "multiclass_small", "toolkit_small"])
def test_the_interval_of_a_ratio_covers_the_ratio_of_the_totals(study, n_samples):
    generator, covered, widths = np.random.default_rng(2), [], []
    arms = populations(study)
    for (first, one), (second, other) in pairwise(arms.items()):
        if first[0] != second[0] or not one[0].index.equals(other[0].index):
            continue
        ratio = (np.nansum(one[0].to_numpy()) + one[1]) / (np.nansum(other[0].to_numpy()) + other[1])
        for _ in range(n_samples):
            order = np.argsort(np.where(one[0].isna(), 2.0, generator.random(one[0].shape)), axis=1)[:, :2]
            samples = sample_of(*one, order), sample_of(*other, order)
            found = estimate_ratio(*samples)
            apart = estimate_ratio(samples[0], sample_of(*other, order[:, ::-1]))
            covered.append(found.low <= ratio <= found.high)
            widths.append(np.log(found.high / found.low) / np.log(apart.high / apart.low))
    print(f"{study}: {100 * np.mean(covered):.1f} %, width relative to unpaired {np.median(widths):.2f}")
    assert abs(np.mean(covered) - 0.9) <= (0.04 if n_samples == 1000 else 0.1)


@cache
def optdigits():
    """Totals and ratios from the sample of medium_time with the times of a complete study, and its totals."""
    complete = load_study(PUBLISHED / "medium_time_complete")
    design = read_design(load_study(PUBLISHED / "medium_time"))
    design = replace(design, pairs=tuple(pair for pair in design.pairs if pair[0] == "optdigits"))
    seconds = complete.trials["fit_cpu_seconds"] + complete.trials["predict_cpu_seconds"]
    totals = seconds.groupby(complete.trials["solver"]).sum()
    return sampled_totals(complete, design), sampled_ratios(complete, design), totals


def test_intervals_of_medium_time_cover_the_complete_totals():
    estimates, _, totals = optdigits()
    assert len(estimates) == 7
    assert (estimates["drawn"] == 69).all()
    assert (estimates["trainings"] == 1605).all()
    complete = totals[estimates["solver"]].to_numpy()
    covers = (estimates["cpu_seconds_low"] <= complete) & (complete <= estimates["cpu_seconds_high"])
    assert covers.sum() >= 6


def test_intervals_of_medium_time_cover_the_complete_ratios():
    _, ratios, totals = optdigits()
    assert len(ratios) == 6
    complete = totals[ratios["solver"]].to_numpy() / totals[ratios["reference"]].to_numpy()
    assert ((ratios["low"] <= complete) & (complete <= ratios["high"])).all()


def sample(costs, sizes, refits=7.0, stopped=False):
    names = tuple(f"stratum {i}" for i in range(len(sizes)))
    points = np.linspace(-1, 1, len(sizes))[:, None]
    return Sample(names, np.array(sizes, dtype=float), np.array(costs, dtype=float), points, refits, stopped)


def test_the_error_of_a_total_is_that_of_stratified_sampling():
    found = estimate_total(sample([[1, 3], [10, 14]], [5, 25]))
    assert found.value == 5 * 2 + 25 * 12 + 7
    # Σ N² (1 − n/N) s²/n, with s² of 2 and 8
    assert found.se == pytest.approx(np.sqrt(25 * 0.6 * 2 / 2 + 625 * 0.92 * 8 / 2))
    assert found.low < found.value < found.high


def test_a_sample_of_everything_has_no_error():
    found = estimate_total(sample([[1, 3], [10, 14]], [2, 2]))
    assert (found.value, found.se, found.low, found.high) == (35, 0, 35, 35)
    assert estimate_total(sample([[4.0]], [1], refits=1.0)).high == 5


def test_a_stopped_training_leaves_a_bound():
    one, other = sample([[1, 3], [10, 14]], [5, 25], stopped=True), sample([[2, 3], [9, 12]], [5, 25])
    assert estimate_total(one).high == np.inf
    assert estimate_total(one).low == estimate_total(sample([[1, 3], [10, 14]], [5, 25])).low
    above, below = estimate_ratio(one, other), estimate_ratio(other, one)
    assert (above.high, below.low) == (np.inf, 0)
    assert above.low > 0
    assert below.high < np.inf


def test_proportional_costs_on_the_same_cells_have_a_sure_ratio():
    one, other = sample([[1, 3], [10, 14]], [5, 25], 8.0), sample([[2, 6], [20, 28]], [5, 25], 16.0)
    found, apart = estimate_ratio(other, one), estimate_ratio(other, sample([[3, 1], [14, 10]], [5, 25], 8.0))
    assert found.value == apart.value == pytest.approx(2)
    assert np.log(found.high / found.low) < 0.5 * np.log(apart.high / apart.low)


@pytest.mark.parametrize("n_strata", [2, 3, 4, 12])
def test_the_relative_error_of_single_trainings_has_no_unit(n_strata):
    costs = np.random.default_rng(0).uniform(1, 2, (n_strata, 1))
    seconds, milliseconds = (estimate_total(sample(k * costs, [25] * n_strata, 0.0)) for k in (1, 1000))
    assert milliseconds.se == pytest.approx(1000 * seconds.se)
    assert milliseconds.high / milliseconds.low == pytest.approx(seconds.high / seconds.low)
    same = estimate_total(sample(np.full_like(costs, 0.01), [25] * n_strata))
    assert same.se == pytest.approx(0, abs=1e-12)


def test_two_single_trainings_estimate_the_error_from_their_difference():
    found = estimate_total(sample([[1.0], [np.e]], [25, 25], 0.0))
    relative = np.sqrt((25**2 * 0.96) * (1 + np.e**2) / 2) / (25 * (1 + np.e))  # a log variance of ½
    assert found.se / found.value == pytest.approx(relative)
    assert np.log(found.high / found.value) == pytest.approx(stdtrit(1, 0.95) * relative)


def test_one_single_training_leaves_the_error_unknown():
    one = sample([[2.0]], [25])
    assert estimate_total(one).value == 57
    assert np.isnan([estimate_total(one).se, estimate_total(one).low, estimate_total(one).high]).all()
    ratio = estimate_ratio(one, sample([[4.0]], [25]))
    assert ratio.value == pytest.approx(57 / 107)
    assert np.isnan([ratio.low, ratio.high]).all()
