"""A study that was stored before the program was laid out in rooms: read, reported and resumed.

`older_study` was written by `svmbench run study=before solvers=[libsvm_l1,mnsvm] datasets=[iris]` with the
overrides below.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import sklearn

from orchestrator import load_study
from orchestrator.cli.main import main

STORED = Path(__file__).with_name("older_study")
OVERRIDES = [
    "study=before",
    "search.space.C=[1,16]",
    "search.space.gamma=[0.25]",
    "protocol.outer=3",
    "protocol.inner=2",
    "cluster=serial",
]
NUMBERS = [
    "key",
    "outer",
    "inner",
    "param_C",
    "status",
    "score",
    "n_correct",
    "n_test",
    "n_train",
    "n_sv",
    "seed",
]


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(STORED, tmp_path / "results" / "before"))


def run(folder, *overrides):
    paths = [f"paths.results={folder.parent}", f"paths.cache={folder.parent.parent / 'cache'}"]
    return main(["run", *OVERRIDES, *overrides, *paths])


def test_it_is_read(folder):
    study = load_study(folder)
    assert study.trials.groupby("solver").size().to_dict() == {"libsvm_l1": 15, "mnsvm": 15}
    assert all(state.complete for state in study.states.values())
    assert len(study.outer) == len(study.selections) == 6


def test_it_is_reported(folder, capsys):
    assert main(["status", "study=before", f"paths.results={folder.parent}"]) == 0
    assert "complete" in capsys.readouterr().out
    assert main(["report", "study=before", f"paths.results={folder.parent}"]) == 0
    report = json.loads((folder / "report" / "report.json").read_text())
    assert report["study"] == "before"


def test_it_is_resumed_with_the_same_numbers(folder, capsys):
    recorded = json.loads(next(folder.glob("provenance/*.json")).read_text())["versions"]["scikit-learn"]
    if sklearn.__version__ != recorded:
        pytest.skip(
            f"scikit-learn {recorded} trained what is stored; the keys of {sklearn.__version__} differ"
        )
    before = load_study(folder).trials
    assert run(folder, "datasets=[iris]", "solvers=[libsvm_l1]") == 0
    assert "0 trials run and 15 found stored" in capsys.readouterr().out
    fresh = folder.with_name("fresh") / "before"
    assert run(fresh, "datasets=[iris]", "solvers=[libsvm_l1]") == 0
    again = load_study(fresh).trials
    old = before[before["solver"] == "libsvm_l1"].reset_index(drop=True)
    pd.testing.assert_frame_equal(old[NUMBERS], again[NUMBERS])
