"""Bar charts by dataset, whose axes are logarithmic if a quantity spans decades."""

import pytest
from matplotlib.collections import LineCollection

from orchestrator.analysis.findings import analyse, timing
from orchestrator.report.figures import Panel, bar_chart
from tests.orchestrator.report.frames import make_results

SECONDS = {"fast": 1.0, "slow": 100.0}


def chart(tmp_path, **columns):
    """Return the axes of times of two arms on one dataset, after replacing some columns."""
    means = {"iris": {"fast": 0.9, "slow": 0.8}}
    study = analyse(make_results(tmp_path, means, profile="timing", seconds=SECONDS))
    frame = timing(study).assign(**columns)
    (ax,) = bar_chart(study, frame, [Panel("fit_seconds", "Training (s)", "fit_corrected_se")]).axes
    return ax


def test_on_a_logarithmic_axis_only_the_lower_end_of_an_error_is_cut(tmp_path):
    ax = chart(tmp_path, fit_corrected_se=[3.0, 10.0])
    assert ax.get_xscale() == "log"
    lines = next(each for each in ax.collections if isinstance(each, LineCollection))
    ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
    assert ends == [pytest.approx([0.1, 4.0]), pytest.approx([90.0, 110.0])]


def test_a_zero_is_written_where_a_logarithmic_axis_has_no_place_for_it(tmp_path):
    study = analyse(make_results(tmp_path, {"d": {"a": 0.9, "b": 0.8, "c": 0.7}}, profile="timing"))
    frame = timing(study).assign(fit_seconds=[0.0, 1.0, 100.0])
    (ax,) = bar_chart(study, frame, [Panel("fit_seconds", "Training (s)")]).axes
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.texts].count("0") == 1
