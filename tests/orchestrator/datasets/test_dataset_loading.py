import dataclasses
import sys
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from orchestrator.datasets import DatasetError, checkers, load
from orchestrator.study.study import DatasetSpec
from tests.messages import raises


@pytest.fixture
def loaded(monkeypatch):
    """Return a function that loads `(X, y)` as a user's own dataset would be."""

    def load_pair(*pair, name="toy"):
        module = types.ModuleType("a_users_module")
        module.make = lambda: pair if len(pair) == 2 else pair[0]
        monkeypatch.setitem(sys.modules, "a_users_module", module)
        return load(DatasetSpec(name, "a_users_module.make"))

    return load_pair


X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, -1.0], [4.0, 0.5]])
Y = np.array([1, 0, 1, 0])


def test_iris_comes_straight_from_scikit_learn():
    dataset = load(DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True}))
    features, labels = load_iris(return_X_y=True)
    assert dataset.name == "iris"
    assert np.array_equal(dataset.X, features)
    assert np.array_equal(dataset.y, labels)
    assert dataset.codes.dtype == np.int32
    assert dataset.X.flags.c_contiguous


@pytest.mark.parametrize(
    "features",
    [
        X.tolist(),
        X.astype(np.float32),
        np.asfortranarray(X),
        X.astype(">f8"),
        np.repeat(X, 2, axis=0)[::2],
        pd.DataFrame(X, columns=["a", "b"]),
        X + np.array([[-0.0]]),
    ],
    ids=["lists", "float32", "fortran", "big-endian", "strided", "frame", "zeros"],
)
def test_dense_features_of_any_kind_are_the_same_dataset(loaded, features):
    dataset = loaded(features, Y)
    assert type(dataset.X) is np.ndarray
    assert dataset.X.dtype == np.float64
    assert dataset.X.flags.c_contiguous
    assert dataset.fingerprint == loaded(X, Y, name="another name").fingerprint


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_sparse_features_of_any_format_are_the_same_csr_dataset(loaded, kind):
    for make in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        dataset = loaded(make(X).asformat(kind), Y)
        assert dataset.X.format == "csr"
        assert dataset.X.has_canonical_format
        assert dataset.X.dtype == np.float64
        assert dataset.X.indices.dtype == dataset.X.indptr.dtype == np.int32
        assert np.array_equal(dataset.X.toarray(), X)
        assert dataset.fingerprint == loaded(scipy.sparse.csr_matrix(X), Y).fingerprint


def test_spelling_of_a_sparse_matrix_does_not_matter_and_the_users_is_left_alone(loaded):
    # The same matrix with unsorted indices, an explicit zero, and a value in two parts.
    data, indices, indptr = (
        np.array([1.0, 0.5, 0.0, 2.0, -1.0, 0.5, 4.0]),
        [1, 1, 0, 0, 1, 1, 0],
        [0, 3, 4, 5, 7],
    )
    spelt = scipy.sparse.csr_matrix((data, indices, indptr), shape=(4, 2))
    assert loaded(spelt, Y).fingerprint == loaded(scipy.sparse.csr_matrix(X), Y).fingerprint
    assert spelt.nnz == 7


def test_any_change_of_content_changes_the_fingerprint(loaded):
    def moved(array, index, value):
        array = array.copy()
        array[index] = value
        return array

    datasets = [
        loaded(X, Y),
        loaded(X[::-1], Y[::-1]),
        loaded(moved(X, (0, 0), np.nextafter(0, 1)), Y),
        loaded(X, 1 - Y),
        loaded(X, Y + 1),
        loaded(X, Y.astype(str)),
        loaded(X.T, Y[:2]),
        loaded(X[:, :1], Y),
        loaded(scipy.sparse.csr_matrix(X), Y),
        loaded(scipy.sparse.csr_matrix(moved(X, (3, 1), 0.25)), Y),
    ]
    assert len({dataset.fingerprint for dataset in datasets}) == len(datasets)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, -1, 3, 2], [-1, 2, 3]),
        ([1.0, 2.0, 1.0, 1.0], [1, 2]),
        ([True, False, True, True], [False, True]),
        (["b", "a", "b", "ä"], ["a", "b", "ä"]),
        (pd.Series(["b", "a", "b", "a"]), ["a", "b"]),
        (pd.Categorical(["b", "a", "b", "a"]), ["a", "b"]),
        (np.array([b"b", b"a", b"b", b"a"]), ["a", "b"]),
        (np.array([2, 1, 2, 1], dtype=object), [1, 2]),
        (np.array([[2], [1], [2], [1]], dtype=np.uint8), [1, 2]),
    ],
)
def test_labels_of_any_kind_become_classes_and_codes(loaded, labels, classes):
    dataset = loaded(X, labels)
    assert dataset.classes.tolist() == classes
    assert dataset.classes.dtype.kind in "bifU"
    plain = [label.decode() if isinstance(label, bytes) else label for label in np.ravel(labels).tolist()]
    assert dataset.y.tolist() == plain


def frame(column):
    return pd.DataFrame({"a": column, "b": [1, 2, 3, 4]})


def with_value(value, row=2, column=1):
    broken = X.copy()
    broken[row, column] = value
    return broken


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((with_value(-np.inf, 3, 0), Y), ("1 infinite value,", "row 3", "column 0")),
        ((pd.DataFrame(with_value(np.inf, 3, 1), columns=["a", "b"]), Y), ("row 3 (from 0)", "column 'b'")),
        ((scipy.sparse.csr_matrix(with_value(np.nan, 1, 0)), Y), ("1 NaN", "0", "row 1", "column 0")),
        ((X, [1, 1, 1, 1]), ("two classes", "1", "4 rows")),
        ((X, Y[:3]), ("4 rows", "3 labels")),
        ((X[:, 0], Y), ("shape", "(4,)")),
        ((X[None], Y), ("shape", "(1, 4, 2)")),
        ((X[:, :0], Y), ("shape", "(4, 0)")),
        ((X, X), ("shape", "(4, 2)")),
        ((X, np.ma.masked_equal([0, 1, 2, 1], 2)), ("masked", "row 2")),
        ((X, [1.0, np.nan, 0.0, 1.0]), ("nan", "row 1")),
        ((X, ["a", None, "b", "a"]), ("strings", "None", "row 1")),
        ((X, pd.Series([None, "a", "b", "a"])), ("strings", "labels", "row 0")),
        ((X, [1, None, 2, 1]), ("numbers", "None", "row 1")),
        ((X, np.array(["2026-01-01", "2026-01-02"] * 2, dtype="M8[D]")), ("dtype", "datetime64")),
        ((X + 1j, Y), ("numbers", "features", "complex")),
        (([[1.0], [1.0, 2.0], [3.0], [4.0]], Y), ("numbers", "features")),
        ((load_iris(),), ("(X, y)", "Bunch", "return_X_y")),
        ((X,), ("(X, y)", "ndarray")),
    ],
)
def test_unusable_data_is_refused_with_its_name(loaded, pair, message):
    with raises(DatasetError, "dataset 'toy'", *message):
        loaded(*pair)


@pytest.mark.parametrize(
    ("target", "params", "message"),
    [
        ("sklearn.datasets.load_irsi", {}, ("'load_irsi'", "'load_iris'")),
        ("sklearn.datasets", {}, ("_target_", "function")),
        ("sklearn.datasets.load_iris", {"return_Xy": True}, ("load_iris", "failed", "return_Xy")),
    ],
)
def test_a_loader_that_cannot_be_called_is_refused(target, params, message):
    with raises(DatasetError, "dataset 'toy'", *message):
        load(DatasetSpec("toy", target, params))


def test_a_dataset_is_frozen():
    dataset = load(DatasetSpec("toy", "orchestrator.datasets.checkers", {"n": 20}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "another"


def test_checkers_are_seeded_points_of_the_unit_square_labelled_by_their_field():
    features, labels = checkers(n=2000, seed=3, board=4)
    assert features.shape == (2000, 2)
    assert features.min() >= 0
    assert features.max() < 1
    for (a, b), label in zip(features[:50], labels, strict=False):
        assert label == (int(a / 0.25) + int(b / 0.25)) % 2
    assert abs(labels.mean() - 0.5) < 0.05
    again, other = checkers(2000, 3), checkers(2000, 4)
    assert np.array_equal(features, again[0])
    assert not np.array_equal(features, other[0])
