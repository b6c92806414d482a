"""Descriptions of datasets in the format of MLCommons, which its own library takes for valid."""

import hashlib
import importlib.util
import json

import pytest

from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from tests.messages import assert_says


@pytest.fixture
def described(tmp_path, capsys, monkeypatch):
    """Describe a dataset of a CSV file, one of a LIBSVM file and one without a file."""
    monkeypatch.chdir(tmp_path)
    table = "size,city,kind\n" + "".join(f"{row},{'Ulm' if row % 2 else ''},{row % 3}\n" for row in range(9))
    (tmp_path / "t.csv").write_text(table)
    (tmp_path / "rows.libsvm").write_text("1 1:1\n2 2:1\n")
    config = tmp_path / "mine" / "dataset" / "t.yaml"
    config.parent.mkdir(parents=True)
    about = "about: {licence: CC0, citation: Nobody}"
    config.write_text(f"_target_: orchestrator.datasets.csv_file\npath: t.csv\nlabel: kind\n{about}\n")
    (tmp_path / "bare.csv").write_text("1,u,0\n2,v,1\n")
    (tmp_path / "odd.csv").write_text("x;kind\n1;0\n2;1\n")
    for name, layout in {"bare": "label: 2\nheader: null", "odd": "label: kind\nsep: ;"}.items():
        (config.parent / f"{name}.yaml").write_text(
            f"_target_: orchestrator.datasets.csv_file\npath: {name}.csv\n{layout}\n"
        )
    where = ["--config-dir", "mine", "paths.data=.", "paths.cache=cache", "to=out"]
    assert main(["data", "describe", "t", "bare", "odd", "rows", "iris", *where]) == EXIT_OK
    return {path.name.partition(".")[0]: path for path in (tmp_path / "out").glob("*.croissant.json")}


def test_rows_classes_files_and_columns_are_told(described, tmp_path):
    found = {name: json.loads(path.read_text()) for name, path in described.items()}
    assert set(found) == {"t", "bare", "odd", "rows", "iris"}
    assert [name for name in found if "recordSet" in found[name]] == ["t"]  # whose columns Croissant can name
    assert found["t"]["description"].startswith("9 rows, 2 features, 3 classes (0: 3, 1: 3, 2: 3).")
    assert (found["t"]["license"], found["t"]["citeAs"]) == ("CC0", "Nobody")
    (file,) = found["t"]["distribution"]
    assert file["sha256"] == hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest()
    fields = found["t"]["recordSet"][0]["field"]
    assert [(field["source"]["extract"]["column"], field["dataType"]) for field in fields] == [
        ("size", "sc:Float"),
        ("city", "sc:Text"),
        ("kind", "sc:Float"),
    ]
    assert found["rows"]["distribution"][0]["contentUrl"] == "rows.libsvm"
    assert "distribution" not in found["iris"]
    assert "Fisher" in found["iris"]["citeAs"]


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("mlcroissant") is None, reason="pip install mlcroissant")
def test_the_library_of_mlcommons_takes_it_for_valid(described):
    import mlcroissant

    for path in described.values():
        issues = mlcroissant.Dataset(jsonld=str(path)).metadata.ctx.issues
        assert not issues.errors, issues.report()


def test_a_folder_is_for_descriptions_alone(capsys):
    assert main(["data", "check", "iris", "to=out"]) == EXIT_BAD
    assert_says(capsys.readouterr()[1], "data describe", "folder")
