"""Sentences on what differs between two declarations."""

import json

import pytest

from orchestrator.study.changed_meanings import changed_keys
from orchestrator.study.study import REFITS, STRATA


@pytest.mark.parametrize(("folds", "said"), [(3, "options.folds was 1, now 3"), (1, "")])
def test_a_larger_sample_is_named_by_its_option_and_not_by_its_trainings(folds, said):
    before, now = (
        {"target": "sample", "options": {"folds": n, STRATA: {"iris": [cells]}, REFITS: {"iris": [cells]}}}
        for n, cells in ((1, "1 2"), (folds, "1 2 3"))
    )
    assert changed_keys("search", json.dumps(before), json.dumps(now)) == said
