"""The remaining time on the line of progress: what is known, and the arms of which nothing is."""

import math
from collections import Counter

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from orchestrator.engine.cost_model import CostModel, Shape
from orchestrator.engine.line_display import LineDisplay, total_line
from orchestrator.engine.overview import Overview
from orchestrator.engine.planning import remaining
from orchestrator.engine.progress import Progress
from orchestrator.engine.typical_costs import TERMS, TypicalCost
from orchestrator.store.part_summaries import PairSummary
from tests.messages import assert_says


def test_the_time_of_an_arm_is_known_from_its_first_training_on_any_dataset_or_from_typical_costs():
    costs = CostModel(
        {"small": Shape(100, 2, 2), "large": Shape(9000, 2, 2)},
        {"typical": TypicalCost(np.zeros(len(TERMS)))},
    )
    assert costs.is_known("typical")
    assert not costs.is_known("forest")
    costs.update("small", "forest", base=1.0, observed=50.0)
    assert costs.is_known("forest")
    assert costs.training_seconds("large", "forest", False) == 50 * costs.base("large", "forest", False)


def test_the_line_of_progress_gives_no_time_for_arms_of_which_nothing_is_known():
    progress = Progress({("a", "forest"): 10, ("b", "forest"): 10, ("a", "logistic"): 20}, LineDisplay())
    progress.finished(("a", "logistic"), True)
    seconds = {"forest": math.nan, "logistic": 2.0}
    line = total_line(progress, lambda pair, trials: trials * seconds[pair[1]])
    assert_says(line, "1 of 40 trials", "38 s left", "forest", "not known")
    assert line.count("forest") == 1
    assert "known" not in total_line(progress, lambda pair, trials: trials * 2.0)
    line = total_line(progress, lambda pair, trials: math.nan)
    assert_says(line, "1 of 40 trials", "forest", "logistic", "not known")
    assert "left" not in line


def test_a_stored_study_takes_the_time_of_an_arm_from_its_own_trainings_alone():
    """`forest` took 3 s a training on one dataset and 5 on another: 4 on a third. `bayes` has none."""
    pairs = {
        ("a", "forest"): PairSummary(planned=10, stored=10, complete=True, seconds=30.0),
        ("b", "forest"): PairSummary(planned=10, stored=2, seconds=10.0),
        ("c", "forest"): PairSummary(planned=10),
        ("a", "bayes"): PairSummary(planned=10),
    }
    left = [line.seconds_left for line in remaining(Overview(pairs, Counter()))]
    assert_array_equal(left, [0.0, 40.0, 40.0, math.nan])


def test_a_stored_study_takes_the_trainings_that_its_search_is_expected_to_need():
    """Of at most 100 trainings, 40 are expected. Where more were needed, one more is."""
    pairs = {
        ("a", "forest"): PairSummary(planned=100, stored=10, seconds=20.0),
        ("b", "forest"): PairSummary(planned=100, stored=60, seconds=120.0),
        ("c", "forest"): PairSummary(planned=100),
    }
    found = remaining(Overview(pairs, Counter()), expected=dict.fromkeys(pairs, 40.0))
    assert_allclose([line.seconds_left for line in found], [30 * 2.0, 1 * 2.0, 40 * 2.0])
    assert [line.left for line in found] == [90, 40, 100]


def test_the_time_of_a_timing_sample_counts_every_measurement_of_a_training():
    """A row holds the median of the measurements; a training of 10 ms is measured three times at least."""
    pairs = {
        ("a", "forest"): PairSummary(planned=10, stored=2, seconds=6.0),
        ("a", "logistic"): PairSummary(planned=10, stored=5, seconds=0.05),
        ("a", "bayes"): PairSummary(planned=10),
    }
    for repeats, of_forest, of_logistic in ((0, 1, 1), (1, 1, 3), (5, 5, 5)):
        left = [line.seconds_left for line in remaining(Overview(pairs, Counter()), repeats)]
        assert_allclose(left, [of_forest * 24.0, of_logistic * 0.05, math.nan])
