"""Distributed nested cross-validation: declares, schedules, stores and reports comparisons of classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["load_study", "run_study"]

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.store.results import StudyResults


# Both functions import their dependencies when they are called, so that the package itself imports quickly.


def load_study(name: str | Path, results: str | Path = "results") -> StudyResults:
    """Read the tables of a stored study.

    Parameters
    ----------
    name : str or Path
        Name of the study, or path of its folder.
    results : str or Path, default "results"
        Folder of studies (`paths.results`), in which names are looked up.

    Returns
    -------
    StudyResults
        Frames `trials`, `selections` and `outer`, and the `provenance` of every run.

    Raises
    ------
    StoreError
        If the study does not exist, or a newer version of svmbench wrote it.
    """
    from orchestrator.engine import load

    return load.load_study(name, results)


def run_study(*overrides: str, config_dir: str | Path | None = None, client: Any = None) -> StudyResults:
    """Run a study to its end, or resume it, and return its tables, as `svmbench run` does.

    Parameters
    ----------
    *overrides : str
        Overrides in Hydra's grammar, as on the command line: `"experiment=quickstart"`, `"cluster=serial"`.
    config_dir : str or Path, optional
        Folder of further configurations, laid out like `conf/`. By default only built-in ones are read.
    client : distributed.Client, optional
        Dask client on whose workers the study runs; by default the configured cluster is started. The
        workers must be processes with the same software as the client. Trainings in one process take turns,
        so extra threads of a worker gain nothing. With a client, only the settings `memory`, `give_up`,
        `no_workers_timeout` and `performance_report` of `cluster` apply.

    Returns
    -------
    StudyResults
        Tables of the study, as `load_study` returns them.

    Raises
    ------
    ConfigError
        If the configuration cannot be run. The error lists every problem found, and nothing was run.
    StoreError, ExecutionError
        If the store or the cluster cannot be used at all. Nothing was run.
    TypeError
        If `client` is not a Dask client.
    StudyStopped, KeyboardInterrupt
        If the run ended before the study was complete. The same call resumes it.
    """
    from dataclasses import replace
    from pathlib import Path

    from orchestrator.execution.main_guard import end_if_imported_by_worker

    end_if_imported_by_worker()
    from orchestrator.analysis.findings import is_decided
    from orchestrator.config.compose import load_settings
    from orchestrator.engine.edited_sources import require_as_imported
    from orchestrator.engine.line_display import LineDisplay
    from orchestrator.engine.run import run

    folder = None if config_dir is None else Path(config_dir)
    command = ["svmbench", "run", *overrides, *([] if folder is None else ["--config-dir", str(folder)])]
    if client is None:
        settings = load_settings(overrides, folder)
    else:
        from orchestrator.execution.clusters.address import require_usable  # imports Dask

        require_usable(client)
        # The kind `local` is valid without any further setting.
        settings = load_settings([*overrides, "cluster.kind=local"], folder)
        settings = replace(settings, cluster=replace(settings.cluster, kind="address"))
    require_as_imported(settings.study)
    run(settings, LineDisplay(), command, is_decided, client)
    return load_study(settings.study.name, settings.paths.results)
