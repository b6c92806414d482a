import itertools
import os
import pickle
import random
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from orchestrator.engine.damage_repair import repair
from orchestrator.engine.load import read_results
from orchestrator.engine.overview import overview
from orchestrator.engine.runner import StudyStopped
from orchestrator.execution.executor import Outcome
from orchestrator.execution.serial import SerialExecutor
from orchestrator.resampling.nested import nested_folds
from orchestrator.search import fold_search
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.store import StoreError
from orchestrator.study.declaration import current_declaration
from orchestrator.study.errors import ExecutionError
from tests.messages import assert_says, raises, warns
from tests.orchestrator.classifiers import here
from tests.orchestrator.studies import Interrupted, StudyRun, run_study, write_solver

DATASETS, SOLVERS, OUTER, INNER, POINTS = 2, 2, 3, 3, 6
TRIALS = DATASETS * SOLVERS * OUTER * (POINTS * INNER + 1)
SPACE = list(itertools.product([0.25, 4, 64], [0.0625, 0.5]))


def comparable(frame):
    """The columns in which runs must agree, in canonical order."""
    columns = [name for name in frame if name not in RUN_COLUMNS]
    return frame[columns].sort_values("key", ignore_index=True)


class Shuffling(SerialExecutor):
    """Keeps several orders in flight and ends them in random order, as a cluster does."""

    slots = 5

    def __init__(self, seed):
        super().__init__()
        self._random = random.Random(seed)

    def wait(self, seconds):
        self._random.shuffle(self._waiting)
        return [
            outcome for _ in range(self._random.randint(0, 2)) for outcome in super(Shuffling, self).wait(0)
        ]


class Losing(SerialExecutor):
    """Loses its worker with every batch that holds a fatal trial."""

    def __init__(self, fatal):
        super().__init__()
        self._fatal = fatal

    def wait(self, seconds):
        order = self._waiting[0]
        if any(map(self._fatal, order.batch.paths)):
            self._waiting.popleft()
            return [Outcome(order, None, lost="its worker died")]
        return super().wait(seconds)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The results of the undisturbed small study, timed so that every training is cold and exact.

    A batch has a single training. Otherwise, a fast machine trains an arm's inner splits in one batch.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.engine.queue.TARGET_SECONDS", 1e-9)
        return run_study(tmp_path_factory.mktemp("complete"), "protocol.profile=timing")


# -- counts --------------------------------------------------------------------------------------


def test_every_trial_of_the_plan_is_stored_once(complete):
    results, summary = complete
    assert (summary.trials_run, summary.trials_stored_before, summary.failures) == (TRIALS, 0, 0)
    assert len(results.trials) == TRIALS == results.trials["key"].nunique()
    assert set(results.trials["status"]) == {"ok"}
    axes = ["dataset", "solver", "outer", "inner", "param_C", "param_gamma"]
    assert not results.trials[axes].duplicated().any()
    inner = results.trials[results.trials["inner"] >= 0]
    assert (inner.groupby(["dataset", "solver", "outer", "inner"]).size() == POINTS).all()


def test_there_is_a_refit_and_a_selection_for_each_outer_fold(complete):
    results, _ = complete
    assert len(results.outer) == len(results.selections) == DATASETS * SOLVERS * OUTER
    refits = results.trials[results.trials["inner"] == -1]
    pd.testing.assert_frame_equal(comparable(results.outer.drop(columns="selection_key")), comparable(refits))
    assert set(results.outer["selection_key"]) == set(results.selections["selection_key"])


def test_the_refit_uses_the_selected_candidate(complete):
    results, _ = complete
    axes = ["dataset", "solver", "outer"]
    both = results.outer.merge(results.selections, on=axes, suffixes=("", "_selected"), validate="1:1")
    assert (both["param_C"] == both["param_C_selected"]).all()
    assert (both["param_gamma"] == both["param_gamma_selected"]).all()


class TwoSlots(Interrupted):
    """Takes two orders, and is interrupted before it runs one."""

    slots = 2

    def __init__(self):
        super().__init__(after=0)

    @property
    def solvers(self):
        return [order.batch.solver for order in self._waiting]


@pytest.mark.parametrize("solver", ["mnsvm", "libsvm_l1"])
def test_a_solver_that_compiles_starts_first_and_another_beside_it(tmp_path, solver):
    executor = TwoSlots()
    with pytest.raises(KeyboardInterrupt):
        StudyRun(tmp_path, executor=executor, compiling=[solver]).go()
    first, second = executor.solvers
    assert first == solver != second


def test_a_run_says_what_it_cost(complete):
    _, summary = complete
    assert 0 < summary.training_seconds < summary.busy_seconds < summary.seconds
    assert 0 < summary.worker_share <= 1
    assert summary.batches > 0


# -- the numbers are those of a plain loop -------------------------------------------------------


@pytest.fixture(scope="module")
def plain():
    """Nested cross-validation in scikit-learn, over the same splits and with the same rule for ties."""
    return {
        (name, outer): plain_fold(*load(return_X_y=True), outer)
        for name, load in (("iris", load_iris), ("wine", load_wine))
        for outer in range(OUTER)
    }


def plain_fold(X, y, outer):
    folds = nested_folds(y, OUTER, INNER, 0)

    def score(inner, C, gamma):
        train, test = folds.train_test(outer, inner)
        scaler = MinMaxScaler().fit(X[train])
        classifier = SVC(C=C, gamma=gamma).fit(scaler.transform(X[train]), y[train])
        return accuracy_score(y[test], classifier.predict(scaler.transform(X[test])))

    means = {point: np.mean([score(inner, *point) for inner in range(INNER)]) for point in SPACE}
    best = max(means.values())
    tied = [point for point in SPACE if np.isclose(means[point], best, rtol=0, atol=1e-12)]
    return tied[0], best, len(tied), score(-1, *tied[0])


def test_libsvm_selects_and_scores_as_a_plain_loop_over_the_same_splits(complete, plain):
    results, _ = complete
    for (dataset, outer), (point, inner_score, n_tied, outer_score) in plain.items():
        selected = one_row(results.selections, dataset=dataset, solver="libsvm_l1", outer=outer)
        assert (selected["param_C"], selected["param_gamma"]) == point
        assert selected["inner_score"] == pytest.approx(inner_score, abs=1e-12)
        assert selected["n_tied"] == n_tied
        assert (
            one_row(results.outer, dataset=dataset, solver="libsvm_l1", outer=outer)["score"] == outer_score
        )


def test_mnsvm_is_within_two_points_of_libsvm(complete):
    results, _ = complete
    means = results.outer.groupby(["dataset", "solver"])["score"].mean().unstack()
    assert (means["mnsvm"] - means["libsvm_l1"]).abs().max() < 0.02


def test_sharing_work_changes_the_time_and_hardly_a_score(complete, tmp_path):
    shared, _ = run_study(tmp_path, "protocol.profile=throughput")
    assert (shared.trials["shared_gram"] == (shared.trials["inner"] >= 0)).all()
    exact, _ = complete
    means = [frame.groupby(["dataset", "solver"])["score"].mean() for frame in (shared.outer, exact.outer)]
    assert (means[0] - means[1]).abs().max() < 0.02


def one_row(frame, **axes):
    for name, value in axes.items():
        frame = frame[frame[name] == value]
    (row,) = frame.to_dict("records")
    return row


# -- the order of completions changes nothing ----------------------------------------------------


WIDE = {
    "grid": ["search.space.C=[1,4,16,64]", "search.space.gamma=[0.25,1]"],
    "pattern": [
        "search.space.C=[0.25,1,4,16,64,256,1024,4096]",
        "search.space.gamma=[0.03125,0.0625,0.125,0.25,0.5,1,2,4]",
        "protocol.inner=2",
    ],
}


@pytest.mark.parametrize(
    ("search", "profile"),
    [
        ("grid", "throughput"),
        ("pattern", "timing"),
        pytest.param("grid", "timing", marks=pytest.mark.full),
        pytest.param("pattern", "throughput", marks=pytest.mark.full),
    ],
)
def test_rows_do_not_depend_on_the_order_of_completions(search, profile, tmp_path, full_size):
    overrides = ["datasets=[iris]", f"search={search}", f"protocol.profile={profile}", *WIDE[search]]
    frames = []
    orders = [Shuffling(1), Shuffling(2)][: 2 if full_size else 1]
    for name, executor in enumerate([SerialExecutor(), *orders]):
        results, _ = run_study(tmp_path / str(name), *overrides, executor=executor)
        frames.append([comparable(results.trials), results.selections, comparable(results.outer)])
    for frame, *others in zip(*frames, strict=True):
        for other in others:
            pd.testing.assert_frame_equal(frame, other)
    if search == "pattern":
        assert frames[0][1]["n_candidates"].max() < 64


def test_the_time_left_is_that_of_the_trainings_that_the_search_is_expected_to_need(tmp_path):
    overrides = ["datasets=[iris]", "solvers=[libsvm_l1]", "search=pattern", *WIDE["pattern"]]
    run = StudyRun(tmp_path, *overrides)
    (pair,), (planned,) = zip(*run.prepared.planned_trials().items(), strict=True)
    each = run.runner._costs.training_seconds(*pair, False)
    expected = run.runner._seconds_left(pair, planned) / each
    needed = run.go().trials_run
    assert needed / 1.5 < expected < 1.5 * needed < planned


def test_under_timing_the_arms_of_a_fold_are_trained_within_a_short_time(complete):
    results, _ = complete
    rows = results.trials.sort_values("started_at", kind="stable")
    folds = [*zip(rows["dataset"], rows["outer"], strict=True)]
    assert (
        sum(one != other for one, other in itertools.pairwise(folds)) == DATASETS * OUTER - 1
    )  # none comes back
    for _, fold in rows.groupby(["dataset", "outer"]):
        refits = fold["inner"] == -1
        assert refits.iloc[-SOLVERS:].all()
        assert sum(one != other for one, other in itertools.pairwise(fold.loc[~refits, "solver"])) > SOLVERS


# -- resuming ------------------------------------------------------------------------------------


def test_a_finished_study_has_nothing_to_run(tmp_path):
    first, _ = run_study(tmp_path)
    second, summary = run_study(tmp_path, run_id="second")
    assert (summary.trials_run, summary.trials_stored_before, summary.batches) == (0, TRIALS, 0)
    pd.testing.assert_frame_equal(second.trials, first.trials)
    pd.testing.assert_frame_equal(second.outer, first.outer)
    pd.testing.assert_frame_equal(second.selections, first.selections)


@pytest.mark.parametrize("profile", [pytest.param("timing", marks=pytest.mark.full), "throughput"])
def test_an_interrupted_study_ends_like_an_undisturbed_one(profile, tmp_path):
    overrides = [f"protocol.profile={profile}"]
    interrupted_at = []
    for run, after in enumerate([0, 1, 2]):
        study = StudyRun(tmp_path / "a", *overrides, executor=Interrupted(after), run_id=f"run{run}")
        with pytest.raises(KeyboardInterrupt):
            study.go()
        interrupted_at.append(len(study.store.trials()))
        assert study.runner.summary.trials_run == len(study.store.trials().query(f"run_id == 'run{run}'"))
    assert interrupted_at[0] == 0
    assert interrupted_at == sorted(interrupted_at)
    assert 0 < interrupted_at[-1] < TRIALS
    resumed, summary = run_study(tmp_path / "a", *overrides, run_id="last")
    assert summary.trials_stored_before == interrupted_at[-1]
    assert summary.trials_run == TRIALS - interrupted_at[-1]
    undisturbed, _ = run_study(tmp_path / "b", *overrides)
    pd.testing.assert_frame_equal(comparable(resumed.trials), comparable(undisturbed.trials))
    pd.testing.assert_frame_equal(resumed.selections, undisturbed.selections)
    assert resumed.trials["run_id"].nunique() > 2


def test_widening_the_grid_runs_the_new_trials_and_the_refits_that_change(tmp_path):
    narrow = ["protocol.profile=timing", "search.space.gamma=[0.0625]"]
    before, _ = run_study(tmp_path, *narrow, run_id="narrow")
    after, summary = run_study(tmp_path, "protocol.profile=timing", run_id="wide")
    old_inner = DATASETS * SOLVERS * OUTER * INNER * 3
    assert summary.trials_stored_before >= old_inner
    kept = after.trials[after.trials["run_id"] == "narrow"]
    assert len(kept) + after.excluded["trials"].sum() == len(before.trials)  # no longer selected
    new = after.trials[after.trials["run_id"] == "wide"]
    assert set(new.loc[new["inner"] >= 0, "param_gamma"]) == {0.5}
    assert len(new.loc[new["inner"] >= 0]) == old_inner
    assert len(after.outer) == len(after.selections) == DATASETS * SOLVERS * OUTER
    assert (after.selections["n_candidates"] == POINTS).all()


@pytest.mark.full
def test_adding_a_dataset_and_a_solver_keeps_the_others(tmp_path):
    run_study(tmp_path, "datasets=[iris]", "solvers=[libsvm_l1]", run_id="first")
    results, summary = run_study(tmp_path, run_id="second")
    assert summary.trials_stored_before == TRIALS // 4
    assert summary.trials_run == TRIALS * 3 // 4
    assert len(results.outer) == DATASETS * SOLVERS * OUTER


@pytest.mark.full
def test_narrowing_a_study_keeps_the_derived_tables_of_the_rest(tmp_path):
    run_study(tmp_path)
    results, summary = run_study(tmp_path, "datasets=[wine]", run_id="second")
    assert summary.trials_run == 0
    assert set(results.outer["dataset"]) == {"iris", "wine"}
    assert len(results.selections) == DATASETS * SOLVERS * OUTER


def test_a_solver_whose_parameters_changed_is_run_again_and_the_old_rows_stay(tmp_path):
    run_study(tmp_path, "solvers=[libsvm_l1]")
    study = StudyRun(tmp_path, "solvers=[libsvm_l1]", "solver.libsvm_l1.tol=0.01", run_id="second")
    assert study.go().trials_stored_before == 0
    assert Counter(study.store.trials()["run_id"]) == {"run": TRIALS // 2, "second": TRIALS // 2}
    assert set(read_results(study.store).outer["run_id"]) == {"second"}


def test_a_damaged_part_is_named_and_after_a_repair_run_again(tmp_path):
    study = StudyRun(tmp_path)
    study.go()
    whole = study.store.trials()
    (part,) = study.store.trials_folder.glob("part-*")
    part.write_bytes(part.read_bytes()[:1000])
    with raises(StoreError, f"{part.name}", "damaged", "svmbench repair study=small"):
        run_study(tmp_path, run_id="second")
    assert [sentence for sentence in repair(study.store) if f"{part.name} is damaged" in sentence]
    results, summary = run_study(tmp_path, run_id="third")
    assert summary.trials_run == TRIALS
    pd.testing.assert_frame_equal(comparable(results.trials), comparable(whole))


@pytest.mark.full
def test_refits_whose_part_was_deleted_are_named_though_no_run_recorded_its_end(tmp_path):
    study = StudyRun(tmp_path, "solvers=[libsvm_l1]")
    study.go()
    assert not read_results(study.store).lost
    (part,) = study.store.trials_folder.glob("part-*")
    part.unlink()
    (sentence,) = read_results(study.store).lost
    refits = DATASETS * OUTER
    assert_says(sentence, f"{refits}", "outer.parquet", "missing", f"{study.store.trials_folder}")


def test_a_run_counts_no_trials_that_it_could_not_store(tmp_path, monkeypatch):
    study = StudyRun(tmp_path, "solvers=[libsvm_l1]")
    monkeypatch.setattr("os.fsync", lambda *arguments: os.stat(tmp_path / "of no disk"))
    with pytest.raises(StoreError, match="cannot write"):
        study.go()
    assert study.runner.summary.trials_run == 0


# -- failures ------------------------------------------------------------------------------------


def failing(folder, **params):
    config_dir = write_solver(folder, "failing", here("Failing"), **params)
    return {"config_dir": config_dir}


ONE_FAILING = ("datasets=[iris]", "solvers=[failing]", "search.space={C:[1,2,4]}")


def test_a_candidate_that_fails_is_counted_and_never_chosen(tmp_path):
    results, summary = run_study(tmp_path, *ONE_FAILING, **failing(tmp_path, fails_at=1))
    assert summary.failures == OUTER * INNER
    assert Counter(results.trials["status"]) == {"ok": OUTER * (2 * INNER + 1), "error": OUTER * INNER}
    assert set(results.trials.query("status == 'error'")["param_C"]) == {1}
    assert results.trials.query("status == 'error'")["score"].isna().all()
    assert set(results.selections["param_C"]) == {2}  # tied with 4, and smaller
    assert (results.selections["n_failed"] == 1).all()
    assert (results.outer["status"] == "ok").all()


def test_a_search_in_which_everything_fails_ends_without_a_refit(tmp_path):
    results, summary = run_study(tmp_path, *ONE_FAILING, **failing(tmp_path))
    assert summary.trials_run == summary.failures == OUTER * INNER * 3
    assert results.outer.empty
    assert (results.selections["n_failed"] == 3).all()
    assert results.selections["inner_score"].isna().all()
    _, again = run_study(tmp_path, *ONE_FAILING, **failing(tmp_path))
    assert again.trials_run == 0


def test_failed_trials_run_again_only_when_asked(tmp_path):
    config = failing(tmp_path)
    overrides = ("datasets=[iris]", "solvers=[failing,libsvm_l1]", "search.space={C:[1,2,4]}")
    _, first = run_study(tmp_path, *overrides, **config)
    _, plain = run_study(tmp_path, *overrides, run_id="second", **config)
    assert (plain.trials_run, plain.trials_stored_before) == (0, first.trials_run)
    results, retried = run_study(tmp_path, *overrides, run_id="third", retry_failed=True, **config)
    assert retried.trials_run == retried.failures == first.failures == OUTER * INNER * 3
    assert set(results.trials.query("status == 'error'")["run_id"]) == {"third"}
    assert set(results.trials.query("status == 'ok'")["run_id"]) == {"run"}


def test_the_first_failure_stops_the_study_when_told_to(tmp_path):
    study = StudyRun(tmp_path, *ONE_FAILING, fail_fast=True, **failing(tmp_path, fails_at=2))
    with raises(StudyStopped, "iris × failing", "C=2", "FloatingPointError", "singular"):
        study.go()
    stored = study.store.trials()
    assert 1 <= len(stored) < OUTER * (INNER * 3 + 1)
    assert "error" in set(stored["status"])


def test_a_failure_that_stops_the_study_drops_no_batch_that_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.engine.queue.TARGET_SECONDS", 1e-9)
    ended = []

    class AllAtOnce(SerialExecutor):
        slots = 5

        def wait(self, seconds):
            found = [each for _ in tuple(self._waiting) for each in super(AllAtOnce, self).wait(0)]
            ended.extend(len(each.result.records) for each in found)
            return found

    config = failing(tmp_path, fails_at=1)
    study = StudyRun(tmp_path, *ONE_FAILING, executor=AllAtOnce(), fail_fast=True, **config)
    with raises(StudyStopped, "C=1"):
        study.go()
    assert len(ended) > 1
    assert len(study.store.trials()) == sum(ended)


def test_a_lost_worker_costs_an_attempt_and_no_row(tmp_path, complete):
    lost = set()

    def once(path):
        fresh = path.keys not in lost and path.dataset == "wine"
        lost.add(path.keys)
        return fresh

    results, summary = run_study(tmp_path, "protocol.profile=timing", executor=Losing(once))
    assert summary.failures == 0
    pd.testing.assert_frame_equal(comparable(results.trials), comparable(complete[0].trials))
    assert results.trials["attempt"].max() >= 2
    assert set(results.trials.query("dataset == 'iris'")["attempt"]) == {1}


def test_a_trial_that_kills_its_worker_every_time_is_given_up_alone(tmp_path):
    def poisonous(path):
        return path.dataset == "iris" and path.inner == 1 and path.outer == 0 and path.solver == "libsvm_l1"

    study = StudyRun(tmp_path, "protocol.profile=timing", executor=Losing(poisonous))
    summary = study.go()
    trials = study.store.trials()
    assert summary.failures == POINTS
    gone = trials[trials["status"] == "worker_lost"]
    assert len(gone) == POINTS
    assert set(gone["message"]) == {"its worker died in the last of 3 attempts"}
    assert len(trials) == TRIALS - 1  # every candidate of that search failed on a fold: no refit
    assert "trying again" in study.output.getvalue()
    assert_says(study.output.getvalue(), "3 attempts")


def test_batches_that_cannot_run_at_all_stop_the_study_and_keep_what_is_done(tmp_path):
    study = StudyRun(tmp_path, executor=Interrupted(2, ExecutionError("no workers")))
    with pytest.raises(ExecutionError):
        study.go()
    assert len(study.store.trials()) == study.runner.summary.trials_run > 0


# -- limits --------------------------------------------------------------------------------------


def test_the_plan_of_a_hundred_thousand_trials_takes_a_moment_and_little_is_open_at_once(tmp_path):
    overrides = [f"search.space.C=[{','.join(map(str, range(1, 81)))}]"]
    overrides += [f"search.space.gamma=[{','.join(map(str, range(1, 61)))}]", "datasets=[iris]"]
    study = StudyRun(tmp_path, *overrides, "solvers=[libsvm_l1]", executor=Interrupted(3))
    with pytest.raises(KeyboardInterrupt):
        study.go()
    assert study.runner.summary.orchestration_cpu_seconds < 10
    assert study.progress.counts["iris", "libsvm_l1"].planned == OUTER * (80 * 60 * INNER + 1)


def test_orders_are_small(tmp_path):
    sizes = []

    class Weighing(SerialExecutor):
        def submit(self, order):
            sizes.append(len(pickle.dumps(order)) / sum(map(len, order.batch.paths)))
            super().submit(order)

    run_study(tmp_path, executor=Weighing())
    assert max(sizes) < 10_000


@pytest.mark.sample(2)
@pytest.mark.parametrize("search", ["grid", "pattern"])
def test_a_solver_without_a_space_is_an_untuned_baseline_with_one_candidate(tmp_path, search):
    conf = write_solver(tmp_path, "bayes", "sklearn.naive_bayes.GaussianNB")
    write_solver(tmp_path, "fixed", "sklearn.svm.LinearSVC", C=2, space="{}")
    overrides = ["datasets=[iris]", "solvers=[bayes,fixed,libsvm_l1]", f"search={search}"]
    with warns(UserWarning, "solver bayes", "parameters"):
        frames, summary = run_study(tmp_path, *overrides, config_dir=conf)
    assert not summary.failures
    baselines = frames.selections[frames.selections.solver != "libsvm_l1"]
    assert len(baselines) == 2 * OUTER
    assert set(baselines.n_candidates) == {1}
    assert (frames.trials.solver != "libsvm_l1").sum() == 2 * OUTER  # one training an outer split
    assert baselines.inner_score.isna().all()
    assert frames.trials.key.is_unique
    with pytest.warns(UserWarning, match="bayes"):
        _, again = run_study(tmp_path, *overrides, config_dir=conf)
    assert not again.trials_run
    _, other = run_study(tmp_path, *overrides, "solver.fixed.C=3", config_dir=conf)
    assert other.trials_run == OUTER


@pytest.mark.full
def test_inner_trials_that_an_earlier_version_needed_still_count(tmp_path, monkeypatch):
    conf = write_solver(tmp_path, "fixed", "sklearn.svm.LinearSVC", C=2, space="{}")
    overrides = ["datasets=[wine]", "solvers=[fixed]"]
    monkeypatch.setattr(fold_search, "needs_no_scores", lambda *_: False)
    before, summary = run_study(tmp_path, *overrides, config_dir=conf)
    assert summary.trials_run == OUTER * (INNER + 1)
    monkeypatch.undo()
    again = StudyRun(tmp_path, *overrides, config_dir=conf)
    assert again.go().trials_run == 0
    counts = again.progress.counts["wine", "fixed"]
    assert counts.planned == counts.done == counts.stored == OUTER * (INNER + 1)
    after = read_results(again.store)
    assert after.selections.equals(before.selections)
    assert not after.selections.inner_score.isna().any()
    assert comparable(after.trials).equals(comparable(before.trials))
    assert after.excluded.empty
    told = overview(again.store, current_declaration(again.store.provenance()))
    assert told.pairs["wine", "fixed"].stored == told.pairs["wine", "fixed"].planned == len(after.trials)
