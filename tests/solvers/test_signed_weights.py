"""Every reader of weights takes weights of both signs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_weights_of_both_signs_are_read_as_they_are(tmp_path):
    names = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, "-m", "tests.solvers.signed_solver"]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, env=names)
    assert done.returncode == 0, done.stderr
