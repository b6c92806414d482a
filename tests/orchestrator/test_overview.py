"""`status` of a compacted study replays nothing and imports little, and says the same as a replay."""

import subprocess
import sys

from orchestrator import overview
from orchestrator.declaration import current_declaration
from tests.orchestrator.studies import StudyRun


def test_status_imports_neither_scikit_learn_nor_scipy_nor_matplotlib():
    code = (
        "import sys, orchestrator.request, orchestrator.status; "
        "print([name for name in ('sklearn', 'scipy', 'matplotlib', 'numba') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_compacted_study_is_told_without_a_replay(tmp_path, monkeypatch):
    run = StudyRun(tmp_path, "solvers=[libsvm_l1]")
    run.go()
    store = run.store
    declaration = current_declaration(store.provenance())
    monkeypatch.setattr(overview, "replay_pair", None)
    told = store.overview(declaration)
    monkeypatch.undo()
    monkeypatch.setattr(overview, "code_digest", lambda: "of other code")
    assert store.overview(declaration) == told
    assert all(pair.complete and pair.stored == pair.planned for pair in told.pairs.values())
