"""Rows that occur more than once are left, dropped, or kept in one fold, as a configuration says."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from orchestrator.datasets import DatasetError, load, open_prepared, prepare
from orchestrator.datasets.about import About
from orchestrator.datasets.audit import audit
from orchestrator.datasets.description import describe, shape_problems
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.open_data import prepare_data
from tests.messages import raises

IRIS = {"return_X_y": True}


def iris(**params):
    return DatasetSpec("iris", "sklearn.datasets.load_iris", {**IRIS, **params})


def rows(kind="dense", groups=None):
    X = np.array([[1.0, 0], [1, 0], [0, 2], [1, 0], [0, 2], [3, 0]])
    X = {"dense": X, "sparse": scipy.sparse.csr_matrix(X), "frame": "c" + pd.DataFrame(X).astype(str)}[kind]
    return X, np.array(list("abaabb")), groups


def loaded(**params):
    return load(DatasetSpec("t", f"{__name__}.rows", params))


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame"])
def test_the_first_of_the_rows_that_are_equal_stays(kind):
    dataset = loaded(kind=kind, deduplicate="drop", test_fold=[0, 1, 2, 3, 4, 5])
    kept = [0, 1, 2, 4, 5]
    assert dataset.y.tolist() == [list("abaabb")[row] for row in kept]
    assert dataset.metadata["test_fold"].tolist() == kept
    assert dataset.n_dropped == 1
    plain = load(DatasetSpec("t", f"{__name__}.rows", {"kind": kind}))
    expected = plain.X.iloc[kept] if kind == "frame" else plain.X[kept]
    if kind == "frame":
        assert dataset.X.equals(expected.reset_index(drop=True))
    else:
        assert not (expected != dataset.X).sum()


def test_equal_features_are_one_group_besides_the_groups_there_are():
    alone = loaded(deduplicate="group").metadata["groups"]
    assert len(set(alone)) == 3
    assert alone[0] == alone[1] == alone[3] != alone[2] == alone[4]
    both = loaded(deduplicate="group", groups=[1, 2, 3, 4, 5, 5]).metadata["groups"]
    assert len(set(both)) == 2  # the row of group 5 joins its copy in group 3
    assert both[2] == both[4] == both[5] != both[0] == both[1] == both[3]


def test_iris_without_its_copy(tmp_path):
    dataset = load(iris(deduplicate="drop"))
    assert (dataset.X.shape, dataset.n_dropped) == ((149, 4), 1)
    assert shape_problems(dataset, About(n=150, d=4, classes=3)) == []
    opened = open_prepared(prepare(dataset, tmp_path))
    assert opened.n_dropped == 1
    assert describe(opened)["rows"] == "149 (dropped copies: 1)"
    assert load(iris()).fingerprint == load(iris(deduplicate="keep")).fingerprint


def test_copies_of_iris_never_meet_in_one_group(tmp_path):
    def tested_copies(seed, **params):
        _, dataset, splits = prepare_data(iris(**params), Protocol(seed=seed), tmp_path)
        of_rows = (splits.train_test(*split) for split in [*splits.of_level(True), *splits.of_level(False)])
        return audit(dataset, of_rows).tested_copies

    seeds = range(3)
    assert [tested_copies(seed, deduplicate="group") for seed in seeds] == [0, 0, 0]
    assert max(tested_copies(seed) for seed in seeds) > 0


@pytest.mark.parametrize(
    ("how", "sentence"),
    [("yes", ("deduplicate", "keep", "drop", "group", "'yes'")), (None, ("drop", "group", "null"))],
)
def test_another_word_is_refused(how, sentence):
    with raises(DatasetError, "dataset 't'", *sentence):
        loaded(deduplicate=how)
