"""Positions are counted from 0 on each axis: the axes here hold 0, 1, 2, …"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from orchestrator.search import make_search

NAMES = ("C", "gamma", "degree")


def pattern_over(shape):
    return make_search(
        "pattern", {name: tuple(range(size)) for name, size in zip(NAMES, shape, strict=False)}
    )


def position(candidate):
    values = candidate.as_dict()
    return tuple(values[name] for name in NAMES if name in values)


def steps(table):
    """Return the points of every step of a search over a table of scores, and the search."""
    search = pattern_over(table.shape)
    asked = []
    while not search.done:
        step = search.ask()
        asked.append([position(candidate) for candidate in step])
        for candidate in step:
            search.tell(candidate, table[position(candidate)])
    return asked, search


def n_visited(table):
    return steps(table)[1].selection.n_candidates


def test_the_trace_of_a_search_worked_out_by_hand():
    i, j = np.mgrid[:8, :8]
    asked, search = steps(-(abs(i - 1) + abs(j - 6)))
    assert asked == [
        # From the centre at scale 2; (1, 3) and (3, 5) are equal, C- comes first.
        [(3, 3), (1, 3), (3, 1), (5, 3), (3, 5)],
        [(1, 1), (1, 5)],
        # (1, 7) is as good as (1, 5): no move, scale 1.
        [(1, 7)],
        [(0, 5), (1, 4), (2, 5), (1, 6)],
        [(0, 6), (2, 6)],
        # Farthest from all on the lattice 1, 3, 5, 7: (7, 7), at distance 6. It climbs through known points.
        [(7, 7), (5, 7), (7, 5)],
        [(3, 7), (5, 5)],
        [(0, 7), (2, 7)],
        # Then (7, 1), at distance 4; after it the whole lattice is tested.
        [(7, 1), (5, 1), (7, 3)],
    ]
    assert position(search.selection.best) == (1, 6)
    assert search.selection.n_candidates == 24


def test_on_a_plateau_it_stays_and_restarts():
    asked, search = steps(np.zeros((8, 8)))
    assert asked[:2] == [[(3, 3), (1, 3), (3, 1), (5, 3), (3, 5)], [(2, 3), (3, 2), (4, 3), (3, 4)]]
    assert position(search.selection.best) == min(itertools.chain(*asked))
    assert search.selection.n_tied == search.selection.n_candidates


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3).flatmap(
        lambda shape: st.tuples(st.just(shape), st.integers(1, 50), st.integers(0, 10_000))
    )
)
@settings(max_examples=60, deadline=None)
def test_it_never_asks_twice_and_ends_on_a_local_optimum(case):
    shape, levels, seed = case
    table = np.random.default_rng(seed).integers(levels, size=shape).astype(float)
    table[table == 0] = np.nan
    asked, search = steps(table)
    visited = list(itertools.chain(*asked))
    assert len(visited) == len(set(visited))
    assert search.ask() == []
    best = max((table[point] for point in visited if table[point] > 0), default=-np.inf)
    if np.isfinite(best):
        assert search.selection.score == best
        assert any(
            table[point] == best and all(q in set(visited) for q in _beside(point, shape))
            for point in visited
        )


def _beside(point, shape):
    for axis, step in itertools.product(range(len(shape)), (-1, 1)):
        q = (*point[:axis], point[axis] + step, *point[axis + 1 :])
        if 0 <= q[axis] < shape[axis]:
            yield q


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_what_it_asks_does_not_depend_on_the_order_of_arrival(seed, random):
    table = np.random.default_rng(seed).integers(4, size=(8, 8)) / 4
    expected, reference = steps(table)
    search, flying, asked = pattern_over(table.shape), [], []
    while not search.done:
        flying += search.ask()
        candidate = flying.pop(random.randrange(len(flying)))
        asked.append(position(candidate))
        search.tell(candidate, table[position(candidate)])
    assert sorted(asked) == sorted(itertools.chain(*expected))
    assert repr(search.selection) == repr(reference.selection)


def test_nothing_new_is_asked_until_a_step_is_told_whole():
    search = pattern_over((8, 8))
    first, *others = search.ask()
    for candidate in others:
        search.tell(candidate, 0.5)
        assert search.ask() == []
    search.tell(first, 0.6)
    assert len(search.ask()) == 4


def test_a_smooth_peak_takes_about_twenty_points_of_64():
    i, j = np.mgrid[:8, :8]
    rng = np.random.default_rng(0)
    for _ in range(200):
        centre, width = rng.uniform(0, 7, size=2), rng.uniform(0.1, 2, size=2)
        table = -width[0] * (i - centre[0]) ** 2 - width[1] * (j - centre[1]) ** 2
        _, search = steps(table)
        assert 18 <= search.selection.n_candidates <= 26
        assert search.selection.score == table.max()


def test_noise_takes_half_of_the_points():
    rng = np.random.default_rng(0)
    visited = [n_visited(rng.random((8, 8))) for _ in range(200)]
    assert 28 <= np.mean(visited) <= 35
    assert max(visited) <= 48


@pytest.mark.parametrize(("resolution", "share"), [(16, 0.3), (32, 0.12), (80, 0.04)])
def test_the_finer_the_grid_the_smaller_the_share(resolution, share):
    i, j = np.mgrid[:resolution, :resolution] / (resolution - 1)
    _, search = steps(-((i - 0.3) ** 2) - (j - 0.8) ** 2)
    assert search.selection.n_candidates < share * resolution**2
    assert search.selection.score == (-((i - 0.3) ** 2) - (j - 0.8) ** 2).max()


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (4,), (2, 2), (4, 4), (1, 4), (2, 3, 2)])
def test_small_grids_are_searched_whole(shape):
    assert n_visited(np.random.default_rng(0).random(shape)) == np.prod(shape)


def test_it_is_within_a_point_of_the_grid_on_a_real_surface():
    X, y = load_iris(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    table = np.array(
        [
            [cross_val_score(SVC(C=4.0**c, gamma=4.0**g), X, y, cv=folds).mean() for g in range(-5, 3)]
            for c in range(-2, 6)
        ]
    )
    _, search = steps(table)
    assert 18 <= search.selection.n_candidates <= 45
    assert search.selection.score >= table.max() - 0.01
