"""Splits by any splitter: those of scikit-learn, checked, with groups and orders carried along."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from orchestrator.resampling.nested import Samples, nested_folds, nested_splits
from orchestrator.resampling.splits import IndexSplits, Splits
from orchestrator.study.study import Protocol
from tests.messages import raises, says

Y = np.array(["ham", "spam", "ham"] * 20)
X = np.arange(180.0).reshape(60, 3)
GROUPS = np.repeat(np.arange(15), 4)


def scheme(name, **params):
    return {"_target_": name if "." in name else f"sklearn.model_selection.{name}", **params}


def splits_of(outer=3, inner=2, seed=0, y=Y, **metadata):
    samples = Samples(X[: len(y)], y, {name: np.asarray(values) for name, values in metadata.items()})
    return nested_splits(samples, Protocol(outer=outer, inner=inner, seed=seed))


def same(found, expected):
    return all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


def test_numbers_give_the_table_of_folds_and_its_hash():
    splits = splits_of(3, 2, seed=7)
    assert splits.hash == nested_folds(Y, 3, 2, 7).hash
    # As before there were splitters, so that the trials stored since keep their keys.
    assert splits.hash == "dbef673abb81de86de4d595df2a248ffe7b1b7fe1ae51a0621f1e22643920bd8"


@pytest.mark.parametrize(
    ("outer", "made"),
    [
        (
            scheme("RepeatedStratifiedKFold", n_splits=5, n_repeats=2),
            lambda seed: RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=seed),
        ),
        (
            scheme("ShuffleSplit", n_splits=3, test_size=0.3),
            lambda seed: ShuffleSplit(n_splits=3, test_size=0.3, random_state=seed),
        ),
        (
            scheme("StratifiedKFold", n_splits=4),  # which refuses a random state without shuffling
            lambda seed: StratifiedKFold(4),
        ),
        (
            scheme("ShuffleSplit", n_splits=2, random_state=5),
            lambda seed: ShuffleSplit(n_splits=2, random_state=5),
        ),
    ],
)
def test_splits_are_those_of_a_plain_scikit_learn_loop_in_its_order(outer, made):
    splits = splits_of(outer, 3, seed=11)
    seeds = np.random.SeedSequence(11).generate_state(splits.n_outer + 1).tolist()
    expected = list(made(seeds[0]).split(X, Y))
    assert splits.n_outer == len(expected)
    for k, (train, test) in enumerate(expected):
        assert same(splits.train_test(k), (train, test))
        inner = StratifiedKFold(3, shuffle=True, random_state=seeds[k + 1])
        for i, (inner_train, inner_test) in enumerate(inner.split(X[train], Y[train])):
            assert same(splits.train_test(k, i), (train[inner_train], train[inner_test]))


def test_several_seeds_make_the_splits_of_each_one_after_another():
    both, first, second = splits_of(seed=(3, 4)), splits_of(seed=3), splits_of(seed=4)
    assert both.n_inner == (2,) * 6
    for outer, inner in [*both.of_level(True), *both.of_level(False)]:
        alone = first if outer < 3 else second
        assert same(both.train_test(outer, inner), alone.train_test(outer % 3, inner))


@st.composite
def grouped(draw):
    """Groups of any sizes, each with labels of its own, as a table of people with many rows has."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=12, max_size=30))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    groups = rng.permutation(np.repeat(rng.permutation(1000)[: len(sizes)], sizes))
    y = rng.integers(0, 2, len(groups))
    names = ["GroupKFold", "StratifiedGroupKFold", "GroupShuffleSplit"]
    outer, inner = (scheme(draw(st.sampled_from(names)), n_splits=draw(st.integers(2, 3))) for _ in range(2))
    return y, groups, outer, inner, draw(st.integers(0, 2**32))


@given(grouped())
def test_a_group_is_never_in_both_parts_of_a_split_and_test_rows_are_never_inside(case):
    y, groups, outer, inner, seed = case
    samples = Samples(np.zeros((len(y), 1)), y, {"groups": groups})
    try:
        splits = nested_splits(samples, Protocol(outer=outer, inner=inner, seed=seed))
    except ValueError as error:
        if says(str(error), "no training row"):
            return
        raise
    for k, i in [*splits.of_level(True), *splits.of_level(False)]:
        train, test = splits.train_test(k, i)
        assert not set(groups[train]) & set(groups[test])
        if i >= 0:
            assert not set(groups[splits.train_test(k)[1]]) & set(groups[np.append(train, test)])


def test_a_number_of_folds_keeps_groups_together():
    splits = splits_of(3, 2, seed=5, groups=GROUPS)
    seeds = np.random.SeedSequence(5).generate_state(4).tolist()
    outer = StratifiedGroupKFold(3, shuffle=True, random_state=seeds[0]).split(X, Y, GROUPS)
    for k, (train, test) in enumerate(outer):
        assert same(splits.train_test(k), (train, test))
        inner = StratifiedGroupKFold(2, shuffle=True, random_state=seeds[k + 1])
        for number, (a, b) in enumerate(inner.split(X[train], Y[train], GROUPS[train])):
            assert same(splits.train_test(k, number), (train[a], train[b]))


def test_predefined_folds_are_those_of_the_dataset_at_both_levels():
    fold = np.resize([0, 1, 2, -1, 0, 2, 1], 60)
    predefined = scheme("PredefinedSplit")
    splits = splits_of(predefined, predefined, test_fold=fold)
    assert splits.n_inner == (2, 2, 2)
    for k, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        assert same(splits.train_test(k), (np.flatnonzero(fold != k), np.flatnonzero(fold == k)))
        for i, each in enumerate(others):
            train, test = splits.train_test(k, i)
            assert same(
                (train, test), (np.flatnonzero((fold != k) & (fold != each)), np.flatnonzero(fold == each))
            )
    published = splits_of(predefined, 2, test_fold=np.where(fold == 0, 0, -1))
    assert published.n_inner == (2,)


def test_later_rows_are_never_trained_on_in_time_order():
    in_time = scheme("TimeSeriesSplit", n_splits=3)
    splits = splits_of(in_time, in_time)
    for k, i in [*splits.of_level(True), *splits.of_level(False)]:
        train, test = splits.train_test(k, i)
        assert train.max() < test.min()
    sizes = [len(splits.train_test(k)[0]) for k in range(3)]
    assert all(a < b for a, b in pairwise(sizes))


def test_saved_splits_load_and_damaged_ones_are_refused(tmp_path):
    splits = splits_of(scheme("ShuffleSplit", n_splits=3), scheme("ShuffleSplit", n_splits=2))
    path = splits.save(tmp_path)
    loaded = Splits.load(tmp_path, splits.hash)
    assert isinstance(loaded, IndexSplits)
    assert loaded.n_inner == splits.n_inner == (2, 2, 2)
    for k, i in [*splits.of_level(True), *splits.of_level(False)]:
        assert same(loaded.train_test(k, i), splits.train_test(k, i))
        assert all(rows.dtype == np.int32 for rows in loaded.train_test(k, i))
    whole = path.read_bytes()
    for damaged in (whole[:-4], whole[:-4] + b"\1\0\0\0", whole[:200]):
        path.write_bytes(damaged)
        with raises(ValueError, "missing", "damaged"):
            Splits.load(tmp_path, splits.hash)
    splits.save(tmp_path)
    assert path.read_bytes() == whole


class Odd:
    """A splitter whose splits are given."""

    def __init__(self, train=(), test=(), number=1):
        self.train, self.test, self.number = train, test, number

    def split(self, X, y=None, groups=None):
        yield from islice(iter(lambda: (list(self.train), list(self.test)), None), self.number)


def odd(**params):
    return scheme(f"{__name__}.Odd", **params)


class Unseeded:
    """A splitter that draws from no random state that it is given."""

    def split(self, X, y=None, groups=None):
        rows = np.random.default_rng().permutation(len(y))
        yield rows[:40], rows[40:]


def scheme_of_unseeded():
    return scheme(f"{__name__}.Unseeded")


EVEN, ODD = list(range(0, 60, 2)), list(range(1, 60, 2))


@pytest.mark.parametrize(
    ("protocol", "metadata", "message"),
    [
        ({"outer": odd(test=[1])}, {}, ("Odd (protocol.outer)", "outer split 0", "no training rows")),
        ({"outer": odd(train=EVEN)}, {}, ("outer split 0", "no test rows")),
        ({"outer": odd(train=EVEN, test=[2])}, {}, ("row 2",)),
        ({"outer": odd(train=EVEN, test=[60])}, {}, ("outside", "60 rows")),
        ({"outer": odd(train=EVEN, test=[-1])}, {}, ("outside", "60 rows")),
        ({"outer": odd(train=EVEN, test=[1, 1])}, {}, ("twice", "rows")),
        ({"outer": odd(train=EVEN, test=[0.5])}, {}, ("rows", "float64")),
        ({"outer": odd(train=[0, 2, 3, 5], test=[1])}, {}, ("no training row", "class 'spam'")),
        ({"outer": odd(train=EVEN, test=ODD, number=0)}, {}, ("no split", "1 to 1000")),
        ({"outer": odd(train=EVEN, test=ODD, number=10**9)}, {}, ("more than 1000 splits",)),
        ({"outer": odd(number="x")}, {}, ("Odd (protocol.outer)", "Stop argument")),
        ({"inner": odd(train=[0, 1], test=[2])}, {}, ("inner split 0", "outer split 0")),
        ({"outer": scheme("GroupKFold")}, {}, ("no groups", "column")),
        ({"outer": scheme("StratifiedGroupKFold")}, {}, ("no groups", "column")),
        ({"outer": scheme("PredefinedSplit")}, {}, ("no test_fold", "column")),
        ({"outer": scheme("GroupKFold", n_splits=16)}, {"groups": GROUPS}, ("n_splits=16",)),
        (
            {"outer": scheme("KFold", n_splits=7)},
            {"groups": GROUPS},
            ("outer split 0", "group 2", "protocol.outer"),
        ),
        (
            {"outer": scheme("GroupKFold"), "inner": scheme("KFold")},
            {"groups": GROUPS},
            ("inner split 0", "outer split 0", "group"),
        ),
        ({"outer": odd(train=EVEN, test=ODD), "seed": (0, 1)}, {}, ("same split",)),
        ({"outer": scheme("KFold"), "seed": (0, 1)}, {}, ("same split",)),
        ({"outer": scheme_of_unseeded()}, {}, ("different splits",)),
        ({"outer": 21, "inner": odd()}, {}, ("class 'spam'", "20 members", "21")),
    ],
)
def test_splits_that_cannot_be_evaluated_are_refused(protocol, metadata, message):
    with raises(ValueError, *message):
        splits_of(**protocol, **metadata)


class UnseededInTheMiddle:
    """Exchanges two rows that NumPy's repr of long arrays leaves out."""

    calls = 0

    def __init__(self, random_state=None):
        pass

    def split(self, X, y, groups=None):
        type(self).calls += 1
        pairs = np.arange(len(y)).reshape(-1, 2)
        if self.calls % 2:
            pairs[len(pairs) // 2] = pairs[len(pairs) // 2, ::-1]
        yield pairs[:, 0], pairs[:, 1]


def test_different_splits_of_many_rows_are_refused():
    y = np.repeat(["ham", "spam"], 2000)
    samples = Samples(np.zeros((len(y), 1)), y, {})
    with raises(ValueError, "different splits"):
        nested_splits(samples, Protocol(outer=scheme(f"{__name__}.UnseededInTheMiddle"), inner=2))
