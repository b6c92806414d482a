from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.accidents import LEAST, Bounds
from orchestrator.scheduling import (
    LEAST_SECONDS,
    PROBE_TRIALS,
    TARGET_SECONDS,
    CostModel,
    Shape,
    WorkQueue,
)
from orchestrator.study import REFIT, Candidate, Path

SHAPES = {"small": Shape(n=100, d=4, classes=2), "large": Shape(n=20_000, d=100, classes=2)}
OUTER = INNER = 5


def path(length=1, dataset="small", solver="svc", outer=0, inner=0, warm=False, name="p"):
    candidates = tuple(Candidate.of({"C": 2**power, "name": name}) for power in range(length))
    keys = tuple(f"{dataset}/{solver}/{outer}/{inner}/{name}/{index}" for index in range(length))
    return Path(dataset, solver, outer, inner, candidates, keys, seed=0, warm_starts=warm)


def work_queue(*paths):
    queue = WorkQueue(CostModel(SHAPES), OUTER, INNER)
    queue.add(paths)
    return queue


def learnt(*paths):
    """A queue that has found the guesses right."""
    costs = CostModel(SHAPES)
    costs.observe("small", "svc", 1.0, 1.0)
    queue = WorkQueue(costs, OUTER, INNER)
    queue.add(paths)
    return queue


def batches(queue, slots=2):
    while batch := queue.next_batch(slots):
        yield batch


def keys_of(batch):
    return [key for path in batch.paths for key in path.keys]


@st.composite
def many_paths(draw):
    axes = st.tuples(
        st.integers(1, 40), st.sampled_from(list(SHAPES)), st.sampled_from(["a", "b"]), st.booleans()
    )
    folds = st.tuples(st.integers(0, 2), st.integers(-1, 2))
    drawn = draw(st.lists(st.tuples(axes, folds), max_size=30))
    return [
        path(length, dataset, solver, outer, inner, warm and solver == "a", name=str(number))
        for number, ((length, dataset, solver, warm), (outer, inner)) in enumerate(drawn)
    ]


@given(many_paths(), st.integers(1, 64), st.data())
@settings(deadline=None)
def test_every_trial_is_handed_out_exactly_once(paths, slots, data):
    costs = CostModel(SHAPES)
    queue = WorkQueue(costs, OUTER, INNER)
    late = data.draw(st.integers(0, len(paths)))
    queue.add(paths[late:])
    handed_out = []
    for number, batch in enumerate(batches(queue, slots)):
        handed_out.append(batch)
        costs.observe(batch.dataset, batch.solver, batch.base_seconds, data.draw(st.floats(1e-6, 1e3)))
        if number == 0:
            queue.add(paths[:late])
    queue.add(paths[:late] if not handed_out else [])
    handed_out += batches(queue, slots)
    assert sorted(key for batch in handed_out for key in keys_of(batch)) == sorted(
        key for path in paths for key in path.keys
    )
    assert len(queue) == 0
    assert queue.seconds() == 0
    assert len({batch.number for batch in handed_out}) == len(handed_out)
    whole = {path.keys for path in paths if path.warm_starts}
    for batch in handed_out:
        assert {(path.dataset, path.solver) for path in batch.paths} == {(batch.dataset, batch.solver)}
        assert all(path.keys in whole for path in batch.paths if path.warm_starts)


def test_cheap_trials_travel_together_for_about_the_target_and_no_longer():
    queue = learnt(*(path(8, name=str(number)) for number in range(20_000)))
    sizes = [next(batches(queue, slots=1)).base_seconds for _ in range(5)]
    assert sizes == pytest.approx([TARGET_SECONDS] * 5, rel=0.05)


def test_batches_shrink_towards_the_end_but_not_to_crumbs():
    sizes = [batch.base_seconds for batch in batches(learnt(*(path(8) for _ in range(2_000))), slots=2)]
    assert sizes[0] > 1.5 * sizes[-2]
    assert min(sizes[:-1]) > 0.9 * LEAST_SECONDS


def test_of_unknown_work_little_is_sent_until_some_is_back():
    costs = CostModel(SHAPES)
    queue = WorkQueue(costs, OUTER, INNER)
    queue.add(path(8, name=str(number)) for number in range(1_000))
    first, second = queue.next_batch(2), queue.next_batch(2)
    assert (first.n_trials, second.n_trials) == (PROBE_TRIALS, PROBE_TRIALS)
    for batch in (first, second):
        costs.observe("small", "svc", batch.base_seconds, observed=batch.n_trials * 0.25)
    assert queue.next_batch(2).n_trials == pytest.approx(TARGET_SECONDS / 0.25, abs=1)


def test_a_training_dearer_than_the_target_travels_alone():
    queue = work_queue(path(3, "large"))
    assert [len(keys_of(batch)) for batch in batches(queue)] == [1, 1, 1]


def test_a_cold_path_is_divided_and_its_dearest_trainings_go_first():
    largest = [batch.paths[0].candidates[0].as_dict()["C"] for batch in batches(work_queue(path(3, "large")))]
    assert largest == [4, 2, 1]


def test_a_warm_path_is_never_divided():
    (batch,) = batches(work_queue(path(50, "large", warm=True)))
    assert batch.n_trials == 50


def test_the_dearest_dataset_goes_first_and_a_refit_before_all():
    queue = work_queue(path(), path(dataset="large"), path(solver="other", inner=REFIT))
    order = [(batch.dataset, batch.paths[0].inner) for batch in batches(queue)]
    assert order == [("small", REFIT), ("large", 0), ("small", 0)]


def test_paths_of_a_split_follow_one_another():
    queue = work_queue(*(path(outer=outer, inner=inner) for outer in range(3) for inner in range(3)))
    splits = [(path.outer, path.inner) for batch in batches(queue) for path in batch.paths]
    assert splits == sorted(splits)


# -- lost workers --------------------------------------------------------------------------------


def lose(queue, guilty, seconds=0.01):
    """Run the queue with workers that die of one training; return keys done and given up, and attempts."""
    done, given_up, attempts = [], [], Counter()
    for batch in batches(queue):
        attempts.update(keys_of(batch))
        if guilty in keys_of(batch):
            given_up += [key for path in queue.retry(batch, seconds) for key in path.keys]
        else:
            done += keys_of(batch)
            queue.finished(batch, seconds=1.0)
    return done, given_up, attempts


@pytest.mark.parametrize("warm", [False, True])
def test_only_the_guilty_training_is_given_up_and_what_started_from_it(warm):
    paths = [path(4, name=str(number), warm=warm) for number in range(10)]
    guilty = paths[3].keys[1]
    done, given_up, attempts = lose(learnt(*paths), guilty)
    assert given_up == (list(paths[3].keys) if warm else [guilty])
    assert sorted(done + given_up) == sorted(key for path in paths for key in path.keys)
    assert attempts[guilty] == 1 + LEAST
    assert {attempts[key] for key in done} == {2}


def test_a_lost_batch_is_tried_again_piece_by_piece():
    queue = learnt(path(2, name="a"), path(2, name="b", warm=True))
    first = queue.next_batch(1)
    assert (first.n_trials, first.attempt) == (4, 1)
    assert queue.retry(first, seconds=1.0) == []
    assert len(queue) == 3
    assert [(batch.n_trials, batch.attempt) for batch in batches(queue)] == [(1, 2), (1, 2), (2, 2)]


def test_what_has_lost_a_worker_of_its_own_waits_until_all_else_is_done():
    queue = work_queue(path(dataset="large"), *(path(outer=outer) for outer in range(3)))
    suspect = queue.next_batch(1)
    assert queue.retry(suspect, seconds=1.0) == []
    *others, last = batches(queue, slots=100)
    assert keys_of(last) == keys_of(suspect)
    assert last.attempt == 2
    assert all(batch.attempt == 1 for batch in others)


@pytest.mark.parametrize(("seconds", "expected"), [(1e6, LEAST), (100.0, Bounds().deaths)])
def test_a_slow_training_is_given_up_after_so_many_deaths_or_so_much_time(seconds, expected):
    guilty = path()
    _, given_up, attempts = lose(work_queue(guilty), guilty.keys[0], seconds=seconds)
    assert given_up == list(guilty.keys)
    assert attempts[guilty.keys[0]] == expected


@pytest.mark.parametrize("mean_life", [3.0, 20.0])
def test_where_workers_die_all_the_time_no_training_is_blamed(mean_life):
    """Workers die at random, after `mean_life` seconds on average; each training takes two."""
    chance = np.random.default_rng(0)
    blamed, deaths, done = [], 0, 0
    for _ in range(20):
        queue = work_queue(*(path(name=str(number)) for number in range(100)))
        for batch in batches(queue):
            life, needed = chance.exponential(mean_life), 2.0 * batch.n_trials
            if life < needed:
                deaths += 1
                blamed += queue.retry(batch, life)
            else:
                done += batch.n_trials
                queue.finished(batch, needed)
    assert deaths > 200
    assert (blamed, done) == ([], 2000)


# -- costs ---------------------------------------------------------------------------------------


def seconds(costs, dataset="small", solver="svc", refit=False):
    return costs.training_seconds(dataset, solver, refit, OUTER, INNER)


def test_costs_follow_size_folds_and_length():
    costs = CostModel(SHAPES)
    assert seconds(costs, "large") > 100 * seconds(costs, "small")
    assert seconds(costs, refit=True) > seconds(costs)
    assert costs.seconds(path(7), OUTER, INNER) == pytest.approx(7 * seconds(costs))


@pytest.mark.parametrize("truth", [0.01, 1.0, 300.0])
def test_costs_are_what_finished_batches_cost(truth):
    costs = CostModel(SHAPES)
    guess = seconds(costs)
    assert not costs.knows("small", "svc")
    for _ in range(3):  # in flight together: planned by the guess, ended one after the other
        costs.observe("small", "svc", 10 * guess, 10 * truth)
        assert seconds(costs) == pytest.approx(truth)
    assert costs.knows("small", "svc")
    assert not costs.knows("large", "svc")


def test_costs_follow_a_search_into_dearer_regions():
    costs = CostModel(SHAPES)
    base = seconds(costs)
    for observed in [1.0] * 50 + [10.0] * 50:
        costs.observe("small", "svc", base, observed)
    assert seconds(costs) == pytest.approx(10.0, rel=0.1)


def test_a_solver_is_taken_to_be_as_slow_as_on_other_datasets():
    costs = CostModel(SHAPES)
    first = {solver: seconds(costs, "large", solver) for solver in ("svc", "other")}
    costs.observe("small", "svc", 1.0, 10.0)
    assert seconds(costs, "large", "svc") == pytest.approx(10 * first["svc"])
    assert seconds(costs, "large", "other") == first["other"]


def test_batches_without_a_duration_teach_nothing():
    costs = CostModel(SHAPES)
    first = seconds(costs)
    costs.observe("small", "svc", 1.0, 0.0)
    assert seconds(costs) == first
