"""`status` of a compacted study replays nothing, and says the same as a replay."""

from functools import partial

from orchestrator.engine import overview
from orchestrator.study.declaration import current_declaration
from tests.orchestrator.studies import StudyRun


def test_a_compacted_study_is_told_without_a_replay(tmp_path, monkeypatch):
    run = StudyRun(tmp_path, "solvers=[libsvm_l1]")
    run.go()
    store = run.store
    declaration = current_declaration(store.provenance())
    monkeypatch.setattr(overview, "replay_pair", None)
    told = overview.overview(store, declaration)
    (run_id,) = {run["run_id"] for run in store.provenance()}
    assert store.scan(partial(overview.summarise, declaration)).runs == {run_id}
    monkeypatch.undo()
    monkeypatch.setattr(overview, "code_digest", lambda: "of other code")
    assert overview.overview(store, declaration) == told
    assert all(pair.complete and pair.stored == pair.planned for pair in told.pairs.values())
