"""The published studies have the reports that `svmbench report` writes of them today."""

import json
from pathlib import Path

import pytest

from tests.integration.processes import in_process

PUBLISHED = Path(__file__).resolve().parents[3] / "results" / "published"


@pytest.mark.sample(2)
@pytest.mark.parametrize("study", sorted(path.name for path in PUBLISHED.iterdir() if path.is_dir()))
def test_a_published_report_says_what_one_of_today_says(study, tmp_path):
    run = in_process(tmp_path, "report", f"study={study}", f"paths.results={PUBLISHED}", "to=report")
    assert run.returncode == 0, run.stderr
    today, published = (
        json.loads((folder / "report.json").read_text(encoding="utf-8"))
        for folder in (tmp_path / "report", PUBLISHED / study / "report")
    )
    for report in (today, published):  # few tests draw figures
        del report["figures"], report["files"]
    assert today == published
