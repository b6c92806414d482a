"""Blocks of neighbours: partitions by rank, stable, the same for every γ."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from solvers.kernels.functions import GRAM, IMQ, LINEAR, POLY, RBF, Kernel, for_samples, kernel_block
from solvers.reduction.copies import first_copies
from solvers.reduction.segregation import Distances, fls1, fls2, sls


def is_partition(parts, rows, largest):
    assert_array_equal(np.sort(np.concatenate(parts)), np.sort(rows))
    assert all(0 < part.size <= largest for part in parts)


@pytest.mark.parametrize("kind", [RBF, IMQ, LINEAR, POLY])
def test_parts_and_blocks_are_partitions(kind):
    X = np.random.default_rng(kind).integers(0, 3, (300, 4)).astype(float)  # many ties and copies
    kernel, X = for_samples(Kernel(kind, 0.5, 1.0, 2.0), X)
    distances, rows = Distances(X, kernel), np.arange(3, 300)
    is_partition(fls1(rows, 70), rows, 70)
    is_partition(fls2(rows, 70, distances), rows, 70)
    is_partition(sls(rows, 33, distances), rows, 33)
    assert [block.size for block in sls(rows, 33, distances)] == [33] * 9


def test_equal_samples_are_split_in_their_order():
    X = np.ones((64, 3))
    distances, rows = Distances(X, Kernel(RBF, 1.0)), np.arange(64)
    assert_array_equal(np.concatenate(sls(rows, 10, distances)), rows)
    assert [part.size for part in fls2(rows, 16, distances)] == [16] * 4


def test_a_block_holds_the_nearest_of_its_pivot():
    X = np.random.default_rng(0).normal(size=(200, 3))
    rows, distances = np.arange(200), Distances(X, Kernel(RBF, 1.0))
    first = sls(rows, 40, distances)[0]
    pivot = np.square(X).sum(axis=1).argmax()
    square = np.square(X - X[pivot]).sum(axis=1)
    assert set(first) == set(np.argsort(square)[:40])
    near, far = fls2(rows, 100, distances)
    from_first = np.square(X - X[0]).sum(axis=1)
    assert from_first[near].max() <= from_first[far].min()


def test_one_partition_serves_every_gamma():
    """In the kernel, distances of far samples round to the same number; ‖x − z‖² keeps their order."""
    X = np.random.default_rng(1).normal(size=(400, 20)) * 3.0
    rows = np.arange(400)
    blocks = [sls(rows, 50, Distances(X, Kernel(RBF, gamma))) for gamma in (1e-3, 1.0, 100.0)]
    for other in blocks[1:]:
        for a, b in zip(blocks[0], other, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [LINEAR, POLY])
def test_distances_are_those_of_the_kernel(kind):
    X = np.random.default_rng(2).normal(size=(30, 7))
    X[X < 0.3] = 0.0
    kernel = Kernel(kind, 0.5, 1.0, 3.0)
    K = kernel_block(X, X, kernel)
    expected = np.diagonal(K) + K[4, 4] - 2.0 * K[4]
    rows = np.arange(30)
    for samples, of in ((X, kernel), (sparse.csr_matrix(X), kernel), (K, Kernel(GRAM))):
        assert_allclose(Distances(samples, of).to(rows, 4), expected, atol=1e-10 * K.max())


def test_copies_are_found_dense_and_sparse():
    rng = np.random.default_rng(3)
    X = rng.integers(-1, 2, (200, 3)).astype(float)
    X[X == 0.0] = np.where(rng.random(np.count_nonzero(X == 0.0)) < 0.5, 0.0, -0.0)
    rows = rng.permutation(200)[:150]
    expected = [next(j for j in range(k + 1) if (X[rows[j]] == X[rows[k]]).all()) for k in range(150)]
    assert_array_equal(first_copies(X, rows), expected)
    assert_array_equal(first_copies(sparse.csr_matrix(X), rows), expected)
    stored_zeros = sparse.csr_matrix(
        (X.ravel(), np.tile(np.arange(3), 200), np.arange(0, 601, 3)), shape=X.shape
    )
    assert_array_equal(first_copies(stored_zeros, rows), expected)
