"""A study is one declaration: what a name means is what the newest run said, and only such rows are used."""

import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.engine.cost_model import CostModel
from orchestrator.engine.load import read_results
from orchestrator.report.contents import all_tables
from orchestrator.study.declaration import current_declaration
from tests.orchestrator.classifiers import here
from tests.orchestrator.studies import Interrupted, StudyRun, run_study, write_solver

KNN = "sklearn.neighbors.KNeighborsClassifier"
ALL = ("datasets=[iris,wine,breast_cancer]", "solvers=[knn]")
TRIALS = 3 * (3 * 2 + 1)

EDITED = "another solver (parameters.weights was uniform, now distance)"


def configure(folder, weights="uniform", space="{n_neighbors: [1, 5]}"):
    return {"config_dir": write_solver(folder, "knn", KNN, weights=weights, space=space)}


def counted(results):
    return results.trials.groupby("dataset").size().to_dict()


def test_an_edited_solver_is_not_mixed_with_the_rows_its_name_left_on_other_datasets(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    edited = configure(tmp_path, weights="distance")
    results, _ = run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="second", **edited)
    assert counted(results) == {"iris": TRIALS}
    assert results.excluded.to_dict("records") == [
        {"dataset": "breast_cancer", "solver": "knn", "trials": TRIALS, "why": EDITED},
        {"dataset": "iris", "solver": "knn", "trials": TRIALS, "why": EDITED},
        {"dataset": "wine", "solver": "knn", "trials": TRIALS, "why": EDITED},
    ]
    findings = analyse(results)
    assert frames.scores(findings)["dataset"].tolist() == ["iris"]
    assert (
        frames.coverage(findings)["planned"].tolist()
        == frames.coverage(findings)["stored"].tolist()
        == [TRIALS]
    )
    assert all_tables(findings)["arms"].data["fixed"].tolist() == ["weights=distance"]


def test_former_settings_bring_former_rows_back_without_a_training(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    edited = configure(tmp_path, weights="distance")
    run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="second", **edited)
    results, summary = run_study(
        tmp_path, "datasets=[wine]", "solvers=[knn]", run_id="third", **configure(tmp_path)
    )
    assert summary.trials_run == 0
    assert counted(results) == {"iris": TRIALS, "wine": TRIALS, "breast_cancer": TRIALS}


@pytest.mark.full
def test_another_space_on_one_dataset_sets_the_others_apart(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    narrower = configure(tmp_path, space="{n_neighbors: [1, 3, 5]}")
    results, _ = run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="second", **narrower)
    assert counted(results) == {"iris": 3 * (3 * 3 + 1)}
    assert set(results.selections["dataset"]) == set(results.outer["dataset"]) == {"iris"}
    assert frames.coverage(analyse(results))["planned"].tolist() == [3 * (3 * 3 + 1)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("override", ["protocol.seed=1", "search=pattern", "protocol.scaling=none"])
def test_another_protocol_or_search_on_one_dataset_sets_the_others_apart(override, tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    results, _ = run_study(
        tmp_path, "datasets=[iris]", "solvers=[knn]", override, run_id="second", **configure(tmp_path)
    )
    assert set(counted(results)) == {"iris"}
    assert set(results.excluded["dataset"]) >= {"wine", "breast_cancer"}


@pytest.mark.full
def test_the_order_of_numbers_in_a_space_means_nothing(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    turned = configure(tmp_path, space="{n_neighbors: [5, 1]}")
    results, summary = run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="second", **turned)
    assert summary.trials_run == 0
    assert len(counted(results)) == 3


@pytest.mark.full
def test_an_interrupted_widening_shows_no_old_refit_beside_a_new_selection(tmp_path, monkeypatch):
    # Else the seconds that trainings take decide how many are in the two batches.
    monkeypatch.setattr(CostModel, "update", lambda *_: None)
    run_study(tmp_path, "datasets=[iris,wine]", "solvers=[knn]", run_id="first", **configure(tmp_path))
    wide = configure(tmp_path, space="{n_neighbors: [1, 5, 9, 13]}")
    study = StudyRun(
        tmp_path,
        "datasets=[iris,wine]",
        "solvers=[knn]",
        run_id="second",
        executor=Interrupted(3),
        **wide,
    )
    with pytest.raises(KeyboardInterrupt):
        study.go()
    results = read_results(study.store)
    assert set(results.outer["selection_key"]) == set(results.selections["selection_key"])
    assert len(results.selections) < 6
    assert (results.selections["n_candidates"] == 4).all()
    assert not any(state.complete for state in results.states.values())
    assert not frames.is_complete(analyse(results))
    # The files beside the trials say the same.
    for rows, frame in (
        (study.store.selection_rows(), results.selections),
        (study.store.outer_rows(), results.outer),
    ):
        assert sorted(row["selection_key"] for row in rows) == sorted(frame["selection_key"])


def test_the_same_computation_under_another_name_counts_once_and_under_the_new_one(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    config = {
        "config_dir": write_solver(tmp_path, "nn", KNN, weights="uniform", space="{n_neighbors: [1, 5]}")
    }
    results, summary = run_study(tmp_path, "datasets=[iris,wine]", "solvers=[nn]", run_id="second", **config)
    assert summary.trials_run == 0
    assert set(results.trials["solver"]) == set(results.outer["solver"]) == {"nn", "knn"}
    assert results.states.keys() == {("iris", "nn"), ("wine", "nn"), ("breast_cancer", "knn")}
    assert results.trials.groupby("solver").size().to_dict() == {"nn": 2 * TRIALS, "knn": TRIALS}


def test_which_run_is_the_newest_does_not_depend_on_clocks():
    def run(number, weights, started_at):
        arm = {"name": "knn", "target": KNN, "params": {"weights": weights}}
        return {
            "number": number,
            "started_at": started_at,
            "study": {"datasets": [{"name": "iris"}], "arms": [arm], "search": "grid", "protocol": {}},
        }

    runs = [run(1, "uniform", "2026-01-09"), run(2, "distance", "2026-01-07")]
    assert current_declaration(runs).arms["knn"]["params"] == {"weights": "distance"}


def test_a_study_without_any_declaration_has_none():
    assert current_declaration([]) is None
    assert current_declaration([{"run_id": "old"}]) is None


def test_a_narrower_run_makes_no_other_arm_the_control(tmp_path):
    for name, weights in (("near", "distance"), ("far", "uniform")):
        write_solver(tmp_path, name, KNN, weights=weights, space="{n_neighbors: [1, 5]}")
    config = {"config_dir": tmp_path / "conf"}
    run_study(tmp_path, "datasets=[iris,wine]", "solvers=[near,far]", run_id="first", **config)
    results, _ = run_study(tmp_path, "datasets=[wine]", "solvers=[far]", run_id="second", **config)
    design = analyse(results).design
    assert (list(design.datasets), list(design.arms)) == (["iris", "wine"], ["near", "far"])
    results, _ = run_study(tmp_path, "datasets=[wine,iris]", "solvers=[far,near]", run_id="third", **config)
    design = analyse(results).design  # whoever declares them all again may order them anew
    assert (list(design.datasets), list(design.arms)) == (["wine", "iris"], ["far", "near"])


@pytest.mark.full
def test_rows_are_set_apart_for_the_reason_that_is_theirs(tmp_path):
    run_study(tmp_path, *ALL, run_id="first", **configure(tmp_path))
    edited = configure(tmp_path, weights="distance")
    run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="second", **edited)
    wide = configure(tmp_path, weights="distance", space="{n_neighbors: [5]}")
    results, _ = run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", run_id="third", **wide)
    whys = results.excluded.groupby("dataset")["why"].agg(set).to_dict()
    both = f"{EDITED[:-1]}; space.n_neighbors was [1,5], now [5])"
    assert whys["wine"] == whys["breast_cancer"] == {both}
    assert whys["iris"] == {both, "not, or not yet, asked for by the search that was declared last"}


@pytest.mark.full
def test_a_stopped_retry_leaves_the_files_that_a_reader_would_derive(tmp_path):
    config = {"config_dir": write_solver(tmp_path, "failing", here("Failing"), fails_at=1)}
    overrides = ("datasets=[iris]", "solvers=[failing]", "search.space={C:[1,2,4]}")
    run_study(tmp_path, *overrides, run_id="first", **config)
    study = StudyRun(
        tmp_path, *overrides, run_id="second", retry_failed=True, executor=Interrupted(0), **config
    )
    with pytest.raises(KeyboardInterrupt):
        study.go()
    results = read_results(study.store)
    assert len(results.outer) == len(results.selections) == 3
    assert sorted(row["key"] for row in study.store.outer_rows()) == sorted(results.outer["key"])
    assert len(study.store.selection_rows()) == 3


@pytest.mark.full
def test_numbers_are_numbers_whatever_an_earlier_declaration_held(tmp_path):
    overrides = ("datasets=[iris]", "solvers=[tree]")
    for run_id, depths in (("first", "[1, null]"), ("second", "[1, 2]")):
        tree = "sklearn.tree.DecisionTreeClassifier"
        config = {"config_dir": write_solver(tmp_path, "tree", tree, space=f"{{max_depth: {depths}}}")}
        results, _ = run_study(tmp_path, *overrides, run_id=run_id, **config)
    for frame in (results.trials, results.outer, results.selections):
        assert set(frame["param_max_depth"]) <= {1.0, 2.0}
        assert frame["param_max_depth"].dtype == float


def test_the_analysis_takes_the_declaration_that_the_results_were_read_by(tmp_path, monkeypatch):
    results, _ = run_study(tmp_path, "datasets=[iris]", "solvers=[knn]", **configure(tmp_path))
    monkeypatch.setattr("orchestrator.analysis.design.current_declaration", None)
    assert list(analyse(results).design.arms) == ["knn"]
