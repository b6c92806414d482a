"""Refits that are trained again, and the section with their decision regions."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from orchestrator import load_study, run_study
from orchestrator.analysis.findings import analyse
from orchestrator.datasets.dataset import DatasetError
from orchestrator.report import write_report
from orchestrator.report.sections import decision_regions
from orchestrator.report.sections.decision_regions import Panel, figure
from orchestrator.store.files import StoreError
from tests.messages import raises
from tests.orchestrator.report.frames import make_results

SECTION = "orchestrator.report.sections.decision_regions.section"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regions")
    (folder / "dataset").mkdir()
    text = "_target_: orchestrator.datasets.checkers\nn: 160\nboard: 2\nseed: 0\n"
    (folder / "dataset" / "board.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    arguments = (
        *("study=s", "datasets=[board,iris]", "solvers=[libsvm_l1,svmtree]", "protocol.profile=timing"),
        *("protocol.outer=2", "protocol.inner=2", "search.space.C=[1,16]", "search.space.gamma=[1,16]"),
        *("cluster=serial", f"paths.results={folder}", f"paths.cache={folder / 'cache'}"),
    )
    return run_study(*arguments, config_dir=folder)


@pytest.mark.parametrize("arm", ["libsvm_l1", "svmtree"])
@pytest.mark.parametrize("outer", [0, 1])
def test_a_refit_is_what_the_study_has_stored(results, folder, arm, outer):
    refit = results.refit("board", arm, outer, folder / "cache")
    row = results.outer.set_index(["dataset", "solver", "outer"]).loc["board", arm, outer]
    assert refit.score == refit.stored_score == row["score"]
    assert refit.params == {name: row[f"param_{name}"] for name in refit.params}
    assert refit.X_train.shape == (row["n_train"], 2)
    assert refit.X_test.shape == (row["n_test"], 2)
    assert (refit.X_train.min(), refit.X_train.max()) == (0.0, 1.0)  # prepared by the training rows
    assert refit.estimator.score(refit.X_test, refit.y_test) == row["score"]


def test_what_is_not_stored_is_named(results, folder, tmp_path):
    with raises(StoreError, "'mnsvm'", "'board'"):
        results.refit("board", "mnsvm", 0, folder / "cache")
    with raises(StoreError, "outer fold 2", "2 folds"):
        results.refit("board", "svmtree", 2, folder / "cache")
    with raises(DatasetError, "cache"):
        results.refit("board", "svmtree", 0, tmp_path)
    with raises(StoreError, "load_study"):
        make_results(tmp_path, {"a": {"b": 0.5}}).refit("a", "b")


def test_the_section_draws_datasets_of_two_features(results, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.engine.refit.cache_folder", lambda: folder / "cache")
    page = write_report(load_study("s", folder), tmp_path / "r", sections=[SECTION]).read_text()
    assert "trained again on the training rows of outer fold 0" in page
    assert "cannot be shown" not in page
    assert (tmp_path / "r" / "figures" / "decision_regions_1.svg").is_file()
    assert not (tmp_path / "r" / "figures" / "decision_regions_2.svg").exists()  # iris has four features
    table = pd.read_csv(tmp_path / "r" / "tables" / "decision_regions.csv")
    assert table[["dataset", "solver"]].to_numpy().tolist() == [["board", "libsvm_l1"], ["board", "svmtree"]]
    assert table["score"].tolist() == table["stored_score"].tolist()
    n_sv = results.outer.query("dataset == 'board' and solver == 'libsvm_l1' and outer == 0")["n_sv"]
    assert table["n_vectors"].tolist() == [n_sv.iloc[0], 0]
    tree = results.refit("board", "svmtree", 0, folder / "cache").estimator
    assert table["n_planes"].tolist() == [0, tree.n_nodes_]


def test_no_section_without_two_features(tmp_path):
    results = make_results(tmp_path, {"a": {"b": 0.5, "c": 0.6}})
    results.outer["n_features"] = 3
    assert decision_regions.section(analyse(results)) is None


class Halves:
    """Classifier whose label is 1 above the plane x₁ + 2 x₂ = 1."""

    planes_ = np.array([[1.0, 2.0]]), np.array([1.0])

    def predict(self, X):
        return (X @ self.planes_[0][0] > 1.0).astype(int)


def test_planes_vectors_and_regions_are_where_they_belong():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    machine = SVC(gamma=4.0).fit(X, [0, 1, 1, 0])
    drawn = figure(
        [
            Panel("plane", Halves(), X, np.array([0, 0, 1, 1])),
            Panel("machine", machine, X, np.array([0, 1, 1, 0])),
        ]
    )
    plane, vectors = drawn.axes
    (ends,) = next(c for c in plane.collections if isinstance(c, LineCollection)).get_segments()
    assert_allclose(ends @ [1.0, 2.0], 1.0)
    assert np.linalg.norm(ends[1] - ends[0]) > np.sqrt(2.0)  # it crosses the panel
    assert [len(c.get_segments()) for c in vectors.collections if isinstance(c, LineCollection)] == [0]
    rings = [c for c in vectors.collections if isinstance(c, PathCollection) and c.get_facecolors().size == 0]
    assert_array_equal(np.sort(rings[0].get_offsets(), axis=0), np.sort(machine.support_vectors_, axis=0))
    codes = np.asarray(plane.images[0].get_array())
    assert codes[0, 0] == 0
    assert codes[-1, -1] == 1
    assert_array_equal(np.unique(np.asarray(vectors.images[0].get_array())), [0, 1])
