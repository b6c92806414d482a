"""Differences between a study and the experiment of its name."""

from types import SimpleNamespace

import pytest

from orchestrator.claims.terms import other_terms
from orchestrator.study.study import SearchSpec

PROTOCOL = {"outer": 5, "inner": 5, "seed": 0, "metric": "accuracy", "profile": "timing", "max_seconds": None}


@pytest.mark.parametrize(
    ("folds", "phrases"), [(1, ["search.folds=1 in place of 2"]), (2, []), (3, []), (25, [])]
)
def test_a_larger_sample_answers_the_same_question_and_a_smaller_one_does_not(folds, phrases):
    design = SimpleNamespace(
        search=SearchSpec("sample", options={"study": "full", "folds": folds}),
        protocol={**PROTOCOL, "scaling": "train"},
        arms={},
        datasets={"iris": {}},
    )
    experiment = {
        "datasets": ["iris"],
        "dataset": {},
        "solver": {},
        "sweep": {},
        "protocol": PROTOCOL,
        "search": {"kind": "sample", "study": "full", "folds": 2},
    }
    experiments = {"full_time": experiment}
    found = other_terms("full_time", design, experiments.get, lambda name: None)
    assert found.phrases == phrases
