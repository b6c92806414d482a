"""What is found in the rows and columns of a dataset; counts of real data are known from elsewhere."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from orchestrator.config.compose import compose_settings
from orchestrator.datasets import find_libsvm_file, load, read_libsvm
from orchestrator.datasets.audit import audit
from orchestrator.datasets.dataset import Dataset
from orchestrator.datasets.row_hashes import row_hashes, scaled_row_hashes
from orchestrator.study.study import DatasetSpec
from tests.messages import assert_says, says

GENERATOR = np.random.default_rng(0)


def dataset(X, y, columns=()):
    classes, codes = np.unique(y, return_inverse=True)
    return Dataset("mine", X, classes, codes.astype(np.int32), "", columns=columns)


def file(name, n_features, rows=None):
    folder = os.environ.get("SVMBENCH_DATA")
    if not folder or not list(Path(folder).glob(f"{name}.libsvm*")):
        pytest.skip(f"set SVMBENCH_DATA to a folder that holds {name}.libsvm.xz")
    X, y = read_libsvm(find_libsvm_file(name, folder), n_features)
    return X[:rows], y[:rows]


def test_hashes_agree_with_equality_of_rows():
    X = GENERATOR.integers(-1, 3, (3000, 5)) * 0.5
    X[::7, 2] = np.nan
    X[::11, 1] = -0.0
    different = np.unique(np.nan_to_num(X, nan=9.0) + 0.0, axis=0, return_inverse=True)[1]
    hashes = np.unique(row_hashes(X), return_inverse=True)[1]
    assert len(np.unique(np.column_stack([different, hashes]), axis=0)) == different.max() + 1
    assert hashes.max() == different.max()


@pytest.mark.parametrize("hashes", [row_hashes, scaled_row_hashes])
def test_a_matrix_has_the_hashes_of_its_sparse_copy_and_of_a_frame(hashes):
    X = np.round(scipy.sparse.random(2000, 90, 0.05, rng=0).toarray(), 2) - (np.arange(90) < 2) * 0.25
    assert np.array_equal(hashes(X), hashes(scipy.sparse.csr_matrix(X)))
    assert np.array_equal(hashes(X), hashes(pd.DataFrame(X)))


def test_texts_are_hashed_by_what_they_say():
    frame = pd.DataFrame({"city": ["Ulm", None, "b", "Ulm"], "age": [1.0, 2, 2, 1]})
    a, b, c, d = row_hashes(frame)
    assert a == d
    assert len({a, b, c}) == 3
    assert np.array_equal(row_hashes(frame[::-1])[::-1], row_hashes(frame))
    as_category = frame.assign(city=pd.Categorical(frame["city"], ["b", "x", "Ulm"]))
    assert np.array_equal(row_hashes(as_category), row_hashes(frame))


@pytest.mark.parametrize(
    ("name", "n_features", "n", "distinct", "distinct_features"),
    [("diabetes", 8, 768, 768, 768), ("breast-cancer", 9, 683, 449, 449), ("ionosphere", 34, 351, 350, 350)],
)
def test_copies_in_known_files(name, n_features, n, distinct, distinct_features):
    found = audit(dataset(*file(name, n_features)))
    assert (found.n, found.distinct, found.distinct_features) == (n, distinct, distinct_features)


def test_copies_in_ten_per_cent_of_kdd99(full_size):
    if not full_size:
        pytest.skip("its text takes seconds to read; with --full only")
    found = audit(dataset(*file("kdd99-10pct", 119, rows=494_021)))
    assert (found.n, found.distinct, found.distinct_features) == (494_021, 145_585, 145_584)


def test_the_copy_in_iris_is_tested_where_its_original_is_trained_on():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(150)
    (twin, copy) = (int(row) for row in np.flatnonzero((X[142] == X).all(axis=1)))
    apart = [(np.delete(rows, [copy, 0]), np.array([copy, 0]))]
    together = [(np.delete(rows, [copy, twin]), np.array([copy, twin]))]
    found = audit(dataset(X, y), apart)
    assert (found.distinct, found.distinct_features, found.tested_copies) == (149, 149, 0.5)
    assert audit(dataset(X, y), together).tested_copies == 0
    assert_says(found.sentences(dataset(X, y))[0], "dataset 'mine'", "149", "150 rows", "label")
    assert_says(found.warnings(dataset(X, y))[0], "50 %", "test rows", "copy")
    assert audit(dataset(X, y), together).warnings(dataset(X, y)) == []


def test_the_remedies_for_copies_are_overrides_that_set_the_key_of_the_dataset():
    iris = replace(dataset(np.repeat(np.arange(4.0), 2)[:, None], list("aabbaabb")), name="iris")
    warning = audit(iris, [(np.arange(0, 8, 2), np.arange(1, 8, 2))]).warnings(iris)[0]
    for value in ("drop", "group"):
        (override,) = re.findall(rf"\bdataset\S*={value}\b", warning)
        config = compose_settings(["datasets=[iris]", override])
        assert config["dataset"]["iris"]["deduplicate"] == value


def test_rows_that_differ_in_their_label_alone():
    found = audit(dataset(np.array([[1.0], [1.0], [1.0], [2.0]]), ["a", "b", "a", "b"]))
    assert (found.distinct, found.distinct_features) == (3, 2)


def test_columns_with_one_value_in_nearly_all_rows():
    X = GENERATOR.normal(size=(5000, 4))
    X[:, 0], X[:, 2] = 3.0, np.nan
    X[[0, 1, 5, 900, 4999], 0], X[:6, 3] = 0.0, 1.0
    y = np.arange(5000) % 2
    assert audit(dataset(X, y)).near_constant == (0, 2)
    X[7, 0] = 9.0
    assert audit(dataset(X, y)).near_constant == (2,)
    sparse = scipy.sparse.csr_matrix(np.array([[1.0, 0, 0], [1, 0, 2]] * 3))
    found = audit(dataset(sparse, [0, 1] * 3))
    assert found.near_constant == (0, 1)
    assert (
        "columns 0, 1 (from 0) have one value in all rows" in found.sentences(dataset(sparse, [0, 1] * 3))[1]
    )


def test_a_feature_that_gives_the_label_away_is_named():
    y = np.repeat([0, 1, 2], 60)
    kind = np.array(["b", "a", "c", "d"])[y + (np.arange(180) % 60 == 0)]
    frame = pd.DataFrame(
        {
            "noise": GENERATOR.normal(size=180),
            "row": np.arange(180.0),  # of rows in order of their class
            "coded": (y * 2.0) % 3 + GENERATOR.normal(size=180) / 50,
            "name": [f"n{row}" for row in range(180)],  # says nothing that could be learnt
            "kind": kind,
            "half": np.where(GENERATOR.random(180) < 0.5, "x", np.array(["p", "q", "r"])[y]),
        }
    )
    data = dataset(frame, y, tuple(frame.columns))
    found = audit(data)
    assert [frame.columns[at] for at in found.gives_away] == ["row", "coded"]
    assert_says(found.warnings(data)[0], "'row'", "'coded'", "class")
    told = frame.assign(kind=np.array(["b", "a", "b"])[y])[["noise", "kind"]]
    binary = dataset(told, y == 1, tuple(told.columns))
    assert audit(binary).gives_away == (1,)
    sparse = scipy.sparse.csr_matrix(np.column_stack([GENERATOR.normal(size=180), y == 1]))
    assert audit(dataset(sparse, y == 1)).gives_away == (1,)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_no_feature_of_known_data_gives_the_label_away(name):
    data = load(DatasetSpec(name, f"sklearn.datasets.load_{name}", {"return_X_y": True}))
    assert audit(data).warnings(data) == []


def test_a_class_with_fewer_rows_than_folds():
    data = dataset(GENERATOR.normal(size=(30, 2)), ["rare"] * 3 + ["common"] * 27)
    rare = audit(data).sentences(data, folds=3)
    assert [says(each, "fewer") for each in rare] == [False]
    assert audit(data).sentences(data, folds=5) == [
        "dataset 'mine': its class 'rare' has 3 rows, fewer than the 5 folds",
        *rare,
    ]


def test_a_class_that_accuracy_hides_is_said_with_the_metric_that_does_not():
    data = dataset(GENERATOR.normal(size=(40, 2)), ["rare"] * 4 + ["common"] * 36)
    (said,) = audit(data).sentences(data)
    assert_says(said, "'rare'", "4", "40 rows", "10.0 %", "metric=balanced_accuracy")
    data = dataset(GENERATOR.normal(size=(40, 2)), ["rare"] * 5 + ["common"] * 35)
    assert audit(data).sentences(data) == []
