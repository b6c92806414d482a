"""Ratios of training times over kinds of machines, checked against a computation by hand."""

from dataclasses import replace
from math import exp, log, sqrt

import pytest
from scipy import stats

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.merged_studies import merge
from orchestrator.report.processor_note import processor_note
from orchestrator.report.sections import time_machines
from orchestrator.store.results import PairState
from orchestrator.study.declaration import current_declaration
from tests.messages import assert_says
from tests.orchestrator.report.frames import make_results

MEANS = {f"d{i}": {"a": 0.9, "b": 0.91} for i in range(3)}


def on_machine(folder, name, cpu, ratio):
    """Return a timing study on a machine on which b takes `ratio` times as long as a."""
    made = make_results(folder, MEANS, name=name, profile="timing", seconds={"a": 0.1, "b": 0.1 * ratio})
    made.provenance[0]["hosts"][0]["cpu"] = cpu
    for facts in made.provenance[0]["study"]["datasets"]:
        facts["split_hash"] = "equal"
    states = {(dataset, arm): PairState(0, keys=["k"]) for dataset in MEANS for arm in "ab"}
    return replace(made, declaration=current_declaration(made.provenance), states=states)


@pytest.fixture
def merged(tmp_path):
    """Three studies: two on one kind of machine, with ratios 2 and 8, and one on another, with ratio 1."""
    kinds = (("one", "first", 2), ("two", "first", 8), ("three", "second", 1))
    return merge([on_machine(tmp_path, *each) for each in kinds])


def test_the_machine_is_a_random_effect(merged):
    """The first kind has √(2·8) = 4, the second 1: mean log 2, interval log 2 ± t(1)·(log 4/√2)/√2."""
    (row,) = frames.ratios_over_machines(analyse(merged)).to_dict("records")
    assert (row["arm"], row["reference"], row["n_machines"], row["n"]) == ("b", "a", 2, 3)
    assert row["ratio"] == pytest.approx(2)
    half = stats.t.ppf(0.975, 1) * log(4) / sqrt(2) / sqrt(2)
    assert (row["low"], row["high"]) == (pytest.approx(2 * exp(-half)), pytest.approx(2 * exp(half)))
    assert (row["smallest"], row["largest"]) == (pytest.approx(1), pytest.approx(4))
    assert len(time_machines.parts(analyse(merged))) > 0


def test_one_kind_of_machine_is_one_sample(tmp_path):
    alone = on_machine(tmp_path, "one", "first", 2)
    assert_says(processor_note(analyse(alone)), "one kind of machine (first", "one sample", "two digits")
    twins = merge([alone, on_machine(tmp_path, "two", "first", 3)])
    assert frames.ratios_over_machines(analyse(twins)).empty
