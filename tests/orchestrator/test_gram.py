import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from orchestrator.gram import SplitGram, gram_bytes
from orchestrator.sources import Split
from solvers import MNSVC, NewtonSVC
from tests.orchestrator.studies import run_study

AXES = ["dataset", "solver", "outer", "inner", "param_C", "param_gamma"]


@pytest.fixture
def split():
    random = np.random.default_rng(0)
    X, y = random.random((700, 12)), random.integers(0, 3, 700)
    return Split(X[:500], y[:500], X[500:], y[500:])


@pytest.mark.parametrize("gamma", [4.0**-5, 1.0, 16.0])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_gram_matrices_are_the_kernel_to_float32(split, gamma, form):
    gram = SplitGram(Split(form(split.X_train), split.y_train, form(split.X_test), split.y_test)).split(gamma)
    order = np.argsort(split.y_train, kind="stable")
    np.testing.assert_array_equal(gram.y_train, split.y_train[order])
    for found, rows in ((gram.X_train, split.X_train[order]), (gram.X_test, split.X_test)):
        exact = rbf_kernel(rows, split.X_train[order], gamma=gamma)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, atol=1e-6)
    assert np.all(np.diag(gram.X_train) == 1.0)


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e8])
@pytest.mark.parametrize("gamma", [4.0**-5, 1.0, 16.0])
def test_the_error_told_is_not_exceeded_far_from_the_origin(split, gamma, offset):
    X_train, X_test = split.X_train + offset, split.X_test + offset
    gram = SplitGram(Split(X_train, split.y_train, X_test, split.y_test))
    shared = gram.split(gamma)
    rows = X_train[np.argsort(split.y_train, kind="stable")]
    for found, A in ((shared.X_train, rows), (shared.X_test, X_test)):
        exact = np.exp(-gamma * cdist(A, rows, "sqeuclidean"))
        assert np.abs(found - exact).max() <= gram.error(gamma) < 1e-6


def test_what_shared_trainings_claim_holds_for_the_kernel_of_the_features():
    """Checkers at C = 1024: a float32 matrix taken as the kernel certifies 1e-3 where the truth is 1e-2."""
    random = np.random.default_rng(3)
    X = random.random((1200, 2))
    y = np.floor(4 * X).sum(axis=1).astype(int) % 2
    gram = SplitGram(Split(X, y, X[:10], y[:10]))
    order, Cs = np.argsort(y, kind="stable"), [16.0, 1024.0]
    for gamma in (0.25, 1.0, 4.0):
        shared, error = gram.split(gamma), gram.error(gamma)
        K = np.exp(-gamma * cdist(X[order], X[order], "sqeuclidean"))
        signs = np.where(y[order] == 0, 1.0, -1.0)
        for solver in (NewtonSVC, MNSVC):
            path = solver(kernel="precomputed", gram_error=error).fit_path(shared.X_train, shared.y_train, Cs)
            for k, C in enumerate(Cs):
                alpha = path._solution.weights[k, 0] / path._solution.weights[k, 0].sum()
                g = signs * ((K + 1.0) @ (signs * alpha)) + alpha / C
                true = 1.0 - (max(g.min(), 0.0) / (alpha @ g)) ** 2
                assert true <= path.duality_gap_[k]


def test_refits_are_certified_in_float64(tmp_path):
    study, _ = run_study(tmp_path, "datasets=[iris]", "solvers=[newton]", "search.space.C=[1024]")
    refits = study.trials[study.trials["inner"] < 0]
    assert len(refits) > 0
    assert refits["converged"].all()
    assert (refits["gap"] <= 1e-3).all()
    assert (refits["stopping"] == "certified: gap <= 0.001").all()


def test_memory_is_what_was_announced(split):
    gram = SplitGram(split)
    held = (gram._distances_train, gram._distances_test, gram._train, gram._test)
    assert sum(matrix.nbytes for matrix in held) == 2 * 4 * 500 * 700
    assert gram_bytes(700, outer=5) == 2 * 4 * 560 * 700


def test_a_small_budget_computes_kernels_on_the_fly_and_scores_the_same(tmp_path):
    """float32 moves decisions by less than 1e-5, a hundredth of what the solvers' tolerance does."""
    overrides = ("datasets=[iris,wine,breast_cancer]", "solvers=[newton,mnsvm,libsvm_l1]")
    shared, _ = run_study(tmp_path / "shared", *overrides)
    fallback, _ = run_study(tmp_path / "fallback", *overrides, "cluster.memory=0.0001")
    is_refit = shared.trials["inner"] < 0
    assert (shared.trials["shared_gram"] == ~is_refit).all()
    assert not fallback.trials["shared_gram"].any()
    assert (shared.trials.loc[~is_refit, "gram_seconds"] > 0).all()
    scores = [run.trials.set_index(AXES)["n_correct"].sort_index() for run in (shared, fallback)]
    assert scores[0].equals(scores[1])


def test_trainings_with_and_without_shared_matrices_have_keys_of_their_own(tmp_path):
    shared, _ = run_study(tmp_path)
    both, summary = run_study(tmp_path, "cluster.memory=0.0001")
    assert summary.trials_stored_before == 0
    assert both.trials["key"].nunique() == 2 * len(shared.trials)
