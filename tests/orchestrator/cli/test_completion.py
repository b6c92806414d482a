"""A shell completes verbs, overrides and names."""

import os
import subprocess
import sys

import pytest

from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.store.store import Store
from tests.messages import assert_says


@pytest.fixture
def complete(tmp_path):
    """Return what completes a command line, asked as a shell asks, in a folder with one study."""
    Store(tmp_path / "results" / "first").lock().release()

    def complete(line):
        answer = tmp_path / "answer"
        asked = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        subprocess.run(
            [sys.executable, "-m", "orchestrator"], env={**os.environ, **asked}, cwd=tmp_path, check=True
        )
        return [text.strip() for text in answer.read_text().split("\n")]

    return complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("svmbench rep", {"report", "repair"}),
        ("svmbench run cluster=s", {"cluster=serial", "cluster=slurm", "cluster=ssh"}),
        ("svmbench run protocol.pr", {"protocol.prepare=", "protocol.profile=", "protocol.predictions="}),
        ("svmbench run protocol.profile=t", {"protocol.profile=throughput", "protocol.profile=timing"}),
        (
            "svmbench run solvers=[mnsvm,libsvm_",
            {r"solvers=\[mnsvm,libsvm_defaults", r"solvers=\[mnsvm,libsvm_l1"},
        ),
        ("svmbench list so", {"solvers"}),
        ("svmbench data f", {"fetch"}),
        ("svmbench data fetch cov", {"covtype", "covtype-binary", "covtype-binary-published"}),
        ("svmbench status study=f", {"study=first"}),
        ("svmbench delete f", {"first"}),
        ("svmbench run f", {"first"}),
        ("svmbench report report.e", {"report.earlier="}),
        ("svmbench accept cluster.w", {"cluster.workers=", "cluster.worker_ttl="}),
    ],
)
def test_what_may_follow_is_offered(complete, line, expected):
    assert set(complete(line)) == expected


def test_bash_takes_the_script_and_completes(complete, tmp_path, capsys):
    assert main(["completion", "bash"]) == EXIT_OK
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    command = tmp_path / "svmbench"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m orchestrator "$@"\n')
    command.chmod(0o755)
    asked = (
        f". {script}; COMP_LINE='svmbench sta' COMP_POINT=12 COMP_WORDS=(svmbench sta) COMP_CWORD=1 "
        "COMP_TYPE=9; _python_argcomplete svmbench; echo ${COMPREPLY[@]}"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", asked], env={**os.environ, "PATH": path}, cwd=tmp_path, capture_output=True, text=True
    )
    assert found.stdout.split() == ["status"]


def test_a_shell_that_is_not_known_is_refused(capsys):
    assert main(["completion", "tcsh"]) == EXIT_BAD
    assert_says(capsys.readouterr().err, "bash", "zsh", "fish")
