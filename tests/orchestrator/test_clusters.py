"""What a configuration makes of each kind of cluster, and how orders are handed out, without any cluster."""

import importlib.util
import inspect
import json
import logging
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from orchestrator.config import CONF_FOLDER
from orchestrator.execution import ExecutionError, clusters, processes, scaling
from orchestrator.execution import cluster as cluster_module
from orchestrator.execution.cluster import ClusterExecutor, time_limit
from orchestrator.execution.dask_settings import as_environment, dask_settings
from orchestrator.execution.installation import Requirements, describe, software
from orchestrator.execution.link import Answer, Fate
from orchestrator.execution.roster import Roster, Seat, Terms
from orchestrator.execution.scaling import Scaling
from orchestrator.execution.tls import Tls
from orchestrator.run_log import cluster_notes, run_log
from orchestrator.settings import Cluster
from tests.orchestrator.classifiers import here, order_for

FACTS = {"cache": "c", "machine": "m", "cores": [0, 2], "host": {"host": "h"}, "limits": {}, "software": {}}


# -- software ------------------------------------------------------------------------------------


def test_the_same_software_finds_no_objection():
    assert Requirements.here(("solvers",), timing=False).objection(describe(("solvers",)), threads=4) == ""


@pytest.mark.parametrize("name", ["python", "numpy", "sources of orchestrator", "sources of solvers"])
def test_any_difference_is_named_with_both_sides(name):
    facts = describe(("solvers",))
    mine = facts["software"][name]
    facts = facts | {"software": facts["software"] | {name: "other"}}
    objection = Requirements.here(("solvers",), timing=False).objection(facts, threads=1)
    assert objection == f"has other software: {name} other (here {mine}); install the same on both"


def test_a_package_that_is_not_there_is_a_difference():
    assert software(("no_such_package",))["sources of no_such_package"] == "none"


@pytest.mark.parametrize(
    ("threads", "limits", "told"),
    [
        (2, {"OMP_NUM_THREADS": "1"}, "runs 2 trainings at once"),
        (1, {"NUMBA_NUM_THREADS": None}, "has NUMBA_NUM_THREADS=None"),
        (1, {"OMP_NUM_THREADS": "8"}, "has OMP_NUM_THREADS=8"),
        (1, {"OMP_NUM_THREADS": "1"}, ""),
    ],
)
def test_timings_take_one_thread(threads, limits, told):
    facts = FACTS | {"limits": limits}
    assert told in Requirements({}, timing=True).objection(facts, threads)
    assert Requirements({}, timing=False).objection(facts, threads) == ""


# -- workers and cores ---------------------------------------------------------------------------


def test_each_worker_of_a_machine_gets_a_core_until_there_is_none():
    roster = Roster()
    for number in range(2):
        core = roster.free_core(FACTS)
        roster.admit(Seat(f"w{number}", "w", 1, FACTS, core))
    assert [seat.core for seat in roster] == [0, 2]
    assert roster.free_core(FACTS) is None
    assert roster.free_core(FACTS | {"machine": "other"}) == 0
    roster.dismiss("w0")
    assert roster.free_core(FACTS) == 0


def test_the_least_busy_worker_is_chosen():
    roster = Roster()
    for name, busy in (("a", {1, 2}), ("b", {3}), ("c", {4, 5, 6})):
        roster.admit(Seat(name, name, 3, FACTS, orders=busy))
    assert roster.choose(lambda seat: True).address == "b"
    assert roster.choose(lambda seat: seat.address != "b").address == "a"
    assert roster.choose(lambda seat: seat.address == "c") is None


# -- handing out orders --------------------------------------------------------------------------


class FakeLink:
    """A cluster whose workers answer when a test says so."""

    scheduler, dashboard, alive = "fake://", "", True

    def __init__(self, n):
        self.there = {f"w{number}": (f"w{number}", 1) for number in range(n)}
        self.calls = []
        self.software = {}

    def workers(self):
        return dict(self.there)

    def start(self, address, function, arguments, then):
        handle = Mock()  # only its `cancel` is called, and nothing comes of it
        if function is describe:
            facts = describe(arguments[0]) | {"cores": [0, 1]}
            then(Answer(handle, Fate.RETURNED, facts | {"software": facts["software"] | self.software}))
        else:
            self.calls.append((address, then, handle))
        return handle

    def answer(self, address, fate=Fate.RETURNED, value=("result", ()), error=None):
        index = next(i for i, call in enumerate(self.calls) if call[0] == address)
        _, then, handle = self.calls.pop(index)
        then(Answer(handle, fate, value, error))

    def busy(self):
        return sorted(call[0] for call in self.calls)


def orders(tmp_path, number, **protocol):
    order = order_for(here("Constant"), tmp_path, C=(1,), **protocol)
    return [replace(order, batch=replace(order.batch, number=index)) for index in range(number)]


def test_a_worker_has_one_order_at_a_time_and_the_others_wait(tmp_path):
    link = FakeLink(2)
    executor = ClusterExecutor(link, "fake")
    for order in orders(tmp_path, 3):
        executor.submit(order)
    assert (executor.slots, executor.demand, link.busy()) == (2, 3, ["w0", "w1"])
    link.answer("w1")
    (outcome,) = executor.wait(1)
    assert outcome.result == "result"
    assert link.busy() == ["w0", "w1"]


def test_what_workers_warn_of_is_told_once(tmp_path, caplog):
    link = FakeLink(2)
    executor = ClusterExecutor(link, "fake")
    for order in orders(tmp_path, 2):
        executor.submit(order)
    for worker in link.busy():
        link.answer(worker, value=("result", ("UserWarning: odd data (theirs.py:7)",)))
    executor.wait(1)
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["iris × arm: UserWarning: odd data (theirs.py:7)"]


def test_a_worker_s_death_is_blamed_on_its_order_alone(tmp_path):
    link = FakeLink(2)
    executor = ClusterExecutor(link, "fake")
    for order in orders(tmp_path, 2):
        executor.submit(order)
    link.answer("w0", Fate.DIED)
    (outcome,) = executor.wait(1)
    assert outcome.lost == "its worker w0 died"
    assert link.busy() == ["w1"]


def test_an_answer_lost_with_its_worker_is_asked_for_again(tmp_path):
    link = FakeLink(2)
    executor = ClusterExecutor(link, "fake")
    executor.submit(orders(tmp_path, 1)[0])
    (first,) = link.busy()
    link.answer(first, Fate.VANISHED)
    assert executor.wait(0.1) == []
    (again,) = link.busy()
    link.answer(again)
    (outcome,) = executor.wait(1)
    assert outcome.result == "result"


def test_a_broken_connection_ends_the_run(tmp_path):
    link = FakeLink(1)
    executor = ClusterExecutor(link, "fake")
    executor.submit(orders(tmp_path, 1)[0])
    link.alive = False
    with pytest.raises(ExecutionError, match="run the same command to resume"):
        executor.wait(1)


def test_a_run_ends_when_all_its_workers_have_come_to_differ(tmp_path, monkeypatch):
    link = FakeLink(1)
    executor = ClusterExecutor(link, "fake")
    monkeypatch.setattr(cluster_module, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(cluster_module, "LOOK_SECONDS", 0.01)
    executor.submit(orders(tmp_path, 1)[0])
    link.answer("w0", Fate.DIED)
    executor.wait(1)
    link.software = {"python": "2.7"}
    with pytest.raises(
        ExecutionError, match=r"no worker is left but worker w0 has other software: python 2.7"
    ):
        collect_nothing(executor)


def collect_nothing(executor):
    for _ in range(100):
        assert executor.wait(0.05) == []


def test_what_a_worker_cannot_run_ends_the_run_with_the_reason(tmp_path):
    link = FakeLink(1)
    executor = ClusterExecutor(link, "fake")
    executor.submit(orders(tmp_path, 1)[0])
    link.answer("w0", Fate.RAISED, error=ImportError("no such thing"))
    with pytest.raises(ExecutionError, match=r"iris × arm could not run on worker w0: ImportError: no such"):
        executor.wait(1)


def test_in_timings_an_arm_is_compiled_by_one_worker_of_a_host_first(tmp_path):
    link = FakeLink(2)
    executor = ClusterExecutor(link, "fake", Terms(timing=False))
    executor._terms = Terms(timing=True)  # this process does not limit its threads
    for order in orders(tmp_path, 3):
        executor.submit(order)
    assert link.busy() == ["w0"]
    link.answer("w0")
    executor.wait(1)
    assert link.busy() == ["w0", "w1"]


def test_only_limited_trainings_make_a_worker_hang(tmp_path):
    (unlimited,), (limited,) = orders(tmp_path, 1), orders(tmp_path, 1, max_seconds=5)
    assert time_limit(unlimited) == float("inf")
    assert time_limit(limited) == 2 * 5 + 60


# -- starting clusters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "package"), [("slurm", "dask-jobqueue"), ("ssh", "asyncssh"), ("kubernetes", "dask-kubernetes")]
)
def test_a_missing_extra_is_named(kind, package, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExecutionError, match=rf"cluster={kind} needs {package}.*'svmbench\[{kind}\]'"):
        clusters.cluster_class(kind)


def our_options(kind):
    """What our own configuration tells the class that starts a kind of cluster."""
    return yaml.safe_load((CONF_FOLDER / "cluster" / f"{kind}.yaml").read_text())["options"]


def test_a_slurm_job_runs_a_worker_with_one_thread():
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: svmbench[slurm]")
    import dask

    cluster = Cluster(kind="slurm", workers=2, memory=3, options=our_options("slurm") | {"queue": "short"})
    arguments = clusters.cluster_arguments(cluster)
    with (
        dask.config.set(dask_settings(300)),
        clusters.cluster_class("slurm")(interface="lo", **arguments) as slurm,
    ):
        script = slurm.job_script()
    for line in ("#SBATCH -p short", "#SBATCH -t 01:00:00", "#SBATCH --mem=3G", "export NUMBA_NUM_THREADS=1"):
        assert line in script
    assert "--nthreads 1" in script
    assert "--lifetime 55m" in script
    assert "--dashboard-address 127.0.0.1:0" in script


def names_taken(*functions):
    """The keywords that functions have a name for."""
    parameters = [part for function in functions for part in inspect.signature(function).parameters.values()]
    return {part.name for part in parameters if part.kind is not inspect.Parameter.VAR_KEYWORD}


def test_hosts_are_told_what_dask_has_a_name_for(tmp_path):
    from distributed import Nanny, Scheduler, SSHCluster, Worker

    tls = Tls(*(tmp_path / name for name in ("ca", "cert", "key")))
    hosts = ("127.0.0.1", "127.0.0.2")
    told = clusters.cluster_arguments(Cluster(kind="ssh", workers=2, memory=3, hosts=hosts, tls=tls))
    assert told.keys() <= names_taken(SSHCluster)
    # How many of them a host has, and their class, is for the command that starts them.
    assert told["worker_options"].keys() <= names_taken(Nanny, Worker) | {"n_workers"}
    assert told["scheduler_options"].keys() <= names_taken(Scheduler)


def misfits(value, schema, where):
    """What of a resource its schema does not know, misses, or has as something else."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    kind = kinds.get(schema.get("type"), object)
    if value is None:
        return  # as if it were not there
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield f"{where} is no {schema['type']}"
    elif kind is list:
        for number, part in enumerate(value):
            yield from misfits(part, schema["items"], f"{where}[{number}]")
    elif kind is dict:
        missing = [name for name in schema.get("required", ()) if value.get(name) is None]
        yield from (f"{where} has no {name}" for name in missing)
        for name, part in value.items():
            known = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if known is None:
                yield f"{where}.{name} is unknown"
            else:
                yield from misfits(part, known, f"{where}.{name}")


@pytest.fixture(scope="module")
def dask_cluster():
    """The schema by which Kubernetes accepts a Dask cluster."""
    package = pytest.importorskip(
        "dask_kubernetes", reason="dask-kubernetes is not installed: svmbench[kubernetes]"
    )
    (path,) = Path(package.__file__).parent.glob("operator/deployment/helm/*/crds/daskcluster.yaml")
    definition = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (version,) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("memory", "options"),
    [
        (None, {}),
        (2.5, {"image": "other:1", "env": {"OMP_NUM_THREADS": "2"}, "idle_timeout": 600}),
        (2, {"resources": {"limits": {"cpu": "1"}}, "scheduler_service_type": "NodePort"}),
    ],
)
def test_kubernetes_is_asked_for_what_its_schema_knows(dask_cluster, memory, options):
    cluster = Cluster(
        kind="kubernetes", workers=2, memory=memory, options=our_options("kubernetes") | options
    )
    resource = clusters.cluster_arguments(cluster)["custom_cluster_spec"]
    assert resource["kind"] == "DaskCluster"
    assert re.fullmatch("svmbench-[0-9a-f]{8}", resource["metadata"]["name"])  # of one study only
    assert list(misfits({"spec": resource["spec"]}, dask_cluster, "resource")) == []


def test_its_schema_would_find_a_mistake(dask_cluster):
    container = {"name": "worker", "commands": [], "env": [{"value": 1}]}
    resource = {"spec": {"worker": {"replicas": 0, "spec": {"containers": [container]}}}}
    assert [told.removeprefix("resource.spec") for told in misfits(resource, dask_cluster, "resource")] == [
        " has no scheduler",
        ".worker.spec.containers[0].commands is unknown",
        ".worker.spec.containers[0].env[0] has no name",
        ".worker.spec.containers[0].env[0].value is no string",
    ]


def test_pods_run_dask_with_our_settings_whatever_their_image_runs_by_itself():
    operator = pytest.importorskip(
        "dask_kubernetes.operator", reason="dask-kubernetes is not installed: svmbench[kubernetes]"
    )
    options = our_options("kubernetes") | {"namespace": "mine", "env": {"OMP_NUM_THREADS": "2"}}
    cluster = Cluster(kind="kubernetes", workers=2, memory=2, worker_ttl=45, options=options)
    told = clusters.cluster_arguments(cluster)
    assert told.keys() <= names_taken(operator.KubeCluster)
    assert told["namespace"] == "mine"
    for part, starts in (("scheduler", "env dask-scheduler"), ("worker", "env dask worker --nthreads 1 ")):
        (container,) = told["custom_cluster_spec"]["spec"][part]["spec"]["containers"]
        assert " ".join([*container["command"], *container["args"]]).startswith(starts)
        assert container["image"] == "svmbench"
        assert container["resources"]["limits"] == {"memory": "2Gi"}
        environment = {entry["name"]: entry["value"] for entry in container["env"]}
        assert environment["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] == "45s"
        assert (environment["OMP_NUM_THREADS"], environment["NUMBA_NUM_THREADS"]) == ("2", "1")
    assert told["custom_cluster_spec"]["spec"]["worker"]["replicas"] == 0  # it is told how many, later


def test_a_growing_cluster_starts_small():
    assert clusters.first_workers(Cluster(kind="slurm", minimum=2, maximum=50)) == 2
    assert clusters.first_workers(Cluster(kind="slurm", workers=8)) == 8


def test_a_local_cluster_takes_a_worker_for_each_core_unless_told():
    arguments = clusters.cluster_arguments(Cluster(kind="local", workers=3, memory=2))
    assert (arguments["n_workers"], arguments["memory_limit"]) == (3, "2GiB")
    assert arguments["host"] == "127.0.0.1"


def test_a_cluster_grows_at_once_and_shrinks_with_patience(monkeypatch):
    monkeypatch.setattr(scaling, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(scaling, "PATIENCE", 3)
    demands, looks, told = [0, 2, 9, 1, 9, 1, 1, 1, 1, 3], [], []

    def demand():
        looks.append(demands[min(len(looks), len(demands) - 1)])
        return looks[-1]

    follower = Scaling(lambda n: told.append((n, len(looks))), demand, 1, 4)
    deadline = time.monotonic() + 30
    while len(looks) < len(demands) and time.monotonic() < deadline:
        time.sleep(0.01)
    follower.stop()
    assert told == [(2, 2), (4, 3), (1, 8), (3, 10)]


def test_a_cluster_that_cannot_be_scaled_is_asked_again(monkeypatch, caplog):
    monkeypatch.setattr(scaling, "LOOK_SECONDS", 0.01)
    asked = threading.Semaphore(0)

    def refuse(n):
        asked.release()
        raise OSError("no such host")

    follower = Scaling(refuse, lambda: 5, 1, 4)
    assert all(asked.acquire(timeout=30) for _ in range(2))
    follower.stop()
    assert "the cluster cannot be scaled to 4 workers: no such host" in caplog.text


# -- processes -----------------------------------------------------------------------------------


def test_settings_reach_a_process_of_dask_through_its_environment(tmp_path):
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}
    environment = as_environment(dask_settings(45, Tls(**files)))
    assert environment["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] == "45s"
    assert environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
    assert environment["DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY"] == str(tmp_path / "key")


@pytest.mark.parametrize(
    ("address", "host", "told"),
    [
        ("tcp://10.0.0.1:8786", None, "give the address of this host with --host"),
        ("tcp://10.0.0.1:8786", "10.0.0.2", ""),
        ("tcp://127.0.0.1:8786", None, ""),
        ("tcp://localhost:8786", None, ""),
        ("10.0.0.1:8786", "10.0.0.2", "expected an address such as tcp://HOST:8786"),
        ("tcp://10.0.0.1:port", "10.0.0.2", "expected an address such as tcp://HOST:8786"),
        ("tls://10.0.0.1:8786", "10.0.0.2", "give the worker's certificates with cluster.tls.folder=DIR"),
    ],
)
def test_a_worker_listens_beyond_loopback_only_if_asked(address, host, told):
    if told:
        with pytest.raises(ExecutionError, match=told):
            processes.worker_command(address, host, 1, None, None)
    else:
        command = processes.worker_command(address, host, 1, None, None)
        assert command[command.index("--host") + 1] == (host or "127.0.0.1")


# -- the log of a run ----------------------------------------------------------------------------


def test_a_run_leaves_a_log_that_machines_can_read(tmp_path):
    path = tmp_path / "logs" / "run.jsonl"
    with run_log(path):
        logging.getLogger("orchestrator.runner").info("%d trials", 3)
    logging.getLogger("orchestrator.runner").warning("too late")
    (entry,) = map(json.loads, path.read_text().splitlines())
    assert (entry["level"], entry["source"], entry["message"]) == ("info", "orchestrator.runner", "3 trials")


def test_the_log_tells_how_a_run_failed(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt), run_log(path):
        raise KeyboardInterrupt
    assert "KeyboardInterrupt" in json.loads(path.read_text())["message"]


def test_the_user_hears_what_the_cluster_warns_of():
    told = []
    with cluster_notes(told.append):
        logging.getLogger("orchestrator.execution.cluster").warning("worker %s left", "w")
        logging.getLogger("orchestrator.runner").warning("told elsewhere")
    assert told == ["worker w left"]
