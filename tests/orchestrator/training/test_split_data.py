import json
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from orchestrator.study.preparation import Preparation
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.open_data import prepare_data
from orchestrator.training.scalers import LargestScaler, RangeScaler
from orchestrator.training.split_data import fit_scaling, open_split

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3)),
)


@given(tables)
def test_training_rows_fill_the_unit_interval_and_constants_become_zero(X):
    before = X.copy()
    scaled = fit_scaling(X).apply(X)
    varies = np.ptp(X, axis=0) > 0
    assert (scaled.min(axis=0) == 0).all()
    assert (scaled.max(axis=0) == varies).all()
    assert np.allclose(scaled, MinMaxScaler().fit_transform(X), atol=1e-9)
    assert np.array_equal(X, before)


@given(tables)
def test_sparse_rows_keep_their_zeros_and_signs(X):
    sparse = scipy.sparse.csr_matrix(X)
    scaled = fit_scaling(sparse).apply(sparse)
    assert scaled.format == "csr"
    assert np.array_equal(np.sign(scaled.toarray()), np.sign(X))
    assert np.array_equal(np.abs(scaled.toarray()).max(axis=0), np.any(X != 0, axis=0).astype(float))
    assert np.allclose(scaled.toarray(), MaxAbsScaler().fit_transform(X))
    assert np.array_equal(sparse.toarray(), X)


def test_dense_and_sparse_agree_on_non_negative_features_with_a_zero():
    X = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 0.0], [1.0, 7.0, 0.0]])
    sparse = scipy.sparse.csr_matrix(X)
    assert np.array_equal(fit_scaling(sparse).apply(sparse).toarray(), fit_scaling(X).apply(X))


def test_test_rows_are_not_clipped_and_do_not_move_the_fit():
    train, test = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[5.0, 9.0], [0.0, 5.0]])
    assert fit_scaling(train).apply(test).tolist() == [[2.0, 0.0], [-0.5, 0.0]]
    sparse_train, sparse_test = scipy.sparse.csr_matrix([[2.0, 0.0]]), scipy.sparse.csr_matrix([[-3.0, 4.0]])
    assert fit_scaling(sparse_train).apply(sparse_test).toarray().tolist() == [[-1.5, 0.0]]


@given(tables, st.integers(1, 8))
def test_the_scalers_of_a_final_model_map_new_rows_as_a_study_does(X, n_train):
    train = X[:n_train]
    scaled = RangeScaler().fit(train).transform(X)
    assert np.allclose(scaled, fit_scaling(train).apply(X), rtol=1e-9, atol=1e-9)
    sparse, sparse_train = scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(train)
    scaled = LargestScaler().fit(sparse_train).transform(sparse)
    assert np.allclose(scaled.toarray(), fit_scaling(sparse_train).apply(sparse).toarray())


def test_a_kept_split_is_that_of_its_seed(tmp_path):
    folds = {"_target_": "sklearn.model_selection.StratifiedKFold", "n_splits": 3}  # not shuffled
    random = {"_target_": "sklearn.random_projection.GaussianRandomProjection", "n_components": 2}
    chosen = {"outer": folds, "inner": folds, "scaling": "none", "prepare": Preparation(json.dumps(random))}
    iris = DatasetSpec("iris", "sklearn.datasets.load_iris", {"return_X_y": True})
    found = []
    for seed in (0, 1, 0):
        protocol = Protocol(seed=seed, **chosen)
        source, *_ = prepare_data(iris, protocol, tmp_path)
        found.append((source, open_split(source, protocol, 0, 0).X_train))
    assert found[0][0] == found[1][0]
    assert not np.array_equal(found[0][1], found[1][1])
    assert np.array_equal(found[0][1], found[2][1])


def test_read_only_rows_are_accepted():
    X = np.array([[1.0], [3.0]])
    X.flags.writeable = False
    assert fit_scaling(X).apply(X).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_small_folds_cost_next_to_nothing(make):
    X = make(np.random.default_rng(0).random((120, 4)))
    start = time.process_time()
    for _ in range(1000):
        fit_scaling(X).apply(X)
    assert time.process_time() - start < 0.3  # measured: 0.025, with room for a busy machine
