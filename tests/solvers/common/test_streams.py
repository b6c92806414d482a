"""Random streams of machines and folds, and the thread limit of BLAS under overlapping calls."""

import threading

import pytest
from sklearn.datasets import load_iris
from threadpoolctl import ThreadpoolController, threadpool_limits

from solvers import MNSVC, SphereSVC
from solvers.common.blas import one_blas_thread
from solvers.hull.row_training import HullSolver
from tests.messages import raises


def seeds_of(model, monkeypatch, train):
    """Random states that the machines of a training start from."""
    seeds = []
    solve = HullSolver.solve

    def recording(self, problem):
        seeds.append(int(problem.seed))
        return solve(self, problem)

    with monkeypatch.context() as patched:
        patched.setattr(HullSolver, "solve", recording)
        train(model)
    return seeds


@pytest.mark.parametrize("solver", [MNSVC, SphereSVC])
def test_neighbouring_seeds_share_no_stream(monkeypatch, solver):
    X, y = load_iris(return_X_y=True)
    seeds = [
        seed
        for s in range(40)
        for seed in seeds_of(solver(random_state=s), monkeypatch, lambda model: model.fit(X, y))
    ]
    assert len(seeds) == 120
    assert len(set(seeds)) == 120
    assert min(seeds) > 0


def test_machines_of_a_path_share_no_stream(monkeypatch):
    X, y = load_iris(return_X_y=True)
    seeds = [
        seed
        for s in range(40)
        for seed in seeds_of(
            MNSVC(random_state=s, cache_size=1e-4), monkeypatch, lambda model: model.fit_path(X, y, [1.0])
        )
    ]
    assert len(seeds) == 120
    assert len(set(seeds)) == 120


def test_a_negative_seed_is_refused_in_a_sentence():
    X, y = load_iris(return_X_y=True)
    with raises(ValueError, "'random_state'", "MNSVC", "int", "-1"):
        MNSVC(random_state=-1).fit(X, y)
    MNSVC(random_state=2**63 + 1).fit(X, y)


def blas_threads():
    return {module["num_threads"] for module in ThreadpoolController().select(user_api="blas").info()}


@pytest.mark.parametrize("first_in_leaves_first", [True, False])
def test_overlapping_calls_give_the_threads_back(first_in_leaves_first):
    """The threads live on after their calls, as those of a pool do."""
    entered, leave, left = ([threading.Event() for _ in range(2)] for _ in range(3))
    end = threading.Event()

    def hold(k):
        with one_blas_thread():
            entered[k].set()
            leave[k].wait(30)
        left[k].set()
        end.wait(30)

    threads = [threading.Thread(target=hold, args=(k,)) for k in range(2)]
    with threadpool_limits(limits=2, user_api="blas"):
        try:
            assert blas_threads() == {2}
            for k in range(2):
                threads[k].start()
                assert entered[k].wait(30)
                assert blas_threads() == {1}
            first, last = (0, 1) if first_in_leaves_first else (1, 0)
            leave[first].set()
            assert left[first].wait(30)
            assert blas_threads() == {1}
            leave[last].set()
            assert left[last].wait(30)
            assert blas_threads() == {2}
        finally:
            end.set()
            for event in leave:
                event.set()
            for thread in threads:
                thread.join()


def test_threads_are_given_back_by_nested_and_by_failing_calls():
    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
            1 / 0  # noqa: B018
        assert blas_threads() == {2}
