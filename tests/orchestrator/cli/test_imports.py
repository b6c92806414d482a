"""What a command imports: no package that takes long before the verb needs it."""

import subprocess
import sys
from contextlib import chdir

import pytest

from orchestrator.cli.main import _VERBS, EXIT_OK, main
from tests.orchestrator.studies import SMALL

pytestmark = pytest.mark.sample(2)

HEAVY = {
    *(
        "numba",
        "llvmlite",
        "solvers",
        "sklearn",
        "scipy",
        "pandas",
        "numpy",
        "pyarrow",
        "matplotlib",
        "jinja2",
    ),
    *("dask", "distributed", "rich", "hydra", "omegaconf", "yaml", "cryptography", "asyncssh", "joblib"),
}
"""Packages that take more than 10 ms to import."""

TABLES = {"numpy", "pyarrow", "rich"}
ANALYSIS = {*TABLES, "pandas", "scipy"}
TRAINING = {*ANALYSIS, "sklearn", "joblib", "numba", "llvmlite", "solvers", "yaml"}
READING = {"omegaconf", "yaml"}
"""Reads files of a group one by one."""

MAY_IMPORT = {
    ("--help",): set(),
    ("--version",): set(),
    ("run", "--help"): set(),
    ("completion", "bash"): {"rich"},
    ("list",): {"rich"},
    ("list", "datasets"): {"rich"},
    ("data", "list"): {"rich", "hydra", *READING},
    ("data", "path", "iris"): {"rich"},
    ("studies",): TABLES,
    ("status", "study=small"): TABLES,
    ("repair", "study=small"): {*TABLES, "pandas"},
    ("rename", "small", "small"): TABLES,
    ("delete", "small"): TABLES,
    ("run", "--cfg", "job"): {"rich", *READING},
    ("plan", "--cfg", "job"): {"rich", *READING},
    ("warm", "--cfg", "job"): {"rich", *READING},
    ("accept", "study=small"): TRAINING,
    ("plan", *SMALL): TRAINING,
    ("run", *SMALL): {*TRAINING, "matplotlib", "jinja2"},  # of few datasets, it writes the page
    ("claims",): {*TRAINING, "hydra", "omegaconf"},  # composes and checks experiments, to tell their hours
    ("report", "study=small"): {*ANALYSIS, *READING, "matplotlib", "jinja2"},
    ("cluster", "certs", "certificates"): {"rich", "cryptography"},
}
"""Packages that a command may import, when the same command has run before."""

COMPOSING = {"accept", "plan", "run", "claims", "report"}
"""Verbs that compose a configuration, or take long when they find none in the cache."""

REPORTING = """
import sys
from orchestrator.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*(name for name in sys.modules if "." not in name), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished small study."""
    folder = tmp_path_factory.mktemp("finished")
    where = [f"paths.results={folder}/results", f"paths.cache={folder}/cache"]
    assert main(["run", *SMALL, "cluster=serial", *where]) == EXIT_OK
    return folder


def imported_by(code, arguments, folder):
    """The heavy packages that a process has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return HEAVY & set(done.stderr.splitlines()[-1].split())


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", MAY_IMPORT, ids=" ".join)
def test_a_command_imports_no_package_that_it_does_not_need(command, finished):
    arguments = [*command]
    if command[0] in _VERBS and "--help" not in command and command[0] != "completion":
        arguments += [f"paths.results={finished}/results"]
    if command[0] in ("run", "plan") and "--help" not in command:
        arguments += ["cluster=serial", f"paths.cache={finished}/cache"]
    if command[0] in COMPOSING and "--" not in "".join(command):
        with chdir(finished):
            main(arguments)  # fills the caches at less cost than a new process
    for _ in range(3):  # a configuration is composed if it is new, or if another test has dropped it
        found = imported_by(REPORTING, arguments, finished)
        if found <= MAY_IMPORT[command]:
            break
    assert found <= MAY_IMPORT[command]


def test_every_verb_is_in_the_table():
    assert {command[0] for command in MAY_IMPORT} >= {*_VERBS, "cluster", "--help"}


@pytest.mark.parametrize("module", ["orchestrator", "orchestrator.cli.main", "orchestrator.config.compose"])
def test_a_module_that_every_process_imports_is_cheap(module, tmp_path):
    code = f"import sys, {module}\nprint(*(name for name in sys.modules if '.' not in name), file=sys.stderr)"
    assert imported_by(code, [], tmp_path) <= ({"numpy"} if module.endswith("compose") else set())


def test_a_study_is_read_from_python_without_what_trains_it(finished):
    code = (
        "import sys, orchestrator\n"
        f"orchestrator.load_study('small', {str(finished / 'results')!r})\n"
        "print(*(name for name in sys.modules if '.' not in name), file=sys.stderr)"
    )
    assert imported_by(code, [], finished) <= {"numpy", "pyarrow", "pandas", "yaml"}
