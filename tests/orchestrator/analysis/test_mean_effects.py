import numpy as np
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report.sections.random_effects import section
from orchestrator.store.results import StudyResults
from tests.messages import assert_says
from tests.orchestrator.report.frames import make_results


def test_the_means_of_a_study_with_their_errors():
    means = {f"d{i}": {"a": 0.8, "b": 0.82 + 0.002 * i} for i in range(7)}
    found = analyse(make_results("x", means))
    (row,) = frames.random_effects(found).to_dict("records")
    assert (row["first"], row["second"], row["n"]) == ("a", "b", 7)
    assert row["low"] < row["estimate"] < row["high"] < 0
    assert row["hierarchical_worse"] > 0.99
    assert row["signed_rank_worse"] > 0.99
    printed = section(found)
    assert printed is not None
    (table,) = printed.content
    assert_says(table.caption, "not adjusted", "Paule and Mandel", "Corani")
    assert isinstance(found, StudyResults)
    assert section(analyse(make_results("x", {"d0": {"a": 0.8}}))) is None
    assert row["estimate"] == pytest.approx(-np.mean([0.02 + 0.002 * i for i in range(7)]), abs=2e-3)
