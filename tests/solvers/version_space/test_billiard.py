"""The billiard stays in the version space, and its mean is the centre of mass."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from solvers import BayesPointClassifier
from solvers.common.status import CONVERGED
from solvers.version_space.billiard import (
    BOUNCES,
    LENGTH,
    N_ARCS,
    Player,
    Rules,
    draw_directions,
    least_arcs,
    play,
    table_of,
)
from tests.messages import assert_says, raises

NEVER = np.inf


def geodesic(restart=2.0 * np.pi, tol=1e-12, max_bounces=10**9):
    return Rules(restart, False, tol, max_bounces, NEVER)


def flown(H, n_arcs, seed=0, **options):
    player = Player(table_of(H), geodesic(**options), [seed, 0])
    player.fly(n_arcs)
    return player.ball


def unit(v, H=None):
    return v / np.sqrt(v @ (v if H is None else H @ v))


@pytest.mark.parametrize("n", [2, 3, 10, 50])
def test_an_orthant(n):
    ball = flown(np.eye(n), 20_000 if n < 50 else 6_000)
    flight = ball.numbers[LENGTH] / ball.counts[BOUNCES]
    assert flight == pytest.approx(np.pi / n, rel=1e-2)
    assert np.linalg.norm(unit(ball.W) - 1 / np.sqrt(n)) <= 1e-2


@pytest.mark.parametrize("n", [3, 10, 50])
def test_without_restarts_an_orthant_is_not_ergodic(n):
    table = table_of(np.eye(n))
    player = Player(table, Rules(NEVER, False, 1e-12, 100_000, NEVER), [3])
    player.fly_by_rule()
    directions, _ = draw_directions(table, np.random.default_rng([3]), player._n_drawn)
    b, v = table.start, directions[0] - (directions[0] @ table.start) * table.start
    assert_allclose(unit(player.ball.W), unit(np.sqrt(b**2 + unit(v) ** 2)), atol=1e-3)
    assert np.linalg.norm(unit(player.ball.W) - 1 / np.sqrt(n)) > 0.05


def triangle(seed):
    """Return inward unit normals of a triangle on the sphere, and its Gram matrix."""
    normals = np.random.default_rng(seed).normal(size=(3, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return normals, normals @ normals.T


@pytest.mark.parametrize("seed", range(4))
def test_the_centre_of_a_triangle_is_the_sum_of_edges_times_normals(seed):
    normals, H = triangle(seed)
    corners = [unit(np.linalg.inv(normals)[:, k]) for k in range(3)]
    edges = [np.arccos(corners[(k + 1) % 3] @ corners[(k + 2) % 3]) for k in range(3)]
    exact = unit(np.array(edges) @ normals)
    mean = unit(flown(H, 20_000).W @ normals)
    assert np.arccos(min(1.0, exact @ mean)) <= 1e-2
    svm = unit(table_of(H).start @ normals)  # the direction of the SVM fails the test
    vertices = unit(sum(corners))  # so does the mean of the corners
    assert min(np.arccos(exact @ svm), np.arccos(exact @ vertices)) > 1e-2


def test_six_dimensions_by_rejection_samples():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(6, 6)) + 1.0
    samples = rng.normal(size=(1_000_000, 6))
    samples = samples[(samples @ normals.T > 0).all(axis=1)]
    samples /= np.linalg.norm(samples, axis=1)[:, None]
    mean = unit(flown(normals @ normals.T, 20_000).W @ normals)
    assert samples.shape[0] > 2_000
    assert np.arccos(unit(samples.mean(axis=0)) @ mean) <= 0.02


def test_the_ball_never_leaves_the_version_space():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    H = y * (np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) + 1.0) * y[:, None] + 1e-3 * np.eye(40)
    player = Player(table_of(H), geodesic(), [0])
    for bounces in range(1, 300):  # one bounce a call
        player.rules = geodesic(max_bounces=bounces)
        player.fly(10**6)
        ball = player.ball
        assert ball.d.min() >= 0.0
        assert_allclose(ball.d, H @ ball.gamma, atol=1e-10)
        assert_allclose(ball.u, H @ ball.beta, atol=1e-10)
        assert ball.gamma @ H @ ball.gamma == pytest.approx(1.0)
        assert abs(ball.gamma @ H @ ball.beta) < 1e-10
    whole = Player(table_of(H), geodesic(max_bounces=299), [0])
    whole.fly(10**6)
    assert_allclose(whole.ball.W, player.ball.W, rtol=1e-9, atol=1e-12)


def test_the_error_falls_with_the_root_of_the_bounces():
    n, errors, arcs = 20, [], np.array([50, 200, 800, 3200])
    for seed in range(12):
        player = Player(table_of(np.eye(n)), geodesic(), [seed])
        errors.append([])
        for n_arcs in arcs:
            player.fly(n_arcs)
            errors[-1].append(np.linalg.norm(unit(player.ball.W) - 1 / np.sqrt(n)))
    slope = np.polyfit(np.log(arcs), np.log(np.mean(errors, axis=0)), 1)[0]
    assert -0.6 <= slope <= -0.4


@pytest.mark.parametrize("flight", ["geodesic", "euclidean"])
def test_the_rule_of_the_paper_ends_and_its_balls_are_compared(two_classes, flight):
    X, y = two_classes
    options = {"C": 10.0, "gamma": 0.5, "restart": None, "flight": flight, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesPointClassifier(**options, tol=1e-3).fit(X, y)
    assert model.fit_status_ in (0, 6)
    assert model.converged_ == (model.gap_ <= 1e-3)
    assert 500 < model.n_iter_[0] < 200_000
    exact = BayesPointClassifier(C=10.0, gamma=0.5, tol=1e-3, random_state=1).fit(X, y)
    cosine = np.corrcoef(model.decision_function(X), exact.decision_function(X))[0, 1]
    assert cosine > 0.9


def test_two_samples_are_bisected():
    H = np.array([[1.0, 0.6], [0.6, 1.0]])
    assert_allclose(unit(flown(H, 500).W), unit(np.ones(2)), atol=0.02)
    played = play(table_of(H), geodesic(tol=1e-5), 2, 0)
    assert_allclose(played.mean, np.ones(2) / np.sqrt(H.sum()), atol=0.01)
    assert flown(H, 500).counts[N_ARCS] == 500


def test_equal_seeds_give_equal_bits_for_any_number_of_threads(two_classes, iris):
    for X, y in (two_classes, iris):
        models = [
            BayesPointClassifier(C=5.0, gamma=0.5, tol=0.01, n_jobs=n, random_state=7).fit(X, y)
            for n in (None, 2, 3)
        ]
        for model in models[1:]:
            assert_array_equal(model.dual_coef_, models[0].dual_coef_)
            assert model.gap_ == models[0].gap_
    other = BayesPointClassifier(C=5.0, gamma=0.5, tol=0.01, random_state=8).fit(X, y)
    assert not np.array_equal(other.dual_coef_, models[0].dual_coef_)


def test_balls_that_disagree_are_never_silent(two_classes):
    X, y = two_classes
    with pytest.warns(UserWarning, match=r"rad apart, expected at most .*raise max_bounces"):
        model = BayesPointClassifier(gamma=0.5, max_bounces=200, random_state=0).fit(X, y)
    assert (model.fit_status_, model.converged_) == (1, False)
    assert "max_bounces; the balls are" in model.stopping_
    hard = {"C": 1e8, "gamma": 0.1, "restart": None, "flight": "euclidean", "random_state": 0}
    with pytest.warns(UserWarning, match="rad apart"):
        model = BayesPointClassifier(**hard, tol=0.002).fit(X, y)
    assert np.arccos(1 - model.gap_) > 0.1
    assert model.fit_status_ == 6
    path = BayesPointClassifier(**hard, tol=0.002).fit_path(X, y, [1e8])
    assert (path.fit_status_.tolist(), path.converged_.tolist()) == ([6], [False])


def warning_of(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert len(caught) == 1
    return str(caught[0].message)


def test_an_angle_of_more_than_a_tenth_is_said_even_if_tol_allows_it(two_classes):
    X, y = two_classes
    texts = []
    for seed in range(5):
        model = BayesPointClassifier(C=100.0, gamma=2.0, tol=0.1, restart=2.0, random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        assert model.converged_
        assert len(caught) == (np.arccos(1.0 - model.gap_) > 0.1)
        texts += [str(each.message) for each in caught]
    assert texts
    assert_says(texts[0], "rad apart", "tol=0.1", "0.1 rad", "set tol to at most 0.005")


def test_flights_that_end_too_early_are_no_agreement(two_classes):
    X, y = two_classes
    model = BayesPointClassifier(gamma=0.5, tol=0.5, max_bounces=200, random_state=0)
    text = warning_of(model, X, y)
    assert (model.fit_status_, model.gap_ <= 0.5) == (1, True)
    assert_says(text, "rad apart", "64 arcs", "raise max_bounces")
    assert_says(model.stopping_, "so early")
    text = warning_of(model.set_params(restart=None, tol=0.3, max_bounces=2), X, y)
    assert_says(text, "rad apart", "rule", "raise max_bounces")
    text = warning_of(model.set_params(restart=6.0, max_seconds=1e-9), X, y)
    assert_says(text, "no ball has flown", "raise max_seconds")


def test_a_tolerance_that_is_out_of_reach_is_answered_by_the_bounces_that_it_takes(two_classes):
    X, y = two_classes
    model = BayesPointClassifier(gamma=0.5, tol=1e-16, max_bounces=2000, random_state=0)
    text = warning_of(model, X, y)
    bounces = 2000 * model.gap_ / 1e-16
    assert_says(text, f"{bounces:.1g} bounces", "tol=1e-16", "raise max_bounces")


def test_short_arcs_fly_until_they_have_left_the_start():
    assert [least_arcs(restart) for restart in (NEVER, 6.0, 0.25, 0.1, 0.01)] == [64, 64, 64, 400, 40_000]
    for restart in (0.1, 0.02):  # 64 arcs of 0.02 rad would end at the start, and agree
        played = play(table_of(np.eye(20)), geodesic(restart, tol=0.05), 2, 0)
        assert played.status == CONVERGED
        assert played.bounces > 200
        assert np.linalg.norm(played.mean - 1 / np.sqrt(20)) < 0.3


def test_what_is_refused(two_classes):
    X, y = two_classes
    refused = {
        "restart": (0.0, -1.0, np.nan, np.inf, 1e-9),
        "balls": (1,),
        "max_bounces": (0,),
        "C": (np.inf,),
        "tol": (0.0,),
    }
    for name, values in refused.items():
        for value in values:
            with raises(ValueError, name, "BayesPointClassifier", f"Got {value!r}"):
                BayesPointClassifier(**{name: value}).fit(X, y)
    with pytest.raises(MemoryError, match=r"cache_size=0\.1 MB allows 79 samples"):
        BayesPointClassifier(cache_size=0.1).fit(X, y)
    with raises(ValueError, "BayesPointClassifier", "not positive definite", "eigenvalue -1", "smaller C"):
        BayesPointClassifier(kernel="precomputed", C=1e6).fit(-np.eye(y.size), y)
    with pytest.raises(ValueError, match="NaN"):
        BayesPointClassifier(kernel="precomputed").fit(np.full((y.size, y.size), np.nan), y)


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_positive_factors_of_rows_change_only_the_noise(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
    factors = np.where(np.arange(30) % 2, scale, 1.0)[:, None]
    options = {"kernel": "linear", "bias": "none", "C": 1e9, "tol": 1e-3, "random_state": 0}
    directions = [unit(BayesPointClassifier(**options).fit(Z, y).coef_[0]) for Z in (X, factors * X)]
    assert directions[0] @ directions[1] > 0.995
