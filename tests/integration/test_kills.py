"""A study survives the death of anything: rows are never lost, never doubled, never computed again."""

import os
import random
import re
import runpy
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from orchestrator.engine.load import load_study, read_results
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.settings import MIN_DEATHS
from tests.integration.gate import Gate
from tests.integration.processes import (
    in_process,
    kill_group,
    plain,
    started,
    store_of,
    svmbench,
    wait_until,
    workers_of,
    write_config_dir,
)
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

OUTER, INNER, POINTS = 3, 3, 12
CHOICE = (
    "study=small",
    "datasets=[stripes,iris]",
    "solvers=[sleepy]",
    f"protocol.outer={OUTER}",
    f"protocol.inner={INNER}",
    f"search.space={{C:[{','.join(str(2**power) for power in range(POINTS))}]}}",
)
TRIALS = 2 * OUTER * (INNER * POINTS + 1)


@pytest.fixture
def arguments(tmp_path):
    """What to run, for about five seconds of work."""

    def arguments(seconds=0.03, **params):
        config_dir = write_config_dir(tmp_path / "mine", seconds=seconds, **params)
        return ["run", "--config-dir", str(config_dir), *CHOICE]

    return arguments


def stored_rows(folder):
    """When and by which run each stored trial was computed."""
    trials = store_of(folder).trials()
    return {row.key: (row.run_id, row.started_at) for row in trials.itertuples()}


def parts_of(folder):
    return set(store_of(folder).trials_folder.glob("part-*"))


def wait_for_rows(folder, before=frozenset()):
    """Wait for a part file that was not there before."""
    wait_until(lambda: parts_of(folder) - before, "rows to be stored")


def test_killed_many_times_a_study_ends_with_every_trial_once_and_none_computed_again(
    tmp_path, arguments, full_size
):
    kills = 10 if full_size else 2
    run = arguments(seconds=0.08 if full_size else 0.05)
    chance = random.Random(0)
    clusters = ["cluster=serial", "cluster.workers=2"]
    stored, grew = {}, 0
    for kill in range(kills):
        before = parts_of(tmp_path)
        with started(tmp_path, *run, clusters[kill % 3 == 1]) as process:
            wait_until(lambda: (tmp_path / "results/small/.lock-holder").exists(), "the run to begin")
            if chance.random() < 0.8:
                wait_for_rows(tmp_path, before)
            time.sleep(chance.uniform(0, 0.3))
            process.kill()
            process.wait()
            wait_until(lambda: not group_of(process), "orphaned workers to end")
        now = stored_rows(tmp_path)
        assert stored.items() <= now.items()
        grew += len(now) > len(stored)
        stored = now
    assert grew >= kills // 2
    assert len(stored) < TRIALS
    last = in_process(tmp_path, *run, "cluster=serial")
    assert last.returncode == 0, last.stderr
    assert_says(plain(last.stdout), f"{TRIALS - len(stored)} trials run", f"{len(stored)} found")
    assert stored.items() <= stored_rows(tmp_path).items()
    trials = store_of(tmp_path).trials()
    assert len(trials) == TRIALS == trials["key"].nunique()
    assert set(trials["status"]) == {"ok"}


@pytest.mark.full
def test_a_table_by_its_path_gives_the_same_rows_in_one_process_and_on_killed_workers(tmp_path, arguments):
    """Text, dates and gaps: what is learnt from a split depends on no worker and on no earlier run."""
    table = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "churn.py"))["customers"](90)
    serial, killed = tmp_path, tmp_path / "killed"
    killed.mkdir()
    for folder in (serial, killed):
        table.to_csv(folder / "churn.csv", index=False)
    names = ["study=churn", "datasets=[churn.csv]", "label=outcome", "solvers=[sleepy]"]
    run = [*arguments(0.03)[:3], *names, "protocol.outer=2", "protocol.inner=2", CHOICE[-1]]
    done = in_process(serial, *run, "cluster=serial")
    assert done.returncode == 0, done.stderr
    store = store_of(killed, "churn")
    with started(killed, *run, "cluster.workers=2") as process:
        wait_until(lambda: any(store.trials_folder.glob("part-*")), "rows to be stored", seconds=300)
        process.kill()
        process.wait()
        wait_until(lambda: not group_of(process), "orphaned workers to end")
    before = len(store.trials())
    expected = comparable_rows(serial)
    assert 0 < before < len(expected)
    resumed = svmbench(killed, "run", "churn", "cluster=serial", timeout=600)
    assert resumed.returncode == 0, resumed.stderr
    assert_says(plain(resumed.stdout), f"{len(expected) - before:,} trials run", f"{before:,} found")
    assert comparable_rows(killed).equals(expected)
    assert set(expected["status"]) == {"ok"}


def comparable_rows(folder):
    """The rows of a study, without what differs from run to run."""
    trials = load_study(folder / "results" / "churn").trials
    return trials.drop(columns=[*RUN_COLUMNS]).sort_values("key", ignore_index=True)


def group_of(process):
    """Processes that are left of a command's process group."""
    found = []
    for other in psutil.process_iter():
        try:
            if os.getpgid(other.pid) == process.pid and other.status() != psutil.STATUS_ZOMBIE:
                found.append(other)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def test_a_killed_worker_costs_an_attempt(tmp_path, arguments):
    gate = Gate(tmp_path / "gate")
    with started(tmp_path, *arguments(0.01), "cluster.workers=2", gate.override) as process:
        gate.wait_for_processes(2)  # so that the one that is killed has a batch
        workers_of(process)[-1].kill()
        gate.open()
        stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert "trying again" in stdout
    trials = store_of(tmp_path).trials()
    assert len(trials) == TRIALS
    assert set(trials["status"]) == {"ok"}
    assert (trials["attempt"] >= 2).any()
    assert (trials["attempt"] == 1).any()


def test_a_training_that_kills_its_worker_every_time_is_given_up_and_all_others_are_done(tmp_path, arguments):
    poisoned = arguments(seconds=0.001, poison=8)
    folds = ["datasets=[stripes]", "protocol.outer=2", "protocol.inner=2"]
    # How much a death tells depends on how long it takes on this machine; the bound does not.
    bound = 3
    limits = ["cluster.workers=1", f"cluster.give_up.deaths={bound}"]
    run = svmbench(tmp_path, *poisoned, *folds, *limits, timeout=600)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    (attempts,) = set(map(int, re.findall(r"(\d+) attempts", plain(run.stdout))))
    assert MIN_DEATHS <= attempts <= 1 + bound  # the first may have died with other trainings, too
    trials = store_of(tmp_path).trials()
    (lost,) = trials[trials["status"] != "ok"].to_dict("records")  # the row is in one of four training sets
    assert (lost["status"], lost["param_C"], lost["attempt"]) == ("worker_lost", 8, attempts)
    assert_says(lost["message"], f"{attempts} attempts")
    assert len(trials) == 2 * (2 * POINTS + 1)
    assert sorted(read_results(store_of(tmp_path)).selections["n_failed"]) == [0, 1]


@pytest.mark.parametrize(
    "cluster", ["cluster=serial", pytest.param("cluster.workers=2", marks=pytest.mark.full)]
)
def test_an_interrupted_run_stores_what_it_has_and_says_how_to_go_on(cluster, tmp_path, arguments):
    run = arguments()
    with started(tmp_path, *run, cluster) as process:
        wait_for_rows(tmp_path)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the client and its workers
        stdout, stderr = process.communicate(timeout=300)
        wait_until(lambda: not group_of(process), "workers to end", seconds=5)
    assert process.returncode == 130
    interrupted, advice = (line for line in stderr.splitlines() if line)
    assert_says(interrupted, "interrupted", "stored")
    assert_says(advice, "svmbench run")
    assert "Traceback" not in stdout
    stored = stored_rows(tmp_path)
    assert 0 < len(stored) < TRIALS
    again = in_process(tmp_path, *run, "cluster=serial")
    assert again.returncode == 0, again.stderr
    assert_says(plain(again.stdout), f"{TRIALS - len(stored)} trials run", f"{len(stored)} found")
    assert stored.items() <= stored_rows(tmp_path).items()
    assert len(stored_rows(tmp_path)) == TRIALS


def test_a_second_run_of_the_same_study_is_refused_with_the_name_of_the_first(tmp_path, arguments):
    run = arguments(seconds=0.5)
    with started(tmp_path, *run, "cluster=serial") as process:
        wait_for_rows(tmp_path)
        second = in_process(tmp_path, *run, "cluster=serial")
        status = in_process(tmp_path, "status", "study=small")
        kill_group(process)
    assert second.returncode == 1
    assert_says(second.stderr, "study 'small'", f"process {process.pid}")
    assert status.returncode == 0
    assert_says(plain(status.stdout), f"of {TRIALS} trials", "0 failed")


@pytest.mark.full
def test_what_is_killed_during_a_run_leaves_nothing_on_its_terminal(tmp_path):
    """A worker, the child process in which it trains, and the tracker of resources that workers share."""
    config_dir = tmp_path / "mine"
    (config_dir / "solver").mkdir(parents=True)
    text = "_target_: tests.orchestrator.own_workers.ForkPool\nspace: {C: [1,2,4,8,16,32,64,128]}\n"
    (config_dir / "solver" / "pool.yaml").write_text(text)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = ["run", "study=small", "datasets=[breast_cancer]", "solvers=[pool]", "cluster.workers=2"]
    run += ["protocol.outer=3", "protocol.inner=3", "--config-dir", str(config_dir)]

    def kill_one(part):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if part in " ".join(child.cmdline()):
                    child.kill()
                    return True
        return False

    with started(tmp_path, *run, env=env) as process:
        wait_for_rows(tmp_path)
        for part in ("batch_process", "resource_tracker", "spawn_main"):
            wait_until(lambda part=part: kill_one(part), f"a process of {part}")
            time.sleep(0.5)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "resource_tracker" not in errors
    assert "Traceback" not in errors
    assert len(stored_rows(tmp_path)) == 3 * (3 * 8 + 1)
