from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from orchestrator.resampling.nested import nested_folds
from orchestrator.study.study import DatasetSpec
from orchestrator.study.trials import REFIT
from orchestrator.training.run_batch import run_batch
from orchestrator.training.unfinished_rows import lost_records
from tests.messages import assert_says, says
from tests.orchestrator.classifiers import Warm, WholePath, here, order_for, rows_of, train

X, Y = load_iris(return_X_y=True)
FOLDS = nested_folds(Y, 5, 5, 0)


def permuted_iris(seed):
    """Irises whose labels have nothing to do with them."""
    return X, np.random.default_rng(seed).permutation(Y)


def two_columns():
    """One feature whose range depends on which rows one looks at."""
    return np.linspace(0, 10, 60).reshape(-1, 1) ** 2, np.arange(60) % 2


# -- what a row says -----------------------------------------------------------------------------


def test_rows_hold_what_a_plain_loop_finds(tmp_path):
    rows = rows_of(order_for("sklearn.svm.SVC", tmp_path, gamma=(0.5, 2), folds=((0, 0), (3, 2), (4, -1))))
    assert len(rows) == 3 * 4
    for row in rows:
        train, test = FOLDS.train_test(row["outer"], row["inner"])
        scaler = MinMaxScaler().fit(X[train])
        plain = SVC(C=row["param_C"], gamma=row["param_gamma"]).fit(scaler.transform(X[train]), Y[train])
        predicted = plain.predict(scaler.transform(X[test]))
        assert row["n_correct"] == np.count_nonzero(predicted == Y[test])
        assert row["score"] == row["n_correct"] / len(test)
        assert (row["n_train"], row["n_test"]) == (len(train), len(test))
        assert (row["n_features"], row["n_classes"]) == (4, 3)
        assert row["n_sv"] == plain.n_support_.sum()
        assert row["status"] == "ok"
        assert row["message"] == ""


def test_seconds_are_measured_and_lie_between_start_and_end(tmp_path):
    order = order_for(here("Slow"), tmp_path, C=(1,), params={"max_seconds": 0.05})
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # without threads that other tests left
        (row,) = fresh.submit(rows_of, order).result()
    assert 0.05 <= row["fit_seconds"] < 1
    assert row["fit_cpu_seconds"] < row["fit_seconds"]  # it sleeps
    elapsed = (row["finished_at"] - row["started_at"]).total_seconds()
    assert row["fit_seconds"] + row["predict_seconds"] <= elapsed


def test_the_seed_reaches_the_estimator(tmp_path):
    order = order_for(here("Seeded"), tmp_path, folds=((0, 0), (0, 1)))
    seeds = [row["seed"] for row in rows_of(order)]
    assert seeds == [path.seed for path in order.batch.paths for _ in path.candidates]
    assert seeds == [row["objective"] for row in rows_of(order)]
    assert len(set(seeds)) == 2


def test_the_same_order_gives_the_same_rows(tmp_path):
    order = order_for("solvers.MNSVC", tmp_path, gamma=(0.5,), profile="timing")
    first, second = (run_batch(order).records.columns for _ in range(2))
    changing = {name for name in first if name.endswith(("seconds", "_at"))}
    assert {name: first[name] for name in first if name not in changing} == {
        name: second[name] for name in second if name not in changing
    }


# -- failures are rows ---------------------------------------------------------------------------


def test_a_training_that_fails_leaves_a_row_with_the_reason_and_the_place(tmp_path):
    first, second = train("Failing", tmp_path, params={"fails_at": 1})
    assert (first["status"], first["score"]) == ("error", None)
    assert_says(first["message"], "FloatingPointError", "singular", "classifiers.py")
    assert first["fit_seconds"] >= 0
    assert (second["status"], second["message"]) == ("ok", "")


def test_an_estimator_that_cannot_predict_fails(tmp_path):
    row, _ = train("Mute", tmp_path)
    assert (row["status"], row["score"]) == ("error", None)
    assert "nothing to say" in row["message"]
    assert row["predict_seconds"] >= 0


def test_an_objective_that_is_not_a_number_is_no_result(tmp_path):
    row, _ = train("Diverging", tmp_path)
    assert (row["status"], row["score"]) == ("diverged", None)
    assert_says(row["message"], "objective", "nan", "0.3333333333333333")


def test_a_training_that_ran_out_of_time_keeps_its_best_model_and_says_so(tmp_path):
    row, _ = train("Slow", tmp_path, max_seconds=0.01)
    assert (row["status"], row["score"]) == ("timeout", pytest.approx(1 / 3))
    assert_says(row["message"], "stopped", "0.01 s")


def test_a_training_that_ran_out_of_time_before_it_had_a_model_did_not_diverge(tmp_path):
    row, _ = train("OutOfTimeAtOnce", tmp_path, max_seconds=0.01)
    assert (row["status"], row["score"]) == ("timeout", None)
    assert_says(row["message"], "stopped", "0.01 s", "without a model")


@pytest.mark.parametrize("target", ["DivergingOnce", "DivergingPath"])
def test_nothing_starts_from_a_training_that_diverged(tmp_path, target):
    rows = train(target, tmp_path, C=(1, 2, 4, 8), params={"diverges_at": 2})
    assert [row["status"] for row in rows] == ["ok", "diverged", "ok", "ok"]
    assert [row["warm_started"] for row in rows] == [False, True, False, True]
    assert [row["objective"] for row in rows if row["status"] == "ok"] == [1.0, 1.0, 2.0]


def test_a_failed_warm_start_is_followed_by_a_cold_one(tmp_path):
    rows = rows_of(order_for(here("Warm"), tmp_path, C=(1, 2, 4)))
    assert [row["warm_started"] for row in rows] == [False, True, True]
    assert [row["n_iter"] for row in rows] == [1, 2, 3]
    rows = train("Failing", tmp_path, C=(1, 2, 4), params={"fails_at": 2})
    assert [row["status"] for row in rows] == ["ok", "error", "ok"]
    assert not any(row["warm_started"] for row in rows)


def test_a_lost_batch_leaves_a_row_for_each_training(tmp_path):
    order = order_for("sklearn.svm.SVC", tmp_path, C=(1, 4, 16))
    records = lost_records(order, "it died")
    assert [row["key"] for row in rows_of(order)] == records.columns["key"]
    assert list(records.outcomes()) == [("worker_lost", None)] * 3


def test_what_goes_wrong_is_told_by_the_rows_and_nowhere_else(tmp_path, caplog, recwarn):
    train("Failing", tmp_path)
    train("BrokenPath", tmp_path)
    rows_of(order_for("sklearn.svm.SVC", tmp_path, also=("balanced_accuracy",)))
    assert not [record for record in caplog.records if record.levelname != "INFO"]
    assert not list(recwarn)


# -- scores --------------------------------------------------------------------------------------


def test_refits_record_other_scorers_beside_the_accuracy(tmp_path):
    also = ("balanced_accuracy", "f1_macro")
    folds = ((0, REFIT), (0, 0))
    row, _, inner, _ = rows_of(
        order_for("sklearn.svm.SVC", tmp_path, params={"gamma": 0.1}, folds=folds, also=also)
    )
    train, test = FOLDS.train_test(0, REFIT)
    scaler = MinMaxScaler().fit(X[train])
    predicted = (
        SVC(C=1, gamma=0.1).fit(scaler.transform(X[train]), Y[train]).predict(scaler.transform(X[test]))
    )
    assert row["score"] == np.mean(predicted == Y[test])
    assert row["score_balanced_accuracy"] == balanced_accuracy_score(Y[test], predicted)
    assert row["score_f1_macro"] == f1_score(Y[test], predicted, average="macro")
    assert inner.get("score_f1_macro") is None


def test_the_metric_selects_and_correct_answers_are_counted_all_the_same(tmp_path):
    row, _ = train("Constant", tmp_path, metric="f1_macro")
    assert row["score"] == pytest.approx(0.5 / 3)
    assert row["n_correct"] == row["n_test"] // 3


def test_a_scorer_that_the_estimator_cannot_serve_is_a_failure_with_a_reason(tmp_path):
    row, _ = train("Constant", tmp_path, metric="roc_auc")
    assert row["status"] == "error"
    assert "decision_function" in row["message"] or "multi_class" in row["message"]


# -- data that trainings share -------------------------------------------------------------------


FOLDS_OF_ALL = tuple((outer, inner) for outer in range(2) for inner in (0, 1, -1))


def numbers_of(rows):
    return [(row["status"], row["n_correct"], row["score"], row.get("score_roc_auc_ovr")) for row in rows]


@pytest.mark.parametrize("dataset", ["iris", "wine"])
def test_ridge_that_writes_into_its_data_finds_what_it_finds_on_copies(dataset, tmp_path):
    spec = DatasetSpec(dataset, f"sklearn.datasets.load_{dataset}", {"return_X_y": True})
    choices = {"dataset": spec, "folds": FOLDS_OF_ALL, "outer": 2, "inner": 2, "scaling": "none"}
    target = "tests.orchestrator.training.test_run_batch.Ridge"
    copying, writing, again = (
        rows_of(order_for(target, tmp_path, C=(0.1, 1, 10, 100), params={"copy_X": copy_X}, **choices))
        for copy_X in (True, False, False)
    )
    assert numbers_of(writing) == numbers_of(copying) == numbers_of(again)
    assert {row["status"] for row in writing} == {"ok"}


class Ridge(RidgeClassifier):
    """Takes its penalty under the name of a path's parameter."""

    def __init__(self, C=1.0, copy_X=True):
        super().__init__(alpha=C, copy_X=copy_X)
        self.C = C


@pytest.mark.parametrize("scaling", ["none", "train"])
def test_a_training_that_writes_gets_copies_at_every_answer(scaling, tmp_path):
    choices = {"C": (0.1, 1, 10), "folds": FOLDS_OF_ALL, "outer": 2, "inner": 2, "scaling": scaling}
    choices["also"] = ("roc_auc_ovr", "f1_macro")
    in_place, copying = (train(name, tmp_path, **choices) for name in ("ScalesInPlace", "ScalesItsOwn"))
    assert numbers_of(in_place) == numbers_of(copying)
    assert {row["status"] for row in in_place} == {"ok"}


def sparse_rows():
    X = scipy.sparse.random(60, 12, 0.4, format="csr", random_state=0)
    return X, np.arange(60) % 2


@pytest.mark.parametrize("scaling", ["none", "train"])
def test_parts_of_a_sparse_matrix_are_no_more_shared_than_the_matrix(scaling, tmp_path):
    spec = DatasetSpec("sparse", f"{__name__}.sparse_rows")
    choices = {"dataset": spec, "outer": 2, "inner": 2, "scaling": scaling}
    rows = train("ScalesStoredValues", tmp_path, C=(1, 2, 3), **choices)
    assert {row["status"] for row in rows} == {"ok"}
    assert len({row["objective"] for row in rows}) == 1


@pytest.mark.parametrize("name", ["SpoilsGram", "SpoilsGramForGood"])
def test_kernel_values_that_are_written_to_harm_nobody_else(name, tmp_path):
    choices = {"C": (1, 4, 16), "gamma": (0.5, 1), "folds": ((0, 0), (0, 1))}
    healthy = shared(order_for("sklearn.svm.SVC", tmp_path, **choices))
    before = numbers_of(rows_of(healthy))
    spoilt = rows_of(shared(order_for(here(name), tmp_path, **choices)))
    assert numbers_of(rows_of(healthy)) == before
    if name == "SpoilsGram":
        assert numbers_of(spoilt) == before
    else:
        assert {row["status"] for row in spoilt} == {"error"}
        assert all(says(row["message"], "memory", "share") for row in spoilt)


def test_numbers_do_not_depend_on_what_was_trained_before(tmp_path):
    order = order_for("tests.orchestrator.hostile.Guesses", tmp_path, C=(1, 2), folds=FOLDS_OF_ALL)
    alone = [
        row
        for path in order.batch.paths
        for row in rows_of(replace(order, batch=replace(order.batch, paths=(path,))))
    ]
    assert numbers_of(rows_of(order)) == numbers_of(alone)


# -- what estimators publish and raise -----------------------------------------------------------


def test_values_that_do_not_go_together_are_a_row(tmp_path):
    rows = train("Fussy", tmp_path, C=(1, 2, 4), gamma=(1.0, 2.0))
    failed = [(row["param_C"], row["param_gamma"]) for row in rows if row["status"] == "error"]
    assert failed == [(4, 2.0)]
    assert sum(row["status"] == "ok" for row in rows) == 5


def test_one_odd_answer_of_a_path_costs_one_row(tmp_path):
    rows = train("OddPath", tmp_path, C=(1, 2, 4))
    assert [row["status"] for row in rows] == ["ok", "error", "diverged"]
    assert "found an array of shape (30, 1)" not in rows[0]["message"]
    assert_says(rows[1]["message"], "(24, 1)")


def test_a_path_that_publishes_too_little_is_a_row_for_each_training(tmp_path):
    rows = train("Unpublished", tmp_path, C=(1, 2, 4))
    assert {row["status"] for row in rows} == {"error"}
    assert {row["message"] for row in rows} == {"expected fit_seconds_ of shape (3,), found (1,)"}


def test_the_time_of_a_reduction_is_a_part_of_the_time_of_its_training(tmp_path):
    for row in train("Reduced", tmp_path, C=(1, 2), profile="timing"):
        assert row["reduction_seconds"] == 1e-7 < row["fit_seconds"]
        assert row.get("certificate_seconds") is None
        assert row["n_representatives"] == 17
    for row in train("Constant", tmp_path):
        assert row.get("reduction_seconds") is None


def test_the_trainings_of_a_path_share_one_reduction(tmp_path):
    rows = train("ReducedPath", tmp_path, C=(1, 2, 4))
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["reduction_seconds"] for row in rows] == pytest.approx([1e-7] * 3)
    assert [row["certificate_seconds"] for row in rows] == pytest.approx([2e-8] * 3)
    assert [row["n_representatives"] for row in rows] == [19] * 3
    # The rest of the time is divided as the path says: 1 : 2 : 3.
    rest = [row["fit_seconds"] - 1.2e-7 for row in rows]
    assert rest == pytest.approx([rest[0], 2 * rest[0], 3 * rest[0]])
    assert rest[0] > 0


@pytest.mark.parametrize("kind", ["Misread", "MisreadPath"])
def test_a_time_that_is_none_leaves_the_column_empty(kind, tmp_path):
    rows = train(kind, tmp_path, C=(1, 2, 4))
    for row in rows:
        assert row["status"] == "ok"
        assert row.get("reduction_seconds") is None
        assert_says(row["message"], "reduction_seconds_", "reduction_seconds")
        assert row["fit_seconds"] > 0


# -- compilation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Warm, WholePath])
def test_no_row_pays_for_compilation(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(Warm.kernels, "compiled", 0)
    rows = rows_of(order_for(here(kind.__name__), tmp_path, C=(1, 2, 4), params={"gamma": 2.0}))
    assert Warm.kernels.compiled == (2 if kind is Warm else 1)
    assert max(row["fit_seconds"] for row in rows) < 0.1
    assert rows[0]["compile_seconds"] >= 0.1 * Warm.kernels.compiled
    assert not any(row["compile_seconds"] for row in rows[1:])


def test_what_a_warm_start_compiles_is_compiled_though_a_lone_training_came_first(tmp_path, monkeypatch):
    monkeypatch.setattr(Warm.kernels, "compiled", 0)
    params = {"gamma": 3.0}
    order = order_for(here("Warm"), tmp_path, C=(1, 2), params=params)
    (path,) = order.batch.paths
    alone = replace(order, batch=replace(order.batch, paths=(path.only([0]),)))
    rows = rows_of(alone) + rows_of(order)
    assert Warm.kernels.compiled == 2
    assert max(row["fit_seconds"] for row in rows) < 0.1


# -- shared Gram matrices ------------------------------------------------------------------------


def shared(order):
    return replace(order, shared_gram=True)


def test_shared_kernel_values_give_the_scores_of_exact_ones(tmp_path):
    order = order_for("sklearn.svm.SVC", tmp_path, C=(1, 100), gamma=(0.1, 1), folds=((0, 0), (1, -1)))
    exact, rounded = rows_of(order), rows_of(shared(order))
    assert [row["n_correct"] for row in rounded] == [row["n_correct"] for row in exact]
    assert [row["n_sv"] for row in rounded] == pytest.approx([row["n_sv"] for row in exact], rel=0.1)
    inner, refits = ([row for row in rounded if (row["inner"] < 0) == is_refit] for is_refit in (False, True))
    assert all(row["shared_gram"] and row["gram_seconds"] > 0 for row in inner)
    assert not any(row["shared_gram"] or row["gram_seconds"] for row in refits)
    assert not any(row["shared_gram"] or row["gram_seconds"] for row in exact)


def test_another_arm_on_the_same_split_finds_the_same_kernel_values(tmp_path):
    first = shared(order_for("sklearn.svm.SVC", tmp_path, C=(1,), gamma=(1,), params={"tol": 0.002}))
    second = shared(order_for("sklearn.svm.SVC", tmp_path, C=(1,), gamma=(1,), params={"tol": 0.00201}))
    (row,) = rows_of(first)
    (other,) = rows_of(second)  # compiles on a few rows before it asks for the split's matrix
    assert (other["n_sv"], other["n_correct"]) == (row["n_sv"], row["n_correct"])


# -- whole paths ---------------------------------------------------------------------------------


def test_a_path_trained_in_one_call_shares_its_costs_out(tmp_path):
    rows = rows_of(order_for(here("WholePath"), tmp_path, C=(1, 2, 4)))
    seconds = np.array([row["fit_seconds"] for row in rows])
    assert seconds / seconds.sum() == pytest.approx(np.array([1, 2, 3]) / 6)
    assert [row["warm_started"] for row in rows] == [False, True, True]
    assert [row["status"] for row in rows] == ["ok", "ok", "diverged"]
    assert rows[2]["score"] is None


@pytest.mark.parametrize(
    "protocol",
    [
        {"also": ("f1_macro",), "folds": ((0, REFIT),)},
        {"metric": "f1_macro"},
        {"max_seconds": 9.0},
    ],
)
def test_trainings_go_one_by_one_where_each_has_to_be_looked_at(protocol, tmp_path):
    rows = rows_of(order_for(here("WholePath"), tmp_path, C=(1, 2, 4), **protocol))
    assert [row["n_iter"] for row in rows] == [1, 2, 3]


@pytest.mark.parametrize("solver", ["MNSVC", "NewtonSVC"])
def test_an_estimator_with_a_time_limit_of_its_own_is_trained_one_by_one(solver, tmp_path):
    params = {"max_seconds": 60.0}
    limited = rows_of(order_for(f"solvers.{solver}", tmp_path, C=(1, 4), gamma=(1,), params=params))
    whole = rows_of(order_for(f"solvers.{solver}", tmp_path, C=(1, 4), gamma=(1,)))
    assert [row["status"] for row in limited] == ["ok", "ok"]
    assert [row["score"] for row in limited] == pytest.approx([row["score"] for row in whole], abs=0.04)
    assert {row["fit_status"] for row in limited + whole} == {"0"}


def test_a_fit_that_its_limit_ended_is_a_timeout_even_if_it_came_back_before(tmp_path):
    rows = train("OutOfTime", tmp_path, max_seconds=3600.0)
    assert [row["status"] for row in rows] == ["timeout", "timeout"]


def test_a_path_that_fails_leaves_a_row_for_each_training(tmp_path):
    rows = rows_of(order_for(here("BrokenPath"), tmp_path, C=(1, 2, 4)))
    assert [row["status"] for row in rows] == ["error"] * 3
    assert {row["message"].split(" (")[0] for row in rows} == {"FloatingPointError: no path here"}


# -- leaks ---------------------------------------------------------------------------------------


def test_labels_that_mean_nothing_are_guessed_at_chance(tmp_path):
    scores = []
    for seed in range(6):
        spec = DatasetSpec(f"permuted{seed}", f"{__name__}.permuted_iris", {"seed": seed})
        folds = [(outer, -1) for outer in range(5)]
        order = order_for("sklearn.svm.SVC", tmp_path, C=(100,), gamma=(10,), dataset=spec, folds=folds)
        scores += [row["score"] for row in rows_of(order)]
    # 900 guesses among three equal classes: the standard error is 0.016.
    assert np.mean(scores) == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize("inner", [-1, 0])
def test_scaling_is_fitted_on_the_training_rows_alone(inner, tmp_path):
    spec = DatasetSpec("squares", f"{__name__}.two_columns")
    choices = {"dataset": spec, "C": (1,), "outer": 3, "inner": 3}
    folds = tuple((outer, inner) for outer in range(3))
    rows = {}
    for scaling in ("train", "dataset", "none"):
        order = order_for(here("Range"), tmp_path, folds=folds, scaling=scaling, **choices)
        rows[scaling] = [(row["objective"], row["gap"]) for row in rows_of(order)]
    x, y = two_columns()
    splits = nested_folds(y, 3, 3, 0)
    trained = [x[splits.train_test(*fold)[0]] for fold in folds]
    assert rows["train"] == [(0, 1)] * 3
    assert rows["none"] == [(t.min(), t.max()) for t in trained]
    assert np.array(rows["dataset"]) == pytest.approx(np.array(rows["none"]) / 100)
    assert any(low > 0 or high < 100 for low, high in rows["none"])


def test_the_time_of_one_row_is_measured_for_refits_under_timing_only(tmp_path):
    for row in train("Warm", tmp_path, C=(1, 2), profile="timing"):
        is_refit = row["inner"] == -1
        assert (row.get("row_seconds") is not None) == is_refit
        assert not is_refit or 0 < row["row_seconds"] < 1
    for row in train("Warm", tmp_path, C=(1, 2)):
        assert row.get("row_seconds") is None
