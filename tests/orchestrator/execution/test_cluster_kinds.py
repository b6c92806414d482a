"""What a configuration makes of each kind of cluster, held against those it is told to; none is started."""

import asyncio
import importlib.util
import inspect
import io
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from distributed import LocalCluster, SpecCluster

from orchestrator.config.compose import CONF_FOLDER, load_settings
from orchestrator.execution.clusters import deployment
from orchestrator.execution.clusters.deployment import Deployment, deployment_of
from orchestrator.execution.clusters.kubernetes import DemandFollower
from orchestrator.execution.dask_settings import dask_settings
from orchestrator.execution.serial import SerialExecutor
from orchestrator.study.cluster_kinds import CLUSTER_KINDS
from orchestrator.study.errors import ConfigError, ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.targets import resolve
from orchestrator.study.tls import Tls
from tests.messages import assert_each_says, assert_says, raises


def test_each_kind_has_a_configuration_that_names_the_class_that_starts_it():
    files = (CONF_FOLDER / "cluster").glob("*.yaml")
    targets = {path.stem: yaml.safe_load(path.read_text())["_target_"] for path in files}
    assert targets.keys() == CLUSTER_KINDS.keys()
    for name, kind in CLUSTER_KINDS.items():
        named = resolve(targets[name])
        assert named is SerialExecutor if kind.in_process else issubclass(named, Deployment)
        assert kind.in_process or type(deployment_of(Cluster(name, insecure=True))) is named


class Threads:
    """A cluster of threads, with no more than what a custom kind needs."""

    def __init__(self, settings):
        self.settings, self.demands = settings, []

    def start(self):
        from distributed import Client

        self.client = Client(processes=False, n_workers=self.settings.workers, dashboard_address=None)
        return self.client

    def scale(self, demand):
        self.demands.append(demand())

    def close(self):
        self.client.close()


class NoClient(Threads):
    def start(self):
        self.client = io.StringIO()


def chosen(*overrides):
    return load_settings(["study=x", "datasets=[iris]", "solvers=[libsvm_l1]", *overrides]).cluster


def test_a_custom_class_starts_scales_and_closes_a_cluster():
    cluster = chosen(f"cluster._target_={__name__}.Threads", "cluster.workers=1", "cluster.options.a=1")
    assert (cluster.kind, cluster.workers, cluster.options) == (f"{__name__}.Threads", 1, {"a": 1})
    assert not cluster.in_process
    deployment = deployment_of(cluster)
    client = deployment.start()
    assert client.submit(sum, [1, 2]).result() == 3
    deployment.scale(lambda: 5)
    assert deployment._made.demands == [5]
    deployment.close()
    assert client.status == "closed"
    other = deployment_of(replace(cluster, kind=f"{__name__}.NoClient"))
    with raises(ExecutionError, "NoClient.start", "distributed.Client", "None"):
        other.start()


def test_a_kind_takes_the_place_of_a_class():
    assert chosen("cluster=slurm", "cluster.kind=serial").kind == "serial"


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("json.JSONDecoder", ("json.JSONDecoder", "start, scale and close", "without start")),
        ("nothing.there", ("nothing.there", "there is no module 'nothing'")),
        ("3", ("dotted path", "found 3")),
    ],
)
def test_a_class_that_cannot_start_a_cluster_is_a_problem(target, parts):
    with pytest.raises(ConfigError) as raised:
        chosen(f"cluster._target_={target}")
    (problem,) = raised.value.problems
    assert all(part in problem for part in ("cluster._target_", *parts))


@pytest.mark.parametrize(
    ("kind", "package"), [("slurm", "dask-jobqueue"), ("ssh", "asyncssh"), ("kubernetes", "dask-kubernetes")]
)
def test_a_missing_extra_is_named(kind, package, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExecutionError, match=rf"cluster={kind} needs {package}.*'svmbench\[{kind}\]'"):
        deployment_of(Cluster(kind=kind, insecure=True)).cluster_class()


def arguments_for(cluster):
    """The arguments of the class that starts a cluster."""
    return deployment_of(cluster).arguments()


def our_options(kind):
    """What our own configuration tells the class that starts a kind of cluster."""
    return yaml.safe_load((CONF_FOLDER / "cluster" / f"{kind}.yaml").read_text())["options"]


without_jobqueue = pytest.mark.skipif(
    importlib.util.find_spec("dask_jobqueue") is None,
    reason="dask-jobqueue is not installed: svmbench[slurm]",
)


@without_jobqueue
def test_ctrl_c_interrupts_a_run_that_uses_slurm():
    """Importing dask-jobqueue has SIGINT call sys.exit(), and so a run that is not finished end with 0."""
    program = (
        "import os, signal\n"
        "from orchestrator.execution.clusters.slurm import Slurm\n"
        "from orchestrator.study.settings import Cluster\n"
        "Slurm(Cluster(kind='slurm')).cluster_class()\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "interrupted\n", done.stderr


@without_jobqueue
def test_a_slurm_job_runs_a_worker_with_one_thread():
    import dask

    cluster = Cluster(kind="slurm", workers=2, memory=3, options=our_options("slurm") | {"queue": "short"})
    slurm = deployment_of(cluster)
    with (
        dask.config.set(dask_settings(300)),
        slurm.cluster_class()(interface="lo", **slurm.arguments()) as started,
    ):
        script = started.job_script()
    for line in ("#SBATCH -p short", "#SBATCH -t 01:00:00", "#SBATCH --mem=3G", "export NUMBA_NUM_THREADS=1"):
        assert line in script
    assert "--nthreads 1" in script
    assert "--lifetime 55m" in script
    assert "--dashboard-address 127.0.0.1:0" in script


def names_taken(*functions):
    """The keywords that functions have a name for."""
    parameters = [part for function in functions for part in inspect.signature(function).parameters.values()]
    return {part.name for part in parameters if part.kind is not inspect.Parameter.VAR_KEYWORD}


def test_arguments_for_hosts_are_known_to_dask(tmp_path):
    from distributed import Nanny, Scheduler, SSHCluster, Worker

    tls = Tls(*(tmp_path / name for name in ("ca", "cert", "key")))
    hosts = ("127.0.0.1", "127.0.0.2")
    told = arguments_for(Cluster(kind="ssh", workers=2, memory=3, hosts=hosts, tls=tls))
    assert told.keys() <= names_taken(SSHCluster)
    # How many of them a host has, and their class, is for the command that starts them.
    assert told["worker_options"].keys() <= names_taken(Nanny, Worker) | {"n_workers"}
    assert told["scheduler_options"].keys() <= names_taken(Scheduler)


@pytest.mark.parametrize(
    ("hosts", "address"),
    [
        (("head", "node"), "10.0.0.1"),
        (("localhost", "localhost"), "127.0.0.1"),
        (("mine", "mine"), "127.0.1.1"),
        (("mine", "node"), None),
        (("mine", "only-ssh-knows"), None),
        (("only-ssh-knows", "node"), None),
    ],
)
def test_a_scheduler_started_over_ssh_listens_where_the_other_hosts_reach_it(hosts, address, monkeypatch):
    """Debian maps the name of a host to 127.0.1.1 in its own /etc/hosts."""
    known = {"head": "10.0.0.1", "node": "10.0.0.2", "mine": "127.0.1.1", "localhost": "127.0.0.1"}

    def found(name):
        if name not in known:
            raise OSError(name)
        return known[name]

    monkeypatch.setattr("socket.gethostbyname", found)
    told = arguments_for(Cluster(kind="ssh", hosts=hosts, insecure=True))
    assert told["scheduler_options"]["host"] == address


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
def test_a_kubernetes_resource_fits_its_schema(dask_cluster, memory, options):
    cluster = Cluster(
        kind="kubernetes", workers=2, memory=memory, options=our_options("kubernetes") | options
    )
    resource = arguments_for(cluster)["custom_cluster_spec"]
    assert resource["kind"] == "DaskCluster"
    assert re.fullmatch("svmbench-[0-9a-f]{8}", resource["metadata"]["name"])  # of one study only
    assert list(misfits({"spec": resource["spec"]}, dask_cluster, "resource")) == []


def test_the_schema_finds_mistakes(dask_cluster):
    container = {"name": "worker", "commands": [], "env": [{"value": 1}]}
    resource = {"spec": {"worker": {"replicas": 0, "spec": {"containers": [container]}}}}
    assert_each_says(
        [told.removeprefix("resource.spec") for told in misfits(resource, dask_cluster, "resource")],
        ("no scheduler",),
        (".worker.spec.containers[0].commands", "unknown"),
        (".worker.spec.containers[0].env[0]", "no name"),
        (".worker.spec.containers[0].env[0].value", "no string"),
    )


def test_pods_run_dask_with_our_settings_whatever_their_image_runs_by_itself():
    operator = pytest.importorskip(
        "dask_kubernetes.operator", reason="dask-kubernetes is not installed: svmbench[kubernetes]"
    )
    options = our_options("kubernetes") | {"namespace": "mine", "env": {"OMP_NUM_THREADS": "2"}}
    cluster = Cluster(kind="kubernetes", workers=2, memory=2, worker_ttl=45, options=options)
    told = arguments_for(cluster)
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
    assert deployment_of(Cluster(kind="slurm", minimum=2, maximum=50)).min_workers == 2
    assert deployment_of(Cluster(kind="slurm", workers=8)).min_workers == 8


def test_a_local_cluster_takes_a_worker_for_each_core_unless_told():
    arguments = arguments_for(Cluster(kind="local", workers=3, memory=2))
    assert (arguments["n_workers"], arguments["memory_limit"]) == (3, "2GiB")
    assert arguments["host"] == "127.0.0.1"


def test_a_cluster_grows_at_once_and_shrinks_after_a_while(monkeypatch):
    monkeypatch.setattr(deployment, "SCALE_SECONDS", 0.01)
    monkeypatch.setattr(deployment, "SCALE_DOWN_CHECKS", 3)
    demands, looks, told = [0, 2, 9, 1, 9, 1, 1, 1, 1, 3], [], []

    def demand():
        looks.append(demands[min(len(looks), len(demands) - 1)])
        return looks[-1]

    follower = DemandFollower(lambda n: told.append((n, len(looks))), demand, 1, 4)
    deadline = time.monotonic() + 30
    while len(looks) < len(demands) and time.monotonic() < deadline:
        time.sleep(0.01)
    follower.stop()
    assert told == [(2, 2), (4, 3), (1, 8), (3, 10)]


def test_scaling_that_fails_is_tried_again(monkeypatch, caplog):
    monkeypatch.setattr(deployment, "SCALE_SECONDS", 0.01)
    asked = threading.Semaphore(0)

    def refuse(n):
        asked.release()
        raise OSError("no such host")

    follower = DemandFollower(refuse, lambda: 5, 1, 4)
    assert all(asked.acquire(timeout=30) for _ in range(2))
    follower.stop()
    assert_says(caplog.text, "4 workers", "no such host")


@pytest.mark.new_interpreters
def test_a_local_worker_logs_all_but_late_heartbeats():
    program = (
        "import logging, orchestrator.execution.clusters.local_preload\n"
        "log = logging.getLogger('distributed.worker')\n"
        "try: raise OSError('closed')\n"
        "except OSError: log.exception('Failed to communicate with scheduler during heartbeat.')\n"
        "log.error('another')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "another\n"


@pytest.mark.parametrize(
    ("cluster", "link"),
    [
        (Cluster(kind="local"), "http://10.0.0.1:8787/status"),
        (Cluster(kind="slurm"), "http://127.0.0.1:8787/status"),
        (Cluster(kind="ssh", insecure=True), "http://127.0.0.1:8787/status on 10.0.0.1"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_dashboard_is_where_it_listens(cluster, link):
    """Dask takes the scheduler's address for the dashboard's, which is on loopback of the same host."""
    import dask
    from distributed.utils import format_dashboard_link

    with dask.config.set(deployment_of(cluster).dask_settings()):
        assert format_dashboard_link("10.0.0.1", 8787) == link


def test_a_started_cluster_has_a_dashboard_only_if_configured():
    for shown in (False, True):
        told = arguments_for(Cluster(kind="local", workers=1, dashboard=shown))
        assert told["scheduler_kwargs"] == {"dashboard": shown}
        assert bool(dask_settings(300, dashboard=shown)["distributed.scheduler.http.routes"]) == shown


def test_an_interrupted_start_leaves_no_cluster_that_dask_would_close_at_exit(monkeypatch):
    class Interrupted(LocalCluster):
        def sync(self, func, *args, **kwargs):
            if func == self._correct_state or func == self._start:
                asyncio.run_coroutine_threadsafe(func(), self.loop.asyncio_loop)
                raise KeyboardInterrupt
            return super().sync(func, *args, **kwargs)

    others = set(SpecCluster._instances)
    local = deployment_of(Cluster("local", workers=1))
    monkeypatch.setattr(local, "cluster_class", lambda: Interrupted)
    with pytest.raises(KeyboardInterrupt):
        local.start()
    assert not [each for each in set(SpecCluster._instances) - others if each.shutdown_on_close]
