import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.findings import analyse
from orchestrator.config.compose import ConfigError, check_settings, compose_settings
from orchestrator.report.sections.protocol import protocol
from orchestrator.search import make_search, make_space
from orchestrator.search.race import Race
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.score_bounds import highest_score, lowest_score
from orchestrator.study.trials import candidates_by_path
from tests.messages import assert_says, raises
from tests.orchestrator.races import follow
from tests.orchestrator.studies import run_study

AXES = {"C": [1, 2, 3, 4], "gamma": [1, 2, 3]}
FOLDS = 4


def comparable(frame):
    """The columns in which runs must agree, whatever search asked for the trials."""
    columns = [name for name in frame if name not in (*RUN_COLUMNS, "selection_key")]
    return frame[columns].sort_values("key", ignore_index=True)


def grid_selection(scores):
    """Return what the grid selects, from scores by candidate."""
    search = make_search("grid", AXES)
    for candidate in search.ask():
        search.tell(candidate, float(np.mean(scores[candidate])))
    return search.selection


def by_candidate(matrix):
    space = make_space(AXES)
    return {space.candidate(point): row for point, row in zip(space.points(), matrix, strict=True)}


def run_race(scores, together=False, chance=None, highest=1.0):
    """Run a race; return it, and its rounds of (candidate, split)."""
    race = Race(make_space(AXES), FOLDS, highest, together)
    return race, follow(race, scores, chance)


# Few different values, so that many candidates tie; nan is a failure.
matrices = st.lists(
    st.lists(st.sampled_from([0.8, 0.9, 1.0, 1.0, 0.1 + 0.2, np.nan]), min_size=FOLDS, max_size=FOLDS),
    min_size=12,
    max_size=12,
)


@given(matrices, st.booleans(), st.integers(0, 10))
def test_a_race_selects_what_the_grid_selects_in_any_order(matrix, together, seed):
    scores = by_candidate(matrix)
    race, rounds = run_race(scores, together)
    grid, found = grid_selection(scores), race.selection
    assert (found.best, found.n_tied, found.n_candidates) == (grid.best, grid.n_tied, grid.n_candidates)
    np.testing.assert_equal(found.score, grid.score)
    assert run_race(scores, together, random.Random(seed))[1] == rounds


@given(matrices)
def test_nothing_is_trained_that_can_win_no_more(matrix):
    scores = by_candidate(matrix)
    known = {candidate: {} for candidate in scores}
    for asked in run_race(scores)[1]:
        means = [np.mean(list(told.values())) for told in known.values() if len(told) == FOLDS]
        best = np.nanmax([*means, -1.0])
        for candidate, split in asked:
            told = known[candidate]
            assert split not in told
            if told:  # the first training of a candidate is needed whatever the others have
                most = (sum(told.values()) + FOLDS - len(told)) / FOLDS
                assert most >= best - 1e-11
        for candidate, split in asked:
            known[candidate][split] = scores[candidate][split]


def test_paths_are_trained_whole():
    matrix = np.random.default_rng(0).choice([0.7, 0.8, 0.9], size=(12, FOLDS))
    for asked in run_race(by_candidate(matrix), together=True)[1]:
        for split in range(FOLDS):
            there = {candidate for candidate, on in asked if on == split}
            paths = candidates_by_path(there)
            assert all(len(path) == len(AXES["C"]) for path in paths)


def test_a_score_above_the_highest_declared_makes_it_a_whole_grid():
    matrix = np.linspace(0.1, 1.5, 12 * FOLDS).reshape(12, FOLDS)
    race, rounds = run_race(by_candidate(matrix))
    assert sum(map(len, rounds)) == matrix.size
    assert race.selection == grid_selection(by_candidate(matrix))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_infinite_scores_beside_one_above_the_highest_make_it_a_whole_grid():
    matrix = np.random.default_rng(0).choice([-np.inf, 0.5, 0.9], size=(50, 12, FOLDS), p=[0.2, 0.4, 0.4])
    matrix[:, make_space(AXES).points().index((2, 1)), 0] = 1.5  # of the first round
    for each in matrix:
        race, rounds = run_race(by_candidate(each))
        assert sum(map(len, rounds)) == each.size
        assert race.selection == grid_selection(by_candidate(each))


def test_a_winner_without_an_error_ends_the_race_early():
    matrix = np.full((12, FOLDS), 0.5)
    matrix[3] = 1.0
    _, rounds = run_race(by_candidate(matrix))
    assert sum(map(len, rounds)) == 12 + 2 * (FOLDS - 1)  # the middle one, and the winner, on all splits


def test_who_leads_no_more_is_trained_no_further_before_others():
    matrix = np.full((12, FOLDS), 0.3)
    middle = make_space(AXES).points().index((2, 1))
    matrix[middle] = 0.8, 0.9, 0.9, 0.9
    matrix[0] = 0.85, 0.6, 0.9, 0.9  # best on the hardest split, and out of the race after the next
    race, rounds = run_race(by_candidate(matrix))
    assert [len(asked) for asked in rounds] == [FOLDS, 11, 1]
    assert race.selection.best == make_space(AXES).candidate((2, 1))


def test_a_score_that_was_not_asked_for_is_refused():
    race = Race(make_space(AXES), FOLDS, 1.0, False)
    (splits, (candidate,)), *_ = race.ask()
    other = next(
        each for each in map(make_space(AXES).candidate, make_space(AXES).points()) if each != candidate
    )
    with pytest.raises(ValueError, match="asked for"):
        race.tell(other, splits[0], 0.5)
    with pytest.raises(RuntimeError, match="not done"):
        race.selection  # noqa: B018


@pytest.mark.parametrize(
    ("metric", "highest"),
    [
        ("accuracy", 1.0),
        ("roc_auc_ovr", 1.0),
        ("neg_log_loss", 0.0),
        ("neg_brier_score", 0.0),
        ("mine", None),
    ],
)
def test_the_highest_values_of_metrics(metric, highest):
    assert highest_score(metric) == highest


@pytest.mark.parametrize(
    ("metric", "lowest"),
    [
        ("accuracy", 0.0),
        ("f1_macro", 0.0),
        ("matthews_corrcoef", -1.0),
        ("d2_log_loss_score", None),
        ("neg_log_loss", None),
        ("mine", None),
    ],
)
def test_the_lowest_values_of_metrics(metric, lowest):
    assert lowest_score(metric) == lowest


# Paths with warm starts, and single trainings.
@pytest.mark.parametrize("solver", [pytest.param("newton", marks=pytest.mark.full), "libsvm_l1"])
def test_a_study_by_race_has_the_selections_and_refits_of_the_grid(solver, tmp_path):
    overrides = ["datasets=[wine]", f"solvers=[{solver}]", "protocol.outer=3"]
    overrides += ["search.space.C=[0.25,1,4,16]", "search.space.gamma=[0.0625,0.25,1,4]"]
    grid, _ = run_study(tmp_path / "grid", *overrides)
    race, _ = run_study(tmp_path / "race", *overrides, "search=race")
    assert len(race.trials) < len(grid.trials)
    shared = "kernel matrices of inner splits: {}; warm starts: {}"
    warm = solver if solver == "newton" else "none"
    assert protocol(analyse(race))["Profile"].endswith(shared.format(solver, warm))
    omitted = f"{len(grid.trials) - len(race.trials)} of {len(grid.trials) - 3} inner trainings"
    assert_says(protocol(analyse(race))["Search"], "same", omitted)
    pd.testing.assert_frame_equal(comparable(race.outer), comparable(grid.outer))
    own = ["selection_key", "n_candidates"]
    pd.testing.assert_frame_equal(race.selections.drop(columns=own), grid.selections.drop(columns=own))
    both = comparable(grid.trials).loc[lambda rows: rows["key"].isin(race.trials["key"])]
    pd.testing.assert_frame_equal(comparable(race.trials), both.reset_index(drop=True))
    # What the race has trained serves the grid, and the other way round.
    _, again = run_study(tmp_path / "grid", *overrides, "search=race", run_id="again")
    assert again.trials_run == 0


def test_a_metric_without_a_known_highest_value_has_to_declare_it(tmp_path):
    overrides = ["study=a", "datasets=[iris]", "solvers=[libsvm_l1]", "search=race"]
    own = "protocol.metric=positive_likelihood_ratio"
    with pytest.raises(ConfigError, match=r"search\.highest"):
        check_settings(compose_settings([*overrides, own]))
    with pytest.raises(ConfigError, match="a number"):
        check_settings(compose_settings([*overrides, "search.highest=most"]))
    with raises(ConfigError, "search", "list"):
        check_settings(compose_settings([*overrides, "search.space.C={low: 1, high: 4}"]))
    assert check_settings(compose_settings([*overrides, own, "search.highest=100"])).study.search.options
    # The name of a custom metric says nothing about its highest value.
    scorer = (
        "{_target_: sklearn.metrics.make_scorer, score_func: sklearn.metrics.max_error, name: f1_of_mine}"
    )
    custom = f"protocol.metric={scorer}"
    with pytest.raises(ConfigError, match=r"highest value of the metric f1_of_mine.*search\.highest"):
        check_settings(compose_settings([*overrides, custom]))
    assert check_settings(compose_settings([*overrides, custom, "search.highest=100"])).study.search.options
