"""The size of long checks: a fixed-seed sample by default, everything with `--full` (`make check`)."""

import gc
import os
import sys
from collections import Counter

import pytest
from hypothesis import settings

from orchestrator.training.environment import numba_cache
from tests import preloaded

settings.register_profile("sample", derandomize=True, deadline=None, database=None, max_examples=30)
settings.register_profile("full", derandomize=True, deadline=None, database=None, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run long checks in full size, not a sample of them")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected
    settings.load_profile("full" if config.getoption("--full") else "sample")
    # Else the workers of every test that has a cache folder of its own compile all they use.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(numba_cache(("solvers",))))
    # Else each of some hundred processes compiles the Python of all its modules.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Files of tests need not survive a power failure, and a third of the time of small studies is this wait.
    os.fsync = lambda descriptor: None
    if hasattr(config, "workerinput"):  # one of several processes
        from tests.compiled_once import share_compilation

        share_compilation()
        # Else each of these processes starts another one that compiles, and these do not wait for each other.
        os.environ["SOLVERS_COMPILES_FOR_ANOTHER_PROCESS"] = "1"
    if not config.getoption("--full") and not getattr(config.option, "numprocesses", None):
        preloaded.start_forks()
        if hasattr(config, "workerinput"):
            preloaded.start_server()  # imports packages while tests are collected


def pytest_unconfigure() -> None:
    preloaded.end_server()


def pytest_collection_finish() -> None:
    # Else a tenth of the time is collections of garbage that look at all modules and tests again.
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True)
def _new_interpreters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start new interpreters, not forks, in tests with that marker."""
    if request.node.get_closest_marker("new_interpreters"):
        monkeypatch.setattr(preloaded, "is_off", True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    if config.getoption("--full"):
        return
    numbers: Counter[str] = Counter()
    chosen = {item: _is_in_sample(item, numbers) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]


FIRST = (
    "tests/solvers/test_certificate_truth.py",  # compiles most
    "tests/integration/",
    "tests/test_manual.py",
    "tests/orchestrator/training/",
    "tests/orchestrator/test_",
    "tests/solvers/common/test_compile.py",
    "tests/solvers/estimators/",
    "tests/orchestrator/cli/",
    "tests/orchestrator/report/",
    "tests/test_",
)
"""Beginnings of the paths of tests that take long, so that they start before the short ones.

A process takes a whole file, and a long one that starts last would keep a single core busy.
"""


def _turn(item: pytest.Item) -> int:
    """Return when a test starts; commands, which others compile for, follow what takes long."""
    file = item.nodeid.partition("::")[0]
    if file.endswith("/test_commands.py"):
        return len(FIRST)
    return next((turn for turn, start in enumerate(FIRST) if file.startswith(start)), len(FIRST))


def _is_in_sample(item: pytest.Item, numbers: Counter[str]) -> bool:
    """Whether a test runs without `--full`; `numbers` counts the cases of each sampled test.

    With n coprime to the numbers of values, the sample of several parameters has every value of each.
    """
    if item.get_closest_marker("full"):
        return False
    if (sample := item.get_closest_marker("sample")) is None:
        return True
    test = item.nodeid.partition("[")[0]
    numbers[test] += 1
    return (numbers[test] - 1) % sample.args[0] == 0


@pytest.fixture(scope="session")
def full_size(request: pytest.FixtureRequest) -> bool:
    """Whether long checks run in full size."""
    return request.config.getoption("--full")


@pytest.fixture(scope="session", autouse=True)
def _no_certificates(tmp_path_factory):
    """Start without the certificates that whoever runs the tests may have made, and leave none of ours."""
    before = os.environ.get("XDG_DATA_HOME")
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data-home"))
    yield
    os.environ.pop("XDG_DATA_HOME")
    if before is not None:
        os.environ["XDG_DATA_HOME"] = before
