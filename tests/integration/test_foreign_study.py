"""A study's folder that somebody else has made is read as data: nothing that it names is imported or run."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.processes import in_process, started

STUDY = (
    *("study=s", "datasets=[iris]", "solvers=[libsvm_l1]", "protocol.outer=2", "protocol.inner=2"),
    *("search.space.C=[1,4]", "search.space.gamma=[1]"),
)
HARM = "import pathlib\npathlib.Path({marker!r}).write_text('run')\n\n\ndef harm(*args, **names):\n    pass\n"
PICKLE = b"cos\nsystem\n(S'touch {marker}'\ntR."
YAML = "!!python/object/apply:os.system ['touch {marker}']\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A finished study."""
    folder = tmp_path_factory.mktemp("original")
    done = in_process(folder, "run", *STUDY, "cluster=serial")
    assert done.returncode == 0, done.stderr
    return folder


def infected(value, name=""):
    """Return a JSON value with something to run in every object, but maps; names of classes name the harm."""
    if name == "target":
        return "harmful_module.harm"
    if isinstance(value, dict):
        made = {key: infected(part, key) for key, part in value.items()}
        is_map = name in ("identities", "planned", "shared_gram", "space", "versions") or "iris" in value
        return made if is_map else made | {"_target_": "harmful_module.harm"}
    if isinstance(value, list):
        return [infected(part) for part in value]
    return value


def infect(folder: Path, marker: Path) -> int:
    """Add something to run to each file of a study, and files that other programs would run."""
    number = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        number += 1
        if path.suffix == ".json":
            path.write_text(json.dumps(infected(json.loads(path.read_text()))))
        elif path.suffix == ".jsonl":
            with open(path, "a") as log:
                log.write(json.dumps({"_target_": "harmful_module.harm"}) + "\n")
        elif path.name in ("selections.parquet", "outer.parquet"):  # the parts of the trials are read too
            infect_table(path, marker)
    for path in sorted((folder / "trials").glob("part-*.parquet")):
        extra = path.with_name("part-99999999T000000-extra.parquet")
        shutil.copy(path, extra)
        infect_table(extra, marker)
    text = YAML.replace("{marker}", str(marker))
    for name in ("config.yaml", ".hydra/config.yaml", "conf/config.yaml", "provenance/run.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name in ("state.pkl", "provenance/run.pkl", "trials/part-0.pkl"):
        (folder / name).write_bytes(PICKLE.replace(b"{marker}", bytes(marker)))
    for name in ("sitecustomize.py", "conftest.py", "__init__.py", "harmful_module.py"):
        (folder / name).write_text(HARM.format(marker=str(marker)))
    return number


def infect_table(path: Path, marker: Path) -> None:
    """Add to a table what pandas or Arrow would run if they ran anything, and a column of tags."""
    table = pq.read_table(path)
    metadata = (table.schema.metadata or {}) | {
        b"pandas": json.dumps({"_target_": "harmful_module.harm"}).encode(),
        b"_target_": b"harmful_module.harm",
        b"ARROW:extension:name": b"harmful_module.harm",
    }
    harm = pa.array([YAML.replace("{marker}", str(marker))] * len(table))
    pq.write_table(table.append_column("param_tag", harm).replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    ("verb", "where"),
    [
        ("status", "beside"),
        pytest.param("report", "beside", marks=pytest.mark.full),
        ("report", "inside"),
        ("plan", "beside"),
    ],
)
def test_reading_a_study_runs_nothing_of_it(original, verb, where, tmp_path, monkeypatch):
    folder, marker = tmp_path / "here", tmp_path / "marker"
    shutil.copytree(original, folder)
    study = folder / "results" / "s"
    assert infect(study, marker) >= 4
    # Where a name would be found if it were looked for; the folder itself comes first in no one's path.
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "harmful_module.py").write_text(HARM.format(marker=str(marker)))
    monkeypatch.setenv("PYTHONPATH", f"{modules}{os.pathsep}{Path(__file__).parents[2]}")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # as the command `svmbench`: not the current folder
    arguments = STUDY if verb == "plan" else ("study=s",)
    with started(folder, verb, *arguments, cwd=study if where == "inside" else folder) as process:
        stdout, stderr = process.communicate(timeout=300)
    assert not marker.exists()
    assert "Traceback" not in stderr
    assert process.returncode == 0 or stderr.startswith("svmbench: "), (stdout, stderr)


def test_the_harm_would_be_noticed(tmp_path, monkeypatch):
    """What the test above plants does run where it is imported."""
    marker = tmp_path / "marker"
    (tmp_path / "harmful_module.py").write_text(HARM.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    from orchestrator.study.targets import resolve

    resolve("harmful_module.harm")
    assert marker.exists()
