"""Sections of a user's own in a report: `examples/report` outside the repository, and worse ones."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from orchestrator.cli.main import main
from orchestrator.report import Section, write_report
from tests.messages import assert_says
from tests.orchestrator.report.frames import make_results

EXAMPLE = Path(__file__).parents[3] / "examples" / "report"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    means = {"iris": {"a": 0.9, "b": 0.8}, "wine": {"a": 0.7, "b": 0.9}}
    return make_results(tmp_path_factory.mktemp("results") / "s", means)


def ends(results):
    sys.exit(3)


def leaves(results):
    os._exit(3)


def raises(results):
    raise ValueError("<b>no such column</b>")


def number(results):
    return Section("Number", "", 3)


def bare(results):
    return results.outer


def markup(results):
    frame = pd.DataFrame({"<i>name</i>": ["<script>alert(1)</script>", "=1+1"], "x": [1.23456, None]})
    return Section("<script>title</script>", "<b>caption</b>", frame)


def text_markup(results):
    return Section("Text", "", "<script>alert(2)</script>\n\nsecond")


def page(results, folder, *sections):
    return write_report(results, folder, sections=sections).read_text()


def test_the_example_s_table_figure_and_text_stand_beside_ours(results, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(shutil.copytree(EXAMPLE, tmp_path / "elsewhere"))
    names = ["mysections.worst_folds", "mysections.score_against_size", "mysections.remarks"]
    text = page(results, tmp_path / "r", *names)
    assert re.findall(r'<h2 id="section-(.*?)">(.*?)</h2>', text) == list(
        zip(names, ["Hardest outer folds", "Score and size", "Remarks"], strict=True)
    )
    table = pd.read_csv(tmp_path / "r" / "tables" / "mysections.worst_folds.csv")
    worst = results.outer.sort_values("score", kind="stable").head(5)
    assert table["score"].tolist() == worst["score"].tolist()
    svg = (tmp_path / "r" / "figures" / "mysections.score_against_size.svg").read_text()
    assert svg.startswith("<?xml")
    assert '<figure id="figure-mysections.score_against_size">' in text
    assert "<p>None was looked at by eye.</p>" in text
    listed = json.loads((tmp_path / "r" / "report.json").read_text())
    assert listed["sections"]["mysections.remarks"]["title"] == "Remarks"
    assert listed["tables"]["mysections.worst_folds"]["caption"] == "The five refits with the lowest scores."


@pytest.mark.figures("scores", "effort")
def test_a_report_is_the_same_again_and_loses_what_is_no_longer_asked_for(results, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    first = page(results, tmp_path / "r", "mysections.score_against_size")
    assert page(results, tmp_path / "r", "mysections.score_against_size") == first
    plain = page(results, tmp_path / "r")
    assert "section-" not in plain
    assert not (tmp_path / "r" / "figures" / "mysections.score_against_size.svg").exists()
    assert plain == page(results, tmp_path / "other")


def twice(results):
    return Section("t", "c", pd.DataFrame([[1, 2]], columns=["score", "score"]))


def pivot(results):
    table = results.outer.pivot_table("score", "dataset", ["solver", "outer"])
    results.provenance.clear()
    results.outer["score"] = 0.0
    return Section("Folds", "Scores of the outer folds.", table)


def test_columns_of_several_levels_are_shown_and_changed_results_change_nothing_else(results, tmp_path):
    others = page(results, tmp_path / "others")
    text = page(results, tmp_path / "r", pivot)
    assert "a 0" in text
    assert_says(text.replace("&nbsp;", " "), "Software", "numpy 2.4.6")
    scores = re.compile(r'<table id="table-scores">.*?</table>', re.DOTALL)
    assert scores.findall(text) == scores.findall(others)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("section", "facts"),
    [
        (ends, ["SystemExit: 3"]),
        (leaves, ["SystemExit: os._exit(3)"]),
        (raises, ["ValueError: &lt;b&gt;no such column&lt;/b&gt;"]),
        (number, ["DataFrame", "Figure", "text", "found a int"]),
        (twice, ["columns", "two", "&#39;score&#39;"]),
        (bare, ["Section(title, caption, content)", "found a DataFrame"]),
        ("no_such_module.section", ["no module", "&#39;no_such_module&#39;"]),
    ],
)
def test_one_that_fails_leaves_a_sentence_in_its_place(section, facts, results, tmp_path):
    text = page(results, tmp_path, section)
    (found,) = re.findall(r"<p>[^<]*cannot be shown.*?</p>", text)
    assert_says(found, *facts)
    assert '<table id="table-scores">' in text


def test_what_it_says_is_text_and_never_markup(results, tmp_path):
    text = page(results, tmp_path, markup, text_markup)
    assert text.count("<script>") == 1, "our own"
    assert "<b>caption" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in text
    rows = (tmp_path / "tables" / f"{__name__}.markup.csv").read_text()
    assert "'=1+1" in rows


def test_what_is_no_list_of_paths_is_refused(tmp_path, capsys):
    command = ["report", "study=x", f"paths.results={tmp_path}", "report.sections=[3]"]
    assert main(command) == 1
    assert_says(capsys.readouterr().err, "report.sections", "list", "functions")
