"""What a run shows of itself as it goes."""

import io

import pytest
from rich.console import Console

from orchestrator.cli.display import display
from orchestrator.engine import runner
from orchestrator.engine.progress import Progress
from tests.messages import assert_says
from tests.orchestrator.studies import Interrupted, StudyRun, run_study

PAIRS = {("iris", "fast"): 2, ("iris", "slow"): 2, ("wine", "slow"): 2}


def shown(progress, file):
    file.truncate(0)
    progress.show(lambda pair, trials: float(trials))
    return file.getvalue().splitlines()[-1]


def test_an_arm_compiles_from_its_first_batch_to_its_first_trial():
    file = io.StringIO()
    progress = Progress(PAIRS, display(Console(file=file, width=200)), compiles={"slow"})
    assert "compiling" not in shown(progress, file)
    progress.started(("iris", "fast"))
    assert "compiling" not in shown(progress, file)
    progress.stored(("wine", "slow"), True)
    progress.started(("wine", "slow"))
    assert_says(shown(progress, file), "5 s left", "compiling slow")
    progress.finished(("wine", "slow"), True)
    progress.started(("iris", "slow"))
    assert shown(progress, file).endswith("about 4 s left")


@pytest.mark.parametrize("profile", ["throughput", "timing"])
def test_a_resumed_run_counts_what_is_finished_before_it_trains(profile, tmp_path, monkeypatch):
    common = ("datasets=[iris]", f"protocol.profile={profile}")
    run_study(tmp_path, *common, "solvers=[knn]")
    monkeypatch.setattr(runner, "BATCHES_LEFT", 1e-9)  # opens a search only when no work is left
    wider = StudyRun(tmp_path, *common, "solvers=[libsvm_l1,knn]", executor=Interrupted(1), run_id="wider")
    with pytest.raises(KeyboardInterrupt):
        wider.go()
    assert wider.progress.counts["iris", "libsvm_l1"].left
    assert not wider.progress.counts["iris", "knn"].left
