"""The estimator to use after a study: what its search selects on all rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from orchestrator import run_study
from orchestrator.datasets.dataset import DatasetError
from orchestrator.store.files import StoreError
from tests.messages import raises

GRID = {"C": [0.25, 4.0, 64.0], "gamma": [0.0625, 0.5]}
TINY = (
    *("study=s", "datasets=[wine]", "protocol.outer=2", "protocol.inner=3", "cluster=serial"),
    *(f"search.space.{name}={values}" for name, values in GRID.items()),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("final")


@pytest.fixture(scope="module")
def results(folder):
    paths = (f"paths.results={folder}", f"paths.cache={folder / 'cache'}")
    return run_study(*TINY, "solvers=[libsvm_l1]", *paths)


def test_it_is_what_scikit_learn_selects_by_the_same_folds(results, folder):
    estimator = results.final_estimator("wine", "libsvm_l1", folder / "cache")
    X, y = load_wine(return_X_y=True)
    seed = np.random.SeedSequence(0).generate_state(1).tolist()[0]
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    expected = GridSearchCV(make_pipeline(MinMaxScaler(), SVC()), grid, cv=folds).fit(X, y)
    chosen = estimator[-1].get_params()
    scores = dict(
        zip(map(str, expected.cv_results_["params"]), expected.cv_results_["mean_test_score"], strict=True)
    )
    found = scores[str({f"svc__{name}": chosen[name] for name in GRID})]
    assert found == expected.best_score_
    assert not hasattr(estimator[-1], "classes_")
    assert estimator.fit(X, y).score(X, y) > 0.95


def test_it_is_the_same_each_time_and_stores_nothing(results, folder):
    before = sorted(path for path in results.folder.rglob("*"))
    first, second = (results.final_estimator("wine", "libsvm_l1", folder / "cache") for _ in range(2))
    assert str(first) == str(second)
    assert sorted(path for path in results.folder.rglob("*")) == before


def test_what_is_not_there_is_named(results, folder, tmp_path):
    with raises(StoreError, "'mnsvm'", "'wine'"):
        results.final_estimator("wine", "mnsvm", folder / "cache")
    with raises(DatasetError, "cache"):
        results.final_estimator("wine", "libsvm_l1", tmp_path)


def test_it_says_why_no_candidate_can_be_chosen(folder):
    config = folder / "failing"
    (config / "solver").mkdir(parents=True)
    (config / "solver" / "fails.yaml").write_text(
        "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1000, 2000]}\n"
    )
    paths = (f"paths.results={folder}", f"paths.cache={folder / 'cache'}", *TINY[2:5])
    results = run_study("study=fails", "datasets=[wine]", "solvers=[fails]", *paths, config_dir=config)
    with raises(StoreError, "6 × fails on wine", "n_neighbors"):
        results.final_estimator("wine", "fails", folder / "cache")


def test_columns_of_a_frame_keep_their_order_and_nothing_is_left_of_warm_starts(folder):
    config = folder / "mixed"
    (config / "dataset").mkdir(parents=True)
    (config / "solver").mkdir()
    table = pd.DataFrame({"city": ["a", "b"] * 30, "self": np.arange(60.0), "income": np.arange(60.0) % 7})
    table.assign(answer=[0, 0, 1] * 20).to_csv(config / "table.csv", index=False)
    (config / "dataset" / "table.yaml").write_text(
        f"_target_: orchestrator.datasets.csv_file\npath: {config / 'table.csv'}\nlabel: answer\n"
    )
    (config / "solver" / "second.yaml").write_text(
        "_target_: sklearn.pipeline.Pipeline\nsteps:\n- - chosen\n"
        "  - {_target_: sklearn.compose.ColumnTransformer, transformers: [[kept, passthrough, [1]]]}\n"
        "- [tree, {_target_: sklearn.tree.DecisionTreeClassifier}]\nprepare: minmax\nspace: {}\n"
    )
    (config / "solver" / "linear.yaml").write_text(
        "_target_: sklearn.linear_model.LogisticRegression\nspace: {C: [1, 10]}\n"
    )
    paths = (f"paths.results={folder}", f"paths.cache={folder / 'cache'}", *TINY[2:5])
    results = run_study("study=frame", "datasets=[table]", "solvers=[second]", *paths, config_dir=config)
    estimator = results.final_estimator("table", "second", folder / "cache")
    estimator.fit(table, [0, 0, 1] * 20)
    prepared = estimator[:-1].transform(table)
    assert list(prepared.columns) == ["city", "self", "income"]
    assert prepared["self"].to_numpy(dtype=float) == pytest.approx(np.arange(60) / 59)
    results = run_study("study=cold", "datasets=[wine]", "solvers=[linear]", *paths, config_dir=config)
    assert not results.final_estimator("wine", "linear", folder / "cache")[-1].warm_start


def test_a_damaged_copy_of_the_dataset_is_refused_and_its_study_prepares_it_again(results, folder):
    whole = results.final_estimator("wine", "libsvm_l1", folder / "cache")
    (path,) = folder.glob("cache/wine-*/X.npy")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with raises(DatasetError, f"{path.parent}", "X.npy"):
        results.final_estimator("wine", "libsvm_l1", folder / "cache")
    with pytest.warns(UserWarning, match=rf"'wine'.*{path.parent}.*X\.npy.*again"):
        run_study(*TINY, "solvers=[libsvm_l1]", f"paths.results={folder}", f"paths.cache={folder / 'cache'}")
    assert str(results.final_estimator("wine", "libsvm_l1", folder / "cache")) == str(whole)
