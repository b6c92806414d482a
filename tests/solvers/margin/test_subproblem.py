"""Rounds on blocks of samples near the margin: few, within the bounds, and ended by the clock."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from solvers import SMOSVC, NewtonSVC
from solvers.kernels.tiles import scaled_samples
from solvers.margin import dual_point
from solvers.margin import subproblem as rules
from tests.solvers.small_problems import CACHE, CS, overlapping, problem_of, violation_and_objective


@pytest.mark.parametrize("rows_of_block", [40, 150])
def test_a_block_of_few_samples_is_enough(rows_of_block, monkeypatch, trained):
    """More weights are free than the block can contain."""
    X, y = overlapping(n=400)
    monkeypatch.setattr(rules.MarginBlock, "__init__", limited(rules.MarginBlock.__init__, rows_of_block))
    path = SMOSVC(gamma=4.0, cache_size=1.2).fit_path(X, y, CS[:5])
    assert path.n_support_.min() > rows_of_block
    assert path.converged_.all()
    for k in range(5):
        assert violation_and_objective(trained[-1], X, y, 4.0, k)[0] <= 1e-3


def test_rounds_on_small_blocks_of_any_free_samples_are_few(monkeypatch, trained):
    X, y = overlapping(n=400)
    monkeypatch.setattr(rules.MarginBlock, "__init__", limited(rules.MarginBlock.__init__, 100))
    rounds, minimise_on_block = [], rules.LargeSubproblem._minimise_on_block
    monkeypatch.setattr(
        rules.LargeSubproblem,
        "_minimise_on_block",
        lambda self, *limits: rounds.append(1) or minimise_on_block(self, *limits),
    )
    path = SMOSVC(gamma=0.5, loss="l2", cache_size=1.2).fit_path(X, y, [1.0, 16.0])
    assert path.n_support_.min() > 150
    assert path.converged_.all()
    assert violation_and_objective(trained[-1], X, y, 0.5, 1, loss="l2")[0] <= 1e-3
    assert len(rounds) <= 60  # 91 if the samples farthest from the margin are chosen


def limited(construct, rows):
    def constructed(self, *args):
        construct(self, *args)
        self.capacity = min(rows, self.capacity)

    return constructed


@pytest.mark.parametrize(("loss", "C"), [("l1", 4.0), ("l1", 0.05), ("l2", 4.0), ("newton", 4.0)])
def test_whenever_time_is_over_what_is_said_of_the_model_holds(loss, C, monkeypatch):
    """Time ends at each reading of the clock in turn, also while the gradient of all samples is computed."""
    X, y = overlapping(seed=5)
    K, sign = rbf_kernel(X, gamma=0.5), np.where(y == 1, 1.0, -1.0)
    ridge = 0.0 if loss == "l1" else 1.0 / C
    monkeypatch.setattr(dual_point, "ROWS_AT_A_TIME", 32)
    monkeypatch.setattr(dual_point, "VALUES_BEFORE_CHECK", 1)
    make = NewtonSVC if loss == "newton" else lambda **given: SMOSVC(loss=loss, **given)
    weights, is_done = [], False
    while not is_done:
        looks = iter([0.0] * len(weights))
        for module in (rules, dual_point):
            monkeypatch.setattr(module, "clock", lambda looks=looks: next(looks, np.inf))
        model = make(C=C, gamma=0.5, cache_size=CACHE, max_seconds=1e6).fit(X, y)
        is_done = model.fit_status_ == 0
        beta = np.zeros(y.size)
        beta[model.support_] = model.dual_coef_[0]
        weights.append(np.abs(beta).sum())
        assert (sign * beta >= 0.0).all()
        assert (np.abs(beta) <= (C if loss == "l1" else np.inf)).all()
        assert is_done or model.fit_status_ == 2
        level = K @ beta
        np.testing.assert_allclose(model.decision_function(X), level + model.intercept_, atol=1e-9)
        if loss == "newton":
            assert model.intercept_ == pytest.approx(beta.sum())
            continue
        assert abs(beta.sum()) <= 1e-9 * weights[-1]
        dual = weights[-1] - 0.5 * beta @ (level + ridge * beta)
        assert model.objective_ == pytest.approx(-dual)
        slack = np.maximum(0.0, 1.0 - sign * (level + model.intercept_))
        loss_of_slack = C * slack.sum() if loss == "l1" else 0.5 * C * (slack**2).sum()
        primal = 0.5 * beta @ level + loss_of_slack
        assert not model.gap_ < (primal - dual) / primal - 1e-12  # the gap may be NaN
    assert len(set(weights)) > 3


def test_samples_just_inside_the_margin_get_no_more_weight_than_some_of_them_have():
    """At a large C, the low tolerance of the subsample may put most samples just inside the margin."""
    X, _ = overlapping(n=200)
    problem, signs = problem_of(X), np.repeat([1.0, -1.0], 100)
    samples = scaled_samples(problem.X, 1.0)
    subproblem = rules.LargeSubproblem(samples, X.shape[1], problem.rows.astype(np.int64), signs, 1e8)
    subproblem.set_C(np.full(200, 64.0))
    margins = np.where(np.arange(200) % 100 < 50, -1e-3, 1.0) + 1e-6 * np.arange(200)
    classes = [np.arange(100), np.arange(100, 200)]
    for largest, n_first in ((64.0 * 7.5, 7.5), (1e6, 50.0)):
        beta = subproblem._at_bounds(margins, classes, largest)
        np.testing.assert_allclose((beta[:100].sum(), beta[100:].sum()), (64 * n_first, -64 * n_first))
        assert np.count_nonzero(np.abs(beta) == 64.0) == 2 * int(n_first)
        assert (margins[beta != 0.0] < 0.0).all()
