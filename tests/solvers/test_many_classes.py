"""Many classes: pairs trained together equal pairs trained one by one, and decisions are sums over pairs."""

import time
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import solvers.common.resources
from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.estimators.pair_votes import MANY_CLASSES, pair_votes
from solvers.multiclass import index_of_pair, pairs_of, pairwise_decisions, votes
from solvers.path import tiles

GAMMA = 0.05
MODELS = [
    SMOSVC(C=2.0, gamma=GAMMA),
    SMOSVC(C=2.0, gamma=GAMMA, loss="l2"),
    NewtonSVC(C=2.0, gamma=GAMMA),
    MNSVC(C=2.0, gamma=GAMMA, tol=1e-3, random_state=0),
    CoreSVC(C=2.0, gamma=GAMMA, tol=1e-4, random_state=0),
]
# Their tolerance is a share of the radius of a ball, which does not determine decisions of this precision.
BALLS = [
    SphereSVC(C=2.0, gamma=GAMMA, tol=1e-3, random_state=0),
    BallSVC(C=2.0, gamma=GAMMA, tol=1e-3, random_state=0),
    BallSVC(C=2.0, kernel="linear", tol=2e-4, random_state=0),  # normalised
]


def name_of(model):
    return type(model).__name__ + getattr(model, "loss", "")


def clusters(n_classes, n_rows, n_features=10, seed=0):
    """Overlapping Gaussian clusters of unequal sizes, shuffled."""
    rng = np.random.default_rng(seed)
    centres = 0.7 * rng.standard_normal((n_classes, n_features))
    y = np.repeat(np.arange(n_classes), rng.integers(n_rows - 3, n_rows + 4, n_classes))
    rng.shuffle(y)
    return centres[y] + rng.standard_normal((y.size, n_features)), y


@pytest.fixture(scope="module")
def data():
    return clusters(14, 12)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few classes, so that a small set has several."""
    monkeypatch.setattr(tiles, "TILE_SAMPLES", 40)


def with_parameters(model, **parameters):
    return type(model)(**{**model.get_params(), **parameters})


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_pairs_trained_together_are_those_trained_one_by_one(data, small_tiles, model):
    X, y = data
    together = with_parameters(model).fit(X, y)
    assert together.converged_
    assert together.n_iter_.size == 14 * 13 // 2
    ovo = with_parameters(model, decision_function_shape="ovo").fit(X, y).decision_function(X)
    objective = 0.0
    for k, (i, j) in enumerate(pairs_of(14)):
        member = (y == i) | (y == j)
        alone = with_parameters(model).fit(X[member], y[member])
        assert alone.converged_
        objective += alone.objective_
        decisions = -alone.decision_function(X[member])  # positive for the first class
        assert_allclose(ovo[member, k], decisions, atol=0.05)
    assert_allclose(together.objective_, objective, rtol=5e-3)


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_the_dual_gap_of_every_pair_is_within_the_tolerance(data, small_tiles, model):
    """The certificate, recomputed in float64 from the published coefficients."""
    X, y = data
    fitted = with_parameters(model).fit(X, y)
    K, start = rbf_kernel(X, X, gamma=GAMMA), np.concatenate(([0], np.cumsum(fitted.n_support_)))
    support = fitted.support_
    for k, (i, j) in enumerate(pairs_of(14)):
        beta = np.zeros(y.size)
        of_i, of_j = slice(start[i], start[i + 1]), slice(start[j], start[j + 1])
        beta[support[of_i]], beta[support[of_j]] = fitted.dual_coef_[j - 1, of_i], fitted.dual_coef_[i, of_j]
        assert beta[y == i].min() >= 0.0
        assert beta[y == j].max() <= 0.0
        member = np.flatnonzero((y == i) | (y == j))
        label = np.where(y[member] == i, 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - label * (K[member] @ beta + fitted.intercept_[k]))
        weight, quadratic = np.abs(beta).sum(), beta @ K @ beta
        if isinstance(model, SMOSVC):
            is_l1 = model.loss == "l1"
            primal = 0.5 * quadratic + (2.0 * slack.sum() if is_l1 else (slack**2).sum())
            dual = weight - 0.5 * quadratic - (0.0 if is_l1 else 0.25 * (beta**2).sum())
        else:  # the bias is part of the kernel: fitted.intercept_ is the sum of the weights
            assert_allclose(fitted.intercept_[k], beta.sum(), atol=1e-9)
            quadratic += beta.sum() ** 2
            primal, dual = 0.5 * quadratic + (slack**2).sum(), weight - 0.5 * quadratic - 0.25 * beta @ beta
        assert -1e-9 <= primal - dual <= 0.01 * primal


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[3]], ids=name_of)
def test_tiles_and_threads_change_the_result_within_rounding_only(data, monkeypatch, model):
    X, y = data
    whole = with_parameters(model).fit(X, y)
    monkeypatch.setattr(tiles, "TILE_SAMPLES", 30)
    parts, threads = (with_parameters(model, n_jobs=n).fit(X, y) for n in (None, 2))
    assert_array_equal(parts.dual_coef_, threads.dual_coef_)
    assert_array_equal(parts.intercept_, threads.intercept_)
    assert_array_equal(parts.n_iter_, threads.n_iter_)
    assert_allclose(parts.objective_, whole.objective_, rtol=1e-3)
    assert_array_equal(parts.predict(X), whole.predict(X))


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[3]], ids=name_of)
def test_kernels_of_all_kinds_give_the_same_model(data, small_tiles, model):
    X, y = data
    K = rbf_kernel(X, X, gamma=GAMMA)
    dense = with_parameters(model).fit(X, y)
    for kernel, source in (
        ("rbf", sparse.csr_matrix(X)),
        ("precomputed", K),
        ("precomputed", K.astype(np.float32)),
        (lambda A, B: rbf_kernel(A, B, gamma=GAMMA), X),
    ):
        other = with_parameters(model, kernel=kernel).fit(source, y)
        assert other.converged_
        assert_allclose(other.objective_, dense.objective_, rtol=2e-3)
        assert_array_equal(other.predict(source), dense.predict(X))


@pytest.mark.parametrize("model", BALLS, ids=["SphereSVC", "BallSVC", "linear"])
def test_balls_of_tiles_are_those_of_one_gram_matrix(data, small_tiles, model):
    """The same block solver with the same draws, on the Gram matrix of all samples."""
    X, y = data
    fitted, path = with_parameters(model).fit(X, y), with_parameters(model).fit_path(X, y, [2.0])
    assert fitted.converged_
    assert path.converged_.all()
    assert_allclose(fitted.objective_, path.objective_[0], rtol=1e-3)
    assert (fitted.predict(X) == path.predict_path(X)[0]).mean() > 0.97
    objective = 0.0
    for i, j in pairs_of(14):
        member = (y == i) | (y == j)
        objective += with_parameters(model).fit(X[member], y[member]).objective_
    assert_allclose(fitted.objective_, objective, rtol=0.05)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[2], MODELS[3]], ids=name_of)
def test_sample_weights_reach_their_pairs(data, small_tiles, model):
    """Rows that are repeated equal rows with an integer weight; rows without weight are left out."""
    X, y = data
    weights = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = with_parameters(model, tol=1e-4).fit(X, y, sample_weight=weights)
    repeated = with_parameters(model, tol=1e-4).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-3)
    assert_array_equal(weighted.predict(X), repeated.predict(X))


def test_iterations_are_a_limit_of_all_pairs_together(data, small_tiles):
    X, y = data
    with pytest.warns(ConvergenceWarning):
        model = SMOSVC(C=2.0, gamma=GAMMA, max_iter=200).fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_.sum() <= 200 + 14 * 13 // 2
    enough = SMOSVC(C=2.0, gamma=GAMMA, max_iter=10**7).fit(X, y)
    assert enough.converged_
    assert_array_equal(enough.dual_coef_, SMOSVC(C=2.0, gamma=GAMMA).fit(X, y).dual_coef_)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[3]], ids=name_of)
def test_max_seconds_end_a_fit_of_many_pairs_in_time(model):
    X, y = clusters(150, 12)
    with_parameters(model).fit(X[:600], y[:600])  # compile
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped = with_parameters(model, max_seconds=0.02).fit(X, y)
    assert time.perf_counter() - started < 2.0
    assert stopped.fit_status_ == 2
    assert not stopped.converged_
    assert np.isnan(stopped.gap_)
    assert (stopped.n_iter_ == 0).any()
    assert stopped.predict(X[:3]).shape == (3,)
    ample = with_parameters(model, max_seconds=1e6).fit(X[:400], y[:400])
    assert_array_equal(ample.dual_coef_, with_parameters(model).fit(X[:400], y[:400]).dual_coef_)


def test_a_path_whose_gram_matrix_does_not_fit_is_trained_by_tiles(data, small_tiles):
    X, y = data
    Cs = [0.5, 2.0, 8.0]
    for model in (MODELS[0], MODELS[2], MODELS[3]):
        path = with_parameters(model, cache_size=0.05).fit_path(X, y, Cs)
        assert path.converged_.all()
        whole = with_parameters(model).fit_path(X, y, Cs)
        assert_allclose(path.objective_, whole.objective_, rtol=2e-3)
        labels, expected = path.predict_path(X), whole.predict_path(X)
        assert (labels == expected).mean() > 0.99


@pytest.mark.parametrize("zero_for_first", [False, True])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_and_ties_are_counted_pair_by_pair(zero_for_first, break_ties):
    n_classes, rng = 13, np.random.default_rng(0)
    decisions = rng.integers(-1, 2, (40, n_classes * (n_classes - 1) // 2)).astype(float)
    counted = votes(decisions, n_classes, zero_for_first, break_ties)
    for row, scores in zip(decisions, counted, strict=True):
        count, evidence = [0] * n_classes, [0.0] * n_classes
        for d, (i, j) in zip(row, combinations(range(n_classes), 2), strict=True):
            count[i if d > 0 or (d == 0 and zero_for_first) else j] += 1
            evidence[i] += d
            evidence[j] -= d
        tie = [e / (3 * (abs(e) + 1)) if break_ties else 0.0 for e in evidence]
        assert scores.tolist() == [c + t for c, t in zip(count, tie, strict=True)]


def test_decisions_are_the_sums_over_both_classes_of_a_pair():
    n_classes, rng = 20, np.random.default_rng(0)
    sizes = rng.integers(0, 6, n_classes)
    start = np.concatenate(([0], np.cumsum(sizes)))
    n = start[-1]
    K, coef = rng.random((9, n)), rng.standard_normal((n_classes - 1, n))
    intercept = rng.standard_normal(n_classes * (n_classes - 1) // 2)
    decisions = pairwise_decisions(K, coef, intercept, start)
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        of_i, of_j = slice(start[i], start[i + 1]), slice(start[j], start[j + 1])
        terms = np.hstack([K[:, of_i] * coef[j - 1, of_i], K[:, of_j] * coef[i, of_j]])
        expected = terms.sum(axis=1) + intercept[k]
        size = np.abs(terms).sum(axis=1) + abs(intercept[k])
        assert (np.abs(decisions[:, k] - expected) <= 4.0 * np.spacing(size)).all()


@pytest.mark.parametrize("zero_for_first", [False, True])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_without_stored_decisions_are_those_of_the_decisions(zero_for_first, break_ties):
    """All values are small integers: sums are exact, and many decisions and sums of decisions are 0."""
    n_classes, rng = 70, np.random.default_rng(0)
    start = np.concatenate(([0], np.cumsum(rng.integers(0, 7, n_classes))))
    K, coef = rng.integers(-1, 2, (9, start[-1])), rng.integers(-2, 3, (n_classes - 1, start[-1]))
    given = K.astype(float), coef.astype(float), rng.integers(-1, 2, n_classes * (n_classes - 1) // 2) * 1.0
    expected = votes(pairwise_decisions(*given, start), n_classes, zero_for_first, break_ties)
    assert_array_equal(pair_votes(*given, start, zero_for_first, break_ties), expected)


def test_many_small_classes_get_the_labels_of_the_decisions():
    X, y = clusters(MANY_CLASSES, 5)
    model = SMOSVC(C=2.0, gamma=GAMMA).fit(X, y)
    assert model._has_many_small_classes()
    decisions = model.set_params(decision_function_shape="ovo").decision_function(X)
    assert_array_equal(model.predict(X), votes(decisions, MANY_CLASSES).argmax(axis=1))
    one_by_one = np.concatenate([model.predict(X[i : i + 1]) for i in range(40)])
    assert_array_equal(one_by_one, model.predict(X)[:40])


def test_predictions_do_not_depend_on_how_samples_are_passed(data):
    X, y = data
    model = SMOSVC(C=2.0, gamma=GAMMA).fit(X, y)
    labels = model.predict(X)
    assert_array_equal(model.predict(sparse.csr_matrix(X)), labels)
    assert_array_equal(np.concatenate([model.predict(X[i : i + 1]) for i in range(30)]), labels[:30])
    small = SMOSVC(C=2.0, gamma=GAMMA, cache_size=0.01).fit(X, y)
    assert len(small._blocks(len(X))) > 10
    assert_array_equal(small.predict(X), labels)


def test_memory_is_stated_before_training(monkeypatch, data):
    X, y = data
    monkeypatch.setattr(solvers.common.resources, "SMALL", 0)
    monkeypatch.setattr(solvers.common.resources, "available_bytes", lambda: 40_000.0)
    for train in (lambda m: m.fit(X, y), lambda m: m.fit_path(X, y, [1.0, 2.0])):
        with pytest.raises(MemoryError, match="14 classes"):
            train(SMOSVC(gamma=GAMMA, cache_size=0.01))


def test_indices_of_pairs_count_up():
    assert [index_of_pair(i, j, 7) for i, j in pairs_of(7)] == [*range(21)]


def test_tiles_hold_all_classes_in_order():
    sizes = np.array([3, 600, 2, 2, 300, 300, 1, 511, 512, 5])
    start = np.concatenate(([0], np.cumsum(sizes)))
    found = tiles.tiles_of_classes(start)
    assert [(t.start, t.stop) for t in found] == [(start[t.first], start[t.last]) for t in found]
    assert [t.first for t in found] == [0, *(t.last for t in found[:-1])]
    assert found[-1].last == sizes.size
    assert all(t.stop - t.start <= tiles.TILE_SAMPLES or t.last == t.first + 1 for t in found)
