"""Maps of inner scores, growth of training times, and posteriors as triangles."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress
from scipy.stats import t as student

from orchestrator.analysis import findings as frames
from orchestrator.analysis.bayesian import DENSITY_CELLS, bayesian_signed_rank, posterior_density
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.inner_scores import over_datasets, visits_differ
from orchestrator.report import write_report
from tests.messages import assert_sentence
from tests.orchestrator.report.frames import GAMMA, QUICKSTART, C, drop, edit, make_results


def mapped(tmp_path):
    """Scores that fall with the distance from C = 1, γ = 0.1, by twice as much on wine."""
    results = make_results(tmp_path, QUICKSTART)
    for dataset, factor in (("iris", 1), ("wine", 2), ("breast_cancer", 1)):
        for i, c in enumerate(C):
            for j, gamma in enumerate(GAMMA):
                results = edit(
                    results,
                    lambda f, d=dataset, c=c, g=gamma: (
                        (f.dataset == d) & (f.param_C == c) & (f.param_gamma == g) & (f.inner >= 0)
                    ),
                    score=0.95 - factor * 0.01 * (abs(i - 1) + j),
                )
    return results


def test_inner_scores_are_means_over_trainings_and_their_distances_from_the_best(tmp_path):
    results = mapped(tmp_path)
    findings = analyse(results)
    frame = frames.inner_scores(findings)
    assert len(frame) == 3 * 2 * 6
    assert set(frame["n"]) == {10}
    inner = results.trials[results.trials["inner"] >= 0]
    names = ["solver", "dataset", "param_C", "param_gamma"]
    expected = inner.groupby(names)["score"].mean()
    for row in frame.itertuples():
        assert row.score == pytest.approx(expected[row.solver, row.dataset, row.x, row.y])
    assert frame["chosen"].sum() == len(results.selections)
    means = over_datasets(frame).set_index(["solver", "x", "y"])["below_best"]
    assert means["mnsvm", 1.0, 0.1] == 0
    assert means["mnsvm", 4.0, 1.0] == pytest.approx(-(0.02 + 0.04 + 0.02) / 3)
    assert not visits_differ(frame)
    fewer = drop(results, lambda f: (f.param_C == 4) & (f.dataset == "iris") & (f.inner == 1))
    assert visits_differ(frames.inner_scores(analyse(fewer)))
    one_axis = make_results(tmp_path, QUICKSTART)
    for each in one_axis.provenance[0]["study"]["arms"]:
        each["space"] = {"C": list(C)}
    assert frames.inner_scores(analyse(one_axis)).empty


@pytest.mark.figures("inner_scores", "inner_scores_by_dataset")
def test_maps_are_on_the_page_and_their_numbers_in_the_json(tmp_path):
    results = mapped(tmp_path)
    write_report(results, tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    for name in ("inner_scores", "inner_scores_by_dataset"):
        assert f'id="figure-{name}"' in page
    assert "<image" not in page
    assert " Dots " not in page
    twin = json.loads((tmp_path / "report" / "report.json").read_text())
    assert len(twin["figures"]["inner_scores"]) == 36
    few = drop(results, lambda f: (f.param_C == 4) & (f.inner == 1))
    write_report(few, tmp_path / "few")
    assert " Dots " in (tmp_path / "few" / "index.html").read_text()


def timed(tmp_path, n_datasets, exponent=2.0):
    """Training times as a power of the number of rows, with a disturbance, and another of one arm."""
    means = {f"d{i}": {"a": 0.9, "b": 0.8} for i in range(n_datasets)}
    results = make_results(tmp_path, means, profile="timing")
    for i in range(n_datasets):
        rows = 100 * 2**i
        for arm, power in (("a", exponent), ("b", 1.0)):
            results = edit(
                results,
                lambda f, i=i, arm=arm: (f.dataset == f"d{i}") & (f.solver == arm),
                n_train=rows,
                n_sv=rows // 4,
                fit_seconds=1e-6 * rows**power * (1 + 0.1 * (-1) ** i),
            )
    return results


def test_exponents_are_those_of_a_regression_of_logarithms(tmp_path):
    findings = analyse(timed(tmp_path, 6))
    frame = frames.power_laws(findings).set_index(["solver", "predictor"])
    sizes = 100 * 2.0 ** np.arange(6)
    for arm, power in (("a", 2.0), ("b", 1.0)):
        seconds = 1e-6 * sizes**power * (1 + 0.1 * (-1.0) ** np.arange(6))
        fit = linregress(np.log(sizes), np.log(seconds))
        row = frame.loc[arm, "n_train"]
        reach = student.ppf(0.975, 4) * fit.stderr
        assert row["exponent"] == pytest.approx(fit.slope)
        assert (row["low"], row["high"]) == (
            pytest.approx(fit.slope - reach),
            pytest.approx(fit.slope + reach),
        )
        assert row["r2"] == pytest.approx(fit.rvalue**2)
        assert row["factor"] == pytest.approx(np.exp(fit.intercept))
        assert (row["n"], row["smallest"], row["largest"]) == (6, 100, 3200)
    assert frame.loc[("a", "n_sv"), "exponent"] == pytest.approx(frame.loc[("a", "n_train"), "exponent"])


def test_no_exponent_without_timing_rows_enough_sizes_or_finished_trainings(tmp_path):
    assert frames.power_laws(analyse(timed(tmp_path, 4))).empty
    assert frames.power_laws(analyse(make_results(tmp_path, QUICKSTART))).empty
    stopped = edit(
        timed(tmp_path, 5),
        lambda f: (f.dataset == "d0") & (f.solver == "a") & (f.outer == 1),
        status="timeout",
    )
    assert set(frames.power_laws(analyse(stopped))["solver"]) == {"b"}
    same = edit(timed(tmp_path, 6), lambda f: f.solver == "a", n_train=500, n_sv=20)
    assert set(frames.power_laws(analyse(same))["solver"]) == {"b"}


@pytest.mark.figures("scaling")
def test_growth_is_reported_with_its_interval(tmp_path):
    write_report(timed(tmp_path, 6), tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert 'id="figure-scaling"' in page
    assert_sentence(page, "training time", "grow")
    assert "Student's t" in page.replace("&#39;", "'")
    without = make_results(tmp_path, QUICKSTART, profile="timing")
    write_report(without, tmp_path / "without")
    assert '-scaling"' not in (tmp_path / "without" / "index.html").read_text()


POINTS = [0.5, -0.8, 1.7, 3.3, 0.6, -0.5, 0.7, 0, 6.3, 0, 2.2, 4.7, 0.9, 2.1]


def test_a_posterior_s_draws_have_the_probabilities_and_means_of_the_test():
    differences = pd.Series(np.array(POINTS) / 100, index=[f"d{i}" for i in range(14)])
    density = posterior_density(differences, 0.01)
    names = ["better", "equal", "worse"]
    np.testing.assert_allclose(density[names].sum(axis=1), 1)
    assert density["share"].sum() == pytest.approx(1)
    # The exact means of the shares (see notes on Demšar's table); a cell is 1/24 wide.
    means = (density[names].T * density["share"]).sum(axis=1)
    np.testing.assert_allclose(means, [0.56507, 0.43493, 0], atol=0.6 / DENSITY_CELLS)
    posterior = bayesian_signed_rank(differences, 0.01)
    better = density["share"][density["better"] > density["equal"]].sum()
    assert better == pytest.approx(posterior.better, abs=0.03)
    mirrored = posterior_density(-differences, 0.01)
    back = mirrored.rename(columns={"better": "worse", "worse": "better"}).sort_values(names)
    np.testing.assert_allclose(back[names], density.sort_values(names)[names])
    np.testing.assert_allclose(back["share"], density.sort_values(names)["share"])
    nothing = posterior_density(pd.Series(0.0, index=[*"abcdef"]), 0.01)
    assert nothing[["equal", "share"]].to_numpy().tolist() == [[pytest.approx(1 - 2 / 72), 1.0]]


@pytest.mark.figures("triangles")
def test_triangles_stand_beside_the_probabilities(tmp_path):
    means = {f"d{i}": {"m": 0.8 + value / 100, "C4.5": 0.8} for i, value in enumerate(POINTS)}
    results = make_results(tmp_path, means)
    findings = analyse(results)
    assert set(
        zip(frames.densities(findings)["first"], frames.densities(findings)["second"], strict=True)
    ) == {("m", "C4.5")}
    write_report(results, tmp_path / "report", findings)
    assert 'id="figure-triangles"' in (tmp_path / "report" / "index.html").read_text()
    assert frames.densities(analyse(make_results(tmp_path, QUICKSTART))).empty
