"""The anytime-valid test over datasets: published values, what it promises, and what it costs."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.sequential import all_decided, datasets_needed, e_values, sequential, wealth
from orchestrator.analysis.signed_rank import critical_value, signed_rank
from orchestrator.analysis.statistics import holm
from tests.orchestrator.analysis.golden import M_MINUS_C45, TEN, by_dataset


def test_golden_evidence():
    expected = [1, 1.3333, 1.9167, 3.3833, 2.8222, 4.8242, 6.6312, 12.5225, 18.7836, 30.7366]
    assert e_values(by_dataset(TEN)) == pytest.approx(expected, abs=5e-5)
    demsar = by_dataset(np.array(M_MINUS_C45) / 100)
    assert e_values(demsar)[-1] == pytest.approx(19.8952, abs=5e-5)
    assert signed_rank(demsar).p < 0.05, "which is for a fixed number of datasets"


def test_the_fewest_datasets_that_can_decide():
    largest = wealth(np.arange(1.0, 8)).mean(axis=0)
    assert largest[5:] == pytest.approx([13.41, 25.14], abs=0.005)
    assert datasets_needed(1) == 7
    assert wealth(np.arange(1.0, datasets_needed(12) + 1)).mean(axis=0)[-1] >= 240


def test_the_evidence_is_a_martingale_of_mean_one_under_symmetry():
    # Over all sign patterns of any sizes, ties and zeros among them.
    for sizes in ([1, 2, 3, 4, 5, 6], [3, 1, 1, 2, 3, 3], [0, 2, 0, 1, 1, 5], [6, 5, 4, 3, 2, 1]):
        signs = np.array(list(product([-1, 1], repeat=len(sizes))))
        evidence = wealth(signs * np.array(sizes, dtype=float)).mean(axis=0)
        assert evidence.mean(axis=0) == pytest.approx(np.ones(len(sizes)), abs=1e-12)


def test_a_zero_changes_nothing_and_signs_mirror():
    with_zero = e_values(by_dataset([0.3, 0.0, -0.1, 0.2]))
    assert with_zero[1] == with_zero[0]
    assert np.array_equal(e_values(by_dataset([-0.3, 0.0, 0.1, -0.2])), with_zero)


def frame(columns):
    return pd.DataFrame(columns, index=[f"d{i}" for i in range(len(next(iter(columns.values()))))])


def test_a_pair_is_decided_once_and_in_the_direction_of_its_evidence():
    means = frame({"a": TEN, "b": [0.0] * 10})
    (found,) = sequential(means).to_dict("records")
    assert (found["decided_after"], found["verdict"], found["n"]) == (10, "higher", 10)
    assert found["p"] == pytest.approx(1 / 30.7366, abs=1e-6)
    (lower,) = sequential(means[["b", "a"]]).to_dict("records")
    assert (lower["verdict"], lower["p"]) == ("lower", found["p"])
    back = pd.concat([means, frame({"a": [-0.1] * 5, "b": [0.0] * 5}).rename(index=lambda i: f"{i}'")])
    (still,) = sequential(back).to_dict("records")
    assert (still["decided_after"], still["verdict"], still["p"]) == (10, "higher", found["p"])
    assert still["evidence"] < still["largest_evidence"]
    assert all_decided(sequential(back))


def test_several_pairs_share_the_level_by_holm():
    generator = np.random.default_rng(3)
    means = frame(
        {name: generator.normal(shift, 0.01, 25) for name, shift in zip("abc", (0, 0, 0.02), strict=True)}
    )
    found = sequential(means)
    assert found["p_holm"].to_numpy() == pytest.approx(holm(found["p"].to_numpy()))
    assert found["verdict"].tolist() == ["open", "lower", "lower"]
    assert not all_decided(found)
    for row in found[found["verdict"] != "open"].to_dict("records"):
        after = int(row["decided_after"])
        now, before = (sequential(means.iloc[:n]) for n in (after, after - 1))
        pair = (now["first"] == row["first"]) & (now["second"] == row["second"])
        assert now[pair]["verdict"].item() == "lower"
        assert before[pair]["verdict"].item() == "open"
    assert (sequential(means, also_tested=9)["p_holm"] >= found["p_holm"]).all()


def test_datasets_count_as_far_as_they_are_complete_in_order():
    means = frame({"a": TEN, "b": [0.0] * 10})
    means.iloc[4, 0] = np.nan
    assert sequential(means)["n"].item() == 4
    means.iloc[0, 1] = np.nan
    (none,) = sequential(means).to_dict("records")
    assert (none["n"], none["p"], none["verdict"]) == (0, 1, "open")
    assert not all_decided(sequential(means[["a"]]))


@pytest.mark.parametrize(
    ("n_datasets", "n_studies"),
    [
        (30, 2_000),
        pytest.param(30, 20_000, marks=pytest.mark.full),
        pytest.param(100, 20_000, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("zeros", [0.0, 0.38])
def test_peeking_after_every_dataset_keeps_the_level(n_datasets, n_studies, zeros):
    generator = np.random.default_rng(17)
    values = generator.standard_normal((n_studies, n_datasets))
    values[generator.random(values.shape) < zeros] = 0.0
    found = (wealth(values).mean(axis=0) >= 20).any(axis=1).mean()
    assert found <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)
    if zeros == 0:
        naive = naive_rate(values[:2_000])
        print(f"{n_datasets} datasets, false positives: naive {naive:.3f}, sequential {found:.3f}")
        assert found == pytest.approx({30: 0.032, 100: 0.039}[n_datasets], abs=0.012)
        assert naive == pytest.approx({30: 0.199, 100: 0.304}[n_datasets], abs=0.035)


def naive_rate(values):
    """The share of studies in which some look at the signed-rank test finds p up to 0.05."""
    n_studies, n_datasets = values.shape
    ever = np.zeros(n_studies, dtype=bool)
    for n in range(6, n_datasets + 1):
        order = np.argsort(np.abs(values[:, :n]), axis=1)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, n + 1)[np.newaxis], axis=1)
        plus = (ranks * (values[:, :n] > 0)).sum(axis=1)
        ever |= np.minimum(plus, n * (n + 1) // 2 - plus) <= critical_value(n, 0.05)
    return ever.mean()


def test_one_standard_deviation_stops_half_way():
    values = np.random.default_rng(5).normal(1, 1, (2_000, 30))
    reached = wealth(values).mean(axis=0) >= 20
    stops = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, 30)
    print(f"mean stop {stops.mean():.1f} of 30, decided {reached.any(axis=1).mean():.3f}")
    assert stops.mean() == pytest.approx(13.9, abs=0.4)
    assert stops.mean() <= 15
    assert reached.any(axis=1).mean() > 0.98
