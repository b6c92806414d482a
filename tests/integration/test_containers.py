"""The compose file: what it promises, and, where a Docker engine answers, a study on its containers."""

import functools
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from orchestrator.execution.certificates import make_certificates
from tests.integration import reach
from tests.integration.base_image import make_base_image
from tests.integration.clusters import command, trainings

ROOT = Path(__file__).parents[2]
PROJECT = "svmbenchtest"
STUDY = (
    *("study=s", "datasets=[digits]", "solvers=[libsvm_l1]", "protocol.outer=4", "protocol.inner=4"),
    *("search.space.C=[1,2,4,8,16,32,64,128]", "search.space.gamma=[0.01,0.02,0.04,0.08,0.16,0.32]"),
)


@functools.cache
def compose():
    """The command that speaks for Docker Compose here, or None."""
    for words in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(words[0]):
            answer = subprocess.run([*words, "version"], capture_output=True)
            if answer.returncode == 0:
                return words
    return None


def no_engine():
    """Say why the containers cannot be run; an empty string if they can."""
    if os.environ.get("SVMBENCH_TEST_CONTAINERS") != "1":
        return "takes four minutes; SVMBENCH_TEST_CONTAINERS=1 asks for it"
    if compose() is None:
        return "Docker Compose is not installed"
    answer = subprocess.run(["docker", "info"], capture_output=True, text=True)
    return f"no Docker engine answers: {answer.stderr.strip()[:200]}" if answer.returncode else ""


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.mark.skipif(compose() is None, reason="Docker Compose is not installed")
def test_compose_accepts_the_file():
    subprocess.run(
        [*compose(), "--file", ROOT / "docker-compose.yml", "config", "--quiet"], check=True, timeout=60
    )


def test_nothing_is_published_and_nothing_shown_without_a_certificate(services):
    """A container's own address can be reached by every user of the host, whatever is published."""
    for name, service in services.items():
        assert "ports" not in service, name
        assert "--dashboard" not in service.get("command", ()), name
        assert "--insecure" not in service.get("command", ()), name


def test_containers_can_change_nothing_but_their_volumes(services):
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service.get("privileged"), name
    assert "USER 10001:10001" in (ROOT / "Dockerfile").read_text()


def test_every_link_is_encrypted_and_nobody_holds_another_s_key(services):
    for name in ("scheduler", "worker", "run"):
        words = [*services[name].get("entrypoint", []), *services[name]["command"]]
        assert "cluster.tls.folder=/certs" in words
        assert not [word for word in words if "tcp://" in word]
        certs = [volume for volume in services[name]["volumes"] if volume.startswith("certs")]
        assert certs == [f"certs-{'client' if name == 'run' else name}:/certs:ro"]


@pytest.fixture(scope="module")
def cluster():
    """Three workers in containers, from images built here; what runs a Compose command on them."""
    if reason := no_engine():
        pytest.skip(reason)
    settings = {
        "BASE_IMAGE": f"{PROJECT}-base",
        "SVMBENCH_IMAGE": PROJECT,
        "DOCKER_BUILDKIT": "0",
    }

    def run(*words, **options):
        line = [*compose(), "--file", str(ROOT / "docker-compose.yml"), "--project-name", PROJECT, *words]
        options = {"check": True, "capture_output": True, "text": True, "timeout": 900} | options
        return subprocess.run(line, env=os.environ | settings, **options)

    make_base_image(settings["BASE_IMAGE"])
    try:
        run("build")
        run("up", "--detach", "--scale", "worker=3")
        yield run
    finally:
        run("down", "--volumes", check=False)
        for image in (PROJECT, settings["BASE_IMAGE"]):
            subprocess.run(["docker", "rmi", "--force", image], capture_output=True)


def docker(*words):
    """Run a Docker command; return what it says."""
    done = subprocess.run(
        ["docker", *map(str, words)], check=True, capture_output=True, text=True, timeout=300
    )
    return (done.stdout + done.stderr).strip()


def containers(*labels):
    """The containers that run for services of the project."""
    labels = ("project=" + PROJECT, *labels)
    filters = [word for label in labels for word in ("--filter", f"label=com.docker.compose.{label}")]
    return docker("ps", "--quiet", *filters).split()


LISTENING = (
    'import psutil; print(*{c.laddr.port for c in psutil.net_connections("inet") if c.status == "LISTEN"})'
)
ADDRESS = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"


@pytest.mark.skipif(bool(reach.REASON), reason=reach.REASON)
def test_another_user_of_the_host_reaches_nothing_of_the_containers(cluster, tmp_path):
    places = set()
    for container in containers():
        address = docker("inspect", "--format", ADDRESS, container)
        ports = docker("exec", container, "python", "-c", LISTENING).split()
        places |= {f"{address}:{port}" for port in ports}
    assert len(places) >= 4  # the scheduler, and workers
    assert [place for place in places if place.endswith(":8786")]
    make_certificates(tmp_path / "certs")
    with reach.open_to_all(tmp_path / "certs") as certificates:
        assert reach.reached(places, certificates) == []


def test_a_study_on_three_containers_survives_the_death_of_one(cluster, tmp_path):
    client = f"{PROJECT}-client"
    started = time.monotonic()
    cluster("run", "--detach", "--name", client, "run", "--verbose", *STUDY)
    try:
        log = tmp_path / "client.log"
        while "sent digits" not in log.read_text() if log.exists() else True:
            assert time.monotonic() - started < 300, log.read_text()
            time.sleep(0.5)
            log.write_text(docker("logs", client))
        time.sleep(2)
        workers = containers("service=worker")
        assert len(workers) == 3
        docker("kill", workers[0])
        status = docker("wait", client)
        told = docker("logs", client)
        assert status == "0", told
        assert "died" in told
        assert told.count("joined") == 3
        docker("cp", f"{client}:/results/s", tmp_path / "s")
    finally:
        docker("rm", "--force", client)
    serial = command("run", *STUDY, "study=serial", "cluster=serial", f"paths.results={tmp_path}")
    subprocess.run(serial, check=True, capture_output=True, timeout=200)
    mine = trainings(tmp_path, "s")
    assert len(mine) == 4 * (4 * 48 + 1)
    assert mine.equals(trainings(tmp_path, "serial"))
