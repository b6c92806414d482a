"""A solver whose source changes after its trials were stored: `plan` says so, and only then."""

import re

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.changed_sources import _code_difference
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

SOLVER = '''
"""A solver."""
from sklearn.dummy import DummyClassifier
class Solver_of_this_test(DummyClassifier):
    """Guess."""
    penalty = 1
'''


@pytest.fixture
def plan(tmp_path, monkeypatch, capfd):
    """Write the solver's source, plan the study, and return what is printed in one line."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "solver_of_a_changed_code.py"
    source.write_text(SOLVER)
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver/mine.yaml").write_text("_target_: solver_of_a_changed_code.Solver_of_this_test\n")
    study = (
        *("x", "datasets=[iris]", "solvers=[mine,libsvm_l1]", "protocol.outer=2", "protocol.inner=2"),
        *("search.space.C=[1]", "search.space.gamma=[1]", "cluster=serial", "+solver.mine.space={}"),
        *(f"--config-dir={tmp_path}", f"paths.results={tmp_path}/results", f"paths.cache={tmp_path}/cache"),
    )
    assert main(["run", *study]) == 0

    def planned(text):
        source.write_text(text)
        capfd.readouterr()
        assert main(["plan", *study]) == 0
        return " ".join(capfd.readouterr().out.split())

    return planned


def test_plan_names_the_solver_and_the_number_of_its_trials(plan):
    assert_says(plan(SOLVER), "0 trainings")
    assert_says(plan(SOLVER.replace("Guess.", "Guess a class.\n\n    # Text.")), "0 trainings")
    changed = plan(SOLVER.replace("penalty = 1", "penalty = 2"))
    (sentence,) = re.findall(r"mine: [^.]*solver_of_a_changed_code[^.]*\.", changed)
    (number,) = re.findall(r"its (\d+) trials", sentence)
    assert_says(changed, f"{number} trainings")
    assert "libsvm_l1:" not in changed
    assert "mine:" not in plan(SOLVER)


def test_a_changed_version_is_named_with_both():
    before, now = "mine 0123456789abcdef numba 0.1 sklearn 1.6", "mine 0123456789abcdef numba 0.2 sklearn 1.6"
    difference = _code_difference(before, now)
    assert all(part in difference for part in ("numba", "0.1", "0.2"))
    assert "mine" not in difference
    assert "sklearn" not in difference
    assert "mine" in _code_difference(before, now.replace("f numba", "0 numba"))
    assert "mine" in _code_difference("sklearn 1.6", before)
