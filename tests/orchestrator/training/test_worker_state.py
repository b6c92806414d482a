"""What a worker's process would print beside the client's table is kept, and passed on with its results."""

import subprocess
import sys

CODE = """
import logging, warnings
from orchestrator.training.worker_state import capture_warnings, take_warnings
capture_warnings()
logging.getLogger("mine").warning("a %s", "note")
logging.getLogger("mine").warning("under way", extra={"is_transient": True})
logging.getLogger("mine").info("a detail")
warnings.warn("a warning")
print(take_warnings())
"""


def test_warnings_and_log_records_are_kept_but_for_what_is_under_way():
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert ended.stdout == "('mine: a note', 'UserWarning: a warning (<string>:8)')\n"
    assert ended.stderr == ""
