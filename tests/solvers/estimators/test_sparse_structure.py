"""Sparse matrices are checked at the door: compiled code follows their indices without a check."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

ALL = [MNSVC, SphereSVC, BallSVC, CoreSVC, NewtonSVC, SMOSVC]
CS = [0.5, 4.0]


def seeded(solver, **params):
    return solver(**params, **({"random_state": 0} if solver not in (SMOSVC, NewtonSVC) else {}))


def samples():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(30, 5)) * (rng.random((30, 5)) < 0.7)
    dense[:, 0] += np.arange(30) % 2 * 2.0
    return dense, np.arange(30) % 2


def index_beyond(X):
    X.indices[7] = 7


def index_negative(X):
    X.indices[7] = -1


def index_far_beyond(X):
    X.indices[0] = 2**31 - 1


def descent(X):
    X.indptr[3], X.indptr[4] = X.indptr[4] + 1, X.indptr[3]


def late_start(X):
    X.indptr[0] = 1


def negative_start(X):
    X.indptr[0] = -3


def early_end(X):
    X.indptr[-1] -= 2


def late_end(X):
    X.indptr[-1] += 2


def short_indptr(X):
    X.indptr = X.indptr[:-1]


def long_indptr(X):
    X.indptr = np.append(X.indptr, X.indptr[-1])


def short_indices(X):
    X.indices = X.indices[:-1]


def short_data(X):
    X.data = X.data[:-1]


def float_indices(X):
    X.indices = X.indices.astype(np.float64)


DAMAGES = [
    *(index_beyond, index_negative, index_far_beyond, descent, late_start, negative_start, early_end),
    *(late_end, short_indptr, long_indptr, short_indices, short_data, float_indices),
]


def damaged(damage, make=sparse.csr_matrix):
    X = make(samples()[0])
    damage(X)
    return X


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("solver", ALL)
def test_a_damaged_structure_is_refused_wherever_samples_come_in(solver, damage):
    X, y = sparse.csr_matrix(samples()[0]), samples()[1]
    fitted, path = seeded(solver).fit(X, y), seeded(solver).fit_path(X, y, CS)
    of_damaged = [
        lambda bad: seeded(solver).fit(bad, y),
        lambda bad: seeded(solver, kernel="linear").fit(bad, y),
        lambda bad: seeded(solver, probability=True).fit(bad, y),
        lambda bad: seeded(solver, kernel=lambda A, B: (A @ B.T).toarray()).fit(bad, y),
        lambda bad: seeded(solver).fit_path(bad, y, CS),
        lambda bad: fitted.score(bad, y),
        *(fitted.predict, fitted.decision_function, path.predict_path),
    ]
    for take in of_damaged:
        with pytest.raises(ValueError, match=r"CSR.*\(30, 5\).*damaged.*expected .* found "):
            take(damaged(damage))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("of_fit", ["dense", "sparse"])
def test_a_damaged_structure_is_refused_for_probabilities(damage, of_fit):
    X, y = samples()
    model = SMOSVC(probability=True).fit(X if of_fit == "dense" else sparse.csr_matrix(X), y)
    for predict in (model.predict_proba, model.predict_log_proba):
        with pytest.raises(ValueError, match="damaged"):
            predict(damaged(damage))


@pytest.mark.parametrize("damage", [index_beyond, index_negative, descent, late_end, short_indices])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.csc_array, sparse.bsr_matrix])
def test_a_damaged_structure_of_another_format_is_refused_before_it_is_converted(make, damage):
    X, y = make(samples()[0]), samples()[1]
    if damage is index_beyond:
        X.indices[7 % X.indices.size] = 30
    else:
        damage(X)
    with pytest.raises(ValueError, match="damaged"):
        SMOSVC().fit(X, y)


@pytest.mark.parametrize("row", [-1, 30])
def test_coordinates_outside_the_shape_are_refused(row):
    X, y = sparse.coo_matrix(samples()[0]), samples()[1]
    X.row[5] = row
    with pytest.raises(ValueError, match=r"COO.*damaged"):
        SMOSVC().fit(X, y)


def test_a_list_of_columns_outside_the_shape_is_refused():
    X, y = sparse.lil_matrix(samples()[0]), samples()[1]
    X.rows[3][-1] = 5
    with pytest.raises(ValueError, match="damaged"):
        SMOSVC().fit(X, y)


def test_the_sparse_kernel_values_of_a_callable_are_checked():
    X, y = samples()

    def kernel(A, B):
        K = sparse.csr_matrix(A @ B.T)
        K.indices[3] = -1
        return K

    with pytest.raises(ValueError, match="damaged"):
        SMOSVC(kernel=kernel).fit(X, y)


def test_a_sparse_kernel_matrix_to_predict_from_is_checked_and_read():
    X, y = samples()
    K = X @ X.T
    model, path = SMOSVC(kernel="precomputed").fit(K, y), SMOSVC(kernel="precomputed").fit_path(K, y, CS)
    for predict in (model.predict, model.decision_function, path.predict_path):
        assert_array_equal(predict(sparse.csr_matrix(K)), predict(K))
        bad = sparse.csr_matrix(K)
        bad.indices[3] = 30
        with pytest.raises(ValueError, match="damaged"):
            predict(bad)


# -- what is in order, though not canonical ----------------------------------------------------------


def unsorted(dense):
    X = sparse.csr_matrix(dense)
    for start, end in zip(X.indptr, X.indptr[1:], strict=False):
        X.indices[start:end] = X.indices[start:end][::-1].copy()
        X.data[start:end] = X.data[start:end][::-1].copy()
    return X


def unsorted_behind_a_note(dense):
    X = unsorted(dense)
    X.has_canonical_format = True
    return X


def duplicated(dense):
    X = sparse.csr_matrix(dense)
    halves = 0.5 * X.data
    return sparse.csr_matrix((np.repeat(halves, 2), np.repeat(X.indices, 2), 2 * X.indptr), dense.shape)


def with_zeros(dense):
    n, d = dense.shape
    return sparse.csr_matrix((dense.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), dense.shape)


def wide_indices(dense):
    X = sparse.csr_matrix(dense)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("make", [unsorted, unsorted_behind_a_note, duplicated, with_zeros, wide_indices])
@pytest.mark.parametrize("params", [{}, {"kernel": "linear"}, {"gamma": 1e8}, {"kernel": "poly"}], ids=str)
@pytest.mark.parametrize("solver", ALL)
def test_what_is_not_canonical_gives_the_model_of_the_dense_samples(solver, params, make):
    dense, y = samples()
    before = make(dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_dense = seeded(solver, tol=1e-6, **params).fit(dense, y)
        model = seeded(solver, tol=1e-6, **params).fit(make(dense), y)
        canonical = seeded(solver, tol=1e-6, **params).fit(sparse.csr_matrix(dense), y)
        path = seeded(solver, **params).fit_path(make(dense), y, CS)
        path_of_canonical = seeded(solver, **params).fit_path(sparse.csr_matrix(dense), y, CS)
    assert model._kernel.gamma == pytest.approx(of_dense._kernel.gamma, rel=1e-12)
    assert model.objective_ == pytest.approx(of_dense.objective_, rel=1e-4)
    given = make(dense)
    assert_allclose(
        model.decision_function(given), canonical.decision_function(dense), atol=1e-4
    )  # 100 times tol
    assert_array_equal(path.predict_path(given), path_of_canonical.predict_path(dense))
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(given, name), getattr(before, name), "samples are not changed")


def test_an_empty_matrix_is_refused_for_what_it_is():
    y = np.arange(4) % 2
    with pytest.raises(ValueError, match="0 feature"):
        SMOSVC().fit(sparse.csr_matrix((4, 0)), y)
    with pytest.raises(ValueError, match="0 sample"):
        SMOSVC().fit(sparse.csr_matrix((0, 4)), [])
    assert SMOSVC(gamma=1.0).fit(sparse.csr_matrix((4, 3)), y).dual_coef_.shape[0] == 1
