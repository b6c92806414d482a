"""What a configuration makes of each kind of cluster, held against those it is told to; none is started."""

import importlib.util
import inspect
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from orchestrator.config import CONF_FOLDER
from orchestrator.execution import ExecutionError, clusters, scaling
from orchestrator.execution.dask_settings import dask_settings
from orchestrator.execution.scaling import Scaling
from orchestrator.execution.tls import Tls
from orchestrator.settings import Cluster


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


def test_a_local_worker_tells_no_heartbeat_that_came_too_late_and_all_else():
    program = (
        "import logging, orchestrator.execution.uninterrupted\n"
        "log = logging.getLogger('distributed.worker')\n"
        "try: raise OSError('closed')\n"
        "except OSError: log.exception('Failed to communicate with scheduler during heartbeat.')\n"
        "log.error('another')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "another\n"


def test_a_cluster_of_one_s_own_shows_a_dashboard_only_if_asked():
    for shown in (False, True):
        told = clusters.cluster_arguments(Cluster(kind="local", workers=1, dashboard=shown))
        assert told["scheduler_kwargs"] == {"dashboard": shown}
        assert bool(dask_settings(300, dashboard=shown)["distributed.scheduler.http.routes"]) == shown
