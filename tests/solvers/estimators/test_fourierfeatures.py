"""Random Fourier features: unit rows, unbiased estimates of the kernel, and what is refused."""

import doctest

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import FourierFeatures
from tests.messages import raises

SET_N_COMPONENTS_TO_1 = {
    f"check_{name}": "it sets n_components to 1, which pairs=True refuses"
    for name in (
        *("dont_overwrite_parameters", "methods_sample_order_invariance", "methods_subset_invariance"),
        *("fit2d_1sample", "fit2d_1feature", "fit2d_predict1d"),
    )
}


@parametrize_with_checks(
    [FourierFeatures(), FourierFeatures(pairs=False)],
    expected_failed_checks=lambda features: SET_N_COMPONENTS_TO_1 if features.pairs else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("gamma", [2.0**-4, 4.0])
@pytest.mark.parametrize(("n_components", "pairs"), [(2, True), (100, True), (333, False), (1000, True)])
def test_rows_have_norm_1(gamma, n_components, pairs):
    X = np.random.default_rng(0).standard_normal((200, 7))
    X[0] = 0.0
    features = FourierFeatures(n_components, gamma=gamma, random_state=0, pairs=pairs)
    norms = np.linalg.norm(features.fit_transform(X), axis=1)
    assert np.abs(norms - 1.0).max() <= 1e-15


def test_products_estimate_the_kernel():
    """The mean over 1,000 seeds is within 4 standard errors of k at 200 pairs."""
    rng = np.random.default_rng(0)
    A, B, gamma, n_seeds, m = rng.standard_normal((200, 5)), rng.standard_normal((200, 5)), 0.2, 1000, 10
    products = np.empty((n_seeds, 200))
    for seed in range(n_seeds):
        features = FourierFeatures(2 * m, gamma=gamma, random_state=seed).fit(A)
        products[seed] = (features.transform(A) * features.transform(B)).sum(axis=1)
    exact = np.exp(-gamma * ((A - B) ** 2).sum(axis=1))
    errors = products.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    assert (np.abs(products.mean(axis=0) - exact) <= 4.0 * errors).all()
    # The variance of a mean of m cosines is (1 + k⁴ − 2k²)/(2m), by cos² = (1 + cos of the double)/2.
    expected = (1.0 - exact**2) ** 2 / (2.0 * m)
    np.testing.assert_allclose(products.var(axis=0), expected, rtol=0.25)


def test_pairs_decides_what_n_components_counts():
    X = np.random.default_rng(0).standard_normal((5, 3))
    by_features = FourierFeatures(8, random_state=1).fit_transform(X)
    by_frequencies = FourierFeatures(4, random_state=1, pairs=False).fit_transform(X)
    np.testing.assert_array_equal(by_features, by_frequencies)
    assert by_features.shape == (5, 8)


def test_many_features_approach_the_kernel_matrix():
    X = np.random.default_rng(0).standard_normal((30, 4))
    Z = FourierFeatures(20_000, gamma=0.3, random_state=0).fit_transform(X)
    assert np.abs(Z @ Z.T - rbf_kernel(X, gamma=0.3)).max() < 5.0 / np.sqrt(20_000)


def test_sparse_samples_have_the_features_of_dense_ones():
    X = sparse.random(40, 30, density=0.1, format="csr", random_state=0)
    features = FourierFeatures(10, random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(X), features.transform(X.toarray()), atol=1e-15)
    empty = features.transform(sparse.csr_matrix((1, 30)))
    assert (empty[:, 5:] == 0.0).all()


@pytest.mark.parametrize(
    ("params", "facts"),
    [
        ({"n_components": 7}, ("n_components=7", "even", "pairs=True", "n_components=8", "pairs=False")),
        ({"n_components": 0}, ("'n_components'", "0")),
        ({"gamma": 0.0}, ("'gamma'", "0.0")),
    ],
)
def test_parameters_are_checked(params, facts):
    with raises(ValueError, *facts):
        FourierFeatures(**params).fit(np.ones((3, 2)))


def test_products_that_overflow_are_refused():
    with raises(ValueError, "X", "gamma=1e+300", "Scale"):
        FourierFeatures(2, gamma=1e300, random_state=0).fit(np.ones((3, 2))).transform(np.full((3, 2), 1e300))


def test_the_example_runs():
    (test,) = doctest.DocTestFinder(recurse=False).find(FourierFeatures, "FourierFeatures", globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
