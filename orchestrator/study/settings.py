"""Checked configuration: the study, and where and how to run it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.study.cluster_kinds import cluster_kind
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.study import Study
from orchestrator.study.tls import Tls

MAX_TRAININGS = 10_000_000
"""Largest number of trainings of a study. Each training is a row, and planning visits all of them."""

FOREIGN_SECONDS = 24 * 3600.0
"""Time limit of a training of a third-party class if `protocol.max_seconds` is null, in seconds.

It ends trainings that never return, for example on a pool whose workers have died. It is not part of any key.
"""

MEMORY_DEATHS = 3
"""Number of times that a training's process may exceed its memory limit before the training is given up."""

MIN_DEATHS = 2
"""Smallest number of worker deaths after which a training can be given up."""


@dataclass(frozen=True, slots=True)
class DeathLimits:
    """Limits of worker deaths after which a training is given up.

    Attributes
    ----------
    deaths : int
        Number of workers that died while the training was their only one. Default 20.
    seconds : float
        Total time that these workers had spent on it, in seconds. Default 3600.
    """

    deaths: int = 20
    seconds: float = 3600.0


@dataclass(frozen=True)
class Cluster:
    """Checked configuration key `cluster`: the kind of cluster and its settings.

    Attributes
    ----------
    kind : str
        Name of a built-in kind, or dotted path of a custom class.
    workers : int or None
        Number of workers; None means the default of the kind.
    memory : float or None
        Memory limit of one worker, in GiB; None means no limit was set.
    address : str or None
        Address of the scheduler of a running cluster.
    hosts : tuple of str
        Hosts of a cluster by SSH, the scheduler's first.
    tls : Tls or None
        Certificates of the connections.
    insecure : bool
        Whether connections without encryption are allowed.
    dashboard : bool
        Whether the Dask dashboard is served.
    minimum, maximum : int, int or None
        Limits of the number of workers of a cluster that adapts to the work; None means a fixed size.
    worker_ttl : float
        Time after which the scheduler removes a silent worker, in seconds.
    no_workers_timeout : float
        Time without any usable worker after which a run ends, in seconds.
    give_up : DeathLimits
        Limits after which a training is given up.
    performance_report : bool
        Whether Dask's performance report is written.
    options : mapping
        Further arguments for the class of the cluster.
    """

    kind: str = "local"
    workers: int | None = None
    memory: float | None = None
    address: str | None = None
    hosts: tuple[str, ...] = ()
    tls: Tls | None = None
    insecure: bool = False
    dashboard: bool = False
    minimum: int = 1
    maximum: int | None = None
    worker_ttl: float = 300.0
    no_workers_timeout: float = 600.0
    give_up: DeathLimits = field(default_factory=DeathLimits)
    performance_report: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_process(self) -> bool:
        """Whether trainings run in the client's process."""
        return cluster_kind(self.kind).in_process

    @property
    def on_this_host(self) -> bool:
        """Whether all trainings run on the client's host."""
        return cluster_kind(self.kind).on_this_host


@dataclass(frozen=True)
class Paths:
    """Folders of a configuration.

    Attributes
    ----------
    results : Path
        Folder of studies.
    data : Path
        Folder of dataset files.
    cache : Path
        Folder of prepared datasets.
    """

    results: Path
    data: Path
    cache: Path


@dataclass(frozen=True)
class Settings:
    """Checked configuration.

    Attributes
    ----------
    study : Study
        Study to run.
    cluster : Cluster
        Kind of cluster on which it runs, with its options.
    paths : Paths
        Folders to read and write.
    on_error : str
        Configuration key `on_error`.
    retry : str
        Configuration key `retry`.
    report : ReportChoices
        Choices of the report, such as the control and the significance level.
    data_memory : float or None
        Memory that loading and checking a dataset may use, in bytes; None means the default.
    minutes : float or None
        Wall-clock time after which a run stops, in minutes; None means that it runs to its end.
    """

    study: Study
    cluster: Cluster
    paths: Paths
    on_error: str
    retry: str
    report: ReportChoices = field(default_factory=ReportChoices)
    data_memory: float | None = None
    minutes: float | None = None
