"""The log that a run leaves, and what the user sees of it."""

import json
import logging

import pytest

from orchestrator.store.run_log import run_log, warnings_shown


def test_a_run_leaves_a_log_that_machines_can_read(tmp_path):
    path = tmp_path / "logs" / "run.jsonl"
    with run_log(path):
        logging.getLogger("orchestrator.engine.runner").info("%d trials", 3)
    logging.getLogger("orchestrator.engine.runner").warning("too late")
    (entry,) = map(json.loads, path.read_text().splitlines())
    assert (entry["level"], entry["source"], entry["message"]) == (
        "info",
        "orchestrator.engine.runner",
        "3 trials",
    )


def test_the_log_tells_how_a_run_failed(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt), run_log(path):
        raise KeyboardInterrupt
    assert "KeyboardInterrupt" in json.loads(path.read_text())["message"]


def test_warnings_of_the_cluster_are_shown_to_the_user():
    told = []
    with warnings_shown(logging.getLogger("orchestrator.execution"), told.append):
        logging.getLogger("orchestrator.execution.cluster_executor").warning("worker %s left", "w")
        logging.getLogger("orchestrator.engine.runner").warning("told elsewhere")
    assert told == ["worker w left"]
