"""The figure of mean scores against training times."""

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report.sections import time_accuracy
from tests.orchestrator.report.frames import drop, make_results

SEVEN = {f"d{i}": {"a": 0.9, "b": 0.91 + i / 1000, "c": 0.92 + i / 500} for i in range(7)}
SECONDS = {"a": 1.0, "b": 2.0, "c": 0.5}


def test_it_has_a_point_for_each_arm_that_was_timed(tmp_path):
    results = make_results(tmp_path, SEVEN, profile="timing", seconds=SECONDS)
    (drawing,) = time_accuracy.parts(analyse(results))
    (points,) = drawing.draw().axes[0].collections[1:2]
    assert len(points.get_offsets()) == 3


def test_while_an_arm_has_no_training_no_mean_is_over_all_arms_and_there_is_no_figure(tmp_path):
    results = make_results(tmp_path, SEVEN, profile="timing", seconds=SECONDS)
    findings = analyse(drop(results, lambda f: f.solver == "c"))
    assert not frames.profile(findings).empty
    assert time_accuracy.parts(findings) == []
