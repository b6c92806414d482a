"""Histograms of oriented gradients, by hand and as a transformer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import OrientedGradients
from tests.messages import raises


@parametrize_with_checks([OrientedGradients(height=1, cell=1, block=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_slope_has_one_orientation():
    """Lines 0, 1, 2, 3 rise by 1 a pixel downwards: all gradients have angle π/2, which is bin 2 of 4."""
    X = np.repeat(np.arange(4.0), 4)[None]
    Z = OrientedGradients(cell=2, block=1, orientations=4).fit_transform(X).reshape(2, 2, 4)
    assert_allclose(Z[..., [0, 1, 3]], 0.0, atol=1e-12)
    assert_allclose(Z[..., 2], 1.0, atol=1e-4)


def test_the_angle_between_two_orientations_is_shared():
    """Right and down rise alike: angle π/4 is half way between bins 0 and 1 of two."""
    i, j = np.indices((4, 4))
    Z = OrientedGradients(cell=4, block=1, orientations=2).fit_transform((i + j).reshape(1, 16) * 1.0)
    assert_allclose(Z[0, 0], Z[0, 1], rtol=1e-9)


@pytest.mark.parametrize("signed", [False, True])
def test_light_on_dark_and_dark_on_light(signed):
    X = load_digits().data[:50]
    model = OrientedGradients(cell=2, signed=signed).fit(X)
    same = np.allclose(model.transform(X), model.transform(16.0 - X))
    assert same is not signed
    assert_allclose(model.transform(X + 5.0), model.transform(X), atol=1e-12)
    blocks = model.transform(X).reshape(50, 9, 36)
    assert np.linalg.norm(blocks, axis=2).max() <= 1.0


def test_images_that_do_not_fit_are_refused():
    with raises(ValueError, "height=None", "12", "square"):
        OrientedGradients().fit(np.zeros((2, 12)))
    with raises(ValueError, "cell=3", "8"):
        OrientedGradients(cell=3).fit(np.zeros((2, 64)))
