"""The published studies have the numbers that `svmbench report` computes of them today."""

import json

import pytest

from tests.integration.processes import in_process
from tests.published import PUBLISHED, differences, numbers_of

STUDIES = sorted(path.name for path in PUBLISHED.iterdir() if path.is_dir())
BY_SIZE = sorted(STUDIES, key=lambda study: (PUBLISHED / study / "numbers.json").stat().st_size)
"""Studies in ascending order of the size of their numbers. A sample has small and medium ones."""


@pytest.mark.sample(13)
@pytest.mark.parametrize("study", BY_SIZE)
def test_a_published_study_has_the_numbers_of_today(study, tmp_path):
    run = in_process(tmp_path, "report", f"study={study}", f"paths.results={PUBLISHED}", "to=report")
    assert run.returncode == 0, run.stderr
    today = numbers_of(json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8")))
    published = json.loads((PUBLISHED / study / "numbers.json").read_text(encoding="utf-8"))
    assert differences(published, today) == []


def test_numbers_differ_when_more_than_their_last_digit_does():
    first = {"a": [1.193048305, 2, "x", None], "b": {"c": True}}
    assert differences(first, {"a": [1.193048304, 2, "x", None], "b": {"c": True}}) == []
    assert differences(first, {"a": [1.193048285, 2, "x", None], "b": {"c": 1}}) == [
        "/a/0: 1.193048305 and 1.193048285",
        "/b/c: True and 1",
    ]
    assert differences(first, {"a": [1.193048305, 2, "x"]}) != []
    assert differences({"a": None}, {"a": 0.0}) == ["/a: None and 0.0"]


@pytest.mark.parametrize("study", STUDIES)
def test_the_repository_keeps_of_a_published_study_what_cannot_be_made_again(study):
    sizes = {path.name: path.stat().st_size for path in (PUBLISHED / study).iterdir() if path.is_file()}
    assert {"README.md", "numbers.json", "selections.parquet", "outer.parquet"} <= sizes.keys()
    assert sizes["numbers.json"] <= 150_000
