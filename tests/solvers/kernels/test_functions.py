"""Kernel values, each against a plain computation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import pairwise

from solvers.kernels.functions import (
    IMQ,
    KINDS,
    LINEAR,
    POLY,
    RBF,
    SIGMOID,
    Kernel,
    finish_kernel,
    kernel_block,
    kernel_diagonal,
    sum_terms,
)

SAMPLES = np.random.default_rng(0).standard_normal((30, 7))
OTHERS = np.random.default_rng(1).standard_normal((11, 7))
REFERENCE = {
    LINEAR: lambda A, B: A @ B.T,
    POLY: lambda A, B: pairwise.polynomial_kernel(A, B, degree=3, gamma=0.3, coef0=1.0),
    RBF: lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.3),
    SIGMOID: lambda A, B: pairwise.sigmoid_kernel(A, B, gamma=0.3, coef0=1.0),
    IMQ: lambda A, B: 1 / np.sqrt(0.3 * pairwise.euclidean_distances(A, B, squared=True) + 1.0),
}


@pytest.mark.parametrize("kind", REFERENCE)
def test_kernel_values(kind):
    kernel = Kernel(kind, 0.3, 1.0, 3.0)
    expected = REFERENCE[kind](SAMPLES, OTHERS)
    assert_allclose(kernel_block(SAMPLES, OTHERS, kernel), expected, rtol=1e-12)
    assert_allclose(
        kernel_block(sparse.csr_matrix(SAMPLES), sparse.csr_matrix(OTHERS), kernel), expected, rtol=1e-12
    )
    assert_allclose(kernel_diagonal(SAMPLES, kernel), np.diag(REFERENCE[kind](SAMPLES, SAMPLES)), rtol=1e-7)
    row = np.empty(25)
    sum_terms(np.ascontiguousarray(SAMPLES.T), 5, OTHERS[3], kind in (RBF, IMQ), row)
    finish_kernel(kind, 0.3, 1.0, 3.0, row)
    assert_allclose(row, expected[5:, 3], rtol=1e-12)


def test_exponential_is_right_to_the_last_place():
    x = -np.concatenate([np.linspace(0, 708, 100_001), np.geomspace(1e-300, 708, 100_001)])
    out = -x
    finish_kernel(RBF, 1.0, 0.0, 0.0, out)
    assert_allclose(out, np.exp(x), rtol=4.5e-16)
    far = np.array([1e4, 1e300, np.inf])
    finish_kernel(RBF, 1.0, 0.0, 0.0, far)
    assert_allclose(far, 0.0, atol=1e-300)


def test_equal_samples_are_at_no_distance():
    features = np.full((7, 3), 1e8)
    out = np.empty(3)
    sum_terms(features, 0, np.full(7, 1e8), True, out)
    assert_array_equal(out, 0.0)


def test_every_kernel_name_has_a_kind():
    assert set(REFERENCE) | {KINDS["precomputed"]} == set(KINDS.values())
