"""The actions of `svmbench cluster`: make certificates, start a scheduler, start workers."""

import argparse
from pathlib import Path

from rich.console import Console

from orchestrator.config import compose_settings
from orchestrator.execution import processes
from orchestrator.execution.certificates import make_certificates
from orchestrator.execution.tls import Tls, is_loopback, read_tls
from orchestrator.settings import Cluster, ConfigError, cluster_settings, folders
from orchestrator.terminal import say


def run_action(options: argparse.Namespace, console: Console) -> None:
    """Do what `svmbench cluster ACTION` says.

    Raises
    ------
    ConfigError, ExecutionError
        With one sentence for each problem.
    """
    match options.action:
        case "certs":
            _certs(options, console)
        case "scheduler":
            cluster, tls, _ = _cluster(options, "scheduler")
            _warn_of_strangers(options.host, tls)
            command = processes.scheduler_command(options.host, options.port, options.dashboard, tls)
            processes.run_scheduler(command, processes.process_environment(cluster.worker_ttl, tls))
        case "worker":
            cluster, tls, cache = _cluster(options, "worker")
            _warn_of_strangers(options.host, tls)
            command = processes.worker_command(
                options.address, options.host, cluster.workers or 1, cluster.memory, tls
            )
            processes.keep_running(command, processes.process_environment(cluster.worker_ttl, tls, cache))


def _certs(options: argparse.Namespace, console: Console) -> None:
    folder: Path = options.folder
    for path in make_certificates(folder, options.host):
        say(console, str(path), wrap=False)
    say(
        console,
        "Give a host ca.pem and its role's pair only, and the client client.pem and client.key; "
        "whoever holds a pair may run code on the cluster. Keep ca.key off the hosts.",
    )


def _warn_of_strangers(host: str | None, tls: Tls | None) -> None:
    if tls is None and host is not None and not is_loopback(host):
        say(
            Console(stderr=True),
            f"Nothing is encrypted: whoever reaches {host} can run code on it. "
            "Make certificates with `svmbench cluster certs DIR` and give them with cluster.tls.folder=DIR.",
        )


def _cluster(options: argparse.Namespace, role: str) -> tuple[Cluster, Tls | None, Path]:
    config = compose_settings(options.overrides)
    tls, problems = read_tls(config["cluster"]["tls"], role)
    cluster = cluster_settings({**config["cluster"], "kind": "local", "tls": {}}, problems)
    if problems:
        raise ConfigError(problems)
    return cluster, tls, folders(config).cache
