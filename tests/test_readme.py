import re
import runpy
from pathlib import Path

import pytest
import yaml

import svmbench
from orchestrator.cli.main import main

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COSTS = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
FACTORS = {"three outer folds": 1.620, "": 1.677}
"""Corrected ÷ descriptive standard error of n folds out of five: √(n/(n−1))·√n·√(1/n + 1/4)."""


def test_the_standard_errors_of_the_cost_table_are_the_corrected_ones_beside_the_descriptive_ones():
    # Other tables have errors of exponents, which no rows share.
    tables = [text for text in COSTS.split("\n\n") if text.startswith("| dataset |") and "accuracy" in text]
    rows = [line for text in tables for line in text.splitlines() if "±" in line]
    assert rows
    for row in rows:
        pairs = re.findall(r"± (\d\.\d\d) \((\d\.\d\d)\)", row)
        assert len(pairs) == row.count("±")
        factor = next(value for words, value in FACTORS.items() if words in row)
        for corrected, descriptive in pairs:
            # Both are rounded to a hundredth.
            assert float(corrected) == pytest.approx(factor * float(descriptive), abs=0.005 * (1 + factor))


def test_the_readme_says_what_the_tables_say():
    by_dataset = re.findall(r"^\| [\w*, ]+ \| [\d.]+ \| (1/[\d.]+) \| (1/[\d.]+|–)", COSTS, re.MULTILINE)
    by_solver = dict(
        re.findall(r"^\| `(newton|mnsvm|smo_l1)`[^|]*\| ((?:1/[\d.]+ \|?.?){5})", COSTS, re.MULTILINE)
    )
    assert by_dataset
    assert by_solver.keys() == {"newton", "mnsvm", "smo_l1"}
    columns = dict(zip(("newton", "mnsvm"), zip(*by_dataset, strict=True), strict=True))
    for solver, row in by_solver.items():
        ratios = re.findall(r"1/([\d.]+)", " ".join([row, *columns.get(solver, ())]))
        least, most = sorted(ratios, key=float)[:: len(ratios) - 1]
        assert f"`{solver}` 1/{least} to 1/{most}" in README


def test_no_conclusion_is_drawn_from_the_accuracies_beside_costs():
    assert not re.search(r"(higher|lower|better|worse) (by|on|than)|standard error,? so", COSTS)


def test_the_changelog_says_everything_once():
    entries = [" ".join(entry.split()) for entry in re.split(r"\n *- |\n\n", CHANGELOG)]
    assert [entry for entry in entries if len(entry) > 40 and entries.count(entry) > 1] == []


def test_the_readme_names_every_key_of_the_protocol():
    keys = yaml.safe_load((ROOT / "conf" / "protocol" / "nested5x5.yaml").read_text(encoding="utf-8"))
    assert not [key for key in keys if not re.search(rf"`(protocol\.)?{key}`", README)]


def test_the_readme_points_to_pages_that_are_there():
    links = re.findall(r"\]\((\S+?)\)", README)
    assert links
    assert all((ROOT / (link.partition("#")[0] or "README.md")).is_file() for link in links)


def test_the_command_and_python_give_the_answer_of_the_readme(tmp_path, monkeypatch, capsys):
    """Both doors on a smaller table: the same lines, in the form of those in the README."""
    table = runpy.run_path(str(ROOT / "examples" / "churn.py"))["customers"](120)
    table.to_csv(tmp_path / "churn.csv", index=False)
    monkeypatch.chdir(tmp_path)
    folds = ["protocol.outer=3", "protocol.inner=2", "cluster=serial"]
    assert main(["run", "datasets=[churn.csv]", "label=outcome", "solvers=[lda,naive_bayes]", *folds]) == 0
    printed = capsys.readouterr().out
    answer = svmbench.compare(
        table, "outcome", ["lda", "naive_bayes"], outer=3, inner=2, cluster="serial"
    ).answer
    scores = re.compile(r"^\w+ +\d+\.\d % ± \d+\.\d .*$", re.MULTILINE)
    shown = scores.findall(README)
    assert len(shown) == 4
    assert scores.findall(printed) == scores.findall(answer)
    assert len(scores.findall(answer)) == 2
    form = re.compile(r"\w+ +N % ± N +\+?N over the largest class \(\+?N to \+?N\)")
    for first in (shown[0], scores.findall(answer)[0]):
        assert form.fullmatch(re.sub(r"[+−]?\d+\.\d", "N", first))


@pytest.mark.parametrize("start", ["## From `svmbench run`", "## From a row in Parquet"])
def test_the_walks_through_the_code_pass_at_most_twelve_files_and_functions_that_are_there(start):
    walk = CONTRIBUTING.split(start)[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. `([a-z_/]+\.py)`: (.*(?:\n   .*)*)", walk, re.MULTILINE)
    assert 6 < len(steps) == len(set(re.findall(r"[\w/]+\.py", walk))) <= 12
    for file, text in steps:
        source = (ROOT / "orchestrator" / file).read_text(encoding="utf-8")
        for name in re.findall(r"`([A-Za-z_.]+)`", text):
            if not name.endswith(".py"):
                assert re.search(rf"\b{name.split('.')[-1]}\b", source), (file, name)
