"""Splits with given numbers of training rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orchestrator.resampling.sized import RowsOfEachClass, SizedShuffleSplit
from tests.messages import raises

Y = np.arange(215) % 3


def test_sizes_follow_from_the_number_of_rows():
    splitter = SizedShuffleSplit([[215, 140, 75], [270, 170, 100]], n_splits=3, random_state=0)
    splits = list(splitter.split(np.zeros((215, 1)), Y))
    assert len(splits) == splitter.get_n_splits() == 3
    for train, test in splits:
        assert (train.size, test.size) == (140, 75)
        assert not np.intersect1d(train, test).size
    (train, test), *_ = SizedShuffleSplit(random_state=0).split(np.zeros((100, 1)), Y[:100])
    assert (train.size, test.size) == (60, 40)


def test_the_first_splits_do_not_depend_on_their_number():
    few, many = (SizedShuffleSplit(n_splits=n, random_state=4).split(None, Y) for n in (2, 9))
    for one, other in zip(few, many, strict=False):
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


def test_sizes_that_do_not_fit_are_refused():
    for sizes in ([[215, 140, 80]], [[215, 140]], [[10, 0, 5]]):
        with raises(ValueError, "sizes"):
            SizedShuffleSplit(sizes)
    with raises(ValueError, "train_share"):
        SizedShuffleSplit(train_share=1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_each_class_are_the_same_with_and_without_the_test_part(seed):
    test_fold = np.repeat([-1, 0], [150, 65])
    ((train, test),) = RowsOfEachClass(7, test_fold, seed).split(None, Y)
    assert_array_equal(np.bincount(Y[train]), [7, 7, 7])
    assert_array_equal(test, np.arange(150, 215))
    for fold in (None, test_fold[:150]):
        ((inner, rest),) = RowsOfEachClass(7, fold, seed).split(None, Y[:150])
        assert_array_equal(inner, train)
        assert_array_equal(np.sort(np.append(inner, rest)), np.arange(150))
    with raises(ValueError, "60", "50"):
        list(RowsOfEachClass(60, test_fold).split(None, Y))
