"""Captions say which part of a large study a figure shows."""

from dataclasses import replace

import pytest

from orchestrator.analysis.findings import analyse
from orchestrator.report.limits import arms_note
from orchestrator.report.section import Drawing, flat
from orchestrator.report.sections import (
    effort,
    inner_scores,
    practical,
    prediction_cost,
    scaling,
    scores,
    timing,
)
from tests.messages import assert_says
from tests.orchestrator.report.frames import drop, make_results


def captions(parts):
    """Return the captions of figures, by name."""
    return {part.name: part.caption for part in flat(parts) if isinstance(part, Drawing)}


@pytest.fixture(scope="module")
def many_datasets(tmp_path_factory):
    means = {f"data{i}": {"a": 0.9, "b": 0.91, "c": 0.92} for i in range(140)}
    folder = tmp_path_factory.mktemp("results")
    return analyse(make_results(folder, means, profile="timing", outer=2, inner=1))


@pytest.fixture(scope="module")
def many_arms(tmp_path_factory):
    """Return a study of 45 arms on six datasets of different sizes, on which the last arm is the best."""
    means = {f"data{i}": {f"arm{j}": 0.9 + (j == 44) * 0.045 for j in range(45)} for i in range(6)}
    results = make_results(tmp_path_factory.mktemp("results"), means, profile="timing", outer=2, inner=1)
    sizes = {f"data{i}": 100 * 2**i for i in range(6)}
    return replace(results, outer=results.outer.assign(n_train=results.outer["dataset"].map(sizes)))


def test_of_many_datasets_the_drawn_ones_are_counted(many_datasets):
    study = many_datasets
    found = captions(
        [
            *scores.section(study).content,
            *timing.parts(study),
            *effort.section(study).content,
            *inner_scores.parts(study),
            *prediction_cost.section(study).content,
        ]
    )
    for name in ("scores", "timing", "effort"):
        assert_says(found[name], "first 133 of 140 datasets")
    assert_says(found["inner_scores_by_dataset"], "first 24 of 140 datasets", "maps show a.")
    assert_says(found["prediction_cost"], "first 9 of 140 datasets")


def test_of_many_arms_the_drawn_ones_are_counted(many_arms):
    study = analyse(many_arms)
    found = captions([*scaling.parts(study), *practical.parts(study)])
    assert_says(found["scaling"], "first 12 of 45 arms")
    assert_says(found["triangles"], "3 of 44 pairs", "highest mean")


def test_the_first_arms_are_shown_if_no_dataset_ranks_them(many_arms):
    assert_says(arms_note(analyse(many_arms)), "the 39 with the best mean ranks")
    unranked = analyse(drop(many_arms, lambda f: f.solver == "arm3"))
    assert_says(arms_note(unranked), "Of 45 arms, the first 40 are shown")


def test_differences_are_from_the_mean_of_all_arms_also_of_those_not_drawn(many_arms):
    """The best arm is 4.5 points above 44 equal ones, and so 4.4 above the mean of all 45 arms."""
    (drawing,) = (
        part for part in flat(scores.section(analyse(many_arms)).content) if isinstance(part, Drawing)
    )
    dots = drawing.draw().axes[1].collections[1].get_offsets()[:, 0]
    assert sorted({round(float(x), 6) for x in dots}) == [-0.1, 4.4]
