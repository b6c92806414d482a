"""Rows of the Gaussian kernel, against blocks of the kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from solvers import SMOSVC
from solvers.kernels.functions import GRAM, IMQ, LINEAR, RBF, Kernel, kernel_block
from solvers.kernels.gaussian_rows import GaussianRows, has_gaussian_rows

GAMMA = 0.3


@pytest.fixture(scope="module")
def samples():
    X = sparse.random(60, 400, density=0.05, format="csr", random_state=0)
    X.data -= 0.5
    X[7] = 0.0  # a sample without features
    X.eliminate_zeros()
    return X


@pytest.mark.parametrize("form", ["by feature", "in place", "dense"])
def test_a_row_is_that_of_a_block_bit_for_bit(samples, form):
    X = samples.toarray() if form == "dense" else samples
    kernel = Kernel(RBF, gamma=GAMMA)
    rows, row = GaussianRows(X, kernel, by_feature=form == "by feature"), np.empty(60)
    for i, expected in enumerate(rbf_kernel(samples, gamma=GAMMA)):
        rows.write(X[i : i + 1], row)
        assert_array_equal(row, kernel_block(X[i : i + 1], X, kernel)[0])
        assert_allclose(row, expected)


def test_other_kernels_have_no_such_rows():
    gaussian = Kernel(RBF, gamma=GAMMA)
    assert has_gaussian_rows(gaussian)
    assert not has_gaussian_rows(gaussian._replace(by_differences=True))
    assert not any(has_gaussian_rows(Kernel(kind, gamma=GAMMA)) for kind in (LINEAR, IMQ, GRAM))


def test_a_value_that_is_not_finite_is_refused(samples):
    rows = GaussianRows(samples, Kernel(RBF, gamma=np.nan))
    with pytest.raises(ValueError, match="finite"):
        rows.write(samples[0], np.empty(60))


@pytest.mark.parametrize("form", ["csr", "dense"])
@pytest.mark.parametrize("megabytes", [0.1, 1.0])  # of sparse samples, only the larger one holds a copy
def test_models_from_rows_and_from_the_gram_matrix_agree(form, megabytes):
    X = sparse.random(500, 300, density=0.05, format="csr", random_state=1)
    X = X.toarray() if form == "dense" else X
    y = np.random.default_rng(1).integers(0, 2, 500)
    model = SMOSVC(C=4.0, gamma=1.0, tol=1e-6)
    small, whole = (clone(model).set_params(cache_size=size).fit(X, y) for size in (megabytes, 100.0))
    assert small.n_kernel_evals_ != whole.n_kernel_evals_, "the small cache has no Gram matrix"
    assert_allclose(small.decision_function(X), whole.decision_function(X), atol=1e-5)
