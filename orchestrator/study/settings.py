"""A checked configuration: the study, and where and how to run it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.study.cluster_kinds import cluster_kind
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.study import Study
from orchestrator.study.tls import Tls

MOST_TRAININGS = 10_000_000
"""Of a study: each is a row, and planning looks at all of them."""

FOREIGN_SECONDS = 24 * 3600.0
"""Time limit of a training of a class that is not ours where `protocol.max_seconds` is null, in seconds.

It ends what never answers, such as a pool whose workers have died. It is in no trial's key.
"""

MEMORY_DEATHS = 3
"""A training whose process has exceeded its memory limit so often is given up."""

LEAST_DEATHS = 2
"""A training is never given up after fewer deaths of its workers."""


@dataclass(frozen=True, slots=True)
class DeathLimits:
    """What a training may cost before it is given up, however often workers die.

    Attributes
    ----------
    deaths : int
        Workers that died while it was all they had to do.
    seconds : float
        How long those had worked on it, together.
    """

    deaths: int = 20
    seconds: float = 3600.0


@dataclass(frozen=True)
class Cluster:
    """Where to run: kind of cluster, and what that kind needs; see `conf/config.yaml`.

    `kind` is the name of a built-in kind, or the dotted path of a custom class.
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
        """Whether trainings run in the client's own process."""
        return cluster_kind(self.kind).in_process

    @property
    def on_this_host(self) -> bool:
        """Whether all trainings run on the client's host."""
        return cluster_kind(self.kind).on_this_host


@dataclass(frozen=True)
class Paths:
    """The folders of studies, of datasets as files, and of prepared datasets."""

    results: Path
    data: Path
    cache: Path


@dataclass(frozen=True)
class Settings:
    """A checked configuration."""

    study: Study
    cluster: Cluster
    paths: Paths
    on_error: str
    retry: str
    report: ReportChoices = field(default_factory=ReportChoices)
    data_memory: float | None = None
    """Bytes that loading and checking a dataset may take; None for the default."""
