"""The verb `data`: datasets are listed, found, described, fetched and checked by name."""

import pandas as pd
import pytest
import yaml

from orchestrator.cli import completion
from orchestrator.cli.data import ACTIONS
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.datasets.about import About, about_problems, read_about
from tests.messages import assert_says
from tests.orchestrator.file_server import serving

ROWS = b"".join(b"%d 1:%d 3:1\n" % (row % 3, row + 1) for row in range(30))

RINGS = """\
_target_: orchestrator.datasets.libsvm_file
name: rings
folder: ${{paths.data}}
n_features: 3
about:
  n: 30
  d: 3
  classes: 3
  source: our own server
  licence: none
  note: Rows were drawn by hand.
  files:
    - urls: ["{address}/gone", "{address}/rings"]
"""


@pytest.fixture
def server():
    with serving({"/rings": ROWS}) as server:
        yield server


@pytest.fixture
def data(server, tmp_path, capsys, monkeypatch):
    """Run a command beside a configuration of the dataset `rings`; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mine" / "dataset" / "rings.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(RINGS.format(address=server.url("")))

    def data(*words, verb="data"):
        capsys.readouterr()
        where = ["paths.data=data", "paths.cache=cache", "paths.results=results", "--config-dir", "mine"]
        code = main([verb, *words, *where])
        output, errors = capsys.readouterr()
        return code, output, errors.splitlines()

    return data


def row_of(name, output):
    return next(line for line in output.splitlines() if line.split()[:1] == [name])


def test_a_dataset_is_fetched_by_the_command_that_a_run_names(data, tmp_path):
    study = ["study=x", "datasets=[rings]", "solvers=[libsvm_l1]", "cluster=serial"]
    code, _, (error,) = data(*study, verb="run")
    assert code == EXIT_BAD
    assert_says(error, "svmbench data fetch rings")
    _, output, _ = data("list")
    assert row_of("rings", output).split() == ["rings", "30", "3", "3", "to", "fetch", "our", "own", "server"]
    code, _, (error,) = data("path", "rings")
    assert code == EXIT_BAD
    assert_says(error, "svmbench data fetch rings")
    code, output, errors = data("fetch", "rings", "iris")
    assert (code, errors) == (EXIT_OK, [])
    path = tmp_path / "data" / "rings.libsvm"
    assert path.read_bytes() == ROWS
    assert "Rows were drawn by hand." in output
    assert_says(output, "iris", "no")
    assert data("path", "rings") == (EXIT_OK, f"{path}\n", [])
    _, output, _ = data("list")
    assert row_of("rings", output).split()[4] == "yes"
    assert data(*study, verb="plan")[0] == EXIT_OK


def test_a_description_says_what_was_loaded_and_what_is_published(data):
    code, output, _ = data("describe", "rings")
    assert code == EXIT_OK
    for fact in ("Run: svmbench data fetch rings", "30", "our own server"):
        assert fact in output
    data("fetch", "rings")
    code, output, _ = data("describe", "rings", "checkers")
    assert code == EXIT_OK
    for fact in (
        "30",
        "3 (0: 10, 1: 10, 2: 10)",
        "0.6667",
        "our own server",
        "none",
        "drawn by hand",
        "1,000",
    ):
        assert fact in output
    assert sum(len(word) == 64 for word in output.split()) == 2  # fingerprints


def test_a_check_says_in_sentences_what_is_wrong(data, tmp_path):
    data("fetch", "rings")
    code, output, errors = data("check", "rings", "iris")
    assert (code, errors) == (EXIT_OK, [])
    assert_says(output, "rings", "30 rows", "3 features", "3 classes", "one value")
    assert_says(output, "149", "150 rows")  # iris has a flower twice
    path = tmp_path / "data" / "rings.libsvm"
    path.write_bytes(ROWS[:-1].replace(b"2 1:", b"1 1:") + b"\n0 1:4\n")
    code, output, errors = data("check", "rings", "iris")
    assert code == EXIT_BAD
    assert_says(errors[0], "dataset 'rings'", "30", "rows (about.n)", "31")
    assert_says(errors[1], "dataset 'rings'", "3 classes", "about.classes", "2")
    assert_says(errors[2], "changed")
    assert "iris: 150 rows" in output
    path.write_bytes(b"one 1:1\n")
    _, _, errors = data("check", "rings")
    assert_says(errors[0], "line 1", "number", "label")


def test_without_a_connection_it_is_said_what_to_put_where(data, server):
    server.files.clear()
    code, _, errors = data("fetch", "rings", "optdigits")
    assert code == EXIT_BAD
    assert [error.rpartition(": ")[2] for error in errors[:2]] == ["the server answers 404 (Not Found)"] * 2
    path = f"{server.url('/gone')} elsewhere and put it in "
    assert_says(errors[2], "connection", f"{path}")
    assert_says(errors[3], "'optdigits'", "OpenML 28", "UCI 80")


def test_a_file_that_cannot_be_fetched_and_a_folder_of_files_are_told_apart_from_none(data, tmp_path):
    folder = tmp_path / "mine" / "dataset"
    for name, loader in {"here": "parquet_file", "gone": "csv_file"}.items():
        (folder / f"{name}.yaml").write_text(
            f"_target_: orchestrator.datasets.{loader}\npath: {name}\nlabel: y\n"
        )
    (tmp_path / "here").mkdir()
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    for part in (0, 1):
        table[2 * part : 2 * part + 2].to_parquet(tmp_path / "here" / f"{part}.parquet")
    (folder / "none.yaml").write_text("_target_: orchestrator.datasets.csv_file\npath: ''\nlabel: y\n")
    assert row_of("none", data("list")[1]).split() == ["none", "no"]
    for action in ("fetch", "path"):
        code, _, errors = data(action, "gone", "kdd99")
        assert code == EXIT_BAD
        assert_says(errors[0], "'gone'", "`path`")
        assert_says(errors[1], "UCI 130", "data/kddcup.data.gz")
    assert data("path", "here") == (EXIT_OK, f"{tmp_path / 'here'}\n", [])
    assert_says(data("fetch", "here")[1], "here is available")
    assert row_of("here", data("list")[1]).split() == ["here", "yes"]
    assert data("check", "here")[0] == EXIT_OK
    code, output, _ = data("describe", "here", "to=out")
    assert (code, "2 (0: 2, 1: 2)" in output) == (EXIT_OK, True)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ("3", ("about", "keys", "n", "3")),
        ("{nn: 3}", ("about.nn", "'n'")),
        ("{n: many}", ("about.n", "whole number", "1", "'many'")),
        ("{files: here}", ("about.files", "list")),
        ("{files: [{urls: [ftp://x]}]}", ("urls", "list", "https://…", "http://…")),
        ("{files: [{urls: [http://x], sha256: ab}]}", ("sha256", "64")),
        ("{files: [{url: http://x}]}", ("'url'", "urls", "sha256")),
        ("{files: [{urls: [http://x/a.xz]}, {urls: [http://x/a]}]}", ("compress",)),
    ],
)
def test_a_sentence_says_what_is_wrong_with_a_configuration(about, sentence):
    node = {"about": yaml.safe_load(about)}
    (problem,) = about_problems("rings", node)
    assert_says(problem, *sentence)
    assert read_about(node) == About()


@pytest.mark.parametrize(
    ("verb", "words"),
    [("data", ["fetch", "rings"]), ("plan", ["study=x", "datasets=[rings]", "solvers=[mnsvm]"])],
)
def test_a_wrong_configuration_is_told_before_it_is_used(verb, words, data, tmp_path):
    config = tmp_path / "mine" / "dataset" / "rings.yaml"
    config.write_text(config.read_text().replace("n: 30", "nn: 30"))
    code, _, errors = data(*words, verb=verb)
    assert code == EXIT_BAD
    assert_says(errors[0], "about.nn", "'n'")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["lst"], ("'lst'", "'list'")),
        (["list", "iris"], ("list", "no name", "'iris'")),
        (["fetch"], ("fetch", "names", "none")),
        (["path", "iriss"], ("unknown", "dataset 'iriss'", "'iris'")),
        (["path", "iris"], ("sklearn.datasets.load_iris",)),
    ],
)
def test_bad_input_is_told(words, sentence, data):
    code, _, (error,) = data(*words)
    assert code == EXIT_BAD
    assert_says(error, *sentence)


def test_shells_offer_what_there_is():
    assert set(completion._DATA_ACTIONS) == set(ACTIONS)
