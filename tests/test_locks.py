"""`requirements.lock` holds what runs a study; `requirements-dev.lock` adds what tests and documents it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def locked(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9][\w.\-]*)(?:\[\w+\])?==(\S+)", text, re.MULTILINE))


def test_both_locks_have_the_same_versions():
    runs, develops = locked("requirements.lock"), locked("requirements-dev.lock")
    assert len(runs) > 50
    assert runs.items() <= develops.items()


def test_the_container_installs_nothing_that_only_develops():
    assert (
        not {"pytest", "mypy", "ruff", "mkdocs", "mkdocs-material", "hypothesis"}
        & locked("requirements.lock").keys()
    )
    assert "-r requirements.lock" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
