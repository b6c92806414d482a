"""Kernel values of tiles are as accurate as they say, in float64 and in float32."""

import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from solvers.kernels.tiles import (
    add_products,
    error_of_values,
    fill_block,
    in_float32,
    scaled_samples,
    tiles_of,
)
from tests.solvers.small_problems import overlapping


@pytest.mark.parametrize(("d", "gamma"), [(3, 100.0), (30, 1.0), (300, 1e-4)])
def test_values_of_tiles_are_as_accurate_as_they_say(d, gamma):
    X, _ = overlapping(n=300, d=d)
    samples, every = scaled_samples(X, gamma), np.arange(300)
    tiles, weights = tiles_of(samples, every, d), np.random.default_rng(0).standard_normal(300)
    K = np.empty((300, 310), np.float64)
    fill_block(samples, every, every, tiles, 5, 1.0, K)
    wide = X.astype(np.longdouble)
    exact = np.exp(-gamma * ((wide[:, None] - wide) ** 2).sum(axis=2))
    assert np.abs(K[:, 5:305] + 1.0 - exact).max() <= error_of_values(samples) + 2.0**-53
    sums = np.ones(300)
    add_products(samples, every, weights, tiles, sums)
    np.testing.assert_allclose(sums, 1.0 + weights @ exact.astype(float), rtol=1e-12, atol=1e-11)


def test_tiles_use_the_widest_vectors():
    samples, rows = scaled_samples(np.ones((2, 3)), 1.0), np.arange(2)
    tiles = tiles_of(samples, rows, 3)
    compiled = numba.njit(error_model="numpy")(add_products.py_func)  # cached code cannot be inspected
    compiled(samples, rows, np.ones(2), tiles, np.zeros(2))
    (code,) = compiled.inspect_llvm().values()
    assert '"prefer-vector-width"="512"' in code


def test_dense_and_sparse_samples_are_the_same():
    X = np.random.default_rng(0).random((50, 7)) - 0.5
    X[X < 0.0], X[3], X[:, 5] = 0.0, 0.0, 0.0
    for dense, of_sparse in zip(
        scaled_samples(X, 2.0), scaled_samples(sparse.csr_matrix(X), 2.0), strict=True
    ):
        np.testing.assert_array_equal(dense, of_sparse)
        assert dense.dtype == of_sparse.dtype
    np.testing.assert_allclose(scaled_samples(X, 2.0).halves, 2.0 * (X**2).sum(axis=1))


def test_float32_values_are_precise_enough_for_steps():
    X, every = np.random.default_rng(0).random((400, 7)), np.arange(400)
    K = rbf_kernel(X, gamma=2.0)
    for shift, factor in ((0.0, 1.0), (1.0, 0.1)):
        short = in_float32(scaled_samples(factor * X, 2.0), shift)
        assert short.values.dtype == np.float32
        block = np.empty((400, 400), np.float32)
        fill_block(short, every, every, tiles_of(short, every, 7), 0, shift, block)
        exact = (K if factor == 1.0 else rbf_kernel(factor * X, gamma=2.0)) - shift
        np.testing.assert_allclose(block, exact, atol=1e-5 if shift == 0.0 else 2e-7)
    assert in_float32(scaled_samples(10.0 * X, 2.0), 0.0).values.dtype == np.float64
    assert in_float32(scaled_samples(X, 2.0), 1.0).values.dtype == np.float64
