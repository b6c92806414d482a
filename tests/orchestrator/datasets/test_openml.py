"""Datasets of OpenML are fetched by number from a server, and read without what OpenML says to ignore."""

import hashlib
import json

import pytest

from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.datasets import DatasetError, openml_file
from orchestrator.datasets.fetch import FetchError
from orchestrator.datasets.openml import fetch_openml
from tests.messages import raises
from tests.orchestrator.file_server import serving

ARFF = b"""% 1. Title: letters
@RELATION letters
@ATTRIBUTE row INTEGER
@ATTRIBUTE 'first f' REAL
@ATTRIBUTE hand {left, right}
@ATTRIBUTE class {a, b}
@ATTRIBUTE note STRING
@DATA
1,0.5,left,a,'x, y'
2,?,right,b,z
3,2,right,a,z
"""
FACTS = {
    "default_target_attribute": "class",
    "row_id_attribute": "row",
    "ignore_attribute": ["note", "class"],
    "md5_checksum": hashlib.md5(ARFF).hexdigest(),
}


def description(server, **facts):
    return json.dumps({"data_set_description": FACTS | {"url": server.url("/letters.arff")} | facts}).encode()


@pytest.fixture
def server():
    with serving({"/letters.arff": ARFF}) as server:
        server.files["/api/v1/json/data/7"] = description(server)
        yield server


def fetched(server, folder, **options):
    return fetch_openml(7, folder, server.url(""), pauses=(0, 0), **options)


def test_a_dataset_is_fetched_by_number_once_and_read(server, tmp_path):
    server.faults["/letters.arff"] = ["breaks off", "503"]
    path = fetched(server, tmp_path)
    assert path.read_bytes() == ARFF
    number = len(server.requests)
    assert fetched(server, tmp_path) == path
    assert len(server.requests) == number
    X, y = openml_file(7, tmp_path)
    assert list(X) == ["first f", "hand"]
    assert y.tolist() == ["a", "b", "a"]
    X, y = openml_file(7, tmp_path, label="hand", drop=["class"], complete_rows=True)
    assert (list(X), y.tolist()) == (["first f"], ["left", "right"])
    assert openml_file(7, tmp_path, one_hot=True)[0]["hand=right"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        ("/letters.arff", b"<html>", ("web page",)),
        ("/letters.arff", ARFF[:-4], ("MD5", "OpenML")),
        ("/letters.arff", None, ("404",)),
        ("/api/v1/json/data/7", None, ("404",)),
        ("/api/v1/json/data/7", b"{}", ("description of OpenML",)),
        ("/api/v1/json/data/7", b"<html>", ("description of OpenML",)),
    ],
)
def test_what_is_no_such_dataset_is_refused_and_not_kept(path, content, sentence, server, tmp_path):
    if content is None:
        del server.files[path]
    else:
        server.files[path] = content
    with raises(FetchError, *sentence):
        fetched(server, tmp_path)
    assert not list(tmp_path.glob("*.arff"))
    server.files |= {"/letters.arff": ARFF, "/api/v1/json/data/7": description(server)}
    assert fetched(server, tmp_path).read_bytes() == ARFF


def test_a_file_that_somebody_has_put_there_gets_its_description(server, tmp_path):
    (tmp_path / "openml-7.arff").write_bytes(ARFF)
    with raises(DatasetError, "svmbench data fetch"):
        openml_file(7, tmp_path)
    fetched(server, tmp_path)
    assert [path for path, _ in server.requests] == ["/api/v1/json/data/7"]
    assert len(openml_file(7, tmp_path)[1]) == 3


def test_a_checksum_may_be_in_capitals(server, tmp_path):
    server.files["/api/v1/json/data/7"] = description(server, md5_checksum=FACTS["md5_checksum"].upper())
    assert fetched(server, tmp_path).read_bytes() == ARFF


def test_a_file_that_is_another_one_later_is_refused(server, tmp_path):
    fetched(server, tmp_path).unlink()
    server.files["/letters.arff"] = ARFF + b"4,1,left,b,z\n"
    server.files["/api/v1/json/data/7"] = description(server, md5_checksum=None)
    with pytest.raises(FetchError, match="expected SHA-256"):
        fetched(server, tmp_path)


def test_what_cannot_be_read_gets_a_sentence(server, tmp_path):
    with raises(DatasetError, "svmbench data fetch NAME", "api/v1/json/data/7"):
        openml_file(7, tmp_path)
    server.files["/api/v1/json/data/7"] = description(server, default_target_attribute="class,hand")
    fetched(server, tmp_path)
    with raises(DatasetError, "'class,hand'", "`label`"):
        openml_file(7, tmp_path)
    (tmp_path / "openml-7.json").write_text("[]")
    with raises(DatasetError, "description of OpenML"):
        openml_file(7, tmp_path)


def test_the_command_fetches_it_by_name(server, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mine" / "dataset" / "letters.yaml"
    config.parent.mkdir(parents=True)
    text = "_target_: orchestrator.datasets.openml_file\nid: 7\nfolder: ${paths.data}\nserver: "
    config.write_text(f"{text}{server.url('')}\nabout: {{n: 3, d: 2, classes: 2}}\n")
    where = ["--config-dir", "mine", "paths.data=data", "paths.cache=cache"]
    assert main(["data", "check", "letters", *where]) == EXIT_BAD
    assert "svmbench data fetch" in capsys.readouterr()[1]
    assert main(["data", "fetch", "letters", *where]) == EXIT_OK
    capsys.readouterr()
    assert main(["data", "path", "letters", *where]) == EXIT_OK
    assert capsys.readouterr()[0].strip() == str(tmp_path / "data" / "openml-7.arff")
    assert main(["data", "check", "letters", *where]) == EXIT_OK


@pytest.mark.parametrize("number", ["abc", "31", 0, -1, True, 1.5])
def test_an_id_that_is_no_number_of_openml_is_refused(number, tmp_path):
    with raises(DatasetError, "number", "OpenML", "`id`"):
        openml_file(number, tmp_path)
