"""Splits with given numbers of training rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orchestrator.resampling.nested import Samples, nested_splits, splits_of_all_rows
from orchestrator.resampling.sized import LeftOutRows, RowsOfEachClass, SizedShuffleSplit
from orchestrator.study.study import Protocol
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
    for n in (2.5, "x", 0, None):
        with raises(ValueError, f"n={n!r}", "an integer"):
            RowsOfEachClass(n)


def curve(n):
    """The protocol of a learning curve with n rows of each class."""
    kinds = (f"{kind.__module__}.{kind.__qualname__}" for kind in (RowsOfEachClass, LeftOutRows))
    outer, inner = ({"_target_": kind} for kind in kinds)
    return Protocol(outer=outer | {"n": n, "random_state": 0}, inner=inner)


def test_a_learning_curve_validates_on_the_rows_that_the_outer_split_leaves_out():
    test_fold = np.repeat([-1, 0], [150, 65])
    splits = nested_splits(Samples(None, Y, {"test_fold": test_fold}), curve(7))
    assert splits.n_inner == (1,)
    (train, test), (inner, validation) = splits.train_test(0, -1), splits.train_test(0, 0)
    assert_array_equal(inner, train)
    assert_array_equal(test, np.arange(150, 215))
    assert_array_equal(np.sort(np.concatenate([train, validation, test])), np.arange(215))


def test_left_out_rows_are_asked_for_where_there_are_none():
    samples = Samples(None, Y, {})
    with raises(ValueError, "LeftOutRows", "a dataset with a test_fold", "protocol.inner"):
        nested_splits(samples, curve(7))
    with raises(ValueError, "LeftOutRows", "protocol.inner"):
        splits_of_all_rows(samples, curve(7))


def test_several_draws_of_a_learning_curve():
    samples = Samples(None, Y, {"test_fold": np.repeat([-1, 0], [150, 65])})
    fixed = curve(7)
    with raises(ValueError, "same split", "protocol.outer.random_state=null"):
        nested_splits(samples, replace(fixed, seed=(0, 1)))
    drawn = replace(fixed, outer=dict(fixed.outer) | {"random_state": None}, seed=(0, 1))
    splits = nested_splits(samples, drawn)
    assert (splits.train_test(0, -1)[0] != splits.train_test(1, -1)[0]).any()
