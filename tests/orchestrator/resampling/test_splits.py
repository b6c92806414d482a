from errno import ENOSPC

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from orchestrator.resampling.nested import nested_folds
from orchestrator.resampling.splits import Splits
from tests.messages import raises


@st.composite
def foldable(draw):
    """Labels, in random order, with enough members of every class for the folds drawn with them."""
    outer, inner = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    # An outer training set keeps at least floor(count * (1 - 1/outer)) members of a class.
    enough = outer + 2 * inner
    counts = draw(st.lists(st.integers(enough, 3 * enough), min_size=2, max_size=4))
    y = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(draw(st.integers(0, 99))).shuffle(y)
    return y, outer, inner, draw(st.integers(0, 2**32))


@given(foldable())
@settings(max_examples=40, deadline=None)
def test_folds_are_stratified_partitions_at_both_levels(case):
    y, outer, inner, seed = case
    folds = nested_folds(y, outer, inner, seed)
    everything = np.arange(len(y))
    outer_tests = [folds.train_test(k)[1] for k in range(outer)]
    assert np.array_equal(np.sort(np.concatenate(outer_tests)), everything)
    _assert_stratified(y, outer_tests)
    for k in range(outer):
        train, test = folds.train_test(k)
        assert np.array_equal(np.union1d(train, test), everything)
        assert not np.intersect1d(train, test).size
        inner_tests = []
        for i in range(inner):
            inner_train, inner_test = folds.train_test(k, i)
            assert np.array_equal(np.union1d(inner_train, inner_test), train)
            assert not np.intersect1d(inner_train, inner_test).size
            inner_tests.append(inner_test)
        assert np.array_equal(np.sort(np.concatenate(inner_tests)), train)
        _assert_stratified(y, inner_tests)


def _assert_stratified(y, tests):
    counts = np.array([np.bincount(y[test], minlength=y.max() + 1) for test in tests])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_folds_are_those_of_a_plain_scikit_learn_loop():
    y = np.random.default_rng(3).choice(["ham", "spam", "tofu"], size=97, p=[0.5, 0.3, 0.2])
    folds = nested_folds(y, 5, 3, seed=11)
    seeds = np.random.SeedSequence(11).generate_state(6).tolist()
    splitter = StratifiedKFold(5, shuffle=True, random_state=seeds[0])
    for k, (train, test) in enumerate(splitter.split(y, y)):
        for ours, theirs in zip(folds.train_test(k), (train, test), strict=True):
            assert np.array_equal(ours, theirs)
        inner_splitter = StratifiedKFold(3, shuffle=True, random_state=seeds[k + 1])
        for i, (inner_train, inner_test) in enumerate(inner_splitter.split(train, y[train])):
            for ours, theirs in zip(
                folds.train_test(k, i), (train[inner_train], train[inner_test]), strict=True
            ):
                assert np.array_equal(ours, theirs)


def test_indices_are_sorted_int32_and_outer_test_rows_are_marked():
    folds = nested_folds(np.arange(40) % 2, 4, 2, 0)
    train, test = folds.train_test(2, 1)
    assert train.dtype == test.dtype == np.int32
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    assert folds.outer_fold.dtype == folds.inner_fold.dtype == np.int16
    assert np.array_equal(folds.inner_fold == -1, folds.outer_fold == np.arange(4)[:, None])
    assert (folds.n_outer, folds.n_inner) == (4, (2, 2, 2, 2))


def test_names_and_codes_of_classes_give_the_same_folds_and_seeds_others():
    codes = np.array([0, 1, 2] * 20)
    named = np.array(["c", "a", "b"])[codes]
    assert nested_folds(codes, 3, 3, 5).hash == nested_folds(named, 3, 3, 5).hash
    assert nested_folds(codes, 3, 3, 5).hash != nested_folds(codes, 3, 3, 6).hash
    assert nested_folds(codes, 3, 3, 5).hash != nested_folds(codes, 3, 2, 5).hash


def test_outer_folds_do_not_depend_on_the_number_of_inner_folds():
    codes = np.array([0, 1] * 50)
    assert np.array_equal(nested_folds(codes, 5, 2, 1).outer_fold, nested_folds(codes, 5, 7, 1).outer_fold)


def test_saved_folds_load_and_damaged_ones_are_refused(tmp_path):
    folds = nested_folds(np.arange(60) % 3, 3, 4, 0)
    path = folds.save(tmp_path)
    assert folds.save(tmp_path) == path
    assert [item.name for item in tmp_path.iterdir()] == [f"splits-{folds.hash}.npy"]
    loaded = Splits.load(tmp_path, folds.hash)
    assert loaded.hash == folds.hash
    assert np.array_equal(loaded.train_test(1, 2)[0], folds.train_test(1, 2)[0])
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:-2] + b"\1\1", b"", whole[:20]):
        path.write_bytes(damaged)
        with raises(ValueError, "missing", "damaged"):
            Splits.load(tmp_path, folds.hash)
        folds.save(tmp_path)
        assert path.read_bytes() == whole
    with raises(ValueError, "missing", "damaged"):
        Splits.load(tmp_path / "nowhere", folds.hash)


def test_a_full_disk_leaves_no_part_of_the_folds(tmp_path, monkeypatch):
    def save(file, array):
        file.write(b"a part")
        raise OSError(ENOSPC, "no space left")

    monkeypatch.setattr(np, "save", save)
    with pytest.raises(OSError, match="space"):
        nested_folds(np.arange(60) % 3, 3, 4, 0).save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("y", "outer", "inner", "message"),
    [
        ([0, 1] * 9, 1, 5, ("2 outer folds", "1", "protocol.outer")),
        ([0, 1] * 9, 5, 0, ("2 inner folds", "0")),
        (["a"] * 9 + ["b"] * 3, 5, 2, ("class 'b'", "3 members", "5 outer folds")),
        (
            ["a"] * 9 + ["b"] * 5,
            5,
            5,
            ("class 'b'", "4 members", "fold 0", "5"),
        ),
    ],
)
def test_impossible_folds_are_refused(y, outer, inner, message):
    with raises(ValueError, *message):
        nested_folds(np.array(y), outer, inner, 0)


@pytest.mark.parametrize(("outer", "inner"), [(3, 0), (-1, 0), (0, 2), (0, -2)])
def test_folds_that_do_not_exist_are_refused(outer, inner):
    with raises(ValueError, "fold", "0"):
        nested_folds(np.arange(12) % 2, 3, 2, 0).train_test(outer, inner)
