"""Generated datasets: as many of each class and of wrong labels as asked for, and the same for one seed."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from orchestrator.datasets import DatasetError, blobs, checkers, two_spirals, waveform
from tests.messages import raises


@pytest.mark.parametrize("generate", [two_spirals, blobs])
def test_a_seed_decides_everything(generate):
    X, y = generate(n=301, seed=4, label_noise=0.1)
    again, other = generate(n=301, seed=4, label_noise=0.1), generate(n=301, seed=5)
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    assert not np.array_equal(X, other[0])
    assert (X.shape, X.dtype, y.dtype) == ((301, 2), np.float64, np.int64)
    assert np.bincount(other[1]).tolist() == [151, 150]


@pytest.mark.parametrize(("generate", "classes"), [(two_spirals, {}), (blobs, {"classes": 4, "features": 5})])
def test_label_noise_changes_as_many_labels_as_it_says(generate, classes):
    plain, noisy = generate(n=400, **classes)[1], generate(n=400, label_noise=0.2, **classes)[1]
    assert np.count_nonzero(plain != noisy) == 80
    assert set(noisy) == set(plain)
    with raises(DatasetError, "label_noise", "0", "1", "2"):
        generate(label_noise=2)


def test_spirals_are_apart_without_noise_and_wind_around_one_another():
    X, y = two_spirals(n=2000, noise=0.0)
    train, test = np.arange(2000) % 4 < 2, np.arange(2000) % 4 >= 2
    assert KNeighborsClassifier(1).fit(X[train], y[train]).score(X[test], y[test]) == 1.0
    sides = X[:, 0] > 0
    assert 0.4 < np.mean(sides == y) < 0.6  # no line tells them apart


def test_the_overlap_is_the_error_of_the_best_classifier():
    X, y = blobs(n=200_000, features=3, classes=3, overlap=0.1)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        rows = (y == one) | (y == other)
        says_other = X[rows, other] > X[rows, one]
        assert np.mean(says_other != (y[rows] == other)) == pytest.approx(0.1, abs=0.003)
    with raises(DatasetError, "features (2)", "3", "`features`", "`classes`"):
        blobs(classes=3)
    with raises(DatasetError, "overlap", "0.5", "0.9"):
        blobs(overlap=0.9)


def test_a_share_of_the_fields_of_checkers_gets_the_other_colour():
    (X, plain), (same, noisy) = checkers(500, seed=3), checkers(500, seed=3, label_noise=0.1)
    assert np.array_equal(X, same)
    assert (plain != noisy).sum() == 50


def test_waveforms_are_mixtures_of_two_triangles():
    X, y = waveform(30_000, seed=1)
    triangle = np.maximum(6 - np.abs(np.arange(1, 22)[:, None] - np.array([11, 15, 7])), 0).T
    for label, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        rows = X[y == label]
        assert np.abs(rows.mean(axis=0) - (triangle[a] + triangle[b]) / 2).max() < 0.06
        assert np.abs(rows.var(axis=0) - 1 - (triangle[a] - triangle[b]) ** 2 / 12).max() < 0.15
    assert np.array_equal(waveform(50, seed=1)[0], waveform(50, seed=1)[0])
