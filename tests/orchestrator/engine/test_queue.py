import random
import sys
from collections import Counter
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.cost_model import UNIT, CostModel, Shape
from orchestrator.engine.interleaved import FoldQueue
from orchestrator.engine.queue import MIN_SECONDS, PROBE_TRIALS, TARGET_SECONDS, WorkQueue
from orchestrator.engine.typical_costs import TERMS, TypicalCost
from orchestrator.study.settings import MIN_DEATHS, DeathLimits
from orchestrator.study.study import Candidate
from orchestrator.study.trials import REFIT, Path

SHAPES = {"small": Shape(n=100, d=4, classes=2), "large": Shape(n=20_000, d=100, classes=2)}


def path(length=1, dataset="small", solver="svc", outer=0, inner=0, warm=False, name="p"):
    candidates = tuple(Candidate.of({"C": 2**power, "name": name}) for power in range(length))
    keys = tuple(f"{dataset}/{solver}/{outer}/{inner}/{name}/{index}" for index in range(length))
    return Path(dataset, solver, outer, inner, candidates, keys, seed=0, warm_starts=warm)


def work_queue(*paths):
    queue = WorkQueue(CostModel(SHAPES))
    queue.add(paths)
    return queue


def learnt(*paths):
    """A queue that has found the guesses right."""
    costs = CostModel(SHAPES)
    costs.update("small", "svc", 1.0, 1.0)
    queue = WorkQueue(costs)
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
    queue = WorkQueue(costs, compiling=data.draw(st.sets(st.sampled_from(["a", "b"]))))
    late = data.draw(st.integers(0, len(paths)))
    queue.add(paths[late:])
    handed_out = []
    for number, batch in enumerate(batches(queue, slots)):
        handed_out.append(batch)
        costs.update(batch.dataset, batch.solver, batch.base_seconds, data.draw(st.floats(1e-6, 1e3)))
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


def n_trials(batch):
    return sum(map(len, batch.paths))


class SimpleQueue:
    """The policy in a few lines: looks at everything that waits for each decision."""

    def __init__(self, costs):
        self.costs, self.lanes, self.pieces, self.single, self.order = costs, {}, [], [], 0

    def seconds(self, paths):
        return sum(self.costs.seconds(path) for path in paths)

    def waiting(self):
        lanes = [path for lane in self.lanes.values() for _, _, path in lane]
        return lanes + [path for path, _ in self.pieces + self.single]

    def add(self, paths):
        for path in paths:
            lane = self.lanes.setdefault((path.dataset, path.solver), [])
            lane.append((path.inner != REFIT, self.order, path))
            lane.sort(key=lambda entry: entry[:2])
            self.order += 1

    def next_batch(self, slots, seconds):
        lanes = [lane for lane in self.lanes.values() if lane]
        if self.pieces or not lanes:
            return self.take_piece()
        lane = max(lanes, key=lambda lane: (not lane[0][0], self.seconds([lane[0][2]])))
        first = lane[0][2]
        target = min(TARGET_SECONDS, max(MIN_SECONDS, seconds / (8 * slots)))
        pair = first.dataset, first.solver
        room = inf if self.costs.has_factor(*pair) else PROBE_TRIALS
        target = target * UNIT / self.costs.factor(*pair)
        paths = []
        while lane and room > 0:
            rank, order, whole = lane[0]
            units, n = self.costs.base_units(whole), len(whole)
            fitting = 0
            while fitting < min(n, room) and sum(units[n - fitting - 1 :]) <= target:
                fitting += 1
            if fitting < n and paths:
                break
            lane.pop(0)
            cut = n - max(1, fitting)
            if cut and not whole.warm_starts:
                lane.insert(0, (rank, order, whole.only(range(cut))))
                whole = whole.only(range(cut, n))
            paths.append(whole)
            room -= len(whole)
            target -= sum(self.costs.base_units(whole))
        return [path.keys for path in paths], 1

    def take_piece(self):
        alone = self.pieces or self.single
        if not alone:
            return None
        path, attempt = alone.pop(0)
        return [path.keys], attempt

    def retry(self, batch, given_up):
        pieces = [
            piece
            for path in batch.paths
            for piece in ([path] if path.warm_starts else [path.only([i]) for i in range(len(path))])
        ]
        if not given_up:
            queue = self.pieces if len(pieces) > 1 else self.single
            queue += [(piece, batch.attempt + 1) for piece in pieces]


MANY = {f"d{number}": Shape(n=40 * (number + 1) ** 3, d=4, classes=2) for number in range(8)}


def test_the_queue_takes_the_decisions_of_one_that_looks_at_everything(full_size):
    for seed in range(5000 if full_size else 300):
        compare_decisions(random.Random(seed))


def compare_decisions(chance):
    """Do the same at random to both queues, and compare all that they hand out."""
    weights = np.array([chance.uniform(-1, 1) for _ in TERMS])
    costs = CostModel(MANY, {"a": TypicalCost(weights)})  # the cost of b does not depend on C
    queue, simple = WorkQueue(costs), SimpleQueue(costs)
    out = []
    for number in range(chance.randint(1, 80)):
        action = chance.choice(["add", "add", "take", "take", "take", "end", "lose"])
        if action == "add":
            length, dataset = chance.choice([1, 2, 5, 40]), chance.choice(list(MANY))
            axes = chance.choice("ab"), 0, chance.randint(-1, 2), chance.random() < 0.5, str(number)
            new = path(length, dataset, *axes)
            queue.add([new])
            simple.add([new])
        elif action == "take":
            slots = chance.choice([1, 2, 50])
            assert queue.seconds() == pytest.approx(simple.seconds(simple.waiting()), rel=1e-9, abs=1e-9)
            expected = simple.next_batch(slots, queue.seconds())
            batch = queue.next_batch(slots)
            assert (batch and ([taken.keys for taken in batch.paths], batch.attempt)) == expected
            out += [batch] if batch else []
        elif out:
            batch = out.pop(chance.randrange(len(out)))
            if action == "lose":
                simple.retry(batch, bool(queue.retry(batch, 1.0)))
                continue
            seconds = batch.base_seconds * 10 ** chance.uniform(-3, 3)
            costs.update(batch.dataset, batch.solver, batch.base_seconds, seconds)
            queue.finished(batch, seconds)
        assert len(queue) == sum(map(len, simple.lanes.values())) + len(simple.pieces + simple.single)


def decisions(n_datasets, n_solvers):
    """Count the calls of Python functions that handing out a study takes, by batch."""
    costs = CostModel({f"d{number}": Shape(n=100 + number, d=4, classes=2) for number in range(n_datasets)})
    queue = WorkQueue(costs)
    names = [(f"d{dataset}", f"s{solver}") for dataset in range(n_datasets) for solver in range(n_solvers)]
    queue.add(path(2, dataset, solver, outer) for dataset, solver in names for outer in range(2))
    calls = number = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        while batch := queue.next_batch(2):
            number += 1
            queue.seconds()
            costs.update(batch.dataset, batch.solver, batch.base_seconds, 1.0 + number % 7)
            queue.finished(batch, 1.0)
    finally:
        sys.setprofile(None)
    return calls / number


@pytest.mark.parametrize("sizes", [((20, 1), (1000, 1)), ((1, 20), (1, 1000)), ((5, 4), (40, 25))])
def test_a_decision_costs_the_same_in_a_small_study_and_in_one_fifty_times_as_large(sizes):
    small, large = sizes
    assert decisions(*large) < 2 * decisions(*small)


def test_the_typical_cost_of_a_solver_is_the_mean_over_its_datasets_however_often_they_are_observed():
    costs = CostModel({f"d{number}": Shape(n=100, d=4, classes=2) for number in range(1000)})
    for number in range(1000):
        costs.update(f"d{number}", "svc", 1.0, 1.0 + number)
    assert costs.typical("svc") == pytest.approx(500.5)
    costs.update("d0", "svc", 1.0, 1e9)
    costs.update("d0", "svc", 1.0, 1e-9)
    assert costs.typical("svc") == pytest.approx((sum(range(2, 1001)) + (1 + 1e9) / 3) / 1000)


def test_cheap_trials_travel_together_for_about_the_target_and_no_longer():
    queue = learnt(*(path(8, name=str(number)) for number in range(20_000)))
    sizes = [next(batches(queue, slots=1)).base_seconds for _ in range(5)]
    assert sizes == pytest.approx([TARGET_SECONDS] * 5, rel=0.05)


def test_batches_shrink_towards_the_end_but_not_to_crumbs():
    sizes = [batch.base_seconds for batch in batches(learnt(*(path(8) for _ in range(2_000))), slots=2)]
    assert sizes[0] > 1.5 * sizes[-2]
    assert min(sizes[:-1]) > 0.9 * MIN_SECONDS


def test_of_unknown_work_little_is_sent_until_some_is_back():
    costs = CostModel(SHAPES)
    queue = WorkQueue(costs)
    queue.add(path(8, name=str(number)) for number in range(1_000))
    first, second = queue.next_batch(2), queue.next_batch(2)
    assert (n_trials(first), n_trials(second)) == (PROBE_TRIALS, PROBE_TRIALS)
    for batch in (first, second):
        costs.update("small", "svc", batch.base_seconds, observed=n_trials(batch) * 0.25)
    assert n_trials(queue.next_batch(2)) == pytest.approx(TARGET_SECONDS / 0.25, abs=1)


def test_a_guess_that_was_exactly_right_leaves_the_order_as_it_was():
    costs = CostModel(SHAPES)
    queue = WorkQueue(costs)
    queue.add(path(8, name=str(number)) for number in range(2_000))
    found = []
    while batch := queue.next_batch(2):
        found += keys_of(batch)
        costs.update("small", "svc", batch.base_seconds, batch.base_seconds)
    assert len(set(found)) == len(found) == 16_000


def test_others_train_while_one_worker_compiles_a_solver():
    queue = WorkQueue(CostModel(SHAPES), compiling=["svc"])
    queue.add([path(1000, "small", "other"), path(1000, "large"), path(1000, "large", inner=1)])
    first = queue.next_batch(2)
    assert first.solver == "svc"
    assert [queue.next_batch(2).solver for _ in range(2)] == ["other", "other"]
    queue.finished(first, 1.0)
    assert queue.next_batch(2).solver == "svc"


def test_a_solver_whose_first_batch_was_lost_runs_again():
    queue = WorkQueue(CostModel(SHAPES), compiling=["svc"])
    queue.add([path(1)])
    lost = queue.next_batch(2)
    assert queue.retry(lost, 1.0) == []
    assert keys_of(queue.next_batch(2)) == keys_of(lost)


def test_a_training_dearer_than_the_target_travels_alone():
    queue = work_queue(path(3, "large"))
    assert [len(keys_of(batch)) for batch in batches(queue)] == [1, 1, 1]


def test_a_cold_path_is_divided_and_its_most_expensive_trainings_go_first():
    largest = [batch.paths[0].candidates[0].as_dict()["C"] for batch in batches(work_queue(path(3, "large")))]
    assert largest == [4, 2, 1]


def test_a_warm_path_is_never_divided():
    (batch,) = batches(work_queue(path(50, "large", warm=True)))
    assert n_trials(batch) == 50


def test_the_most_expensive_dataset_goes_first_and_a_refit_before_all():
    queue = work_queue(path(), path(dataset="large"), path(solver="other", inner=REFIT))
    order = [(batch.dataset, batch.paths[0].inner) for batch in batches(queue)]
    assert order == [("small", REFIT), ("large", 0), ("small", 0)]


def test_paths_of_a_split_follow_one_another():
    queue = work_queue(*(path(outer=outer, inner=inner) for outer in range(3) for inner in range(3)))
    splits = [(path.outer, path.inner) for batch in batches(queue) for path in batch.paths]
    assert splits == sorted(splits)


# -- lost workers --------------------------------------------------------------------------------


def lose(queue, fatal, seconds=0.01):
    """Run the queue with workers that die of one training; return keys done and given up, and attempts."""
    done, given_up, attempts = [], [], Counter()
    for batch in batches(queue):
        attempts.update(keys_of(batch))
        if fatal in keys_of(batch):
            given_up += [key for path in queue.retry(batch, seconds) for key in path.keys]
        else:
            done += keys_of(batch)
            queue.finished(batch, seconds=1.0)
    return done, given_up, attempts


@pytest.mark.parametrize("warm", [False, True])
def test_only_the_fatal_training_is_given_up_and_what_started_from_it(warm):
    paths = [path(4, name=str(number), warm=warm) for number in range(10)]
    fatal = paths[3].keys[1]
    done, given_up, attempts = lose(learnt(*paths), fatal)
    assert given_up == (list(paths[3].keys) if warm else [fatal])
    assert sorted(done + given_up) == sorted(key for path in paths for key in path.keys)
    assert attempts[fatal] == 1 + MIN_DEATHS
    assert {attempts[key] for key in done} == {2}


def test_a_lost_batch_is_tried_again_piece_by_piece():
    queue = learnt(path(2, name="a"), path(2, name="b", warm=True))
    first = queue.next_batch(1)
    assert (n_trials(first), first.attempt) == (4, 1)
    assert queue.retry(first, seconds=1.0) == []
    assert len(queue) == 3
    assert [(n_trials(batch), batch.attempt) for batch in batches(queue)] == [(1, 2), (1, 2), (2, 2)]


def test_what_has_lost_a_worker_of_its_own_waits_until_all_else_is_done():
    queue = work_queue(path(dataset="large"), *(path(outer=outer) for outer in range(3)))
    once_lost = queue.next_batch(1)
    assert queue.retry(once_lost, seconds=1.0) == []
    *others, last = batches(queue, slots=100)
    assert keys_of(last) == keys_of(once_lost)
    assert last.attempt == 2
    assert all(batch.attempt == 1 for batch in others)


@pytest.mark.parametrize(("seconds", "expected"), [(1e6, MIN_DEATHS), (100.0, DeathLimits().deaths)])
def test_a_slow_training_is_given_up_after_so_many_deaths_or_so_much_time(seconds, expected):
    fatal = path()
    _, given_up, attempts = lose(work_queue(fatal), fatal.keys[0], seconds=seconds)
    assert given_up == list(fatal.keys)
    assert attempts[fatal.keys[0]] == expected


@pytest.mark.parametrize("mean_life", [3.0, 20.0])
def test_where_workers_die_all_the_time_no_training_is_blamed(mean_life):
    """Workers die at random, after `mean_life` seconds on average; each training takes two."""
    chance = np.random.default_rng(0)
    blamed, deaths, done = [], 0, 0
    for _ in range(20):
        queue = work_queue(*(path(name=str(number)) for number in range(100)))
        for batch in batches(queue):
            life, needed = chance.exponential(mean_life), 2.0 * n_trials(batch)
            if life < needed:
                deaths += 1
                blamed += queue.retry(batch, life)
            else:
                done += n_trials(batch)
                queue.finished(batch, needed)
    assert deaths > 200
    assert (blamed, done) == ([], 2000)


# -- costs ---------------------------------------------------------------------------------------


def seconds(costs, dataset="small", solver="svc", refit=False):
    return costs.training_seconds(dataset, solver, refit)


def test_costs_follow_size_folds_and_length():
    costs = CostModel(SHAPES)
    assert seconds(costs, "large") > 100 * seconds(costs, "small")
    assert seconds(costs, refit=True) > seconds(costs)
    assert costs.seconds(path(7)) == pytest.approx(7 * seconds(costs))


@pytest.mark.parametrize("truth", [0.01, 1.0, 300.0])
def test_costs_are_what_finished_batches_cost(truth):
    costs = CostModel(SHAPES)
    guess = seconds(costs)
    assert not costs.has_factor("small", "svc")
    for _ in range(3):  # in flight together: planned by the guess, ended one after the other
        costs.update("small", "svc", 10 * guess, 10 * truth)
        assert seconds(costs) == pytest.approx(truth)
    assert costs.has_factor("small", "svc")
    assert not costs.has_factor("large", "svc")


def test_costs_follow_a_search_into_dearer_regions():
    costs = CostModel(SHAPES)
    base = seconds(costs)
    for observed in [1.0] * 50 + [10.0] * 50:
        costs.update("small", "svc", base, observed)
    assert seconds(costs) == pytest.approx(10.0, rel=0.1)


def test_a_solver_is_taken_to_be_as_slow_as_on_other_datasets():
    costs = CostModel(SHAPES)
    first = {solver: seconds(costs, "large", solver) for solver in ("svc", "other")}
    costs.update("small", "svc", 1.0, 10.0)
    assert seconds(costs, "large", "svc") == pytest.approx(10 * first["svc"])
    assert seconds(costs, "large", "other") == first["other"]


def test_batches_without_a_duration_teach_nothing():
    costs = CostModel(SHAPES)
    first = seconds(costs)
    costs.update("small", "svc", 1.0, 0.0)
    assert seconds(costs) == first


def test_under_timing_the_arms_of_a_fold_take_turns_and_their_refits_come_last():
    """Two arms on 2 folds, each with paths of 20 trainings; a batch has 4 while their cost is unknown."""
    queue = FoldQueue(CostModel(SHAPES))
    for arm in "ab":
        queue.add(
            path(20, solver=arm, outer=outer, inner=inner, name=f"{arm}{outer}{inner}")
            for outer in range(2)
            for inner in (REFIT, 0, 1)
        )
    found = [(batch.paths[0].outer, batch.paths[0].inner == REFIT, batch.solver) for batch in batches(queue)]
    assert [fold for fold, *_ in found] == sorted(fold for fold, *_ in found)
    assert found == sorted(found, key=lambda each: each[:2])  # refits after all inner trainings of a fold
    for fold in (False, True):
        arms = [arm for outer, _, arm in found if outer == fold]
        assert arms[::2] == ["a"] * (len(arms) // 2)
        assert arms[1::2] == ["b"] * (len(arms) // 2)


def test_a_batch_under_timing_has_trainings_of_one_fold():
    costs = CostModel(SHAPES)
    costs.update("small", "svc", 1.0, 1.0)
    queue = FoldQueue(costs)
    queue.add(path(2, outer=outer, name=str(outer)) for outer in range(3))
    assert [{each.outer for each in batch.paths} for batch in batches(queue)] == [{0}, {1}, {2}]


@settings(deadline=None, max_examples=30)
@given(many_paths())
def test_under_timing_every_training_is_handed_out_once(paths):
    queue = FoldQueue(CostModel(SHAPES))
    queue.add(paths)
    handed = [key for batch in batches(queue) for key in keys_of(batch)]
    assert Counter(handed) == Counter(key for each in paths for key in each.keys)
    assert len(queue) == 0
    assert queue.seconds() == 0
