"""Scores that others have published are shown, and change nothing else."""

import json

import pytest

from orchestrator.analysis.findings import analyse
from orchestrator.analysis.published import read_published
from orchestrator.cli.main import EXIT_BAD, main
from orchestrator.report import markdown_summary, write_report
from orchestrator.report.contents import all_tables
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.report.frames import QUICKSTART, make_results

FILE = """dataset,arm,score,standard_error,source
iris,mnsvm,0.9733,0.0067,"Miller (2020), Table 2"
wine,BVM,0.9889,,Tsang (2007)
sonar,BVM,0.9,,Tsang (2007)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(FILE)
    return path


def test_they_have_columns_of_their_own_in_the_table_of_means_and_nowhere_else(file, tmp_path):
    results = make_results(tmp_path, QUICKSTART)
    plain, findings = analyse(results), analyse(results, published=read_published([file]))
    write_report(results, tmp_path / "report", findings)
    twin = json.loads((tmp_path / "report" / "report.json").read_text())
    scores = all_tables(findings)["scores"]
    assert list(scores.header[-2:]) == ["mnsvm (published)", "BVM (published)"]
    assert [[cell.text for cell in row[-2:]] for row in scores.rows] == [
        ["97.33 ± 0.67", "–"],
        ["–", "98.89"],
        ["–", "–"],
    ]
    caption = twin["tables"]["scores"]["caption"]
    assert_says(caption, "mnsvm: Miller (2020), Table 2", "BVM: Tsang (2007)")
    assert_sentence(caption, "1.68")
    (row,) = [row for row in twin["tables"]["scores"]["rows"] if row["solver"] == "BVM (published)"]
    assert (row["mean"], row["source"], row["best"]) == (0.9889, "Tsang (2007)", False)
    others = {name: table for name, table in all_tables(plain).items() if name != "scores"}
    for name, table in others.items():
        assert table.rows == all_tables(findings)[name].rows, name
    assert twin["answer"] == " ".join(answer["text"] for answer in twin["answers"])
    assert "published" not in twin["answer"]
    assert "97.33 ± 0.67" in markdown_summary(results, findings)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("a,b\n1,2\n", ["'a, b'", "columns", "dataset", "arm", "score"]),
        ("dataset,arm,score\niris,x,0.9\niris,y,high\n", ["line 3", "number", "score", "'high'"]),
        ("dataset,arm,score\niris,x,\n", ["line 2", "number", "score", "''"]),
        ("dataset,arm,score,standard_error\niris,x,1,inf\n", ["number", "standard_error"]),
        ("dataset,arm,score\niris,,0.9\n", ["line 2", "dataset", "arm"]),
        ("dataset,arm,score\niris,x,0.9\niris,x,0.8\n", ["repeats", "x", "iris"]),
        ("dataset,arm,score\niris,x,97.3\n", ["0", "1", "100"]),
        ("dataset,arm,score\nIris,x,0.9\n", ["datasets", "'Iris'"]),
        ("", ["read"]),
        (None, ["read"]),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_sentence(text, facts, tmp_path):
    path = tmp_path / "published.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        analyse(make_results(tmp_path, QUICKSTART), published=read_published([path]))
    (problem,) = caught.value.problems
    assert_says(problem, "report.published", *facts)


def test_the_command_line_names_the_files(file, tmp_path, capsys):
    assert main(["report", "study=x", f"paths.results={tmp_path}", "report.published=[{a: 1}]"]) == EXIT_BAD
    assert_says(capsys.readouterr().err, "report.published", "list", "CSV")
    missing = tmp_path / "none.csv"
    assert (
        main(["report", "study=x", f"paths.results={tmp_path}", f"report.published=[{missing}]"]) == EXIT_BAD
    )
    assert "cannot read" in capsys.readouterr().err
