"""The manual is true: the commands of its pages run, its tables name every column, its examples work."""

import json
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.store.columns import OUTER_SCHEMA, PREDICTION_TYPES, SELECTION_SCHEMA, TRIAL_SCHEMA
from tests.integration.clusters import command, free_port, running, wait_for

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"<!-- tested(?: with: (.*))? -->")
BLOCK = re.compile(r"^```(bash|python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:# @package _global_\n)?# ([\w/]+/\w+\.(?:py|yaml))\n")
PAGES = [page for page in sorted(ROOT.glob("docs/*.md")) if MARK.search(page.read_text(encoding="utf-8"))]
SAMPLE = ("python.md", "start.md")
EXAMPLES = sorted(ROOT.glob("examples/0*.*"))


class Reader:
    """Does what a page says, in the current folder.

    Parameters
    ----------
    overrides : list of str
        What makes the page's studies small.
    stack : ExitStack
        Ends what was started.
    """

    def __init__(self, overrides, stack):
        self.overrides, self.stack = overrides, stack
        self.names = {"__name__": "__main__"}
        self.port = str(free_port())

    def do(self, language, text):
        """Write a block that names its file there; run any other."""
        if file := FILE.match(text):
            Path(file[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(file[1]).write_text(text)
        elif language == "python":
            # As in a notebook, the source of a block is known by the block's name.
            name = f"<block {hash(text)}>"
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            exec(compile(text, name, "exec"), self.names)
        elif language == "bash":
            for line in text.replace("8786", self.port).splitlines():
                self.run(shlex.split(line, comments=True), line)

    def run(self, words, line):
        """Run one line of a shell."""
        if words[:2] == ["svmbench", "cluster"] and words[2] != "certs":
            self.stack.enter_context(running(command(*words[1:]), Path(f"{words[2]}.log").absolute()))
            # A scheduler makes the certificates that a worker takes.
            text, times = ("Scheduler at", 1) if words[2] == "scheduler" else ("Register worker", 2)
            wait_for(Path("scheduler.log"), text, times)
        elif words[0] == "svmbench":
            more = [] if words[1] not in ("run", "plan") else self.overrides
            if {"search=selected", "search=sample"} & {*words}:  # these refuse a space
                more = [text for text in more if not text.startswith("search.space")]
            serial = ["cluster=serial"] if words[1] in ("run", "plan") and "cluster=" not in line else []
            assert main([*words[1:], *more, *serial]) == 0, line
        else:
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            subprocess.run(["bash", "-ec", line], check=True, env={**os.environ, "PATH": path})


def sampled(pages, sample):
    return [
        pytest.param(page, id=page.name, marks=() if page.name in sample else pytest.mark.full)
        for page in pages
    ]


@pytest.mark.parametrize("page", sampled(PAGES, SAMPLE))
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch, full_size):
    text = page.read_text(encoding="utf-8")
    if not full_size:  # figures and pages of runs take most of the time, and other tests look at them
        monkeypatch.setattr("orchestrator.report.contents.drawn_figures", lambda sections, pdf: {})
        monkeypatch.setattr("orchestrator.cli.run.write_report", lambda *arguments, **options: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = BLOCK.findall(text)
    assert any(language != "yaml" for language, _ in blocks)
    with ExitStack() as stack:
        reader = Reader((MARK.search(text)[1] or "").split(), stack)
        for language, block in blocks:
            reader.do(language, block)


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_links_of_a_page_lead_to_a_file_of_the_checkout(page):
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)(?:#(\w+))?", page.read_text(encoding="utf-8"))
    missing = [link for link, _ in links if not (page.parent / link).exists()]
    assert not missing
    for link, name in links:
        if name and link.endswith(".py"):  # the site links to the reference of this name
            source = (page.parent / link).read_text(encoding="utf-8")
            assert re.search(rf"^(?:class|def) {name}\b", source, re.MULTILINE)


def test_a_configuration_that_a_page_shows_is_the_file():
    shown = [
        (file[1], text[file.end() :])
        for page in ROOT.glob("docs/*.md")
        for _, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if (file := FILE.match(text)) and file[1].startswith("conf/")
    ]
    assert len(shown) >= 8
    for name, text in shown:
        assert text == (ROOT / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("example", sampled(EXAMPLES, ("04_figure.ipynb",)))
def test_an_example_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "cache"))
    if example.suffix == ".py":
        runpy.run_path(str(example), run_name="__main__")
        return
    cells = json.loads(example.read_text(encoding="utf-8"))["cells"]
    names = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), example.name, "exec"), names)


def test_the_examples_are_found():
    assert EXAMPLES


def columns(heading):
    """Return the names and types in the first table under a heading of the page on results."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    table = text[text.index("|") :].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \| \S.* \|.*\| (\S.*) \|$", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Columns of trials", list(TRIAL_SCHEMA)),
        ("Columns of selections", list(SELECTION_SCHEMA)),
        ("Columns of outer", [OUTER_SCHEMA.field("selection_key")]),
    ],
)
def test_every_column_is_explained_in_the_order_of_the_schema(heading, fields):
    assert columns(heading) == [(field.name, str(field.type)) for field in fields]


def test_columns_of_predictions_are_explained():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for name, kind in PREDICTION_TYPES.items():
        assert re.search(rf"^\| `{name}` \| .* \| {kind} \|$", text, re.MULTILINE), name


def test_what_a_solver_publishes_is_explained():
    from orchestrator.training.fitted_attributes import _COLUMNS

    page = (ROOT / "docs" / "own.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+_)` \| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [(attribute, column) for column, (attribute, _) in _COLUMNS.items()]
