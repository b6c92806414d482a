"""A timing sample of a finished study: its trainings, their order, its estimates, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.dataset_answer import answer_of_dataset
from orchestrator.analysis.findings import analyse, estimated_ratios, estimated_totals, timing
from orchestrator.analysis.sampled_times import sample_weights
from orchestrator.claims.comparisons import compared
from orchestrator.claims.figures import Side
from orchestrator.config.compose import load_settings
from orchestrator.engine.acceptance import Choice, Stale, StalePair, accept
from orchestrator.engine.interleaved import InterleavedQueue
from orchestrator.engine.load import load_study, read_results
from orchestrator.engine.planning import plan
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.retraining import retrain, stored_units
from orchestrator.engine.superseded import superseded_sentences
from orchestrator.engine.work_orders import work_order
from orchestrator.execution.serial import SerialExecutor
from orchestrator.report import write_report
from orchestrator.store.files import StoreError
from orchestrator.store.store import Store
from orchestrator.study.errors import ConfigError
from orchestrator.study.growth import late_changes
from orchestrator.study.sample import declared_strata
from orchestrator.study.trials import Batch
from tests.messages import assert_says
from tests.orchestrator.studies import Interrupted, StudyRun, run_study, write_solver

FULL = (
    "study=full",
    "datasets=[iris,wine]",
    "solvers=[libsvm_l1,knn]",
    "solver.knn.space.n_neighbors=[1,5]",
    "solver.knn.space.weights=[uniform]",
    "protocol.outer=3",
    "protocol.inner=3",
    "search.space.C=[0.25,4,64]",
    "search.space.gamma=[0.0625,0.5]",
)
SAMPLE = (
    "study=timed",
    *FULL[1:3],
    *FULL[5:7],
    "protocol.profile=timing",
    "search=sample",
    "search.study=full",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    run_study(folder, base=FULL)
    return folder


@pytest.fixture(scope="module")
def timed(folder):
    results, _ = run_study(folder, base=SAMPLE)
    return results


def cells(results):
    inner = results.trials[results.trials["inner"] >= 0]
    columns = ["dataset", "solver", "param_C", "param_gamma", "param_n_neighbors", "outer", "inner"]
    return inner[columns].sort_values(columns, ignore_index=True)


def test_each_candidate_has_the_drawn_trainings_and_each_selection_its_refit(folder, timed):
    full = load_study("full", folder / "results")
    assert (timed.trials["profile"] == "timing").all()
    counts = cells(timed).groupby(["dataset", "solver"]).size()
    assert counts.to_dict() == {
        (dataset, arm): n for dataset in ("iris", "wine") for arm, n in (("libsvm_l1", 6), ("knn", 2))
    }
    refits = ["dataset", "solver", "outer", "param_C", "param_gamma", "param_n_neighbors"]
    order = ["dataset", "solver", "outer"]
    found, declared = (each.outer[refits].sort_values(order, ignore_index=True) for each in (timed, full))
    pd.testing.assert_frame_equal(found, declared)
    # Trainings under both profiles give models with the same scores.
    scores = [each.outer.sort_values(order)["score"].tolist() for each in (timed, full)]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


@pytest.mark.full
def test_a_larger_sample_contains_the_smaller_one(folder, timed):
    larger, _ = run_study(folder, "study=larger", "search.folds=2", base=SAMPLE)
    both = cells(larger).merge(cells(timed), how="inner")
    assert len(both) == len(cells(timed)) == len(cells(larger)) / 2
    everything, _ = run_study(folder, "study=everything", "search.folds=9", "datasets=[iris]", base=SAMPLE)
    totals = estimated_totals(everything)
    seconds = everything.trials[["fit_cpu_seconds", "predict_cpu_seconds"]].sum(axis=1)
    expected = seconds.groupby(everything.trials["solver"]).sum()
    for row in totals.to_dict("records"):
        assert row["cpu_seconds"] == pytest.approx(expected[row["solver"]])
        assert row["cpu_seconds_se"] == 0
        assert row["drawn"] == row["trainings"]


def test_the_weights_of_the_trials_add_up_to_the_trainings_of_the_source(folder, timed):
    full = load_study("full", folder / "results")
    study = analyse(timed)
    assert sample_weights(study.trials, study.design).sum() == len(full.trials)
    assert sample_weights(full.trials, analyse(full).design).sum() == len(full.trials)


def test_the_report_says_from_how_many_trainings_it_estimates(folder, timed):
    totals = estimated_totals(timed).set_index(["dataset", "solver"])
    assert totals["trainings"].to_dict() == {
        (dataset, arm): n for dataset in ("iris", "wine") for arm, n in (("libsvm_l1", 57), ("knn", 21))
    }
    assert (totals["measured"] == totals["drawn"]).all()
    assert (totals["cpu_seconds_low"] < totals["cpu_seconds"]).all()
    assert (totals["cpu_seconds"] < totals["cpu_seconds_high"]).all()
    ratio = estimated_ratios(timed).set_index(["dataset", "solver"])["ratio"]
    for dataset in ("iris", "wine"):
        pair = totals.loc[(dataset, "knn"), "cpu_seconds"], totals.loc[(dataset, "libsvm_l1"), "cpu_seconds"]
        assert ratio[dataset, "knn"] == pytest.approx(pair[0] / pair[1])
    # No table shows the sum over the sample as the time of a whole search.
    wall = timing(timed).set_index(["dataset", "solver"])["study_seconds"]
    pd.testing.assert_series_equal(wall.sort_index(), totals["seconds"].sort_index(), check_names=False)
    write_report(timed, folder / "report")
    page = (folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "9 of 57" in page
    assert "5 of 21" in page


def test_the_report_says_what_limits_its_estimates(timed, tmp_path):
    def said(change):
        trials = timed.trials.copy()
        change(trials, (trials["dataset"] == "iris") & (trials["solver"] == "libsvm_l1"))
        results = replace(timed, trials=trials)
        write_report(results, tmp_path)
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        return (
            "wall time of more than 10 % of the trainings" in page,
            "is unknown or wider than a factor of 2" in page,
        )

    seconds = ["fit_seconds", "predict_seconds", "fit_cpu_seconds", "predict_cpu_seconds"]

    def even(trials, arm):
        trials[seconds] = 0.01

    def wait(trials, arm):
        even(trials, arm)
        trials.loc[arm, "fit_seconds"] = 0.02

    def scatter(trials, arm):
        even(trials, arm)
        slow = arm & (trials["inner"] >= 0) & (trials["param_C"] == 4) & (trials["param_gamma"] == 0.5)
        assert slow.any()
        trials.loc[slow, seconds] = 10.0

    def stop(trials, arm):
        scatter(trials, arm)
        trials.loc[arm, "status"] = "timeout"

    assert said(even) == (False, False)
    assert said(wait) == (True, False)
    assert said(scatter) == (False, True)
    assert said(stop) == (False, False), "more trainings would be stopped too"


def test_a_run_that_was_stopped_goes_on_with_the_same_trainings(folder, timed):
    with pytest.raises(KeyboardInterrupt):
        run_study(folder, "study=stopped", base=SAMPLE, executor=Interrupted(5))
    results, summary = run_study(folder, "study=stopped", base=SAMPLE)
    assert summary.trials_stored_before == 5
    names = ["key", "dataset", "solver", "outer", "inner", "status", "score"]
    first, second = (each.trials[names].sort_values("key", ignore_index=True) for each in (timed, results))
    pd.testing.assert_frame_equal(first, second)
    _, summary = run_study(folder, "study=stopped", base=SAMPLE)
    assert summary.trials_run == 0


def test_arms_are_measured_in_random_order_on_the_same_cells(folder):
    arms = ("solvers=[libsvm_l1]", "datasets=[iris]", "sweep.tol=[0.001,0.1]")
    run_study(folder, "study=alike", *arms, base=[each for each in FULL if "knn" not in each])
    run = StudyRun(folder, "study=order", *arms, "search.study=alike", base=SAMPLE)
    assert isinstance(run.runner._queue, InterleavedQueue)
    run.go()
    trials = load_study("order", folder / "results").trials
    inner = trials[trials["inner"] >= 0]
    cell = ["outer", "inner", "param_C", "param_gamma"]
    assert (inner.groupby(cell)["solver"].nunique() == 2).all()
    ordered = trials.sort_values("started_at", ignore_index=True)
    # Both arms of a cell follow one another, and neither is always first.
    pairs = ordered[ordered["inner"] >= 0].groupby(cell)
    assert all(np.ptp(rows.index) == 1 for _, rows in pairs)
    assert len({rows["solver"].iloc[0] for _, rows in pairs}) == 2
    assert not ordered["param_C"].is_monotonic_increasing
    both = estimated_ratios(load_study("order", folder / "results"))
    assert both["common"].tolist() == [6]


def test_another_number_of_measurements_is_named_before_a_run_and_in_the_report(folder, tmp_path):
    only, more = ("study=repeated", "solvers=[knn]"), "search.repeats=5"
    run_study(folder, *only, "datasets=[wine]", base=SAMPLE)
    prepared = prepare_study(load_settings([*SAMPLE, f"paths.results={folder / 'results'}", *only, more]))
    (sentence,) = superseded_sentences(prepared, Store(folder / "results" / "repeated"))
    assert_says(sentence, "search.repeats=5", "5 stored trials", "search.repeats=1", "study=NAME")
    again = StudyRun(folder, *only, more, base=SAMPLE, run_id="again")
    again.go()
    assert superseded_sentences(prepared, again.store) == []
    write_report(read_results(again.store), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Runs with search.repeats of 1 and 5 have measured this sample" in page


@pytest.mark.full
def test_short_trainings_are_measured_three_times(folder, monkeypatch):
    from sklearn.neighbors import KNeighborsClassifier

    calls = []
    fit = KNeighborsClassifier.fit
    monkeypatch.setattr(
        KNeighborsClassifier, "fit", lambda self, *data: calls.append(len(data[0])) or fit(self, *data)
    )
    only = ("solvers=[knn]", "datasets=[wine]")
    results, _ = run_study(folder, "study=thrice", *only, base=SAMPLE)
    thrice = len(calls)
    run_study(folder, "study=five", *only, "search.repeats=5", base=SAMPLE)
    assert len(calls) - thrice - thrice == 2 * len(results.trials)


def test_an_acceptance_trains_each_trial_once(folder, monkeypatch):
    """Times are not compared, so the measurements of a timing sample are not repeated."""
    from sklearn.neighbors import KNeighborsClassifier

    fit, calls = KNeighborsClassifier.fit, []
    only = ("study=accepted", "solvers=[knn]", "datasets=[wine]")
    run = StudyRun(folder, *only, base=SAMPLE)
    run.go()
    identity, search = run.prepared.identities["wine", "knn"], run.prepared.study.search
    units = stored_units(identity, search, run.store.stored(), run.store.search_records.read)
    rows = run.store.rows([key for unit in units for key in unit.keys])
    pair = StalePair(("wine", "knn"), identity, identity, units, units)
    monkeypatch.setattr(
        KNeighborsClassifier, "fit", lambda self, *data: calls.append(len(data[0])) or fit(self, *data)
    )
    assert accept(run.prepared, Stale({"knn": [pair]}, {}, rows), run.store, Choice(), [], print) == []
    assert len(units) <= len(calls) < 2 * len(units)


@pytest.mark.parametrize("search", ["sample", "selected"])
def test_a_dataset_that_its_source_finishes_later_leaves_the_trials_of_the_others_counting(search, tmp_path):
    arms = "solvers=[libsvm_l1]", "protocol.outer=2", "protocol.inner=2"
    space = "search=pattern", "search.space.C=[0.25,1,4,16,64]", "search.space.gamma=[0.0625,0.25,1]"
    taken = "study=taken", *arms, "protocol.profile=timing", f"search={search}", "search.study=source"
    for number, dataset in enumerate(("iris", "wine")):
        run_study(
            tmp_path, "study=source", f"datasets=[{dataset}]", *arms, *space, base=(), run_id=f"{number}"
        )
        results, _ = run_study(tmp_path, f"datasets=[{dataset}]", *taken, base=(), run_id=f"{number}")
    assert set(results.outer["dataset"]) == {"iris", "wine"}
    assert all(state.complete for state in results.states.values())
    assert results.excluded.empty
    both, summary = run_study(tmp_path, "datasets=[iris,wine]", *taken, base=(), run_id="both")
    assert summary.trials_run == 0
    assert len(both.trials) == len(results.trials)
    study = analyse(both)
    assert not [each for each in late_changes(both.provenance, [], ["libsvm_l1"]) if each.kind == "settings"]
    if search == "sample":
        assert (estimated_totals(study)["cpu_seconds"] > 0).all()
        assert answer_of_dataset(both, study.design, "wine").more is None
        wider = "search=grid", *space[1:], "study=source", "datasets=[iris]"
        run_study(tmp_path, *wider, *arms, base=(), run_id="wider")
        again, _ = run_study(tmp_path, "datasets=[iris]", *taken, base=(), run_id="again")
        assert set(again.outer["dataset"]) == {"iris"}
        assert again.excluded["why"].tolist() == ["another search (the candidates from search.study)"]


def test_a_plan_counts_every_measurement_of_a_training(folder):
    def seconds(repeats):
        prepared = StudyRun(folder, "study=planned", f"search.repeats={repeats}", base=SAMPLE).prepared
        return sum(line.seconds_left for line in plan(prepared, {}, {}))

    assert seconds(30) == pytest.approx(10 * seconds(3))


def test_the_declaration_holds_the_sample(folder, timed):
    provenance = sorted((timed.folder / "provenance").glob("*.json"))[-1]
    search = json.loads(provenance.read_text())["study"]["search"]
    assert search["options"]["study"] == "full"
    strata = declared_strata(timed.declaration.search, "iris", "libsvm_l1")
    assert [(stratum.size, len(stratum.cells)) for stratum in strata] == [(9, 1)] * 6


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["protocol.profile=throughput"], ["protocol.profile", "timing"]),
        (["search.study=none"], ["search.study", "'none'"]),
        (["study=full"], ["search.study=full"]),
        (["search.folds=10"], ["search.folds=10", "9", "iris"]),
        (["search.folds=0"], ["search.folds", "0"]),
        (["search.repeats=1.5"], ["search.repeats", "1.5"]),
        (["solvers=[lda]"], ["lda", "libsvm_l1"]),
        (["datasets=[breast_cancer]"], ["breast_cancer", "iris", "wine"]),
        (["solver.libsvm_l1.C=1"], ["libsvm_l1", "fixes C"]),
        (["solver.libsvm_l1.tol=0.1"], ["libsvm_l1", "tol was not set, now 0.1"]),
        (["protocol.scaling=none"], ["search.study=full", "protocol.prepare"]),
        (["protocol.inner=4"], ["iris", "splits", "protocol.inner"]),
    ],
)
def test_it_refuses(folder, overrides, said):
    with pytest.raises(ConfigError) as error:
        StudyRun(folder, *overrides, base=SAMPLE)
    assert all(text in str(error.value) for text in said)


def test_it_refuses_a_study_that_is_not_finished(folder):
    with pytest.raises(KeyboardInterrupt):
        run_study(folder, "study=half", base=FULL, executor=Interrupted(1))
    with pytest.raises(ConfigError) as error:
        StudyRun(folder, "search.study=half", base=SAMPLE)
    assert all(text in str(error.value) for text in ("half", "finished"))


def test_it_refuses_a_study_that_is_a_sample_itself(folder, timed):
    with pytest.raises(ConfigError) as error:
        StudyRun(folder, "study=again", f"search.study={timed.name}", base=SAMPLE)
    assert all(text in str(error.value) for text in (f"search.study={timed.name}", "search.study=full"))


def test_it_has_no_final_model_of_its_own(timed):
    with pytest.raises(StoreError, match="full"):
        timed.final_estimator("iris", "knn")


def test_claims_about_whole_searches_weigh_the_sample(timed):
    study = analyse(timed)
    totals = estimated_totals(study).set_index(["solver", "dataset"])["seconds"]
    for arm, counts, of_iris in (
        ("libsvm_l1", "18 of 114", "9 of 57"),
        ("knn", "10 of 42", "5 of 21"),
    ):
        found = Side(arm, [study])
        folds = found.folds("total_seconds").groupby(level="dataset").sum()
        assert folds["low"].to_dict() == pytest.approx(totals[arm].to_dict())
        assert counts in found.estimated("total_seconds", ["iris", "wine"])
        assert of_iris in found.estimated("total_seconds", ["iris"])
        assert found.estimated("total_seconds", []) == found.estimated("fit_seconds", ["iris"]) == ""


def test_a_claim_about_the_ratio_of_whole_searches_takes_that_of_the_estimated_totals(timed):
    study = analyse(timed)
    totals = estimated_totals(study).set_index(["solver", "dataset"])["seconds"]
    sides = Side("knn", [study]), Side("libsvm_l1", [study])
    figures = compared(*sides, "total_seconds", True, lambda name: True, apart=True, looks=3)
    for dataset, figure in zip(("iris", "wine"), figures, strict=True):
        expected = totals["knn", dataset] / totals["libsvm_l1", dataset]
        assert figure.estimate == pytest.approx(expected)
        assert figure.wide[0] < figure.low < figure.estimate < figure.high < figure.wide[1]
        assert (figure.n, figure.unit) == (2, "trainings")  # of knn, without refits


def test_an_axis_of_numbers_whose_column_is_text_keeps_its_values(tmp_path):
    target = "tests.orchestrator.classifiers.Setting"
    for name, best in (("numbers", "'0.5'"), ("mixed", "'1.0'")):
        conf = write_solver(tmp_path, name, target, best=best)
    base = "datasets=[iris]", "solvers=[numbers,mixed]", "protocol.outer=2", "protocol.inner=2"
    spaces = "solver.numbers.space={setting: [0.5, 1.0, 2.0]}", "solver.mixed.space={setting: [1.0, 3]}"
    run_study(tmp_path, "study=source", *base, *spaces, base=(), config_dir=conf)
    more = spaces[0], "solver.mixed.space={setting: [1.0, 3, few]}"
    run = StudyRun(tmp_path, "study=source", *base, *more, base=(), config_dir=conf, run_id="again")
    run.go()
    source = read_results(run.store)
    for rows in (source.trials, source.selections):
        found = {arm: set(of_arm["param_setting"]) for arm, of_arm in rows.groupby("solver")}
        assert found["numbers"] <= {"0.5", "1.0", "2.0"}
        assert found["mixed"] <= {"1.0", "3", "few"}
    timed, _ = run_study(
        tmp_path,
        *("study=timed", *base, "protocol.profile=timing", "search=sample", "search.study=source"),
        base=(),
        config_dir=conf,
    )
    totals = estimated_totals(timed)
    assert totals["drawn"].tolist() == [3 + 2] * 2
    assert totals["trainings"].tolist() == [3 * 4 + 2] * 2
    assert (totals["cpu_seconds"] > 0).all()
    identity = run.prepared.identities["iris", "numbers"]
    units = stored_units(identity, run.prepared.study.search, run.store.stored(), None)
    rows = run.store.rows([key for unit in units for key in unit.keys])
    order = work_order(run.prepared, "run", Batch(1, "iris", "numbers", (), 1, 0.0))
    for _, difference in retrain(units, rows, order, SerialExecutor()):
        assert difference is None
