"""Core hours of the experiments that undecided claims need."""

from math import isnan
from pathlib import Path

import pytest

from orchestrator.claims.finished import stored_studies
from orchestrator.cli.claim_hours import experiment_hours
from orchestrator.cli.claims import other_terms, study_loader
from orchestrator.config.compose import load_settings
from orchestrator.engine import planning
from orchestrator.engine.prepare import prepare_study

PUBLISHED = Path(__file__).parents[3] / "results" / "published"

GRID = """\
# @package _global_
study: grid
datasets: [iris, wine]
solvers: [libsvm_l1]
search: {space: {C: [0.1, 1, 100], gamma: [0.01, 1]}}
protocol: {profile: timing}
"""

SAMPLE = """\
# @package _global_
study: sample
defaults:
  - override /search: sample
datasets: [iris, wine]
solvers: [libsvm_l1]
search: {study: grid, folds: FOLDS}
protocol: {profile: timing}
"""


@pytest.mark.parametrize("name", ["quickstart", "minimal_norm"])
def test_the_hours_of_an_experiment_are_those_of_its_plan(name, tmp_path):
    settings = load_settings([f"experiment={name}", f"paths.results={tmp_path}", "paths.cache=null"])
    planned = planning.plan(prepare_study(settings), {}, {})
    hours = experiment_hours([name], {}, {}, None)[name]
    assert hours.whole == hours.left
    assert hours.whole * 3600 == pytest.approx(sum(line.seconds_left for line in planned), rel=0.02)


@pytest.mark.parametrize("size", ["test_size: 0.1", "train_size: 0.3"])
def test_the_training_share_of_a_splitter_counts(size, tmp_path):
    splitter = f"{{_target_: sklearn.model_selection.StratifiedShuffleSplit, n_splits: 3, {size}}}"
    (tmp_path / "experiment").mkdir()
    text = GRID.replace("{profile: timing}", f"{{profile: timing, outer: {splitter}}}")
    (tmp_path / "experiment" / "shares.yaml").write_text(text)
    settings = load_settings(["experiment=shares", f"paths.results={tmp_path}"], tmp_path)
    planned = planning.plan(prepare_study(settings), {}, {})
    hours = experiment_hours(["shares"], {}, {}, tmp_path)["shares"]
    assert hours.whole * 3600 == pytest.approx(sum(line.seconds_left for line in planned), rel=0.02)


def test_a_finished_study_has_no_hours_left_and_the_hours_that_it_took():
    found, _ = stored_studies(["update_bound"], study_loader(PUBLISHED))
    study = found["update_bound"]
    terms = {"update_bound": other_terms(study, PUBLISHED, None)}
    hours = experiment_hours(found, found, terms, None)["update_bound"]
    trials = study.results.trials
    seconds = trials[["fit_seconds", "predict_seconds", "prepare_seconds"]].sum().sum()
    assert hours.left == 0
    assert hours.whole * 3600 == pytest.approx(seconds, rel=0.05)


def test_a_sample_costs_its_share_of_the_study_that_it_samples(tmp_path):
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "grid.yaml").write_text(GRID)
    for folds in (1, 25):
        (folder / f"sample_{folds}.yaml").write_text(SAMPLE.replace("FOLDS", str(folds)))
    found = experiment_hours(["grid", "sample_1", "sample_25"], {}, {}, tmp_path)
    # Short trainings of a sample are measured three times.
    assert found["sample_25"].whole == pytest.approx(3 * found["grid"].whole)
    assert found["sample_1"].whole < 3 * found["grid"].whole / 8  # 6 + 5 of 155 trainings


def test_each_measurement_of_a_sample_has_its_hours(tmp_path):
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "grid.yaml").write_text(GRID)
    for repeats in (1, 3, 6):  # those of short trainings are measured three times at least
        text = SAMPLE.replace("FOLDS", f"1, repeats: {repeats}")
        (folder / f"repeats_{repeats}.yaml").write_text(text)
    found = experiment_hours([f"repeats_{each}" for each in (1, 3, 6)], {}, {}, tmp_path)
    assert found["repeats_3"].whole == pytest.approx(found["repeats_1"].whole)
    assert found["repeats_6"].whole == pytest.approx(2 * found["repeats_3"].whole)


def test_an_experiment_that_cannot_run_has_unknown_hours_and_an_unknown_name_has_none(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "broken.yaml").write_text(GRID.replace("libsvm_l1", "no_such_solver"))
    found = experiment_hours(["broken", "nothing"], {}, {}, tmp_path)
    assert found.keys() == {"broken"}
    assert isnan(found["broken"].whole)
    assert isnan(found["broken"].left)
