"""A study by search=every: its trainings, its resumption, its report without a verdict, and refusals."""

import json
from random import Random

import pandas as pd
import pytest

import svmbench
from orchestrator.analysis.findings import against_references, analyse, is_complete
from orchestrator.analysis.merged_studies import merge, merged_choices
from orchestrator.config.compose import load_settings
from orchestrator.engine.final_estimator import final_estimator
from orchestrator.engine.load import load_study, read_results
from orchestrator.report import answer_text, markdown_summary, write_report
from orchestrator.search import make_space
from orchestrator.search.every import EveryCandidate
from orchestrator.search.expected import expected_trainings
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.files import StoreError
from orchestrator.study.errors import ConfigError
from orchestrator.study.trials import REFIT
from tests.messages import assert_says, raises
from tests.orchestrator.studies import Interrupted, StudyRun, run_study

EVERY = (
    "study=every",
    "datasets=[iris,wine]",
    "solvers=[libsvm_l1,knn]",
    "solver.knn.space.n_neighbors=[1,5]",
    "solver.knn.space.weights=[uniform]",
    "protocol.outer=3",
    "search=every",
    "search.space.C=[0.25,4,64]",
    "search.space.gamma=[0.0625,0.5]",
)
SVMS = [each for each in EVERY if "knn" not in each]
SIZES = {"libsvm_l1": 6, "knn": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("every")


@pytest.fixture(scope="module")
def every(folder):
    results, _ = run_study(folder, base=EVERY)
    return results


def test_each_candidate_is_trained_once_on_each_outer_split_and_none_is_selected(every):
    counts = every.trials.groupby(["dataset", "solver", "outer"]).size()
    assert counts.to_dict() == {
        (dataset, arm, outer): SIZES[arm]
        for dataset in ("iris", "wine")
        for arm in SIZES
        for outer in range(3)
    }
    assert (every.trials["inner"] == REFIT).all()
    candidate = ["dataset", "solver", "outer", "param_C", "param_gamma", "param_n_neighbors"]
    assert not every.trials.duplicated(candidate).any()
    assert len(every.outer) == len(every.selections) == 0
    for (_, arm), state in every.states.items():
        assert state.complete
        assert state.planned == len(state.keys) == 3 * SIZES[arm]
        assert not state.refits
    for pair, declared in every.declaration.pairs.items():
        expected = expected_trainings(declared.identity, every.declaration.search)
        assert expected.total == expected.refits.sum() == len(every.states[pair].keys)
    assert is_complete(every)


def test_its_trainings_are_those_of_the_refits_of_a_nested_study(folder, every):
    nested, _ = run_study(
        folder, "study=nested", "search=grid", "search.space.C=[4]", "search.space.gamma=[0.5]", base=EVERY
    )
    names = ["dataset", "outer", "n_train", "n_test", "n_sv", "score", "seed"]
    of_svm = every.trials["solver"] == "libsvm_l1"
    point = (every.trials["param_C"] == 4) & (every.trials["param_gamma"] == 0.5)
    found = every.trials.loc[of_svm & point, names]
    refits = nested.outer.loc[nested.outer["solver"] == "libsvm_l1", names]
    # The outer splits are equal; seeds belong to the splits of both levels.
    pd.testing.assert_frame_equal(
        found.drop(columns="seed").reset_index(drop=True),
        refits.drop(columns="seed").reset_index(drop=True),
    )


def test_a_run_that_was_stopped_goes_on_with_the_same_rows(folder, every):
    with pytest.raises(KeyboardInterrupt):
        run_study(folder, "study=stopped", base=EVERY, executor=Interrupted(3))
    half = load_study("stopped", folder / "results")
    assert 0 < len(half.trials) < len(every.trials)
    assert not is_complete(half)
    results, summary = run_study(folder, "study=stopped", base=EVERY)
    assert summary.trials_stored_before == len(half.trials)
    names = [name for name in every.trials if name not in RUN_COLUMNS and name != "study"]
    pd.testing.assert_frame_equal(results.trials[names], every.trials[names])
    _, summary = run_study(folder, "study=stopped", base=EVERY)
    assert summary.trials_run == 0


def test_a_larger_grid_trains_only_the_new_candidates(folder, every):
    _, summary = run_study(folder, "search.space.C=[0.25,4,64,256]", "datasets=[iris]", base=EVERY)
    assert summary.trials_run == 3 * 2
    results, summary = run_study(folder, base=EVERY)
    assert summary.trials_run == 0
    assert len(results.trials) == len(every.trials)


def test_single_candidates_and_paths_have_one_training_each(folder):
    one = ("search.space.C=[4]", "search.space.gamma=[0.5]", "solvers=[libsvm_l1]", "datasets=[iris]")
    results, _ = run_study(folder, "study=one", *one, base=SVMS)
    assert len(results.trials) == 3
    assert is_complete(results)
    path = ("study=path", "solvers=[smo_l1]", "datasets=[iris]", "search.space.gamma=[0.5]")
    results, summary = run_study(folder, *path, base=SVMS)
    assert summary.failures == 0
    warm = results.trials.groupby("param_C")["warm_started"].all()
    assert warm.to_dict() == {0.25: False, 4.0: True, 64.0: True}
    timed, _ = run_study(folder, *path, "study=timed", "protocol.profile=timing", base=SVMS)
    assert not timed.trials["warm_started"].any()
    names = ["dataset", "outer", "param_C", "param_gamma", "score"]
    pd.testing.assert_frame_equal(results.trials[names], timed.trials[names])


LIMITED = (
    *("study=limited", "datasets=[iris]", "search=every", "protocol.outer=2", "protocol.max_seconds=60"),
    *("solvers=[tests.orchestrator.classifiers.OutOfTimeForLargeC]", "search.space.gamma=[0.5,1]"),
    "search.space.C=[64,0.25,4,1,16]",
)


def test_after_two_timeouts_larger_values_of_C_are_rows_that_were_not_run(folder):
    run = StudyRun(folder, base=LIMITED)
    summary = run.go()
    assert summary.trials_run == 2 * 2 * 5
    results = read_results(run.store)
    trials = results.trials
    unrun = trials["message"].str.startswith("not run: ")
    # 4 and 16 reach the limit for γ = 1/2; for γ = 1 so do 1/4 and 4.
    found = {gamma: sorted(rows["param_C"]) for gamma, rows in trials[unrun].groupby("param_gamma")}
    assert found == {0.5: [64, 64], 1.0: [16, 16, 64, 64]}
    assert (trials.loc[unrun, "status"] == "timeout").all()
    assert trials.loc[unrun, ["score", "fit_seconds"]].isna().all(axis=None)
    (counts,) = run.progress.counts.values()
    assert counts.failed == summary.failures == trials["score"].isna().sum() == 6
    assert_says(trials.loc[unrun, "message"].iloc[0], "smaller C", "limit of 60 s")
    assert is_complete(results)
    assert (trials.loc[~unrun, "fit_seconds"] >= 0).all()
    frame = against_references(analyse(results))
    assert frame["n_points"].tolist() == [4 + 2]  # without the trainings that were stopped


def test_a_run_that_was_stopped_skips_the_same_trainings(folder, monkeypatch):
    monkeypatch.setattr("orchestrator.engine.queue.TARGET_SECONDS", 1e-9)  # a training for each batch
    with pytest.raises(KeyboardInterrupt):
        run_study(folder, "study=halted", base=LIMITED, executor=Interrupted(3))
    again, _ = run_study(folder, "study=halted", base=LIMITED)
    whole, _ = run_study(folder, base=LIMITED)
    names = ["outer", "param_C", "param_gamma", "status", "message"]
    pd.testing.assert_frame_equal(again.trials[names], whole.trials[names])
    _, summary = run_study(folder, "study=halted", base=LIMITED)
    assert summary.trials_run == 0


@pytest.mark.parametrize("C", ["C", "svm__C"])
def test_skipped_candidates_do_not_depend_on_the_order_in_which_trainings_end(C):
    random = Random(0)
    Cs, gammas = [2.0**k for k in range(-4, 8)], [0.25, 1.0, 4.0]
    slow = {gamma: set(random.sample(Cs, 4)) for gamma in gammas}
    expected = {(c, g) for g in gammas for c in Cs if sum(each < c for each in slow[g]) >= 2}
    for _ in range(50):
        search = EveryCandidate(make_space({C: Cs, "gamma": gammas}), is_limited=True)
        under_way, skipped = [], set()
        while not search.done:
            under_way += [each for _, asked in search.ask() for each in asked]
            candidate = under_way.pop(random.randrange(len(under_way)))
            point = candidate.value(C), candidate.value("gamma")
            if search.skips(candidate):
                skipped.add(point)
            if search.skips(candidate) or point[0] in slow[point[1]]:
                search.timed_out(candidate)
            search.tell(candidate, REFIT, 1.0)
        assert skipped == expected
        assert not under_way


def test_without_a_limit_all_candidates_are_asked_at_once():
    search = EveryCandidate(make_space({"C": [1, 2], "gamma": [1, 2]}))
    assert [len(asked) for _, asked in search.ask()] == [4]


def test_the_report_gives_no_verdict_and_no_score_of_an_arm(folder, every):
    page = write_report(every, folder / "report")
    report = json.loads((folder / "report" / "report.json").read_text())
    assert report["complete"]
    assert_says(report["answer"], "test rows", "no estimate of accuracy")
    assert_says(report["protocol_in_words"]["Selected by"], "no estimate of accuracy")
    assert_says(page.read_text(encoding="utf-8"), "no estimate of accuracy")
    assert not report["answers_on_datasets"]
    assert not {"scores", "tests", "answer", "standings", "comparison_matrix"} & report["tables"].keys()
    assert [row["planned"] for row in report["tables"]["coverage"]["rows"]] == [18, 6, 18, 6]
    for text in (answer_text(every), markdown_summary(every)):
        assert_says(text, "no estimate of accuracy")


def test_a_study_of_several_seeds_or_a_splitter_has_no_inner_splits_either(folder):
    small = ("datasets=[iris]", "solvers=[knn]")
    seeds, _ = run_study(folder, "study=seeds", *small, "protocol.seed=[0,1]", base=EVERY)
    assert len(seeds.trials) == 2 * 3 * 2
    splitter = "protocol.outer={_target_: sklearn.model_selection.ShuffleSplit, n_splits: 2}"
    shuffled, _ = run_study(folder, "study=shuffled", *small, splitter, base=EVERY)
    assert len(shuffled.trials) == 2 * 2
    for results in (seeds, shuffled):
        assert_says(markdown_summary(results), "no estimate of accuracy")
        assert analyse(results).design.planned("iris", "knn") == len(results.trials)


@pytest.mark.parametrize("inner", ["5", "{_target_: sklearn.model_selection.KFold, n_splits: 3}"])
def test_inner_splits_that_a_command_names_are_refused(inner):
    with raises(ConfigError, f"protocol.inner={inner}", "search=every", "inner splits"):
        load_settings([*EVERY, f"protocol.inner={inner}"])


def test_a_default_of_the_protocol_is_left_aside():
    assert load_settings(EVERY).study.protocol.inner is None


def test_a_range_is_refused():
    with raises(ConfigError, "search=every", "C", "range"):
        load_settings([*EVERY, "search.space.C={low: 1, high: 4}"])


def test_it_makes_no_model_and_gives_no_selections_and_is_not_merged(folder, every):
    with raises(StoreError, "search=every", "search=grid"):
        final_estimator(every, "iris", "knn")
    with raises(StoreError, "search=every", "search=grid"):
        every.refit("iris", "knn")
    for search in ("selected", "sample"):
        timing = "protocol.profile=timing"
        others = [each for each in EVERY if "search" not in each]
        with raises(ConfigError, "search.study=every", "search=grid"):
            StudyRun(folder, "study=x", f"search={search}", "search.study=every", timing, base=others)
    other, _ = run_study(folder, "study=grid", "search=grid", "solvers=[knn]", "datasets=[iris]", base=EVERY)
    with raises(ConfigError, "every", "search=every"):
        merge([every, other])


def test_predictions_are_refused_because_no_candidate_is_refitted():
    with raises(ConfigError, "protocol.predictions=outer", "search=every"):
        load_settings([*EVERY, "protocol.predictions=outer"])


def test_a_comparison_from_python_needs_a_selection():
    with raises(ConfigError, "search='every'", "search='grid'"):
        svmbench.compare("iris", None, ["knn"], search="every", progress=False)


def test_studies_of_this_search_are_merged(folder, every):
    both = [
        run_study(folder, f"study=of_{name}", f"datasets=[{name}]", base=EVERY)[0]
        for name in ("iris", "wine")
    ]
    merged = against_references(merge(both))
    pd.testing.assert_frame_equal(merged, against_references(every))
    for results in both:  # the references that all of them name are those of the merged report
        results.provenance[-1]["report"] = {"reference": ["knn", "libsvm_l1"]}
    together = merge(both)
    assert merged_choices(together, {}).reference == ("knn", "libsvm_l1")
    assert merged_choices(together, {"reference": ["libsvm_l1"]}).reference == ("libsvm_l1",)
    both[0].provenance[-1]["report"] = {"reference": ["libsvm_l1"]}
    assert merged_choices(together, {}).reference == ()
