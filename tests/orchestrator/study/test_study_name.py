"""Names of studies are checked wherever one is given; nothing outside the folder of studies is touched."""

import shutil
from pathlib import Path

import pytest

from orchestrator import load_study
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.config.compose import load_settings
from orchestrator.config.search_settings import read_search
from orchestrator.engine.load import find_study
from orchestrator.store.files import StoreError
from orchestrator.study.study_name import name_problem
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("no_pages")

BAD = {
    "parent": "..",
    "this": ".",
    "above": "../other",
    "below": "first/trials",
    "absolute": "/tmp",
    "backslash": "..\\other",
    "empty": "",
    "blank": " ",
    "nul": "a\0b",
    "newline": "a\nb",
    "escape": "\x1b[2Jx",
    "long": "x" * 300,
    "dash": "-rf",
    "hidden": ".deleted-first",
    "device": "nul",
    "device_with_suffix": "COM1.txt",
    "last_dot": "first.",
    "markup": "[red]first[/red]",
    "tag": "<b>first</b>",
    "surrogate": "\ud800",
    "star": "*",
    "bytes": "ü" * 100 + "x",
}
TINY = ("datasets=[iris]", "solvers=[libsvm_l1]", "search.space.C=[1]", "search.space.gamma=[0.1]")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with a study in `results`, and another in the folder above it."""
    folder = tmp_path_factory.mktemp("names")
    tiny = (*TINY, "protocol.outer=2", "protocol.inner=2", "cluster=serial", f"paths.cache={folder}/cache")
    assert main(["run", "study=first", *tiny, f"paths.results={folder}/results"]) == EXIT_OK
    shutil.copytree(folder / "results" / "first", folder / "other")
    return folder


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def quoted(name):
    """A value in Hydra's grammar, whatever is in it."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def commands(name):
    """Every verb that takes the name of a study, with one that is wrong."""
    return {
        "run": ["run", f"study={quoted(name)}", *TINY],
        "plan": ["plan", f"study={quoted(name)}", *TINY],
        "status": ["status", f"study={quoted(name)}"],
        "report": ["report", f"study={quoted(name)}"],
        "report of two": ["report", f"study=first,{name}", "to=TO"],
        "repair": ["repair", f"study={quoted(name)}"],
        "repair bare": ["repair", name],
        "rename": ["rename", name, "third"],
        "rename to": ["rename", "first", name],
        "delete": ["delete", name, "--yes"],
        "studies": ["studies", name],
        "selected": ["plan", "study=mine", *TINY[:2], "search=selected", f"search.study={quoted(name)}"],
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["above", "absolute", "empty", "nul", "dash", "markup", "device", "long"])
def test_no_verb_takes_what_is_no_name_nor_touches_anything(kind, stored, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = files_of(stored)
    for verb, arguments in commands(BAD[kind]).items():
        arguments = [text.replace("to=TO", f"to={tmp_path}/report") for text in arguments]
        paths = [f"paths.results={stored}/results", f"paths.cache={stored}/cache"]
        if kind == "dash" and verb in ("repair bare", "rename", "rename to", "delete", "studies"):
            with pytest.raises(SystemExit):  # an option that is not known
                main([*arguments, *paths])
            continue
        capsys.readouterr()
        assert main([*arguments, *paths]) == EXIT_BAD, verb
        output, errors = capsys.readouterr()
        assert errors.startswith("svmbench: "), (verb, errors)
        assert "Traceback" not in errors + output, verb
        assert len(errors.splitlines()) == 1 or "Hydra" in errors or verb.startswith("re"), (verb, errors)
        assert len(errors) < 1000, (verb, errors)
    assert files_of(stored) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", [*BAD.values(), "x/a\0b", Path("a\0b"), "x/\ud800", "x/a\nb", "y/" + "x" * 5000]
)
def test_no_name_in_python_is_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as caught:
        load_study(name, tmp_path / "empty")
    assert "\n" not in str(caught.value)


def test_a_study_is_found_by_its_name_and_by_its_path(stored, monkeypatch):
    monkeypatch.chdir(stored)
    given = (
        "first",
        "results/first",
        "./other",
        "other",
        stored / "other",
        str(stored / "results" / "first"),
    )
    for each in given:
        assert len(load_study(each).trials) == 2
    assert len(load_study("first", stored / "results").trials) == 2
    with raises(StoreError, "'other'"):
        find_study("other", stored / "results")  # a folder, but not among the studies


@pytest.mark.parametrize("name", ["größe", "名前", "ünï.x-2"])
def test_letters_outside_ascii_need_no_quotes_in_any_verb(name, tmp_path, stored, capsys):
    assert main(["plan", f"study={name}", *TINY, f"paths.results={tmp_path}/größe"]) == EXIT_OK
    shutil.copytree(stored / "results", tmp_path / "größe" / "ergebnisse")
    paths = [f"paths.results={tmp_path}/größe/ergebnisse"]
    for command in (
        ["rename", "first", name],
        ["status", f"study={name}"],
        ["report", f"study={name}"],
        ["repair", name],
        ["repair", f"study={name}"],
        ["rename", name, f"{name}2"],
        ["delete", f"{name}2", "--yes"],
    ):
        assert main([*command, *paths]) == EXIT_OK, (command, capsys.readouterr())


def test_a_name_of_digits_is_one_wherever_it_is_given():
    problems = []
    search, *_ = read_search({"kind": "selected", "study": 2024}, "accuracy", problems)
    assert problems == []
    assert search.options["study"] == "2024"


@pytest.mark.parametrize("value", [*BAD.values(), None, 1.5, True, ["a"], {"a": 1}])
def test_what_is_no_name_is_shown_and_answered_with_what_is(value):
    problem = name_problem(value, "search.study")
    assert problem.startswith("search.study=")
    assert len(problem) < 400
    assert problem.isprintable()


@pytest.mark.parametrize("value", ["a", "first", "first-2_x.y", "2024", 2024, "größer", "名前", "x" * 100])
def test_what_is_a_name(value):
    assert name_problem(value) == ""


@pytest.mark.parametrize("name", ["1_000", "1e3", "007", "2024", "0x1F"])
def test_a_name_that_reads_as_a_number_keeps_its_digits(name):
    assert load_settings([f"study={name}", *TINY]).study.name == name
