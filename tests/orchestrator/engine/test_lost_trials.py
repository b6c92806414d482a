"""Trials that a run recorded and that are not in the store any more."""

from collections import Counter
from types import SimpleNamespace

import pytest

from orchestrator.engine import lost_trials as module
from tests.messages import assert_says

PAIR = "iris", "svc"


def run(run_id, identity, trained, found=0):
    summary = {"trials_run": trained, "trials_stored_before": found}
    return {"run_id": run_id, "identities": {"iris": {"svc": identity}}, "summary": summary}


def declared(*digests):
    pairs = {PAIR: SimpleNamespace(digests=digests)}
    return SimpleNamespace(pairs=pairs, search=SimpleNamespace(is_custom=False))


@pytest.mark.parametrize("n_lost", [0, 3])
def test_trials_that_counted_for_code_that_was_edited_later_are_not_missing(n_lost, monkeypatch):
    """The second run takes the accepted trials of the first; the third is one of other code."""
    runs = [run("1", "a", 10), run("2", "b", 5, found=10), run("3", "c", 15)]
    then = {1: declared("a"), 2: declared("b", "a"), 3: declared("c")}
    monkeypatch.setattr(module, "current_declaration", lambda runs: then[len(runs)])
    store = SimpleNamespace(trials_folder="s/trials", refit_counts=Counter)
    stored = {"a": 10, "b": 5 - n_lost, "c": 15}
    sentences = module.lost_trials(store, runs, then[3], stored)
    assert len(sentences) == bool(n_lost)
    for sentence in sentences:
        assert_says(sentence, "3 of 15 trials are missing from s/trials", "run 2")
