import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.study.study import Arm, Candidate, Protocol
from orchestrator.study.trials import REFIT, Identity
from orchestrator.study.values import canonical_json, digest
from tests.messages import raises

ARM = Arm(
    name="svc",
    target="sklearn.svm.SVC",
    params={"kernel": "rbf", "tol": 0.001},
    space={"C": (1, 4), "gamma": (0.5, 1)},
    identity="sklearn 1.7",
)
POINT = Candidate.of({"C": 4, "gamma": 0.5})


def key(dataset="iris", fingerprint="f", splits="s", arm=ARM, protocol=None, outer=0, inner=0, point=POINT):
    identity = Identity(dataset, fingerprint, splits, arm, protocol or Protocol())
    return identity.paths(outer, inner, [point])[0].keys[0]


def seed(arm=ARM, protocol=None, outer=0, inner=0, point=POINT, fingerprint="f", splits="s"):
    identity = Identity("iris", fingerprint, splits, arm, protocol or Protocol())
    return identity.paths(outer, inner, [point])[0].seed


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "the same irises by another name"},
        {"arm": replace(ARM, name="renamed")},
        {"arm": replace(ARM, solver="renamed", sweep={"tol": 0.001})},
        {"arm": replace(ARM, space={"C": (1, 4, 16), "gamma": (0.5,)})},
        {"arm": replace(ARM, params={"tol": 0.001, "kernel": "rbf"})},
        {"point": Candidate.of({"gamma": 0.5, "C": 4})},
        {"point": Candidate.of({"C": np.int32(4), "gamma": np.float64(0.5)})},
        {"protocol": Protocol(max_seconds=None)},
        {"protocol": Protocol(outer=6, inner=6)},  # the hash of the splits says which rows they train on
        {"protocol": Protocol(also=("f1_macro",))},  # inner trials do not record it
    ],
)
def test_what_cannot_change_a_number_is_not_in_the_key(change):
    assert key(**change) == key()


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "g"},
        {"splits": "t"},
        {"arm": replace(ARM, target="solvers.MNSVC")},
        {"arm": replace(ARM, params={"kernel": "rbf", "tol": 0.01})},
        {"arm": replace(ARM, params={"kernel": "rbf"})},
        {"arm": replace(ARM, identity="sklearn 1.8")},
        {"outer": 1},
        {"inner": 1},
        {"inner": REFIT},
        {"point": Candidate.of({"C": 1, "gamma": 0.5})},
        {"point": Candidate.of({"C": 4.0, "gamma": 0.5})},  # max_features=1 is one feature, 1.0 all of them
        {"point": Candidate.of({"C": 4, "gamma": 0.5, "degree": 3})},
        {"point": Candidate.of({"C": 4, "gamma": 0.5, "degree": None})},
        {"protocol": Protocol(seed=1)},
        {"protocol": Protocol(scaling="dataset")},
        {"protocol": Protocol(metric="f1_macro")},
        {"protocol": Protocol(profile="timing")},
        {"protocol": Protocol(max_seconds=1)},
    ],
)
def test_what_can_change_a_number_changes_the_key(change):
    assert key(**change) != key()


def test_further_metrics_are_in_the_keys_of_refits_alone():
    more = Protocol(also=("f1_macro",))
    assert key(protocol=more, inner=REFIT) != key(inner=REFIT)
    assert key(protocol=more, inner=0) == key(inner=0)


def test_keys_of_one_pair_and_of_one_split_are_neighbours_in_sorted_order():
    cells = [
        (number, outer, inner)
        for number, fingerprint in enumerate("abc")
        for outer in (0, 3, 300)
        for inner in (REFIT, 0, 1)
        for _ in range(5)
    ]
    found = [
        (key(fingerprint="abc"[number], outer=outer, inner=inner, point=Candidate.of({"C": C})), cell)
        for C, cell in enumerate(cells)
        for number, outer, inner in [cell]
    ]
    in_order = [cell for _, cell in sorted(found)]
    assert len(list(itertools.groupby(in_order))) == len(set(cells))
    assert len(list(itertools.groupby(number for number, *_ in in_order))) == 3
    assert {len(text) for text, _ in found} == {32}


def test_neighbouring_axes_do_not_run_into_each_other():
    assert key(outer=1, inner=11) != key(outer=11, inner=1)
    assert key(arm=replace(ARM, params={"a": "b"})) != key(arm=replace(ARM, params={"b": "a"}))


@given(
    st.dictionaries(st.text(max_size=3), st.integers() | st.floats(allow_nan=False) | st.booleans()),
    st.randoms(),
)
def test_the_order_of_a_mapping_carries_no_meaning(params, random):
    items = list(params.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(params)


@given(st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_number_has_one_spelling_whatever_type_holds_it(number):
    assert canonical_json(number) == canonical_json(np.int64(number))
    assert canonical_json(float(number)) == canonical_json(np.float64(number))


def test_a_limit_in_seconds_is_a_number_whatever_type_holds_it():
    assert key(protocol=Protocol(max_seconds=60)) == key(protocol=Protocol(max_seconds=60.0))


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_different_numbers_differ(a, b):
    assert (canonical_json(a) == canonical_json(b)) == (a == b)


def test_truth_is_not_a_number_and_text_neither():
    assert len({canonical_json(value) for value in (1, 1.0, True, "1", None, [1])}) == 6


def test_what_has_no_canonical_form_is_refused():
    with raises(TypeError, "object", "trial key"):
        digest({"kernel": object()})


# -- seeds ---------------------------------------------------------------------------------------


def test_solvers_and_values_of_C_share_their_random_numbers():
    assert seed(arm=replace(ARM, name="other", target="solvers.MNSVC", params={})) == seed()
    assert seed(point=Candidate.of({"C": 1, "gamma": 0.5})) == seed()
    assert seed(point=Candidate.of({"C": 1, "gamma": 2})) == seed(point=Candidate.of({"C": 1, "gamma": 2.0}))


@pytest.mark.parametrize(
    "change",
    [
        {"outer": 1},
        {"inner": 1},
        {"point": Candidate.of({"C": 4, "gamma": 1})},
        {"protocol": Protocol(seed=1)},
        {"fingerprint": "g"},
        {"splits": "t"},
    ],
)
def test_every_other_axis_has_random_numbers_of_its_own(change):
    assert seed(**change) != seed()


@given(st.integers(0, 2**63), st.integers(0, 9), st.integers(-1, 9))
def test_a_seed_is_what_scikit_learn_takes_as_random_state(root, outer, inner):
    assert 0 <= seed(protocol=Protocol(seed=root), outer=outer, inner=inner) < 2**32


# -- paths ---------------------------------------------------------------------------------------


def grid(*Cs, gammas=(0.5, 1)):
    return [Candidate.of({"C": C, "gamma": gamma}) for C in Cs for gamma in gammas]


def test_candidates_that_differ_only_in_C_form_a_path_in_ascending_order():
    paths = Identity("iris", "f", "s", ARM, Protocol()).paths(0, 1, grid(16, 1, 4))
    assert [[dict(c.params)["C"] for c in path.candidates] for path in paths] == [[1, 4, 16]] * 2
    assert [path.candidates[0].as_dict()["gamma"] for path in paths] == [0.5, 1]
    assert [(path.outer, path.inner, len(path.keys)) for path in paths] == [(0, 1, 3)] * 2


def test_a_cold_training_has_the_same_key_in_any_company():
    identity = Identity("iris", "f", "s", ARM, Protocol())
    alone = {c: path.keys[0] for c in grid(1, 4) for path in identity.paths(0, 0, [c])}
    for path in identity.paths(0, 0, grid(1, 4, 16)):
        for candidate, found in zip(path.candidates, path.keys, strict=True):
            assert alone.get(candidate, found) == found


def test_a_warm_training_is_keyed_by_those_it_may_start_from():
    identity = Identity("iris", "f", "s", replace(ARM, warm_starts=True), Protocol())
    (short,) = identity.paths(0, 0, grid(1, 4, gammas=(1,)))
    (long,) = identity.paths(0, 0, grid(0.25, 1, 4, gammas=(1,)))
    assert not set(short.keys) & set(long.keys)


def test_a_training_alone_on_its_path_is_keyed_by_how_paths_are_trained():
    assert key(arm=replace(ARM, warm_starts=True)) != key()


def test_rounded_kernel_values_have_keys_of_their_own():
    exact, rounded = (Identity("iris", "f", "s", ARM, Protocol(), shared) for shared in (False, True))
    assert exact.paths(0, 0, [POINT])[0].keys != rounded.paths(0, 0, [POINT])[0].keys


def test_values_of_C_without_an_order_are_trained_one_by_one():
    points = [Candidate.of({"C": C}) for C in ("big", 4, None, True, 1)]
    paths = Identity("iris", "f", "s", ARM, Protocol()).paths(0, 0, points)
    trained = [[candidate.value("C") for candidate in path.candidates] for path in paths]
    assert trained == [["big"], [1, 4], [None], [True]]
    assert len({path.seed for path in paths}) == 1


def test_a_part_of_a_path_keeps_candidates_keys_and_seed_together():
    (path,) = Identity("iris", "f", "s", ARM, Protocol()).paths(0, 0, grid(1, 4, 16, gammas=(1,)))
    part = path.only([0, 2])
    assert part.candidates == (path.candidates[0], path.candidates[2])
    assert part.keys == (path.keys[0], path.keys[2])
    assert part.seed == path.seed
    assert path.only(range(3)) is path
