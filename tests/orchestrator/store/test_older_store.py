"""A study that was stored before the program was laid out in rooms: read, reported and resumed.

`older_study` was written at commit 547909d, when the modules of each package lay in one folder, by
`svmbench run study=before solvers=[libsvm_l1,mnsvm] datasets=[iris]` with the overrides below.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.cli.main import main
from orchestrator.training.environment import versions
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

STORED = Path(__file__).with_name("older_study")
OVERRIDES = [
    "study=before",
    "search.space.C=[1,16]",
    "search.space.gamma=[0.25]",
    "protocol.outer=3",
    "protocol.inner=2",
    "cluster=serial",
]
NUMBERS = ["solver", "outer", "inner", "param_C", "param_gamma", "status", "n_train", "n_test", "seed"]
NUMBERS += ["score", "n_correct", "n_sv", "sv_share", "n_iter"]


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


@pytest.mark.figures(sample=False)
def test_it_is_reported(folder, capsys):
    assert main(["status", "study=before", f"paths.results={folder.parent}"]) == 0
    assert "complete" in capsys.readouterr().out
    assert main(["report", "study=before", f"paths.results={folder.parent}"]) == 0
    report = json.loads((folder / "report" / "report.json").read_text())
    assert report["study"] == "before"


@pytest.fixture
def same_versions(folder):
    recorded = json.loads(next(folder.glob("provenance/*.json")).read_text())["versions"]
    for name in ("numpy", "scipy", "scikit-learn", "numba"):
        if versions()[name] != recorded[name]:
            pytest.skip(f"{name} {recorded[name]} trained what is stored; this is {versions()[name]}")


def test_it_is_resumed_with_the_same_numbers(folder, same_versions, capsys):
    before = load_study(folder).trials
    assert run(folder, "datasets=[iris]", "solvers=[libsvm_l1,mnsvm]") == 0
    # The sources of scikit-learn are those of then, which keys hold; those of our solvers are others.
    assert_says(capsys.readouterr().out, "15 trials run", "15 found")
    again = load_study(folder).trials
    is_ours = before["solver"] == "mnsvm"
    pd.testing.assert_frame_equal(before.loc[~is_ours, NUMBERS], again.loc[~is_ours, NUMBERS])
    # The draws of MNSVC have changed since, so the same samples have weight but for some at the margin.
    drawn = ["n_sv", "sv_share", "n_iter"]
    known = [name for name in NUMBERS if name not in drawn]
    pd.testing.assert_frame_equal(before.loc[is_ours, known], again.loc[is_ours, known])
    assert (before.loc[is_ours, "n_sv"] - again.loc[is_ours, "n_sv"]).abs().max() <= 2
    kept = set(before["key"]) & set(again["key"])
    assert kept == set(before.loc[before["solver"] == "libsvm_l1", "key"])


def test_a_new_run_gives_the_same_rows(folder, same_versions):
    before = load_study(folder).trials.query("solver == 'libsvm_l1'").reset_index(drop=True)
    fresh = folder.with_name("fresh") / "before"
    assert run(fresh, "datasets=[iris]", "solvers=[libsvm_l1]") == 0
    # LIBSVM's iterations follow the last digits of kernel values, which differ between kinds of processors.
    columns = [name for name in NUMBERS if name != "n_iter"]
    pd.testing.assert_frame_equal(before[columns], load_study(fresh).trials[columns])
