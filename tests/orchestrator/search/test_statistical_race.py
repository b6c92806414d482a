import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from orchestrator.analysis.findings import analyse
from orchestrator.config.compose import ConfigError, check_settings, compose_settings
from orchestrator.report.sections.protocol import protocol
from orchestrator.search import make_space
from orchestrator.search.statistical_race import StatisticalRace, rows_of, sign_test
from orchestrator.study.trials import candidates_by_path
from tests.messages import assert_says
from tests.orchestrator.races import follow
from tests.orchestrator.studies import run_study

AXES = {"C": [1, 2, 3, 4], "gamma": [1, 2, 3]}
FOLDS = 4


def run_race(matrix, together=False, chance=None, counts_rows=True, level=0.2, share=0.5, axes=AXES):
    """Run a race; return it, and its rounds of (candidate, split)."""
    space = make_space(axes)
    scores = {space.candidate(point): row for point, row in zip(space.points(), matrix, strict=True)}
    race = StatisticalRace(space, FOLDS, together, counts_rows, level, share)
    return race, follow(race, scores, chance)


matrices = st.lists(
    st.lists(st.sampled_from([0.5, 0.8, 0.9, 1.0, np.nan]), min_size=FOLDS, max_size=FOLDS),
    min_size=12,
    max_size=12,
)


@given(matrices, st.booleans(), st.booleans(), st.integers(0, 10))
def test_rounds_follow_from_the_scores_and_keep_the_share(matrix, together, counts_rows, seed):
    race, rounds = run_race(matrix, together, None, counts_rows)
    assert run_race(matrix, together, random.Random(seed), counts_rows)[1] == rounds
    assert sum(map(len, rounds)) <= 0.5 * 12 * FOLDS
    best = race.selection.best
    assert best is None or not np.isnan(race.scores(best)).any()
    if together:
        for asked in rounds:
            paths = candidates_by_path({candidate for candidate, _ in asked})
            assert all(len(path) == len(AXES["C"]) for path in paths)


def test_candidates_that_are_worse_leave_and_equal_ones_stay_within_the_share():
    matrix = np.full((12, FOLDS), 0.6)  # of 100 rows
    matrix[[2, 5]] = 0.95, 0.94, 0.95, 0.93
    matrix[7] = 0.5, 1.0, 1.0, 1.0  # what is lost on the first split does not come back
    matrix[9, 1:] = matrix[9, 0] = np.nan
    race, rounds = run_race(matrix, share=0.99)
    assert [len(each) for each in rounds] == [12, 2, 2, 2]
    assert race.selection.best == make_space(AXES).candidate(make_space(AXES).points()[2])
    assert (race.selection.n_tied, race.selection.n_failed) == (2, 1)
    _, rounds = run_race(np.full((12, FOLDS), 0.9), share=0.5)  # of 48 trainings 24
    assert [len(each) for each in rounds] == [12, 6, 4, 2]
    _, rounds = run_race(np.full((12, FOLDS), 0.9), share=0.01)
    assert [len(each) for each in rounds] == [12, 1, 1, 1]


def test_the_leader_stays_whatever_the_level():
    matrix = np.full((12, FOLDS), 0.6)  # of 5 rows
    matrix[5] = 0.8
    race, rounds = run_race(matrix, level=0.9, share=0.99)  # a candidate has p = 3/4 against itself
    assert [len(each) for each in rounds] == [12, 1, 1, 1]
    assert race.selection.best == make_space(AXES).candidate(make_space(AXES).points()[5])


def test_the_middle_of_a_large_grid_finds_the_hardest_splits():
    matrix = np.tile([0.9, 0.6, 0.8, 0.7], (64, 1))
    _, rounds = run_race(matrix, share=0.4, axes={"C": range(8), "gamma": range(8)})
    assert [{split for _, split in each} for each in rounds] == [{0, 1, 2, 3}, {1}, {3}, {2}, {0}]
    assert sum(map(len, rounds)) <= 0.4 * 64 * FOLDS


def test_a_metric_that_counts_no_rows_is_tested_over_splits():
    matrix = np.full((12, FOLDS), -0.4)
    matrix[3] = -0.3
    _, rounds = run_race(matrix, counts_rows=False, level=0.2, share=0.99)
    # Worse on one of one, two of two, three of three splits: p = 1/2, 1/4, 1/8.
    assert [len(each) for each in rounds] == [12, 12, 12, 1]


def test_no_overlap_of_errors_gives_a_larger_p():
    for leader, other in ((0, 3), (2, 9), (20, 35)):
        exact = [binom.cdf(leader - both, leader + other - 2 * both, 0.5) for both in range(leader + 1)]
        assert sign_test(leader, other) == pytest.approx(max(exact))
    assert sign_test(450, 500) == pytest.approx(binom.cdf(450, 950, 0.5), rel=1e-3)
    assert rows_of(np.array([23, 12, 18]) / 24) == 24
    assert rows_of(np.array([22, 11]) / 77) == 7  # never more than there are
    large = 1_500_007
    assert rows_of(np.array([large - 1, large // 2, 7]) / large) == large


@pytest.mark.parametrize(
    "solver", [pytest.param("newton", marks=pytest.mark.full), "libsvm_l1"]
)  # paths with warm starts, and single trainings
def test_a_study_by_a_statistical_race_is_resumed_replayed_and_reported(solver, tmp_path):
    overrides = ["datasets=[wine]", f"solvers=[{solver}]", "protocol.outer=2", "protocol.inner=4"]
    overrides += ["search.space.C=[0.25,1,4,16]", "search.space.gamma=[0.0625,0.25,1,4]"]
    overrides += ["search=race", "search.mode=statistical", "search.share=0.45"]
    race, _ = run_study(tmp_path, *overrides)
    n_inner = (race.trials["inner"] >= 0).sum()
    assert 0 < n_inner <= 0.45 * 2 * 4 * 16
    again, summary = run_study(tmp_path, *overrides, run_id="again")
    assert summary.trials_run == 0
    assert again.selections.equals(race.selections)
    described = protocol(analyse(again))["Search"]
    assert_says(described, "other candidates", "grid")
    assert_says(described, "rows", "level 0.2")
    assert_says(described, f"{128 - n_inner} of 128 inner trainings")
    # What it has trained serves the grid.
    overrides[-3:] = ["search=grid"]
    grid, summary = run_study(tmp_path, *overrides, run_id="grid")
    assert 128 - n_inner <= summary.trials_run <= 128 - n_inner + 2  # refits of other candidates
    assert set(race.trials.loc[race.trials["inner"] >= 0, "key"]) <= set(grid.trials["key"])


def test_options_of_races_are_checked_and_declared():
    def declared(*overrides):
        said = ["study=a", "datasets=[iris]", "solvers=[libsvm_l1]", "search=race", *overrides]
        return check_settings(compose_settings(said)).study.search

    own = "protocol.metric=positive_likelihood_ratio"  # without a known highest value
    spec = declared("search.mode=statistical", "search.level=0.1", own)
    assert spec.options == {"mode": "statistical", "level": 0.1, "share": 0.35}
    assert declared("search.mode=lossless") == declared()
    for wrong, message in (
        (["search.mode=exact"], "lossless or statistical"),
        (["search.level=0.1"], r"search\.level needs search\.mode=statistical"),
        (["search.mode=statistical", "search.share=2"], r"search\.share must be a number between 0 and 1"),
        (["search.mode=statistical", "search.highest=1"], r"search\.highest has no effect"),
    ):
        with pytest.raises(ConfigError, match=message):
            declared(*wrong)
