"""Kernel values of tiles in float32, for the blocks on which steps are taken."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from solvers.kernels.tiles import fill_block, in_float32, scaled_samples, tiles_of


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
