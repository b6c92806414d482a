"""What a run records of its processor: the code that libraries choose for it."""

import json
import os
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from orchestrator import load_study
from orchestrator.analysis.findings import analyse
from orchestrator.cli.display import display
from orchestrator.cli.main import EXIT_OK, main
from orchestrator.config.compose import load_settings
from orchestrator.engine import run as engine_run
from orchestrator.engine.prepare import prepare_study
from orchestrator.execution.serial import SerialExecutor
from orchestrator.report.sections.methods import checklist
from orchestrator.report.sections.provenance import runs
from orchestrator.store.store import Store
from orchestrator.training.environment import arithmetic, host_summary
from tests.messages import assert_says, says
from tests.processors import NAMES, environment

OTHER = next(
    (
        name
        for name in NAMES
        if (variables := environment(name))
        and variables["NUMBA_CPU_NAME"] != os.environ.get("NUMBA_CPU_NAME")
    ),
    None,
)
"""A processor that differs from this one, which may itself be emulated."""

pytestmark = [
    pytest.mark.skipif(OTHER is None, reason="this processor can emulate no other"),
    pytest.mark.usefixtures("no_pages"),
]

ARITHMETIC = (
    "import json; from orchestrator.training.environment import arithmetic; print(json.dumps(arithmetic()))"
)


def arithmetic_as(name, before=""):
    code = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{before}\n{ARITHMETIC}"],
        env={**os.environ, **(environment(name) if name else {})},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(code)


def test_a_host_records_which_code_its_libraries_chose():
    found = arithmetic()
    assert host_summary()["arithmetic"] == found
    assert found == arithmetic_as(None)
    assert found["numba"]
    assert found["blas"]


def test_the_record_does_not_depend_on_what_was_imported_before():
    assert arithmetic_as(None, "import sklearn.svm, numba") == arithmetic_as(None)


@pytest.mark.parametrize("name", NAMES)
def test_an_emulated_processor_is_recorded_as_what_it_emulates(name):
    variables = environment(name)
    if variables is None:
        pytest.skip("this processor has not the features of that one")
    found = arithmetic_as(name)
    assert found["numba"] == variables["NUMBA_CPU_NAME"]
    if "openblas" not in str(found["blas"]):
        assert found["blas"] == [variables["OPENBLAS_CORETYPE"]]
    assert not {*found["numpy"]} & {*variables.get("NPY_DISABLE_CPU_FEATURES", "").split()}


@pytest.mark.full
def test_numba_keeps_the_code_of_processors_apart(tmp_path):
    """Both processors share a folder, as hosts that share a home do; neither replaces the other's code."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import package_of_a_test.kernel as kernel\n"
        "kernel.twice(1.0); stats = kernel.twice.stats; print(sum(stats.cache_hits.values()))"
    )
    (folder := tmp_path / "package_of_a_test").mkdir()  # as in `solvers`, each module is in a package
    (folder / "__init__.py").touch()
    (folder / "kernel.py").write_text(
        "from solvers.common.compile import njit\n\n\n@njit\ndef twice(x):\n    return 2 * x\n"
    )
    hits = []
    for name in (None, OTHER, None, OTHER):
        variables = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), **(environment(name) if name else {})}
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        hits.append(int(done.stdout))
    assert hits == [0, 0, 1, 1]


def test_a_study_of_two_kinds_of_processors_says_so(tmp_path):
    folders = [f"paths.results={tmp_path / 'results'}", f"paths.cache={tmp_path / 'cache'}"]
    study = ["run", "study=mixed", "cluster=serial", "solvers=[libsvm_l1]", "protocol.outer=2", *folders]
    study += ["protocol.inner=2", "search.space.C=[1]", "search.space.gamma=[1]"]
    assert main([*study, "datasets=[iris]"]) == EXIT_OK

    def said():
        findings = analyse(load_study(tmp_path / "results" / "mixed"))
        answers = {row[0].text: row[1].text for row in checklist(findings).rows}
        return answers["Machines"]

    assert "kinds" not in said()
    subprocess.run(
        [sys.executable, "-m", "orchestrator", *study, "datasets=[iris,wine]"],
        env={**os.environ, **environment(OTHER)},
        capture_output=True,
        check=True,
    )
    assert_says(said(), "processors", "2 kinds")


class TwoHosts(SerialExecutor):
    """Says that it has workers on two hosts of different processors, of which the second joins later."""

    second_at_once = True

    def describe(self):
        described = super().describe()
        other = {**described["hosts"][0], "host": "another", "arithmetic": {"numpy": [], "numba": "generic"}}
        hosts = [*described["hosts"], *([other] if self.second_at_once or self.asked else [])]
        self.asked = True
        return {**described, "hosts": hosts}

    asked = False


@pytest.mark.parametrize("at_once", [True, False])
def test_a_run_on_processors_of_two_kinds_says_so(at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(TwoHosts, "second_at_once", at_once)
    monkeypatch.setattr(engine_run, "SerialExecutor", TwoHosts)
    append, known = Store.append, []

    def append_noting_hosts(store, records):
        known.append([host["host"] for host in store.provenance()[0]["hosts"]])
        append(store, records)

    monkeypatch.setattr(Store, "append", append_noting_hosts)
    settings = load_settings(
        [
            "study=mixed",
            "cluster=serial",
            "datasets=[iris]",
            "solvers=[libsvm_l1]",
            "protocol.outer=2",
            "protocol.inner=2",
            "search.space.C=[1]",
            "search.space.gamma=[1]",
            f"paths.results={tmp_path / 'results'}",
            f"paths.cache={tmp_path / 'cache'}",
        ]
    )
    output = StringIO()
    engine_run.run_session(
        settings, prepare_study(settings), display(Console(file=output, width=500)), ["test"]
    )
    # Otherwise it was not known at the start.
    assert says(output.getvalue(), "processors", "2 kinds") == at_once
    (run,) = Store(tmp_path / "results" / "mixed").provenance()
    assert [host["host"] for host in run["hosts"]][1:] == ["another"]
    assert known
    assert all("another" in hosts for hosts in known)  # before the rows, since a run may be killed
    findings = analyse(load_study(tmp_path / "results" / "mixed"))
    assert_says(runs(findings).data["machines"].iloc[0], "processors", "2 kinds")
