"""Differences between a study and the experiment of its name."""

from types import SimpleNamespace

import pytest

from orchestrator.claims.terms import other_terms
from orchestrator.study.study import SearchSpec

PROTOCOL = {"outer": 5, "inner": 5, "seed": 0, "metric": "accuracy", "profile": "timing", "max_seconds": None}


def design(search, datasets):
    """The design of a study without arms."""
    protocol = {**PROTOCOL, "scaling": "train"}
    return SimpleNamespace(search=search, protocol=protocol, arms={}, datasets=datasets)


def experiment(**changes):
    """The configuration of an experiment on iris without solvers."""
    search = {"kind": "sample", "study": "full", "folds": 2}
    common = {"datasets": ["iris"], "dataset": {}, "solver": {}, "sweep": {}, "protocol": PROTOCOL}
    return {**common, "search": search, **changes}


@pytest.mark.parametrize(
    ("folds", "phrases"), [(1, ["search.folds=1 in place of 2"]), (2, []), (3, []), (25, [])]
)
def test_a_larger_sample_answers_the_same_question_and_a_smaller_one_does_not(folds, phrases):
    search = SearchSpec("sample", options={"study": "full", "folds": folds})
    experiments = {"full_time": experiment()}
    found = other_terms("full_time", design(search, {"iris": {}}), experiments.get, lambda name: None)
    assert found.phrases == phrases


@pytest.mark.parametrize(("sweep", "is_asked"), [({"n": [1000, 2000]}, True), ({"noise": [0.1]}, False)])
def test_a_dataset_swept_on_another_parameter_than_the_experiment_is_another_dataset(sweep, is_asked):
    datasets = {f"checkers[n={n}]": {"params": {"n": n, "seed": 0}} for n in (1000, 2000)}
    declared = {"checkers": {"n": 1000, "seed": 0}}
    config = experiment(
        datasets=["checkers"], dataset=declared, sweep=sweep, search={"kind": "grid", "space": {}}
    )
    found = other_terms("s", design(SearchSpec("grid"), datasets), {"s": config}.get, lambda name: None)
    phrases = found.concerning([], ["checkers"])
    assert phrases == ([] if is_asked else ["dataset.checkers.n=2000 in place of 1000"])
