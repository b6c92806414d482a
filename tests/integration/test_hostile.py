"""Estimators that do harm, in one study with healthy ones, in one process and on a real cluster."""

import pandas as pd
import pytest

from orchestrator.execution.dask import cluster_executor
from orchestrator.settings import Cluster
from orchestrator.store import RUN_COLUMNS
from orchestrator.studies import read_results
from tests.orchestrator.hostile import HOSTILE, RANDOM, Centroids
from tests.orchestrator.studies import StudyRun

HEALTHY = ("libsvm_l1", "knn", "Centroids")
AXES = ["outer", "inner", "param_C"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A user's folder that configures all of them."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "solver").mkdir()
    for kind in (Centroids, *HOSTILE):
        text = f"_target_: {kind.__module__}.{kind.__name__}\nspace: {{C: [1, 2]}}\n"
        if kind.__name__ == "ChangesItsParameters":
            text += "weights: [1.0]\n"
        (folder / "solver" / f"{kind.__name__}.yaml").write_text(text)
    knn = "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [1, 3]}\n"
    (folder / "solver" / "knn.yaml").write_text(knn)
    return folder


def trials(folder, config, solvers, executor=None):
    """The trials of a study of iris, without the columns in which two runs may differ."""
    overrides = (
        "datasets=[iris]",
        f"solvers=[{','.join(solvers)}]",
        "protocol.outer=2",
        "protocol.inner=2",
        "protocol.scaling=none",
    )
    run = StudyRun(folder, *overrides, executor=executor, config_dir=config)
    run.go()
    frame = read_results(run.store).trials
    columns = [name for name in frame if name not in RUN_COLUMNS]
    return frame[columns].sort_values(["solver", "key"], ignore_index=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory, config):
    """The healthy solvers by themselves."""
    return trials(tmp_path_factory.mktemp("alone"), config, HEALTHY)


@pytest.fixture(scope="module")
def serial(tmp_path_factory, config):
    """All of them in this process."""
    return trials(tmp_path_factory.mktemp("serial"), config, [*names(HOSTILE), *HEALTHY])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, config):
    """All of them on two workers."""
    with cluster_executor(Cluster(kind="local", workers=2)) as executor:
        folder = tmp_path_factory.mktemp("cluster")
        return trials(folder, config, [*names(HOSTILE), *HEALTHY], executor)


def names(kinds):
    return [kind.__name__ for kind in kinds]


@pytest.fixture(params=["serial", "cluster"])
def together(request):
    return request.getfixturevalue(request.param)


def test_there_are_as_many_as_promised():
    assert len(HOSTILE) >= 60


def test_healthy_solvers_are_as_they_are_alone(alone, together):
    assert set(alone["status"]) == {"ok"}
    healthy = together[together["solver"].isin(HEALTHY)].reset_index(drop=True)
    pd.testing.assert_frame_equal(healthy[list(alone)], alone)


def test_what_does_harm_is_right_or_not_ok(alone, together):
    right = alone[alone["solver"] == "Centroids"].set_index(AXES)["n_correct"]
    hostile = together[together["solver"].isin(names(HOSTILE)) & (together["status"] == "ok")]
    hostile = hostile[~hostile["solver"].isin(names(RANDOM))]
    wrong = hostile[right[hostile.set_index(AXES).index].to_numpy() != hostile["n_correct"].to_numpy()]
    assert not set(wrong["solver"])
    assert (hostile["score"] == hostile["n_correct"] / hostile["n_test"]).all()


def test_what_fails_says_why(together):
    failed = together[together["status"] != "ok"]
    assert set(failed["status"]) == {"error"}
    assert failed["message"].str.contains(":|expected .* found|wrote into memory").all()


def test_only_what_cannot_be_made_right_fails(together):
    failed = together[together["status"] != "ok"]
    assert set(failed["solver"]) == names_of_lost()


def names_of_lost():
    """Those whose answers are none, who fail by themselves, and who write where nobody can stop them."""
    fine = {"AnswersAList", "AnswersASeries", "AnswersFloats"}
    lost = {name for name in names(HOSTILE) if name.startswith(("Answers", "Fails"))} - fine
    return lost | {name for name in names(HOSTILE) if name.endswith(("Pointers", "TheInterface"))}


def test_one_process_and_a_cluster_find_the_same(serial, cluster):
    # Other threads of a Dask worker draw from `random` too, and now and then in the middle of a training.
    alike = [frame[frame["solver"] != "GuessesInPython"] for frame in (serial, cluster)]
    pd.testing.assert_frame_equal(*alike)
