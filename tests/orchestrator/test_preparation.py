"""Preparations are fitted on the training rows of a split, once, and shared by its candidates and arms."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from orchestrator import run_study
from orchestrator.analysis.preparations import preparation_of
from orchestrator.config.compose import load_settings
from orchestrator.datasets import load
from orchestrator.engine.preparations import chosen_preparations, preparation_sentences
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.errors import ConfigError
from orchestrator.study.preparation import CODES, FILLED_CODES, ONE_HOT, TABLE, Preparation
from orchestrator.study.records import Status
from orchestrator.study.study import Arm, DatasetSpec, Protocol
from orchestrator.study.trials import Identity
from orchestrator.training.open_data import open_data
from orchestrator.training.preparation import preparation_steps, with_kind
from orchestrator.training.run_batch import run_batch
from orchestrator.training.split_data import forget_splits, preparation_seed, prepared_split
from orchestrator.training.train import Monitor
from orchestrator.training.unfinished_rows import overtime_row
from orchestrator.training.watchdog import overtime_raised
from tests.messages import assert_says, raises
from tests.orchestrator.classifiers import order_for, rows_of
from tests.orchestrator.tables import table

TABLES = "tests.orchestrator.tables.table"
SPLITTER = "{_target_: sklearn.model_selection.StratifiedKFold, n_splits: %d, shuffle: true, random_state: 3}"
SOLVERS = {
    "logistic": "_target_: sklearn.linear_model.LogisticRegression\n"
    "warm_start: false\nspace: {C: [0.01, 1]}\n",
    "ridge": "_target_: sklearn.linear_model.RidgeClassifier\nspace: {alpha: [1]}\n",
    "forest": "_target_: sklearn.ensemble.RandomForestClassifier\n"
    "n_estimators: 5\nrandom_state: 0\nspace: {max_depth: [1, 3]}\n",
    "raw": "_target_: sklearn.svm.SVC\nprepare: none\nspace: {}\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    for group in ("dataset", "solver"):
        (folder / group).mkdir()
    (folder / "dataset" / "churn.yaml").write_text(f"_target_: {TABLES}\n")
    for name, text in SOLVERS.items():
        (folder / "solver" / f"{name}.yaml").write_text(text)
    return folder


def overrides(folder, *others):
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}", "cluster=serial"]
    return ["study=s", "datasets=[churn]", "protocol.outer=2", "protocol.inner=2", *paths, *others]


def prepared(folder, *others):
    return prepare_study(load_settings(overrides(folder, *others), folder))


@pytest.mark.parametrize("kind", [CODES, FILLED_CODES, ONE_HOT])
def test_numbers_with_gaps_are_prepared_alike_as_an_array_and_as_a_frame_of_any_names(kind):
    """A dataset of numbers is an array; its final model is fitted on a frame, and applied to one."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[3, 1] = np.nan
    frame = pd.DataFrame(X, columns=["x2", "x0", "name"])
    made = make_pipeline(*preparation_steps(Preparation(TABLE, kind), X, 0))
    expected = made.fit_transform(X)
    assert expected.shape[1] == (3 if kind == CODES else 4)
    np.testing.assert_array_equal(made.fit_transform(frame), expected)
    np.testing.assert_array_equal(made.transform(frame[:5]), expected[:5])


@pytest.fixture(scope="module")
def results(folder):
    """A study whose splits scikit-learn makes with the same arguments."""
    splits = (f"protocol.outer={SPLITTER % 2}", f"protocol.inner={SPLITTER % 2}")
    return run_study(*overrides(folder, "solvers=[logistic,ridge,forest]", *splits), config_dir=folder)


# -- what is shared, and that scores stay those of scikit-learn ------------------------------------


class OfSplit(TransformerMixin, BaseEstimator):
    """`table` with the random state of the split that the rows of its fit belong to."""

    def __init__(self, kind=ONE_HOT, seeds=None):
        self.kind, self.seeds = kind, seeds

    def fit_transform(self, X, y=None):
        seed = self.seeds[frozenset(X.index)]
        self.made_ = make_pipeline(*preparation_steps(Preparation(TABLE, self.kind), X, seed))
        return self.made_.fit_transform(X, y)

    def fit(self, X, y=None):
        self.fit_transform(X, y)
        return self

    def transform(self, X):
        return self.made_.transform(X)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("solver", "kind", "model", "grid"),
    [
        ("logistic", ONE_HOT, LogisticRegression(), {"C": [0.01, 1]}),
        ("forest", CODES, RandomForestClassifier(5, random_state=0), {"max_depth": [1, 3]}),
    ],
)
def test_scores_are_those_of_a_grid_search_over_a_pipeline(folder, results, solver, kind, model, grid):
    splits = (f"protocol.outer={SPLITTER % 2}", f"protocol.inner={SPLITTER % 2}")
    ready = prepared(folder, "solvers=[logistic]", *splits)
    source, protocol = ready.sources["churn"], ready.study.protocol
    dataset, folds = open_data(source, protocol)
    seeds = {
        frozenset(folds.train_test(*split)[0].tolist()): preparation_seed(source, protocol, *split)
        for refits in (True, False)
        for split in folds.of_level(refits)
    }
    X, y = dataset.X, dataset.y
    pipeline = Pipeline([("table", OfSplit(kind, seeds)), ("model", model)])
    space = {f"model__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, space, cv=StratifiedKFold(2, shuffle=True, random_state=3))
    rows = results.trials[results.trials["solver"] == solver]
    for outer, (train, test) in enumerate(StratifiedKFold(2, shuffle=True, random_state=3).split(X, y)):
        search.fit(X.iloc[train], y[train])
        of_fold = rows[rows["outer"] == outer]
        (name,) = grid
        for inner in range(2):
            scores = of_fold[of_fold["inner"] == inner].sort_values(f"param_{name}")["score"]
            assert scores.tolist() == search.cv_results_[f"split{inner}_test_score"].tolist()
        (refit,) = of_fold[of_fold["inner"] == -1].to_dict("records")
        assert refit[f"param_{name}"] == search.best_params_[f"model__{name}"]
        assert refit["score"] == search.score(X.iloc[test], y[test])


def test_a_split_is_prepared_once_for_all_candidates_and_arms(results):
    trials = results.trials
    assert (trials["status"] == "ok").all()
    n_splits = 2 * (2 + 1)
    paid = trials[trials["prepare_seconds"] > 0]
    kinds = paid["solver"].eq("forest")
    assert (kinds.sum(), (~kinds).sum()) == (n_splits, n_splits)
    assert set(paid[~kinds].groupby(["outer", "inner"]).size()) == {1}


def test_the_record_says_what_was_done_to_which_column(results):
    frame = preparation_of(results)
    assert set(frame.columns) == {"dataset", "solver", "preparation", "column", "steps"}
    done = frame.set_index(["solver", "column"])["steps"]
    assert_says(done["logistic", "since"], "date")
    assert_says(done["logistic", "city"], "categories", "columns of 0 and 1")
    assert_says(done["forest", "city"], "categories", "codes")
    assert_says(done["forest", "age"], "number")
    assert "filled" in done["ridge", "age"]
    assert "filled" not in done["forest", "age"]
    assert set(frame["column"]) == set(table()[0].columns)


def test_the_final_model_contains_the_preparation(folder, results):
    model = results.final_estimator("churn", "logistic", folder / "cache")
    X, y = table()
    assert model.fit(X, y).score(X, y) > 0.7
    assert model.predict(X.iloc[:3]).shape == (3,)


# -- nothing is fitted on test rows ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [CODES, ONE_HOT])
def test_poisoned_test_rows_change_nothing_else(kind):
    dataset = load(DatasetSpec("t", TABLES, {}))
    rows = np.arange(60)
    train, test = rows[:40], rows[40:]
    X = dataset.X.copy()
    poison = {"id": "☠" * 50, "since": "never", "city": "Atlantis", "age": 1e30, "income": np.nan}
    for name, value in poison.items():
        X.loc[rows[50:], name] = value
    clean, poisoned = (
        prepared_split(each, train, test, Preparation(TABLE, kind), seed=1)
        for each in (dataset, replace(dataset, X=X))
    )
    assert np.array_equal(clean.X_train, poisoned.X_train, equal_nan=True)
    assert np.array_equal(clean.X_test[:10], poisoned.X_test[:10], equal_nan=True)
    assert not np.array_equal(clean.X_test[10:], poisoned.X_test[10:], equal_nan=True)


def test_the_random_state_belongs_to_the_split_and_not_to_the_order(folder):
    ready = prepared(folder, "solvers=[forest]")
    source, protocol = ready.sources["churn"], ready.study.protocol
    seeds = [preparation_seed(source, protocol, outer, inner) for outer in (0, 1) for inner in (-1, 0, 1)]
    assert len(set(seeds)) == 6
    assert preparation_seed(source, ready.identities["churn", "forest"].protocol, 0, -1) == seeds[0]


# -- which preparation -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("sklearn.ensemble.RandomForestClassifier", CODES),
        ("sklearn.ensemble.HistGradientBoostingClassifier", CODES),
        ("sklearn.tree.DecisionTreeClassifier", CODES),
        ("sklearn.ensemble.GradientBoostingClassifier", FILLED_CODES),
        ("sklearn.linear_model.LogisticRegression", ONE_HOT),
        ("sklearn.neighbors.KNeighborsClassifier", ONE_HOT),
        ("sklearn.neural_network.MLPClassifier", ONE_HOT),
        ("solvers.MNSVC", ONE_HOT),
    ],
)
def test_the_class_decides_the_kind_of_table(target, kind):
    assert with_kind(Preparation(TABLE), Arm("a", target, {}, {})).kind == kind


def test_the_dataset_decides_unless_the_solver_or_the_protocol_says_otherwise(folder):
    ready = prepared(folder, "datasets=[churn,iris]", "solvers=[logistic,forest]")
    found = {pair: each.name for pair, each in ready.preparations.items()}
    assert found["iris", "logistic"] == found["iris", "forest"] == "minmax"
    assert found["churn", "logistic"] == found["churn", "forest"] == "table"
    said = " ".join(preparation_sentences(ready.preparations))
    assert_says(said, "churn", "logistic", "forest", "ordinal codes", "one-hot")
    assert "iris" not in said
    for asked in ("protocol.prepare=standard", "solver.logistic.prepare=standard"):
        other = prepared(folder, "datasets=[iris]", "solvers=[logistic]", asked)
        assert other.preparations["iris", "logistic"].name == "standard"


def test_keys_stay_those_of_the_scaling_that_means_the_same(folder):
    iris = load(DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True}))

    def digest(*asked):
        study = load_settings(overrides(folder, "solvers=[logistic]", *asked), folder).study
        chosen, problems = chosen_preparations(study, {"iris": iris})
        assert not problems
        protocol = study.protocol.for_preparation(chosen["iris", "logistic"])
        return Identity("iris", "fingerprint", "splits", study.arms[0], protocol).digest

    assert digest() == digest("protocol.prepare=minmax") == digest("protocol.scaling=train")
    assert digest("protocol.prepare=none") == digest("protocol.scaling=none")
    assert digest("solver.logistic.prepare=none") == digest("protocol.scaling=none")
    all_of_them = {digest(), digest("protocol.prepare=none"), digest("protocol.scaling=dataset")}
    assert len(all_of_them | {digest("protocol.prepare=standard")}) == 4
    assert "prepare" not in Protocol(prepare=Preparation("auto")).to_dict()


def test_a_sweep_over_preparations_names_its_arms(folder):
    sweep = "sweep.prepare=[standard,minmax,{_target_: sklearn.decomposition.PCA, n_components: 2}]"
    settings = load_settings(overrides(folder, "datasets=[iris]", "solvers=[forest,raw]", sweep), folder)
    assert [arm.name for arm in settings.study.arms] == [
        "forest[prepare=standard]",
        "forest[prepare=minmax]",
        "forest[prepare=PCA(n_components=2)]",
        "raw",
    ]


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        (
            ("protocol.prepare=standard", "protocol.scaling=train"),
            ("protocol.prepare=standard", "protocol.scaling=train", "minmax"),
        ),
        (("protocol.prepare=tabel",), ("protocol.prepare", "'tabel'", "'table'")),
        (("solver.logistic.prepare=3",), ("solver logistic", "prepare", "3", "minmax")),
        (("protocol.prepare={_target_: sklearn.svm.SVC}",), ("protocol.prepare", "transform")),
        (("protocol.prepare={_target_: sklearn.decomposition.PCA, n: 1}",), ("PCA", "'n'")),
    ],
)
def test_a_preparation_that_cannot_be_used_is_named(folder, asked, facts):
    with raises(ConfigError, *facts):
        load_settings(overrides(folder, "solvers=[logistic]", *asked), folder)


def test_columns_that_a_solver_gets_raw_are_named_in_one_message(folder):
    (folder / "solver" / "bare.yaml").write_text(SOLVERS["ridge"] + "prepare: none\n")
    with raises(ConfigError, "'id' (text)", "'since' (text)", "'city'", "'age' (missing values)") as raised:
        prepared(folder, "solvers=[raw,bare]")
    (problem,) = raised.value.problems
    assert_says(problem, "solvers raw, bare", "prepare", "table")


def test_two_arms_that_are_the_same_on_a_dataset_are_refused(folder):
    (folder / "solver" / "scaled.yaml").write_text(SOLVERS["logistic"] + "prepare: minmax\n")
    with raises(ConfigError, "logistic", "scaled", "iris", "minmax"):
        prepared(folder, "datasets=[iris]", "solvers=[logistic,scaled]")


def test_a_preparation_that_fails_is_a_failed_trial(tmp_path):
    node = '{"_target_":"sklearn.decomposition.PCA","n_components":50}'
    order = order_for("sklearn.linear_model.LogisticRegression", tmp_path, prepare=Preparation(node))
    rows = rows_of(order)
    assert [row["status"] for row in rows] == ["error"] * len(rows)
    assert_says(rows[0]["message"], "preparation", "PCA(n_components=50)", "n_components=50")
    assert all(row["score"] is None for row in rows)


def test_standard_is_scikit_learns(tmp_path):
    forget_splits()
    dataset = load(DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True}))
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    split = prepared_split(dataset, train, test, Preparation("standard"))
    scaler = StandardScaler().fit(dataset.X[train])
    assert np.array_equal(split.X_test, scaler.transform(dataset.X[test]))
    frame = pd.DataFrame({"text": ["a", "b"] * 10, "number": np.arange(20.0)})
    split = prepared_split(
        replace(dataset, X=frame, codes=dataset.codes[:20]),
        np.arange(10),
        np.arange(10, 20),
        Preparation("standard"),
    )
    assert split.X_train["text"].tolist() == ["a", "b"] * 5
    assert split.X_train["number"].to_numpy().std() == pytest.approx(1)


class Endless(BaseEstimator):
    """A transformer whose fit does not return."""

    def fit(self, X, y=None):
        time.sleep(60)

    def transform(self, X):
        return X


class Recorded(Monitor):
    """Keeps the last row of a step with a limit."""

    def started(self, seconds, row=None):
        if row is not None:
            self.limit, self.row = seconds, row


def test_a_transformer_that_does_not_return_is_stopped_as_a_training_is(tmp_path):
    prepare = Preparation(json.dumps({"_target_": f"{__name__}.Endless"}))
    order = order_for("sklearn.svm.LinearSVC", tmp_path, C=(1,), prepare=prepare)
    order = replace(order, default_seconds=0.2)
    recorded = Recorded()
    with overtime_raised(recorded) as monitor:
        records = run_batch(order, monitor=monitor, warm_up=False).records
    assert records.row(0)["status"] == Status.TIMEOUT
    assert_says(records.row(0)["message"], "preparation", "Endless")
    columns = overtime_row(order, 0, recorded.row, recorded.limit)  # of a child process that was ended
    assert (columns["status"], columns["fit_seconds"]) == ([Status.TIMEOUT], [None])
    assert_says(columns["message"][0], "preparation", "Endless", "stopped after")
