import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import rbf_kernel

from orchestrator.gram import SplitGram, gram_bytes
from orchestrator.sources import Split
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
    assert shared.trials["shared_gram"].all()
    assert not fallback.trials["shared_gram"].any()
    assert (shared.trials["gram_seconds"] > 0).all()
    scores = [run.trials.set_index(AXES)["n_correct"].sort_index() for run in (shared, fallback)]
    assert scores[0].equals(scores[1])


def test_trainings_with_and_without_shared_matrices_have_keys_of_their_own(tmp_path):
    shared, _ = run_study(tmp_path)
    fallback, summary = run_study(tmp_path, "cluster.memory=0.0001")
    assert summary.trials_stored_before == 0
    assert not set(shared.trials["key"]) & set(fallback.trials["key"])
