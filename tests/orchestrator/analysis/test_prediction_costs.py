"""Costs of predictions beside accuracy, checked by hand."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.prediction_costs import COST, class_rates, pareto_front
from tests.orchestrator.report.frames import make_results

MEANS = {
    "a": {"whole": 0.95, "tenth": 0.94, "slow": 0.90},
    "b": {"whole": 0.85, "tenth": 0.86, "slow": 0.80},
    "c": {"whole": 0.70, "tenth": 0.69, "slow": 0.60},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Predictions of `whole` take 0.5 s for 200 rows; the others 0.1 and 2 s, times 1, 2, 3 by dataset."""
    seconds = {"whole": 5.0, "tenth": 1.0, "slow": 20.0}
    folder = tmp_path_factory.mktemp("results")
    return analyse(make_results(folder, MEANS, profile="timing", seconds=seconds))


def test_seconds_per_row_and_the_front(study):
    frame = findings.prediction_costs(study).set_index(["dataset", "solver"])
    assert frame.loc[("a", "whole"), COST] == pytest.approx(0.5 / 200)
    assert frame.loc[("c", "slow"), COST] == pytest.approx(3 * 2.0 / 200)
    assert frame.xs("tenth", level=1)["speed_up"].tolist() == pytest.approx([5.0] * 3)
    assert frame.loc[("a", "tenth"), "score_difference"] == pytest.approx(-0.01)
    assert frame["on_front"].tolist() == [True, True, False, False, True, False, True, True, False]
    assert frame["kept_share"].max() == 1.0


def test_speed_ups_are_those_of_each_dataset(study):
    frame = findings.speed_ups(study).set_index("reference")
    assert frame.loc["tenth", f"{COST}_ratio"] == pytest.approx(5.0)
    assert frame.loc["slow", f"{COST}_typical"] == pytest.approx(0.25)


def test_a_stopped_refit_leaves_its_pair_out(tmp_path):
    results = make_results(tmp_path, MEANS, profile="timing")
    stopped = (
        (results.outer["dataset"] == "b")
        & (results.outer["solver"] == "slow")
        & (results.outer["outer"] == 3)
    )
    results.outer.loc[stopped, "status"] = "timeout"
    frame = findings.prediction_costs(analyse(results))
    pairs = set(zip(frame["dataset"], frame["solver"], strict=True))
    assert pairs == {(dataset, solver) for dataset in MEANS for solver in MEANS["a"]} - {("b", "slow")}


def test_an_arm_as_accurate_as_a_faster_one_is_not_on_the_front(tmp_path):
    """Both arms have the same scores in another order of folds, whose mean differs in the last digit."""
    means = {"a": {"fast": 0.9, "slow": 0.9}}
    results = make_results(tmp_path, means, profile="timing", seconds={"fast": 1.0, "slow": 2.0})
    scores = {"fast": [0.7, 0.85, 0.9, 0.55, 0.6], "slow": [0.7, 0.9, 0.55, 0.85, 0.6]}
    assert np.mean(scores["fast"]) < np.mean(scores["slow"])
    for arm, values in scores.items():
        results.outer.loc[results.outer["solver"] == arm, "score"] = values
    frame = findings.prediction_costs(analyse(results)).set_index("solver")
    assert frame["on_front"].to_dict() == {"fast": True, "slow": False}


def test_nothing_without_timed_rows(tmp_path):
    study = analyse(make_results(tmp_path, MEANS))
    assert findings.prediction_costs(study).empty
    assert findings.speed_ups(study).empty
    assert findings.class_rates(study).empty


def test_points_that_are_equal_share_the_front():
    scores, seconds = np.array([3.0, 3.0, 2.0, 2.0, 1.0]), np.array([2.0, 2.0, 1.0, 3.0, 1.0])
    assert pareto_front(scores[:, None] - scores, seconds).tolist() == [True, True, True, False, False]


def test_rates_of_classes():
    """Of class 2 one of two rows is found, and one of the three others is given to it."""
    frame = pd.DataFrame(
        {"true": ["2", "2", "10", "10", "x"], "predicted": ["2", "10", "10", "2", "x"]}
    ).assign(dataset="a", solver="s")
    rates = class_rates(frame, [("a", "s"), ("a", "other")]).set_index("class")
    assert rates.index.tolist() == ["2", "10", "x"]
    assert rates["found"].tolist() == [0.5, 0.5, 1.0]
    assert rates["given"].tolist() == pytest.approx([1 / 3, 1 / 3, 0.0])
    assert rates["n_rows"].tolist() == [2, 2, 1]
