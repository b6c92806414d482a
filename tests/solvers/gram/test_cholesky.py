import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from solvers.gram.cholesky import extend_from_block
from solvers.newton.feature_path import PivotedFactor


def block(n=200, gamma=2.0, seed=0):
    return rbf_kernel(np.random.default_rng(seed).random((n, 2)), gamma=gamma) + 1.0


def factor(H, target, max_rank):
    Z = np.empty((max_rank, H.shape[0]))
    residual = np.diag(H).astype(np.float64)
    pivots = np.empty(max_rank, dtype=np.int64)
    rank, left = extend_from_block(H, Z, 0, pivots, residual, target, max_rank)
    return Z[:rank], pivots[:rank], residual, left


@pytest.mark.parametrize("target", [1e-2, 1e-6, 1e-10])
def test_residual_is_known_exactly_and_bounds_every_entry(target):
    H = block()
    Z, _, residual, left = factor(H, target, 200)
    E = H - Z.T @ Z
    np.testing.assert_allclose(residual, np.diag(E), atol=1e-13)
    assert left == residual.max() <= target
    bound = np.sqrt(np.outer(residual, residual))
    assert (np.abs(E) <= bound + 1e-12).all()


def test_rank_grows_with_accuracy_and_factors_are_nested():
    H = block()
    coarse, coarse_pivots, _, _ = factor(H, 1e-2, 200)
    fine, fine_pivots, _, _ = factor(H, 1e-8, 200)
    assert len(coarse) < len(fine) < 80
    np.testing.assert_array_equal(fine[: len(coarse)], coarse)
    np.testing.assert_array_equal(fine_pivots[: len(coarse)], coarse_pivots)


def test_float32_noise_ends_the_extension():
    Z, _, _, left = factor(block().astype(np.float32), 0.0, 200)
    assert len(Z) < 60
    assert 0 < left < 1e-5


def test_duplicates_add_no_rank():
    H = block(60)
    doubled = np.tile(H, (2, 2))
    assert len(factor(doubled, 1e-8, 120)[0]) == len(factor(H, 1e-8, 60)[0])


def test_columns_on_demand_give_the_factor_of_the_block():
    H = block()
    on_demand = PivotedFactor(lambda p: H[p], np.diag(H), 200)
    on_demand.extend(1e-6, 200)
    Z, pivots, residual, _ = factor(H, 1e-6, 200)
    assert on_demand.pivots == list(pivots)
    np.testing.assert_array_equal(on_demand.Z, Z)
    np.testing.assert_array_equal(on_demand.residual, residual)
