"""The sample to step with, against its definition."""

import numpy as np
import pytest

from solvers.common.pair_selection import GMDM, IMDM, MDM, best_partner, choose_partner, lowest_support


def partner(pair, exponent, v, K, g, alpha, support):
    args = (K[v], g, alpha, np.diag(K).copy(), support.astype(np.uint32), support.size, np.empty(g.size))
    return choose_partner(pair, exponent, v, *args)


@pytest.mark.parametrize("seed", range(20))
def test_partner_is_the_best_by_its_definition(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5))
    K = X @ X.T + np.eye(20)
    g = rng.standard_normal(20)
    support = rng.permutation(20)[:12]
    alpha = np.zeros(20)
    alpha[support] = rng.random(12) / 3
    v = 0
    ahead = g - g[v]
    D = np.diag(K) + K[v, v] - 2 * K[v]
    D[v] = 1.0
    beta = np.minimum(ahead / D, alpha)
    gains = {
        MDM: ahead,
        IMDM: beta * (2 * ahead - beta * D),
        GMDM: ahead / D**0.2,
    }
    for pair, gain in gains.items():
        allowed = [p for p in support if ahead[p] > 0]
        expected = max(allowed, key=lambda p: gain[p]) if allowed else -1
        assert partner(pair, 0.4, v, K, g, alpha, support) == expected
        assert best_partner(pair, 0.4, g, alpha, K[v], np.diag(K).copy(), v) == expected
    for exponent in (0.5, 1.0):
        expected = partner(GMDM, exponent, v, K, g, alpha, support)
        assert best_partner(GMDM, exponent, g, alpha, K[v], np.diag(K).copy(), v) == expected
    assert lowest_support(g, support.astype(np.uint32), 12, np.empty(20)) == support[g[support].argmin()]


def test_no_partner_where_nobody_lies_ahead():
    K, g = np.eye(3), np.array([1.0, 0.5, -2.0])
    assert partner(IMDM, 1.0, 0, K, g, np.full(3, 1 / 3), np.arange(3)) == -1
