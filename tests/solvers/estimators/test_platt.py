"""Platt's sigmoid: the parameters of scikit-learn's calibration, by another algorithm."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.metrics import log_loss

from solvers.estimators.platt import fit_sigmoid
from tests.messages import raises


@pytest.mark.parametrize("seed", range(12))
def test_parameters_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 400))
    y = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
    y[:2] = True, False
    f = (np.where(y, 1.0, -1.0) + rng.normal(size=n) * rng.choice([0.3, 1.0, 3.0])) * 10.0 ** rng.integers(
        -2, 2
    )
    A, B = fit_sigmoid(f, y)
    peer = _SigmoidCalibration().fit(f, y)
    assert_allclose([A * np.abs(f).max(), B], [peer.a_ * np.abs(f).max(), peer.b_], rtol=1e-4, atol=1e-4)
    targets = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))

    def loss(A, B):
        return np.sum(targets * (A * f + B) + np.logaddexp(0.0, -(A * f + B)))

    assert loss(A, B) <= loss(peer.a_, peer.b_) * (1 + 1e-12)
    p = expit(-(A * f + B))
    assert_allclose([np.sum(p - targets), np.sum((p - targets) * f) / np.abs(f).max()], 0.0, atol=1e-8)
    if seed == 0:
        assert log_loss(y, p) <= log_loss(y, peer.predict(f)) + 1e-6


def test_two_samples_by_hand():
    """f = ±1 with targets 2/3 and 1/3: p(1) = 2/3, so A = −ln 2 and B = 0."""
    assert_allclose(
        fit_sigmoid(np.array([1.0, -1.0]), np.array([True, False])), [-np.log(2.0), 0.0], atol=1e-9
    )


def test_constant_decisions_give_the_mean_of_the_targets():
    A, B = fit_sigmoid(np.zeros(4), np.array([True, False, False, False]))
    assert_allclose(expit(-B), (2 / 3 + 3 * 0.2) / 4)
    assert A == 0.0


def test_a_class_is_missing():
    with raises(ValueError, "2", "0", "both"):
        fit_sigmoid(np.zeros(2), np.array([True, True]))
