"""The actions of `svmbench cluster`: make certificates, start a scheduler, start workers."""

import argparse
import getpass
import os
from pathlib import Path

from rich.console import Console

from orchestrator.cli.terminal import say
from orchestrator.config.cluster_settings import cluster_settings
from orchestrator.config.compose import compose_settings
from orchestrator.config.schema import folders
from orchestrator.execution.certificates import make_certificates, user_certificates
from orchestrator.execution.dask import processes
from orchestrator.study.errors import ConfigError, ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.text import shown
from orchestrator.study.tls import (
    Tls,
    certificate_folder,
    host_and_port,
    is_host,
    is_loopback,
    read_tls,
    user_tls,
)


def run_action(options: argparse.Namespace, console: Console) -> None:
    """Run the command `svmbench cluster ACTION`.

    Parameters
    ----------
    options : argparse.Namespace
        Parsed arguments of the command.
    console : Console
        Terminal for the output.

    Raises
    ------
    ConfigError, ExecutionError
        If the action cannot be run. The error has one sentence for each problem.
    """
    match options.action:
        case "certs":
            _certs(options, console)
        case "scheduler":
            cluster, tls, _ = _cluster(options, "scheduler")
            processes.check_can_listen(options.host, options.port, "--host or --port")
            _check_dashboard(options.dashboard)
            _say_who_may_join(options, tls)
            command = processes.scheduler_command(options.host, options.port, options.dashboard, tls)
            environment = processes.process_environment(
                cluster.worker_ttl, tls, dashboard=options.dashboard is not None
            )
            os.execve(command[0], command, environment)
        case "worker":
            cluster, tls, cache = _cluster(options, "worker")
            if options.host:
                processes.check_can_listen(options.host, 0, "--host")
            command = processes.worker_command(
                options.address, options.host, cluster.workers or 1, cluster.memory, tls
            )
            processes.keep_running(command, processes.process_environment(cluster.worker_ttl, tls, cache))


def _certs(options: argparse.Namespace, console: Console) -> None:
    folder: Path = options.folder
    if unusable := [host for host in options.host if not is_host(host)]:
        raise ExecutionError(f"expected --host NAME, a host's name or address, found {shown(unusable[0])}")
    for path in make_certificates(folder, options.host):
        say(console, str(path), wrap=False)
    say(
        console,
        "Copy to each host only ca.pem and the certificate and key of its role; the client needs client.pem "
        "and client.key. Everybody who has such a pair can run code on the cluster. Do not copy ca.key.",
    )


def _check_dashboard(address: str | None) -> None:
    if address is None:
        return
    host, port = host_and_port(f"//{address}")
    if not host or port is None:
        raise ExecutionError(f"expected --dashboard HOST:PORT, such as 127.0.0.1:8787, found {address!r}")
    processes.check_can_listen(host, port, "--dashboard")


def _say_who_may_join(options: argparse.Namespace, tls: Tls | None) -> None:
    """Print who can use a scheduler, to the standard error, which also receives its log.

    Parameters
    ----------
    options : argparse.Namespace
        Parsed arguments of the command.
    tls : Tls or None
        Certificates of the scheduler.
    """
    console = Console(stderr=True)
    if options.dashboard is not None:
        reach = _who_reaches(host_and_port(f"//{options.dashboard}")[0] or "")
        say(console, f"The dashboard has no password: {reach} can see the names and times of trainings.")
    if tls is None:
        say(
            console,
            "Connections are neither encrypted nor authenticated: "
            f"{_who_reaches(options.host)} can run code as "
            f"{getpass.getuser()}. Leave out --insecure to use certificates.",
        )
    elif tls.ca.parent == certificate_folder():
        say(
            console,
            f"The certificates are in {certificate_folder()}, where workers and clients of "
            f"{getpass.getuser()} on this host find them. Copy ca.pem and the certificate and key of a role "
            "to other hosts, and set cluster.tls.folder=DIR there.",
        )


def _who_reaches(host: str) -> str:
    return "every user of this host" if is_loopback(host) else f"everybody who reaches {host}"


def _cluster(options: argparse.Namespace, role: str) -> tuple[Cluster, Tls | None, Path]:
    config = compose_settings(options.overrides)
    node = config["cluster"]["tls"] | ({"insecure": True} if options.insecure else {})
    tls, problems = read_tls(node, role)
    if tls is None and not problems and not node["insecure"]:
        tls, problems = _own_pair(role)
    cluster = cluster_settings({**config["cluster"], "kind": "local", "tls": {}}, problems)
    if problems:
        raise ConfigError(problems)
    return cluster, tls, folders(config).cache


def _own_pair(role: str) -> tuple[Tls | None, list[str]]:
    """Return the certificate and key of a role from the user's folder, and any problems.

    They are created only for a scheduler, because other roles need certificates of the scheduler's authority.

    Parameters
    ----------
    role : {"scheduler", "worker"}
        Process that uses them.
    """
    if role == "scheduler":
        try:
            return user_certificates(role), []
        except ExecutionError as error:
            return None, [str(error)]
    tls, problems = user_tls(role)
    if tls is None and not problems:
        problems = [
            f"you have no certificates in {certificate_folder()}, where `svmbench cluster scheduler` writes "
            "them on its host; name those of the cluster with cluster.tls.folder=DIR"
        ]
    return tls, problems
