"""Every mutant of the statistics is noticed by the unit test that is named for it."""

import os
import subprocess
import sys

import pytest

from tests.mutants import MUTANTS, ROOT, VARIABLE, mutated

TESTS_FAILED = 1


def test_every_mutant_can_be_made_and_its_test_exists():
    assert len(MUTANTS) >= 40
    for mutant in MUTANTS:
        compile(mutated(mutant), str(mutant.path), "exec")
        file, name = mutant.test.split("::")
        assert f"def {name}(" in (ROOT / "tests" / "orchestrator" / file).read_text(encoding="utf-8"), name


@pytest.mark.full
@pytest.mark.parametrize("index", range(len(MUTANTS)))
def test_a_mutant_is_noticed(index):
    options = ["-p", "tests.mutants", "-p", "no:cacheprovider", "-q", "-n", "0", "-x"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"tests/orchestrator/{MUTANTS[index].test}"],
        cwd=ROOT,
        env={**os.environ, VARIABLE: str(index)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == TESTS_FAILED, (
        f"{MUTANTS[index]} survives:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
    )
