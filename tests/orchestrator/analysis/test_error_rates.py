"""What the declared tests promise, in simulated studies: few false findings, and the predicted power."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import error_rates as simulated
from orchestrator.analysis import statistics
from orchestrator.analysis.pairwise import HIGHER, LOWER, NO_EVIDENCE, family, pairwise
from orchestrator.analysis.power import POWER, detectable_effect
from orchestrator.analysis.signed_rank import critical_value, signed_rank
from orchestrator.analysis.statistics import friedman, holm

FULL = [(2, 3), (2, 6), (2, 30), (4, 3), (4, 7), (4, 14), (4, 30), (13, 3), (13, 9), (13, 13), (13, 30)]


def null_study(generator, n_arms, n_datasets, ties):
    """Scores of arms that are all equal, on datasets of different difficulty and spread."""
    spread = generator.uniform(0.2, 3, size=(n_datasets, 1))
    scores = generator.uniform(50, 90, size=(n_datasets, 1)) + spread * generator.normal(
        size=(n_datasets, n_arms)
    )
    arms = [f"arm{i}" for i in range(n_arms)]
    return pd.DataFrame(scores.round(0 if ties else 6), columns=arms).rename(index=lambda i: f"d{i}")


def smallest_adjusted_p(means):
    differences = [means[first] - means[second] for first, second in family(list(means.columns))]
    return holm(np.array([signed_rank(each).p for each in differences])).min()


@pytest.mark.parametrize(
    ("n_studies", "n_arms", "n_datasets"),
    [
        *((150, *design) for design in [(2, 6), (4, 10), (13, 13)]),
        *(pytest.param(10_000, *design, marks=pytest.mark.full) for design in FULL),
    ],
)
@pytest.mark.parametrize("ties", [False, True])
def test_the_family_wise_error_of_equal_arms_is_at_most_five_per_cent(n_studies, n_arms, n_datasets, ties):
    generator = np.random.default_rng(100 * n_arms + n_datasets)
    wrong = sum(
        smallest_adjusted_p(null_study(generator, n_arms, n_datasets, ties)) <= 0.05 for _ in range(n_studies)
    )
    print(f"{n_arms} arms, {n_datasets} datasets, ties {ties}: {wrong / n_studies:.4f}")
    assert wrong / n_studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)


@pytest.mark.parametrize(
    ("n_studies", "n_arms", "n_datasets"),
    [
        *((1000, *design) for design in [(3, 4), (4, 4)]),
        *(
            pytest.param(10_000, *design, marks=pytest.mark.full)
            for design in [(3, 3), (3, 10), (4, 3), (4, 14), (13, 3), (13, 5), (13, 13)]
        ),
    ],
)
def test_friedman_s_test_keeps_its_level_with_ties(monkeypatch, n_studies, n_arms, n_datasets):
    monkeypatch.setattr(statistics, "PERMUTATIONS", 199)
    generator = np.random.default_rng(n_arms + n_datasets)
    # So few permutations, the same for every study, would have a level of 5 % ± 1.5 points of their own.
    monkeypatch.setattr(np.random, "default_rng", lambda seed: generator)
    wrong = sum(
        friedman(null_study(generator, n_arms, n_datasets, ties=True)).p <= 0.05 for _ in range(n_studies)
    )
    print(f"Friedman, {n_arms} arms, {n_datasets} datasets: {wrong / n_studies:.4f}")
    # With 1,000 studies, the limit is 7.1 %: the F approximation reaches 7.5 to 20 %.
    assert wrong / n_studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)
    # Few datasets have few values of p: the level is about 2.35 % for 3 arms and 4 datasets.
    assert wrong / n_studies >= 0.02 - 3 * np.sqrt(0.02 * 0.98 / n_studies)


def test_an_unrelated_arm_changes_no_test_but_their_number():
    means = null_study(np.random.default_rng(6), 6, 12, ties=True)
    means["arm1"] += 3
    before, after = pairwise(means), pairwise(means.assign(other=means["arm0"] - 9))
    kept = after[after["first"] != "other"].reset_index(drop=True)
    changed = ["p_adjusted", "family", "datasets_needed"]
    assert kept.drop(columns=changed).equals(before.drop(columns=changed))
    assert set(before["verdict"]) == {HIGHER, NO_EVIDENCE}
    assert after["verdict"].iloc[-1] == LOWER
    assert (kept["p_adjusted"] >= before["p_adjusted"]).all()


@pytest.mark.parametrize(("n", "tests"), [(6, 1), (10, 1), (14, 3), (14, 12), (30, 6)])
def test_predicted_power_is_that_of_simulated_studies(n, tests):
    effect, cut = detectable_effect(n, tests), critical_value(n, 0.05 / tests)
    values = np.random.default_rng(99).normal(effect, 1, size=(20_000, n))
    order = np.argsort(np.abs(values), axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, n + 1)[np.newaxis], axis=1)
    found = ((ranks * (values < 0)).sum(axis=1) <= cut).mean()
    print(f"{n} datasets, {tests} tests: predicted {POWER:.3f}, simulated {found:.3f}")
    assert found == pytest.approx(POWER, abs=0.03)


# -- as `benchmarks/error_rates.py` prints them -----------------------------------------------------


def sizes(sample, full):
    return [sample, pytest.param(full, marks=pytest.mark.full)]


@pytest.mark.parametrize("studies", sizes(100, 4000))
@pytest.mark.parametrize(
    ("n", "m", "real", "effect", "expected", "by_holm"),
    [(8, 12, 3, 2.0, 0.87, 0.0), (9, 6, 2, 1.5, 0.83, 0.74)],
)
def test_max_t_finds_what_holm_s_method_cannot(studies, n, m, real, effect, expected, by_holm):
    found = simulated.power(n, m, real, effect, studies, 1)
    error = 3 * np.sqrt(0.25 / studies)
    assert found["maxt"] == pytest.approx(expected, abs=error)
    assert found["holm"] == pytest.approx(by_holm, abs=error)
    assert found["maxt"] > found["holm"]


@pytest.mark.parametrize("studies", sizes(250, 4000))
@pytest.mark.parametrize("kind", simulated.DISTRIBUTIONS)
def test_max_t_keeps_its_level_and_its_intervals_their_confidence(studies, kind):
    error = 3 * np.sqrt(0.05 * 0.95 / studies)
    assert simulated.false_findings(8, 12, kind, studies, 2) <= 0.05 + error
    assert simulated.false_findings(8, 6, kind, studies, 3, real=2) <= 0.05 + error
    assert simulated.simultaneous_coverage(8, 6, kind, studies, 4) >= 0.94 - error


@pytest.mark.parametrize("studies", sizes(300, 4000))
@pytest.mark.parametrize("few", [4, 6])
def test_unequal_numbers_of_datasets_keep_the_level_and_the_power(studies, few):
    equal = simulated.unequal_numbers(10, few, 9, 3, 0.0, studies, seed=10)
    assert equal["false"] <= 0.05 + 3 * np.sqrt(0.0475 / studies)
    assert equal["covered"] >= 0.95 - 4 * np.sqrt(0.0475 / studies)
    differing = simulated.unequal_numbers(10, few, 9, 3, 2.0, studies, seed=11)
    assert differing["all"] >= 0.95
    if few == 4:  # they cannot reach the level, and cost the others nothing
        assert equal["false_few"] == differing["few"] == 0
    else:
        # |Σd|/√Σd², which is at most √6, would find it in 6 % of studies.
        assert differing["few"] == pytest.approx(0.48, abs=4 * np.sqrt(0.25 / studies))


@pytest.mark.full
@pytest.mark.parametrize("studies", sizes(60, 2000))
def test_of_13_equal_arms_hardly_any_is_called_worse(studies):
    found = simulated.called_worse(13, 13, studies, 5)
    assert found["set"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)
    # By the former rule, an arm is practically worse than the best that was picked in half of the studies.
    assert found["practically"] == pytest.approx(0.46, abs=3 * np.sqrt(0.25 / studies))


@pytest.mark.parametrize("studies", sizes(60, 2000))
def test_equal_settings_of_one_solver_make_friedman_s_test_reject_and_not_the_joint_one(monkeypatch, studies):
    monkeypatch.setattr(statistics, "PERMUTATIONS", 199)
    found = simulated.near_clones(8, 20, studies, 6)
    assert found["friedman"] == pytest.approx(0.24, abs=3 * np.sqrt(0.24 * 0.76 / studies))
    assert found["joint"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize("studies", sizes(300, 4000))
@pytest.mark.parametrize(("n", "tau"), [(8, 0.0), (8, 0.01), (13, 0.02)])
def test_the_random_effects_interval_covers_the_mean_and_is_narrower_than_that_of_ranks(studies, n, tau):
    found = simulated.mean_coverage(n, tau, studies, 7)
    assert found["coverage"] >= 0.92 - 3 * np.sqrt(0.08 * 0.92 / studies)
    assert found["width"] < 0.95


def test_the_bootstrap_of_a_mean_covers_it(full_size):
    studies = 1000 if full_size else 30
    assert simulated.aggregate_coverage(13, studies, 8) >= 0.92 - 3 * np.sqrt(0.08 * 0.92 / studies)


@pytest.mark.parametrize("studies", sizes(400, 4000))
def test_a_study_that_grows_while_nothing_is_found_finds_what_is_not_there(studies):
    found = simulated.growing((8, 12, 16, 20), studies, 9)
    print(found)
    for share, expected in zip(found, (0.039, 0.064, 0.082, 0.102), strict=True):
        assert share == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / studies))


@pytest.mark.full
@pytest.mark.parametrize("studies", sizes(40, 1000))
def test_leaving_failures_out_flatters_an_arm_that_fails_where_it_is_low(studies):
    found = simulated.failing(30, -2.0, studies, 10)
    print(found)
    assert found["better"] == pytest.approx(0.49, abs=3 * np.sqrt(0.25 / studies))
    # The constant charges the arm for its failures, so it is never called better.
    assert found["better_constant"] == 0
    assert found["worse_constant"] == pytest.approx(0.11, abs=3 * np.sqrt(0.11 * 0.89 / studies))


@pytest.mark.parametrize("studies", sizes(150, 4000))
def test_differences_of_two_points_are_often_called_equal_within_one(studies):
    found = simulated.called_equal(30, 0.02, 0.01, studies, 11)
    print(found)
    assert found["equal"] == pytest.approx(0.34, abs=3 * np.sqrt(0.34 * 0.66 / studies))
    assert found["outside"] == pytest.approx(0.617, abs=3 * np.sqrt(0.62 * 0.38 / (30 * studies)))


def test_the_interval_of_one_dataset_covers_redrawn_splits_far_too_often(full_size):
    found = simulated.one_dataset_coverage(100, 60 if full_size else 8, 60 if full_size else 40, 12)
    print(found)
    assert found["redrawn"] == pytest.approx(0.995, abs=0.004 if full_size else 0.01)
    assert found["new"] >= 0.95
