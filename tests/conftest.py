"""The size of long checks: a fixed-seed sample by default, everything with `--full` (`make check`)."""

import os

import pytest
from hypothesis import settings

from orchestrator.training.environment import numba_cache

settings.register_profile("sample", derandomize=True, deadline=None, database=None, max_examples=30)
settings.register_profile("full", derandomize=True, deadline=None, database=None, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run long checks in full size, not a sample of them")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full") else "sample")
    # Else the workers of every test that has a cache folder of its own compile all they use.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(numba_cache(("solvers",))))
    if hasattr(config, "workerinput"):  # one of several processes
        from tests.compiled_once import share_compilation

        share_compilation()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    long = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


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
