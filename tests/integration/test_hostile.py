"""Estimators that do harm, in one study with healthy ones, in one process and on a real cluster."""

import os
import signal
from pathlib import Path

import pandas as pd
import pytest

from orchestrator.config.compose import load_settings
from orchestrator.engine.load import read_results
from orchestrator.engine.prepare import prepare_study
from orchestrator.execution.dask.client import cluster_executor
from orchestrator.isolation import class_checks
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.errors import ConfigError
from orchestrator.study.settings import Cluster, DeathLimits
from tests.integration.processes import plain, started, store_of, wait_until
from tests.messages import assert_says
from tests.orchestrator.hostile import (
    HANGING,
    HOSTILE,
    KILLERS,
    MODULES,
    RAISING,
    RANDOM,
    REFUSED,
    REFUSED_BY_DATASET,
    Centroids,
)
from tests.orchestrator.studies import StudyRun

HEALTHY = ("libsvm_l1", "knn", "Centroids")
AXES = ["outer", "inner", "param_C"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A user's folder that configures all of them."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "solver").mkdir()
    for name in (*RAISING, *KILLERS, *HANGING, *REFUSED, *REFUSED_BY_DATASET, "Scorable"):
        (folder / "solver" / f"{name}.yaml").write_text(f"_target_: {Centroids.__module__}.{name}\n")
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


# -- every kind of exit in every place -----------------------------------------------------------

EXITS = (
    "study=small",
    "datasets=[breast_cancer]",
    "protocol.outer=2",
    "protocol.inner=2",
    "protocol.also=[roc_auc]",
    "search.space={C:[1]}",
)
GOOD = ("libsvm_l1", "Scorable")


def exits(folder, config, solvers, *overrides, executor=None, **options):
    """Run a study of hostile solvers and healthy ones; return its trials by solver."""
    choice = (*EXITS, f"solvers=[{','.join([*solvers, *GOOD])}]", *overrides)
    run = StudyRun(folder, *choice, executor=executor, config_dir=config, **options)
    try:
        run.go()
    finally:
        run.executor.close()
    return by_solver(read_results(run.store).trials)


def by_solver(trials):
    columns = [name for name in trials if name not in RUN_COLUMNS]
    trials = trials[columns].sort_values(["solver", "key"], ignore_index=True)
    return {solver: rows.reset_index(drop=True) for solver, rows in trials.groupby("solver")}


@pytest.fixture(scope="module")
def good(tmp_path_factory, config):
    """The healthy solvers by themselves."""
    return exits(tmp_path_factory.mktemp("good"), config, [])


def require_unharmed(found, good):
    for solver in GOOD:
        assert set(found[solver]["status"]) == {"ok"}
        pd.testing.assert_frame_equal(found[solver][list(good[solver])], good[solver])


def require_failures(found, solvers, status, number, of=2):
    for solver in solvers:
        rows = found[solver]
        assert len(rows) == of
        failed = rows[rows["status"] != "ok"]
        assert list(failed["status"]) == [status] * number, solver
        assert failed["score"].isna().all()
        assert (failed["message"].str.len() > 0).all()


@pytest.mark.parametrize("on", ["serial", pytest.param("cluster", marks=pytest.mark.full)])
def test_whatever_is_raised_wherever_is_a_failed_training(on, config, good, tmp_path):
    if on == "serial":
        found = exits(tmp_path, config, RAISING)
    else:
        with cluster_executor(Cluster(kind="local", workers=2)) as executor:
            found = exits(tmp_path, config, RAISING, executor=executor)
            assert executor.slots == 2  # nobody was lost
    require_unharmed(found, good)
    require_failures(found, RAISING, "error", 2)


@pytest.mark.parametrize("on", ["serial", pytest.param("cluster", marks=pytest.mark.full)])
def test_what_never_ends_is_stopped_at_the_time_limit(on, config, good, tmp_path, full_size):
    solvers = HANGING if full_size else ["CompiledInPredict"]
    limit = "protocol.max_seconds=2"  # a healthy training takes milliseconds
    if on == "serial":
        found = exits(tmp_path, config, solvers, limit)
    else:
        with cluster_executor(Cluster(kind="local", workers=2)) as executor:
            found = exits(tmp_path, config, solvers, limit, executor=executor)
    unlimited = {solver: rows.drop(columns="key") for solver, rows in good.items()}
    for solver in GOOD:  # the limit is part of the key
        keyless = found[solver].drop(columns="key")[list(unlimited[solver])]
        identity = ["outer", "inner"]
        pd.testing.assert_frame_equal(
            keyless.sort_values(identity, ignore_index=True).drop(columns="identity"),
            unlimited[solver].sort_values(identity, ignore_index=True).drop(columns="identity"),
        )
    require_failures(found, solvers, "timeout", 2)
    assert set(found[solvers[0]]["message"]) == {"stopped after 2 s, the time limit"}


@pytest.mark.full
def test_what_ends_workers_is_given_up_and_they_are_replaced(config, good, tmp_path, full_size):
    killers = KILLERS if full_size else ["SegfaultInPredict"]
    with cluster_executor(Cluster(kind="local", workers=2)) as executor:
        found = exits(tmp_path, config, killers, executor=executor, limits=DeathLimits(deaths=2))
    require_unharmed(found, good)
    require_failures(found, killers, "worker_lost", 2)


def test_what_ends_a_serial_run_is_left_by_the_next_ones(config, good, tmp_path, full_size):
    killers = KILLERS if full_size else ["SegfaultInFit"]
    arguments = ["run", "--config-dir", str(config), "cluster=serial", "cluster.give_up.deaths=2", *EXITS]
    arguments.append(f"solvers=[{','.join([*killers, *GOOD])}]")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for number in range(len(killers) + 1):  # each ends a run once
        with started(tmp_path, *arguments, env=env) as process:
            stdout, stderr = process.communicate(timeout=300)
        assert "Traceback" not in stdout + stderr
        if "trials run and" in plain(stdout):
            assert_says(plain(stdout), "ended", "process")
            break
        assert number < len(killers), stderr
    found = by_solver(store_of(tmp_path).trials())
    require_unharmed(found, good)
    require_failures(found, killers, "worker_lost", 2)
    assert found[killers[0]]["message"].str.contains("ended its process by SIGSEGV").sum() == 2


@pytest.mark.full
def test_what_ends_its_process_later_ends_two_serial_runs_at_most(config, tmp_path):
    for name in ("ExitsLater", "Naps"):
        text = f"_target_: {Centroids.__module__}.{name}\n"
        (config / "solver" / f"{name}.yaml").write_text(text)
    arguments = ["run", "--config-dir", str(config), "cluster=serial", *EXITS[:-1]]
    arguments += ["protocol.also=[]", "search.space={C:[1,2,4,8]}", "solvers=[ExitsLater,Naps,Centroids]"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    codes = []
    for _ in range(3):
        with started(tmp_path, *arguments, env=env) as process:
            process.communicate(timeout=300)
        codes.append(process.returncode)
    assert codes == [7, 7, 0]
    found = by_solver(store_of(tmp_path).trials())
    for solver in ("Naps", "Centroids"):
        assert set(found[solver]["status"]) == {"ok"}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(class_checks, "CALL_SECONDS", 1.0)


def problem_of_each(solvers, problems):
    """Return the one problem of each solver."""
    assert len(problems) == len(solvers)
    found = {}
    for solver in solvers:
        (found[solver],) = [text for text in problems if text.startswith(f"solver {solver}: ")]
        assert len(found[solver]) < 600
        assert "\n" not in found[solver]
    return found


@pytest.mark.usefixtures("impatient")
def test_a_class_that_exits_or_hangs_when_it_is_asked_is_refused_in_a_sentence(config, tmp_path):
    choice = [*EXITS, f"solvers=[{','.join([*REFUSED, *GOOD])}]", f"paths.cache={tmp_path}"]
    with pytest.raises(ConfigError) as caught:
        load_settings(choice, config)
    found = problem_of_each(REFUSED, caught.value.problems)
    assert_says(found["ExitOfCInTags"], ".ExitOfCInTags", "ended", "exit status 0")
    assert_says(found["EndlessInValidate"], ".EndlessInValidate", "1 s")


@pytest.mark.usefixtures("impatient")
def test_a_class_that_exits_or_hangs_when_it_is_asked_about_a_dataset_is_refused(config, tmp_path):
    choice = [*EXITS, f"solvers=[{','.join([*REFUSED_BY_DATASET, 'libsvm_l1'])}]", f"paths.cache={tmp_path}"]
    choice += ["search.space={C:[1],gamma:[1]}", "datasets=[iris,wine]", "protocol.also=[]"]
    with pytest.raises(ConfigError) as caught:
        prepare_study(load_settings(choice, config))
    found = problem_of_each(REFUSED_BY_DATASET, caught.value.problems)
    assert all("prefers_gram" in text for text in found.values())


def write_modules(folder, modules):
    """Make a user's folder with modules of one solver each."""
    (folder / "solver").mkdir()
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(f"{text}\nfrom sklearn.svm import SVC as Mine\n")
        (folder / "solver" / f"{name}.yaml").write_text(f"_target_: {name}.Mine\n")
    return folder


@pytest.mark.usefixtures("impatient")
def test_a_module_that_exits_or_hangs_when_it_is_imported_is_refused_in_a_sentence(tmp_path, monkeypatch):
    harm = {name: text for name, (text, _) in MODULES.items()}
    nested = "_target_: sklearn.svm.SVC\nclass_weight: {_target_: exits_at_once.Mine}\n"
    write_modules(tmp_path, {**harm, "fine": ""})
    (tmp_path / "solver" / "nested.yaml").write_text(nested)
    monkeypatch.syspath_prepend(tmp_path)
    choice = [*EXITS, f"solvers=[{','.join([*harm, 'nested', 'fine', *GOOD[:1]])}]"]
    with pytest.raises(ConfigError) as caught:
        load_settings(choice, tmp_path)
    found = problem_of_each([*harm, "nested"], caught.value.problems)
    expected = {**{name: said for name, (_, said) in MODULES.items()}, "nested": MODULES["exits_at_once"][1]}
    assert [name for name in found if expected[name] not in found[name]] == []


def test_ctrl_c_while_a_module_hangs_is_the_users(tmp_path):
    begun = tmp_path / "begun"
    hangs = f"import time, pathlib; pathlib.Path({str(begun)!r}).touch(); time.sleep(1e6)"
    folder = str(write_modules(tmp_path, {"hangs": hangs}))
    with started(tmp_path, "plan", "--config-dir", folder, *EXITS, "solvers=[hangs]") as process:
        wait_until(begun.exists, "the import began")
        os.killpg(process.pid, signal.SIGINT)
        assert "interrupted" in process.communicate(timeout=60)[1]
        assert process.returncode == 130


def names(kinds):
    return [kind.__name__ for kind in kinds]


@pytest.fixture(params=["serial", pytest.param("cluster", marks=pytest.mark.full)])
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
    assert failed["message"].str.contains(":|expected .* found|wrote into").all()


def test_only_what_cannot_be_made_right_fails(together):
    failed = together[together["status"] != "ok"]
    assert set(failed["solver"]) == names_of_lost()


def names_of_lost():
    """Those whose answers are none, who fail by themselves, and who write where nobody can stop them."""
    fine = {"AnswersAList", "AnswersASeries", "AnswersFloats"}
    lost = {name for name in names(HOSTILE) if name.startswith(("Answers", "Fails"))} - fine
    return lost | {name for name in names(HOSTILE) if name.endswith(("Pointers", "TheInterface"))}


@pytest.mark.full
def test_one_process_and_a_cluster_find_the_same(serial, cluster):
    # Other threads of a Dask worker draw from `random` too, and now and then in the middle of a training.
    alike = [frame[frame["solver"] != "GuessesInPython"] for frame in (serial, cluster)]
    pd.testing.assert_frame_equal(*alike)
