import dataclasses
import mmap
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

import solvers.estimators.path_grid
import solvers.estimators.training_input
from orchestrator.engine import prepare as preparation
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.training import train_together
from orchestrator.training.gram import _SHIFTED_ERROR, SplitGram
from orchestrator.training.split_data import Split
from orchestrator.training.train_together import unchecked
from solvers import MNSVC, SMOSVC, NewtonSVC
from tests.orchestrator.classifiers import WholePath
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


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e15, 1e18, 2e18, 1e19, 1e60, 1e160])
@pytest.mark.filterwarnings("ignore:(overflow|invalid)")
def test_values_that_are_said_to_be_numbers_are(split, scale):
    some = Split(scale * split.X_train[:60], split.y_train[:60], scale * split.X_test, split.y_test)
    for may_shift in (False, True):
        gram = SplitGram(some, may_shift=may_shift)
        for gamma in (1e-300, 1e-45, 1.0, 1e38, 3.5e38, 1e300):
            found = gram.split(gamma)
            are = bool(np.isfinite(found.X_train).all() and np.isfinite(found.X_test).all())
            assert gram.is_finite(gamma) == (gamma < 3.4e38 and scale < 1e19)
            assert are or not gram.is_finite(gamma)
        assert not gram.is_finite(-1.0)


def test_features_that_are_no_numbers_are_not_said_to_be(split):
    for name in ("X_train", "X_test"):
        X = getattr(split, name).copy()
        X[3, 5] = np.nan
        assert not SplitGram(dataclasses.replace(split, **{name: X})).is_finite(1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_several_gamma_at_once_give_the_matrices_of_each(split, form, dtype):
    few = Split(form(split.X_train[:200]), split.y_train[:200], form(split.X_test[:50]), split.y_test[:50])
    gammas = [4.0**-5, 4.0**-4, 40.0, 4.0**-3]
    gram = SplitGram(few, dtype=dtype, may_shift=True)
    assert [gram.shift(gamma) for gamma in gammas] == [1.0, 1.0, 0.0, 1.0]
    assert gram.at_once >= len(gammas)
    together = [part.copy() for part in parts(gram.splits(gammas))[::2]]
    for k, gamma in enumerate(gammas):
        for found, expected in zip(together, parts(gram.split(gamma))[::2], strict=True):
            np.testing.assert_array_equal(found[k], expected)
    assert not gram.splits(gammas).X_train.flags.writeable


def test_no_value_is_subnormal_which_is_slow(split):
    gram = SplitGram(Split(split.X_train, split.y_train, 9.0 * split.X_test, split.y_test))
    for gamma in (16.0, 50.0, 1e30):
        for values in parts(gram.split(gamma))[::2]:
            assert values.min() >= 1e-35


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


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_k_minus_1_is_given_where_k_would_be_near_1_and_only_to_solvers_that_take_it(split, form):
    gram = SplitGram(
        Split(form(split.X_train), split.y_train, form(split.X_test), split.y_test), may_shift=True
    )
    rows = split.X_train[np.argsort(split.y_train, kind="stable")]
    assert [gram.shift(gamma) for gamma in (4.0**-5, 4.0**-3, 4.0)] == [1.0, 1.0, 0.0]
    assert SplitGram(split).shift(4.0**-5) == 0.0
    for gamma in (4.0**-5, 4.0**-3, 4.0):
        shared, shift = gram.split(gamma), gram.shift(gamma)
        for found, A in ((shared.X_train, rows), (shared.X_test, split.X_test)):
            product = -gamma * cdist(A, rows, "sqeuclidean")
            exact = np.expm1(product) if shift else np.exp(product)
            assert np.abs(found - exact).max() <= gram.error(gamma)
    assert gram.error(4.0**-5) < 0.1 * SplitGram(split).error(4.0**-5)


def test_relative_error_of_k_minus_1(full_size):
    """For every float32 from −2⁷ to −2⁻⁴⁰; some of each power of 2."""
    step = 1 if full_size else 4099
    for exponent in range(-40, 7):
        for first in range(0, 1 << 23, 1 << 20):
            mantissa = np.arange(first, first + (1 << 20), step, dtype=np.uint32)
            x = (mantissa | np.uint32((exponent + 127) << 23) | np.uint32(1 << 31)).view(np.float32)
            exact = np.expm1(x.astype(np.float64))
            assert np.abs(np.expm1(x) / exact - 1.0).max() <= _SHIFTED_ERROR


def test_what_shared_trainings_claim_holds_for_the_kernel_of_the_features(full_size):
    """Checkers at C = 1024: a float32 matrix taken as the kernel certifies 1e-3 where the truth is 1e-2."""
    random = np.random.default_rng(3)
    X = random.random((1200, 2))
    y = np.floor(4 * X).sum(axis=1).astype(int) % 2
    gram = SplitGram(Split(X, y, X[:10], y[:10]))
    order, Cs = np.argsort(y, kind="stable"), [16.0, 1024.0]
    for gamma in (0.25, 1.0, 4.0) if full_size else (4.0,):
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


GRAM = 4 * 500 * 700
"""Bytes of the Gram matrices of `split` in float32, and of its distances."""


@pytest.mark.parametrize(
    ("dtype", "memory", "kept", "in_file"),
    [
        (np.float32, 2 * GRAM, 2, False),
        (np.float32, 2 * GRAM - 1, 0, False),
        (np.float32, GRAM, 0, False),
        (np.float32, GRAM - 1, 0, True),
        (np.float64, 3 * GRAM, 2, False),
        (np.float64, 3 * GRAM - 1, 0, False),
        (np.float64, 2 * GRAM - 1, 0, True),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_memory_and_type_decide_what_is_kept_and_not_one_bit(
    split, dtype, memory, kept, in_file, form, tmp_path, monkeypatch
):
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path))
    split = Split(form(split.X_train), split.y_train, form(split.X_test), split.y_test)
    whole = {gamma: [part.copy() for part in parts(SplitGram(split).split(gamma))] for gamma in (0.25, 2.0)}
    gram = SplitGram(split, memory, dtype)
    assert len(gram._kept) == kept
    assert mapped(gram._train) == in_file
    assert list(tmp_path.iterdir()) == []  # the file has no name
    for gamma in (0.25, 2.0, 0.25):
        found = gram.split(gamma)
        assert found.X_train.dtype == found.X_test.dtype == dtype
        for part, expected in zip(parts(found), whole[gamma], strict=True):
            np.testing.assert_array_equal(part, expected)


def parts(split):
    return split.X_train, split.y_train, split.X_test, split.y_test


def mapped(matrix):
    base = matrix
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


LIMITED = """
import resource
import sys

import numpy as np
from sklearn.svm import SVC

from orchestrator.training.gram import _SHIFTED_ERROR, SplitGram
from orchestrator.training.split_data import Split

random = np.random.default_rng(0)
X, y = random.random((3000, 4)), np.arange(3000) % 2
X[y == 1] += 0.9
split = Split(X[:2500], y[:2500], X[2500:], y[2500:])

def train(memory):
    gram = SplitGram(split, memory, np.float64)
    for gamma in (0.25, 2.0):
        K = gram.split(gamma)
        model = SVC(kernel="precomputed", cache_size=5).fit(K.X_train, K.y_train)
        print(np.abs(model.dual_coef_).sum().hex(), model.decision_function(K.X_test).sum().hex())

np.ones((500, 500)) @ np.ones((500, 500))  # for BLAS has buffers of its own
if len(sys.argv) > 1:
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + 30_000_000,) * 2)
train(float(sys.argv[1]) if len(sys.argv) > 1 else np.inf)
"""
"""Matrices of 60 MB in float64, 30 MB in float32."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA")
def test_matrices_that_have_no_room_need_none_and_change_no_bit(tmp_path):
    def run(*memory):
        return subprocess.run(
            [sys.executable, "-c", LIMITED, *memory],
            env=os.environ | {"SVMBENCH_CACHE": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )

    free, limited, too_large = run(), run("20e6"), run("1e9")
    assert free.stdout.count("\n") == 2, free.stderr
    assert limited.stdout == free.stdout, limited.stderr
    assert "MemoryError" in too_large.stderr


@pytest.mark.parametrize("solver", ["newton", "libsvm_l1"])
def test_solvers_get_the_type_that_they_take_without_a_copy(solver, tmp_path, monkeypatch):
    types = []
    made = SplitGram.split

    def split(self, gamma):
        found = made(self, gamma)
        types.append(found.X_train.dtype)
        return found

    monkeypatch.setattr(SplitGram, "split", split)
    run_study(tmp_path, "datasets=[iris]", f"solvers=[{solver}]", "search.space.C=[1]")
    assert set(types) == {np.dtype(np.float32 if solver == "newton" else np.float64)}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_split_s_matrices_are_searched_for_nan_only_if_they_may_have_one(
    known, together, tmp_path, monkeypatch
):
    searched = []
    for module in (solvers.estimators.path_grid, solvers.estimators.training_input):
        monkeypatch.setattr(module, "require_finite", lambda values: searched.append(values.shape[-2:]))
    monkeypatch.setattr(SplitGram, "is_finite", lambda gram, gamma: known)
    if not together:
        monkeypatch.setattr(train_together, "MAX_WEIGHTS", 0)
    run_study(tmp_path, "datasets=[iris]", "solvers=[smo_l1]")
    assert any(n == m > 24 for n, m in searched) == (not known)  # 24 rows are those of the warm-up


def test_only_estimators_that_ask_for_it_are_told_that_values_are_finite():
    def other(X, y, Cs, **options):
        raise NotImplementedError

    assert unchecked(SMOSVC.fit_path) == {"check_finite": False}

    class WithoutHash:
        __hash__ = None

        def __call__(self, X, y, Cs):
            raise NotImplementedError

    assert (
        unchecked(WholePath.fit_path)
        == unchecked(other)
        == unchecked(dict.fromkeys)
        == unchecked(WithoutHash())
        == {}
    )


def overrides_of_three(full_size):
    """Return the overrides of a study of three datasets and solvers, with fewer candidates in the sample."""
    narrow = () if full_size else ("search.space.C=[0.25,64]", "search.space.gamma=[0.5]")
    return (
        *("datasets=[iris,wine,breast_cancer]", "solvers=[newton,mnsvm,libsvm_l1]", "protocol.seed=1"),
        *narrow,
    )


def test_a_worker_s_memory_changes_no_row(tmp_path, full_size):
    overrides = overrides_of_three(full_size)
    runs = {
        memory: run_study(tmp_path / str(memory), *overrides, f"cluster.memory={memory}")[0]
        for memory in ("null", "0.0027", "0.00001")
    }
    rows = {
        memory: run.trials.sort_values("key", ignore_index=True).drop(columns=list(RUN_COLUMNS))
        for memory, run in runs.items()
    }
    inner = runs["null"].trials["inner"] >= 0
    assert (runs["null"].trials["shared_gram"] == inner).all()
    assert (runs["null"].trials.loc[inner, "gram_seconds"] > 0).all()
    for memory in ("0.0027", "0.00001"):
        pd.testing.assert_frame_equal(rows[memory], rows["null"], check_exact=True)


def test_only_the_size_of_a_dataset_decides_whether_kernel_values_are_shared(
    tmp_path, monkeypatch, full_size
):
    """float32 moves decisions by less than 1e-5, a hundredth of what the solvers' tolerance does.

    With some other seeds, mnsvm has a test sample within this tolerance of the boundary.
    """
    overrides = overrides_of_three(full_size)
    shared, _ = run_study(tmp_path, *overrides)
    monkeypatch.setattr(preparation, "MAX_ROWS", 160)
    both, summary = run_study(tmp_path, *overrides)
    inner = both.trials["inner"] >= 0
    assert (both.trials["shared_gram"] == (inner & (both.trials["dataset"] == "iris"))).all()
    assert summary.trials_stored_before == len(shared.trials[shared.trials["dataset"] == "iris"])
    exact = both.trials[~both.trials["key"].isin(shared.trials["key"])]
    scores = [
        trials[trials["dataset"] != "iris"].set_index(AXES)["n_correct"].sort_index()
        for trials in (shared.trials, exact)
    ]
    changed = scores[0].compare(scores[1])
    assert changed.empty, changed
