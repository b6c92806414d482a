"""Trials with keys of an older version count, beside those of today and in all readers alike."""

import pytest

from orchestrator.engine import prepare
from orchestrator.engine.overview import overview
from orchestrator.study.declaration import current_declaration
from orchestrator.study.equivalences import EQUIVALENCES, SameCode
from orchestrator.study.older_keys import OlderIdentity
from tests.orchestrator.studies import StudyRun, run_study

STUDY = (
    *("datasets=[iris]", "solvers=[libsvm_l1]", "protocol.outer=2", "protocol.inner=2"),
    *("search.space.gamma=[1]", "search.space.C=[1,4]"),
)
METRIC = "protocol.also=[f1_macro]"


@pytest.fixture
def before(tmp_path, monkeypatch):
    """Run a study of 8 inner trials and 2 refits with keys of the former definition; return its results."""
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "Identity", OlderIdentity)
        return run_study(tmp_path, *STUDY, METRIC, run_id="first")[0]


def seen(folder):
    """Return what `status` shows: numbers of stored trials, completeness, and trials that do not count."""
    store = StudyRun(folder, *STUDY, run_id="look").store
    declaration = current_declaration(store.provenance()[:-1])
    found = overview(store, declaration)
    (pair,) = found.pairs.values()
    return pair.stored, pair.complete, sum(number for _, _, number, _ in found.excluded(declaration))


def test_nothing_is_trained_again_and_every_reader_counts_the_older_rows(before, tmp_path):
    after, summary = run_study(tmp_path, *STUDY, METRIC, run_id="second")
    assert (summary.trials_run, summary.trials_stored_before) == (0, 10)
    assert after.trials.equals(before.trials)
    assert after.outer.drop(columns="selection_key").equals(before.outer.drop(columns="selection_key"))
    assert seen(tmp_path) == (10, True, 0)


def test_other_metrics_train_refits_alone(before, tmp_path):
    _, without = run_study(tmp_path, *STUDY, run_id="second")
    found, other = run_study(tmp_path, *STUDY, "protocol.also=[precision_macro]", run_id="third")
    assert (without.trials_run, other.trials_run) == (2, 2)
    assert found.trials["score_precision_macro"].notna().sum() == 2
    assert seen(tmp_path) == (10, True, 4)


def test_a_wider_command_adds_the_missing_trials_beside_the_older_ones(before, tmp_path):
    found, summary = run_study(tmp_path, *STUDY, METRIC, "search.space.C=[1,4,16]", run_id="second")
    assert 4 <= summary.trials_run <= 6  # 4 inner trials, and a refit wherever another candidate wins
    assert found.trials["identity"].nunique() == 2
    assert seen(tmp_path) == (14, True, summary.trials_run - 4)


def test_equivalences_form_chains_and_belong_to_one_arm():
    runs = [
        {EQUIVALENCES: [{"solver": "a", "codes": {"1": "2"}}]},
        {},
        {EQUIVALENCES: [{"solver": "a", "codes": {"2": "3"}}, {"solver": "b", "codes": {"8": "9"}}]},
        {EQUIVALENCES: [{"solver": "a", "codes": {"3": "1", "0": "2"}}]},
    ]
    of_a, of_b = (SameCode(runs).of(arm) for arm in "ab")
    assert {*map(of_a, "0123")} == {"3"}
    assert [*map(of_b, "0189")] == ["0", "1", "9", "9"]
    assert of_a("9") == "9"
